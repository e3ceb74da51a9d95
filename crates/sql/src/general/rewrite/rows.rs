//! Row comparisons such as `(a, b) < (c, d)`, rewritten column by column. DataFusion compares rows
//! as composite values, in which NULL is an ordinary value.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator};

use crate::error::{Error, Result};
use crate::sqlstate::{STATEMENT_TOO_COMPLEX, SYNTAX_ERROR};
use crate::syntax::build::{nested, take};
use crate::syntax::last_name;
use crate::syntax::walk::visit_expressions;

/// Columns of rows compared with `<` and similar operators. Each adds a level to the expression.
const MOST_ORDERED: usize = 100;

/// Strips all parentheses.
pub(super) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

/// Rewrites `ROW (a, b) IS NULL`, which holds if all columns are NULL, and IS NOT NULL, which holds
/// if none is.
pub(super) fn are_null(expr: &mut Expr) {
    let (row, is_null) = match expr {
        Expr::IsNull(row) => (row, true),
        Expr::IsNotNull(row) => (row, false),
        _ => return,
    };
    let Some(columns) = columns_of(row) else { return };
    // A nested row counts as a non-NULL value, whatever its columns are.
    if columns.iter().any(|column| columns_of(column).is_some()) {
        return;
    }
    let test = |column: Expr| match is_null {
        true => Expr::IsNull(Box::new(nested(column))),
        false => Expr::IsNotNull(Box::new(nested(column))),
    };
    if let Ok(all) = joined(BinaryOperator::And, columns.into_iter().map(test)) {
        *expr = all;
    }
}

/// Returns the columns of a row.
pub(super) fn columns_of(expr: &Expr) -> Option<Vec<Expr>> {
    match bare(expr) {
        Expr::Tuple(columns) => Some(columns.clone()),
        Expr::Function(called) if last_name(&called.name) == "row" => match &called.args {
            FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        },
        _ => None,
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    nested(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) })
}

/// Joins expressions with an operator, as a balanced tree: recursion over a chain of some thousands
/// would overflow the stack.
fn joined(op: BinaryOperator, all: impl Iterator<Item = Expr>) -> Result<Expr> {
    let mut all: Vec<Expr> = all.collect();
    while all.len() > 1 {
        let mut rest = all.into_iter();
        let mut halved = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => binary(left, op.clone(), right),
                None => left,
            });
        }
        all = halved;
    }
    all.pop().ok_or_else(|| Error::new(SYNTAX_ERROR, "cannot compare rows of zero length"))
}

/// Whether an expression calls a volatile function. The rewrite of ordered comparisons would
/// evaluate it twice.
pub(super) fn is_volatile(expr: &Expr) -> bool {
    let drawn = visit_expressions(expr, |expr| match expr {
        Expr::Function(called)
            if matches!(
                last_name(&called.name).as_str(),
                "random" | "nextval" | "setval" | "gen_random_uuid" | "uuid_generate_v4" | "clock_timestamp"
            ) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    drawn.is_break()
}

fn of_one_length(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() == right.len() {
        return Ok(());
    }
    Err(Error::new(SYNTAX_ERROR, "unequal number of entries in row expressions"))
}

/// Rewrites a comparison of two rows.
///
/// Errors: 42601 for rows of different lengths, 0A000 for other operators.
pub(super) fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Result<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    of_one_length(left, right)?;
    let pairs = || left.iter().cloned().map(nested).zip(right.iter().cloned().map(nested));
    match op {
        Eq => joined(And, pairs().map(|(a, b)| binary(a, Eq, b))),
        NotEq => joined(Or, pairs().map(|(a, b)| binary(a, NotEq, b))),
        Lt | LtEq | Gt | GtEq => {
            if left.len() > MOST_ORDERED {
                let what = format!("rows of more than {MOST_ORDERED} columns are not compared in order");
                return Err(Error::new(STATEMENT_TOO_COMPLEX, what));
            }
            if left.iter().chain(right).any(is_volatile) {
                return Err(Error::unsupported("ordered comparison of rows with volatile expressions"));
            }
            let strict = if matches!(op, Lt | LtEq) { Lt } else { Gt };
            let mut pairs = pairs().rev();
            let Some((a, b)) = pairs.next() else {
                return Err(Error::new(SYNTAX_ERROR, "cannot compare rows of zero length"));
            };
            // A column decides only if all columns before it are equal.
            let last = binary(a, op.clone(), b);
            Ok(pairs.fold(last, |rest, (a, b)| {
                let equal = binary(a.clone(), Eq, b.clone());
                binary(binary(a, strict.clone(), b), Or, binary(equal, And, rest))
            }))
        }
        other => Err(Error::unsupported(format_args!("the operator {other} of rows"))),
    }
}

/// Rewrites `(a, b) IS DISTINCT FROM (c, d)`, and IS NOT DISTINCT FROM.
///
/// Errors: 42601 for rows of different lengths.
pub(super) fn distinct(place: &mut Expr) -> Result<()> {
    let (left, right, negated) = match place {
        Expr::IsDistinctFrom(left, right) => (left, right, false),
        Expr::IsNotDistinctFrom(left, right) => (left, right, true),
        _ => return Ok(()),
    };
    let (Some(left), Some(right)) = (columns_of(left), columns_of(right)) else { return Ok(()) };
    of_one_length(&left, &right)?;
    let one = |(a, b): (Expr, Expr)| {
        let (a, b) = (Box::new(nested(a)), Box::new(nested(b)));
        nested(if negated { Expr::IsNotDistinctFrom(a, b) } else { Expr::IsDistinctFrom(a, b) })
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    *place = joined(op, left.into_iter().zip(right).map(one))?;
    Ok(())
}

/// Rewrites `(a, b) IN ((c, d), (e, f))`.
///
/// Errors: those of [`compared`]; 0A000 for a list item that is not a row.
pub(super) fn is_in(row: &mut Expr, list: &mut Vec<Expr>, negated: bool) -> Result<Expr> {
    let row = take(row);
    let Some(row) = columns_of(&row) else { return Err(Error::unsupported("a row in this place")) };
    let equal = |item: Expr| match columns_of(&item) {
        Some(item) => compared(&row, &BinaryOperator::Eq, &item),
        None => Err(Error::unsupported("comparison of a row with a scalar")),
    };
    let all = std::mem::take(list).into_iter().map(equal).collect::<Result<Vec<_>>>()?;
    let any = joined(BinaryOperator::Or, all.into_iter())?;
    Ok(match negated {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(any) },
        false => any,
    })
}
