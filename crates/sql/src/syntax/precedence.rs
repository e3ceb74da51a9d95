//! Corrects operator precedences that the parser gets wrong:
//!
//! - IS DISTINCT FROM binds tighter than AND, OR and NOT: the parser takes everything after FROM
//!   for its right operand.
//! - A sign binds tighter than `^`.
//! - Every operator except AND and OR binds tighter than the NOT of NOT EXISTS, which the parser
//!   takes for a single operator: `NOT EXISTS (...) IS NULL` is `NOT (EXISTS (...) IS NULL)`.

use std::ops::ControlFlow;

use crate::syntax::walk::visit_expressions_mut;
use sqlparser::ast::{BinaryOperator, CastKind, Expr, Statement, UnaryOperator, Value};

/// Corrects a statement that has IS DISTINCT FROM, `^` or EXISTS.
pub(super) fn correct(statement: &mut Statement) {
    let _ = visit_expressions_mut(statement, |expr| {
        correct_expr(expr);
        ControlFlow::<()>::Continue(())
    });
}

/// Corrects one expression, whose operands have been corrected already.
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
        // The corrections of the operands have turned `(a AND b) OR c` into `a AND (b OR c)`,
        // without brackets.
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
        // `2 ^ -2 ^ 2`, which the correction of the operand has turned into `2 ^ ((-2) ^ 2)`
        Expr::BinaryOp { left, op: BinaryOperator::PGExp, right } if is_power(right) => {
            let (first, rest) = (take(left), take(right));
            *expr = with_base(rest, |base| power(first, base));
        }
        _ => {}
    }
}

/// Returns the first operand of an operator that binds tighter than NOT.
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

/// Removes the NOT before an operand without brackets. Returns false if there is none.
fn without_not(operand: &mut Expr) -> bool {
    match operand {
        Expr::Exists { negated: negated @ true, .. } => {
            *negated = false;
            true
        }
        // An operand that has been corrected: `NOT EXISTS (...) = a = b`.
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

/// Changes the first part of a condition.
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
