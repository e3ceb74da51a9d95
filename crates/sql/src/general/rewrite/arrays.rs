//! Membership tests in arrays, and array functions that DataFusion defines differently.

use sqlparser::ast::{
    self, BinaryOperator, DataType, Expr, Function, FunctionArguments, Ident, ObjectName, Value,
};

use super::notation::{is_open_numeric, matched, operator};
use super::rows;
use crate::datum::items;
use crate::error::{Error, Result};
use crate::general::functions::list_markers::ListUse;
use crate::general::markers::{HAS, LIST_MARKER};
use crate::syntax::build::{call, nested, null, number, string, take, text};
use crate::syntax::{column_type, last_name};

/// Rewrites `x = ANY(list)`.
///
/// Errors: 22P02 for an invalid array literal.
pub(super) fn member(left: Expr, right: Expr) -> Result<Expr> {
    let inner = match right {
        Expr::Nested(inner) => *inner,
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => *expr,
        other => other,
    };
    let inner = uncast(inner);
    if let Some(list) = string(&inner) {
        let item = |item: Option<String>| item.map_or_else(null, |item| text(&item));
        let list: Vec<Expr> = items(list)?.into_iter().map(item).collect();
        return Ok(Expr::InList { expr: Box::new(left), list, negated: false });
    }
    Ok(match inner {
        Expr::Array(array) => Expr::InList { expr: Box::new(left), list: array.elem, negated: false },
        array => call(HAS, vec![array, left]),
    })
}

/// Returns the items of an array constructor or literal.
fn items_of(list: &Expr) -> Option<Vec<Expr>> {
    match list {
        Expr::Nested(inner) => items_of(inner),
        Expr::Array(array) => Some(array.elem.clone()),
        Expr::Function(_) => match uncast(list.clone()) {
            Expr::Function(_) => None,
            other => items_of(&other),
        },
        other => {
            let item = |item: Option<String>| item.map_or_else(null, |item| text(&item));
            Some(items(string(other)?).ok()?.into_iter().map(item).collect())
        }
    }
}

/// Whether the items of an array are written out.
pub(super) fn is_spelt(list: &Expr) -> bool {
    items_of(list).is_some()
}

/// Expands `a op ANY (array)` and `a op ALL (array)` item by item; `None` for arrays that are not
/// written out.
pub(super) fn each_item(expr: &Expr) -> Option<Expr> {
    let (left, op, right, is_any) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, true),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, false),
        _ => return None,
    };
    let items = items_of(right).filter(|items| items.len() < 2 || !rows::is_volatile(left))?;
    let one = |item: Expr| {
        let mut test = Expr::BinaryOp { left: left.clone(), op: op.clone(), right: Box::new(nested(item)) };
        matched(&mut test).unwrap_or_else(|| nested(test))
    };
    Some(together(items.into_iter().map(one), is_any))
}

/// Whether the pattern is an array: `LIKE ANY (array)`, or `LIKE ALL (array)`, which the parser
/// reads as a function call.
pub(super) fn is_of_several(expr: &Expr) -> bool {
    match expr {
        Expr::Like { any: true, .. } | Expr::ILike { any: true, .. } => true,
        Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } => all_of(pattern).is_some(),
        _ => false,
    }
}

/// Returns the array in `ALL (array)`.
fn all_of(pattern: &Expr) -> Option<&Expr> {
    let Expr::Function(called) = pattern else { return None };
    let FunctionArguments::List(list) = &called.args else { return None };
    match list.args.as_slice() {
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))]
            if last_name(&called.name) == "all" =>
        {
            Some(array)
        }
        _ => None,
    }
}

/// Expands `a LIKE ANY (array)`; `None` as for [`each_item`].
pub(super) fn like_any(expr: &Expr) -> Option<Expr> {
    let pattern = match expr {
        Expr::Like { pattern, .. } | Expr::ILike { pattern, .. } => pattern,
        _ => return None,
    };
    let one = |item: Expr| {
        let mut test = expr.clone();
        if let Expr::Like { pattern, any, .. } | Expr::ILike { pattern, any, .. } = &mut test {
            (**pattern, *any) = (item, false);
        }
        nested(test)
    };
    let (items, is_any) = match all_of(pattern) {
        Some(array) => (items_of(array)?, false),
        None => (items_of(pattern)?, true),
    };
    Some(together(items.into_iter().map(one), is_any))
}

/// Joins conditions with OR or AND.
fn together(tests: impl Iterator<Item = Expr>, is_any: bool) -> Expr {
    let op = if is_any { BinaryOperator::Or } else { BinaryOperator::And };
    let joined = tests.reduce(|left, right| {
        nested(Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) })
    });
    joined.unwrap_or_else(|| Expr::Value(Value::Boolean(!is_any).into()))
}

/// Removes our cast function around an array that is written out.
fn uncast(expr: Expr) -> Expr {
    let Expr::Function(called) = &expr else { return expr };
    let FunctionArguments::List(list) = &called.args else { return expr };
    match list.args.first() {
        Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(of)))
            if last_name(&called.name).starts_with("cairn_list_")
                && (string(of).is_some() || matches!(of, Expr::Array(_))) =>
        {
            of.clone()
        }
        _ => expr,
    }
}

/// Puts a marker in place of a membership test on a list parameter.
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
    let mark = call(LIST_MARKER, vec![take(left), number(place as i64)]);
    *expr = match negated {
        true => nested(Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(mark)) }),
        false => mark,
    };
    Ok(())
}

/// Returns a list parameter and the type that its items are cast to; `None` for other lists.
///
/// Errors: 42P02 for undefined parameters, and those of types.
fn parameter_list(list: &Expr) -> Result<Option<ListUse>> {
    Ok(match list {
        Expr::Nested(inner) => parameter_list(inner)?,
        Expr::Cast {
            expr, data_type: DataType::Array(ast::ArrayElemTypeDef::SquareBracket(of, _)), ..
        } => match parameter_list(expr)? {
            Some(ListUse { parameter, cast: None }) => {
                let mut to = column_type(of)?;
                if is_open_numeric(of) {
                    // Each item keeps its own scale.
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

/// Whether an operator is the given one, in any notation.
fn means(op: &BinaryOperator, meant: &BinaryOperator) -> bool {
    match op {
        BinaryOperator::PGCustomBinaryOperator(names) => {
            names.last().is_some_and(|symbol| operator(symbol).is_ok_and(|op| op == *meant))
        }
        op => op == meant,
    }
}

/// Makes `array_remove` and `array_replace` apply to all equal items, as in PostgreSQL.
/// DataFusion's functions of these names apply to the first one only. None of its variants treats
/// NULL as equal to NULL, as PostgreSQL does here.
///
/// Errors: 0A000 for a value that may be NULL.
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
        let what = format_args!("{}() with an argument that may be NULL", function.name);
        return Err(Error::unsupported(what));
    }
    function.name = ObjectName::from(vec![Ident::new(name)]);
    Ok(())
}

/// Whether an expression is a literal other than NULL.
fn is_there(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_there(inner),
        Expr::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => is_there(expr),
        Expr::Value(value) => !matches!(value.value, Value::Null | Value::Placeholder(_)),
        Expr::TypedString(_) => true,
        _ => false,
    }
}
