//! `x op ANY (Q)` and `x op ALL (Q)`.
//!
//! `x < ANY (Q)` holds where x is below the maximum of Q. ALL with an operator is the negation of
//! ANY with the opposite operator. Where no row is found, the result is NULL if Q contains a NULL.

use sqlparser::ast::{BinaryOperator, Expr};

use super::rows;
use super::subqueries::{Around, binary, each_own, is_null, or, three_valued};
use crate::syntax::build::{call, number, take};

/// Rewrites the cases equivalent to IN as IN.
pub(super) fn as_in(expr: &mut Expr) {
    each_own(expr, |expr| {
        let negated = match expr {
            Expr::AnyOp { compare_op: BinaryOperator::Eq, .. } => false,
            Expr::AllOp { compare_op: BinaryOperator::NotEq, .. } => true,
            _ => return,
        };
        if let Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } = expr
            && let Expr::Subquery(query) = rows::bare(right)
        {
            let subquery = query.clone();
            *expr = Expr::InSubquery { expr: Box::new(take(left)), subquery, negated };
        }
    });
}

/// Whether ANY or ALL applies to a subquery rather than to a list.
pub(super) fn is_of_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => {
            matches!(rows::bare(right), Expr::Subquery(_))
        }
        _ => false,
    }
}

/// Rewrites ANY or ALL of a subquery. `None` where that is impossible.
pub(super) fn compared(expr: &Expr, around: &Around<'_>) -> Option<Expr> {
    let (left, op, right, is_all) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op.clone(), right, false),
        Expr::AllOp { left, compare_op, right } => (left, opposite(compare_op)?, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = rows::bare(right) else { return None };
    if matches!(rows::bare(left), Expr::Tuple(_)) {
        return None;
    }
    let left = around.named(left, around.lookup.looks_outside(query))?;
    let ends: &[&str] = match op {
        BinaryOperator::Lt | BinaryOperator::LtEq => &["max"],
        BinaryOperator::Gt | BinaryOperator::GtEq => &["min"],
        BinaryOperator::NotEq => &["min", "max"],
        _ => return None,
    };
    let of = |function: &str| {
        let of = around.of_rows(query, |value| call(function, vec![value]), |_| None)?;
        Some(Expr::Subquery(of))
    };
    let found: Option<Vec<Expr>> =
        ends.iter().map(|end| Some(binary(left.clone(), op.clone(), of(end)?))).collect();
    let found = found?.into_iter().reduce(or)?;
    let rows =
        || Some(Expr::Subquery(around.of_rows(query, |_| call("count", vec![number(1)]), |_| None)?));
    let has_null = binary(rows()?, BinaryOperator::Gt, of("count")?);
    let has_rows = binary(rows()?, BinaryOperator::Gt, number(0));
    let unknown = or(has_null, binary(is_null(left), BinaryOperator::And, has_rows));
    Some(three_valued(found, unknown, !is_all))
}

fn opposite(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq => BinaryOperator::NotEq,
        BinaryOperator::Lt => BinaryOperator::GtEq,
        BinaryOperator::LtEq => BinaryOperator::Gt,
        BinaryOperator::Gt => BinaryOperator::LtEq,
        BinaryOperator::GtEq => BinaryOperator::Lt,
        _ => return None,
    })
}
