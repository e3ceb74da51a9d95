//! Arrays: what is looked for in them, and functions of theirs that are others in DataFusion.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, Function, FunctionArguments, Ident, ObjectName, Value,
};

use super::notation::{is_open_numeric, operator};
use crate::datum::items;
use crate::error::{Error, Result};
use crate::query::lists::{AMONG, ListUse};
use crate::syntax::build::{call, nested, null, number, string, take, text};
use crate::syntax::{column_type, last_name};

/// `x = ANY(list)`.
///
/// Errors: 22P02 for an array in quotes that is none.
pub(super) fn member(left: Expr, right: Expr) -> Result<Expr> {
    let inner = match right {
        Expr::Nested(inner) => *inner,
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => *expr,
        other => other,
    };
    if let Some(list) = string(&inner) {
        let item = |item: Option<String>| item.map_or_else(null, |item| text(&item));
        let list: Vec<Expr> = items(list)?.into_iter().map(item).collect();
        return Ok(Expr::InList { expr: Box::new(left), list, negated: false });
    }
    Ok(match inner {
        Expr::Array(array) => Expr::InList { expr: Box::new(left), list: array.elem, negated: false },
        array => call("array_has", vec![array, left]),
    })
}

/// Puts a mark where something is looked for in a list that is a parameter.
pub(super) fn mark(expr: &mut Expr, lists: &mut Vec<ListUse>) -> Result<()> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } if means(compare_op, &BinaryOperator::Eq) => {
            (left, right, false)
        }
        Expr::AllOp { left, compare_op, right } if means(compare_op, &BinaryOperator::NotEq) => {
            (left, right, true)
        }
        _ => return Ok(()),
    };
    let Some(list) = parameter_list(right)? else { return Ok(()) };
    let known = lists.iter().position(|other| *other == list);
    let place = known.unwrap_or_else(|| {
        lists.push(list);
        lists.len() - 1
    });
    let mark = call(AMONG, vec![take(left), number(place as i64)]);
    *expr = match negated {
        true => nested(Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(mark)) }),
        false => mark,
    };
    Ok(())
}

/// A list that is a parameter, and what its items are cast to; `None` for other lists.
///
/// Errors: 42P02 for parameters that there are none of, and those of types.
fn parameter_list(list: &Expr) -> Result<Option<ListUse>> {
    Ok(match list {
        Expr::Nested(inner) => parameter_list(inner)?,
        Expr::Cast {
            expr, data_type: DataType::Array(ast::ArrayElemTypeDef::SquareBracket(of, _)), ..
        } => match parameter_list(expr)? {
            Some(ListUse { parameter, cast: None }) => {
                let mut to = column_type(of)?;
                if is_open_numeric(of) {
                    // Each keeps the digits that it has.
                    to.decimal = None;
                }
                Some(ListUse { parameter, cast: Some(to) })
            }
            Some(_) => return Err(Error::unsupported("a list that is cast twice")),
            None => None,
        },
        Expr::Value(value) => match &value.value {
            Value::Placeholder(placeholder) => {
                Some(ListUse { parameter: crate::expr::parameter(placeholder)?, cast: None })
            }
            _ => None,
        },
        _ => None,
    })
}

/// Whether an operator is this one, in whichever notation.
fn means(op: &BinaryOperator, meant: &BinaryOperator) -> bool {
    match op {
        BinaryOperator::PGCustomBinaryOperator(names) => {
            names.last().is_some_and(|symbol| operator(symbol).is_ok_and(|op| op == *meant))
        }
        op => op == meant,
    }
}

/// `array_remove` and `array_replace` are of all items that are equal. DataFusion's of these names are of the first one only, and none of its takes NULL for equal to NULL, as PostgreSQL does here.
///
/// Errors: 0A000 for what may be NULL.
pub(super) fn all_equal(function: &mut Function) -> Result<()> {
    let name = match last_name(&function.name).as_str() {
        "array_remove" => "array_remove_all",
        "array_replace" => "array_replace_all",
        _ => return Ok(()),
    };
    if let FunctionArguments::List(list) = &function.args
        && let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(old))) = list.args.get(1)
        && !is_there(old)
    {
        let what = format_args!("{}() of what may be NULL", function.name);
        return Err(Error::unsupported(what));
    }
    function.name = ObjectName::from(vec![Ident::new(name)]);
    Ok(())
}

/// Whether something is a literal that is not NULL.
fn is_there(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_there(inner),
        Expr::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => is_there(expr),
        Expr::Value(value) => !matches!(value.value, Value::Null | Value::Placeholder(_)),
        Expr::TypedString(_) => true,
        _ => false,
    }
}
