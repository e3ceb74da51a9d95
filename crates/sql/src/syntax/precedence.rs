//! Operator precedence that the parser gets wrong, put right in the tree:
//!
//! - IS DISTINCT FROM binds tighter than AND, OR and NOT: the parser takes everything behind FROM
//!   for its right side.
//! - A sign binds tighter than `^`.
//! - Every operator but AND and OR binds tighter than the NOT of NOT EXISTS, which the parser takes
//!   for one word: `NOT EXISTS (...) IS NULL` is `NOT (EXISTS (...) IS NULL)`.

use std::ops::ControlFlow;

use crate::syntax::walk::visit_expressions_mut;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, Expr, Statement, UnaryOperator, Value};

/// Puts a statement right that has IS DISTINCT FROM, `^` or EXISTS in it.
pub(super) fn correct(statement: &mut Statement) {
    let _ = visit_expressions_mut(statement, |expr| {
        correct_expr(expr);
        ControlFlow::<()>::Continue(())
    });
}

/// Puts one expression right, whose parts are right already.
pub(super) fn correct_expr(expr: &mut Expr) {
    if let Some(left) = left_operand(expr)
        && without_not(left)
    {
        let all = Box::new(take(expr));
        *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: all };
        return;
    }
    match expr {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) if is_condition(right) => {
            let all = take(right);
            let distinct = take(expr);
            *expr = with_first(all, |leaf| match distinct {
                Expr::IsDistinctFrom(left, _) => Expr::IsDistinctFrom(left, Box::new(leaf)),
                Expr::IsNotDistinctFrom(left, _) => Expr::IsNotDistinctFrom(left, Box::new(leaf)),
                other => other,
            });
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } if is_condition(inner) => {
            let all = take(inner);
            *expr = with_first(all, |leaf| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(leaf) });
        }
        // `a AND (b OR c)` without brackets is what the changes within have left of `(a AND b) OR
        // c`.
        Expr::BinaryOp { left, op: BinaryOperator::And, right } if is_or(right) => {
            let (first, all) = (take(left), take(right));
            *expr = with_left_of_or(all, |leaf| Expr::BinaryOp {
                left: Box::new(first),
                op: BinaryOperator::And,
                right: Box::new(leaf),
            });
        }
        // `-2 ^ 2`
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: power } if is_power(power) => {
            let power = take(power);
            let sign = take(expr);
            *expr = with_base(power, |base| match sign {
                Expr::UnaryOp { op, .. } => Expr::UnaryOp { op, expr: Box::new(base) },
                other => other,
            });
        }
        // `2 ^ -2 ^ 2`, of which the change within has left `2 ^ ((-2) ^ 2)`
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } if is_power(right) => {
            let (first, rest) = (take(left), take(right));
            *expr = with_base(rest, |base| power(first, base));
        }
        _ => {}
    }
}

/// The first operand of an operator that binds tighter than NOT.
fn left_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. } => None,
        Expr::BinaryOp { left: operand, .. }
        | Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand)
        | Expr::IsDistinctFrom(operand, _)
        | Expr::IsNotDistinctFrom(operand, _)
        | Expr::AnyOp { left: operand, .. }
        | Expr::AllOp { left: operand, .. }
        | Expr::Between { expr: operand, .. }
        | Expr::InList { expr: operand, .. }
        | Expr::InSubquery { expr: operand, .. }
        | Expr::Cast { expr: operand, kind: CastKind::DoubleColon, .. } => Some(operand),
        _ => None,
    }
}

/// Takes NOT away that stands before an operand without brackets; false where there is none.
fn without_not(operand: &mut Expr) -> bool {
    match operand {
        Expr::Exists { negated: negated @ true, .. } => {
            *negated = false;
            true
        }
        // What has been put right within: `NOT EXISTS (...) = a = b`.
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            *operand = take(expr);
            true
        }
        _ => false,
    }
}

fn power(base: Expr, exponent: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(base), op: BinaryOperator::PGExp, right: Box::new(exponent) }
}

fn is_power(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::PGExp, .. })
}

/// Changes the first operand of `a ^ b ^ c`.
fn with_base(expr: Expr, change: impl FnOnce(Expr) -> Expr) -> Expr {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } => power(with_base(*left, change), *right),
        base => change(base),
    }
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

fn is_condition(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

fn is_or(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::Or, .. })
}

/// Changes the first of the parts of a condition.
fn with_first(expr: Expr, change: impl FnOnce(Expr) -> Expr) -> Expr {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            Expr::BinaryOp { left: Box::new(with_first(*left, change)), op, right }
        }
        leaf => change(leaf),
    }
}

fn with_left_of_or(expr: Expr, change: impl FnOnce(Expr) -> Expr) -> Expr {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
            Expr::BinaryOp { left: Box::new(with_left_of_or(*left, change)), op: BinaryOperator::Or, right }
        }
        leaf => change(leaf),
    }
}
