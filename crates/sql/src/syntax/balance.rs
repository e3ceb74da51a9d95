//! Balances long chains of AND and OR.
//!
//! The parser makes `a OR b OR c OR d` as deep as it has operands. Code that determines the type or
//! the name of each operator visits everything below it, so that a thousand operands take a million
//! visits. Both operators are associative, so a chain can become a tree of logarithmic depth. The
//! order of the operands is preserved.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, VisitMut, VisitorMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::build::null;
use crate::syntax::walk;

/// The longest chain that is left as it is, in operands.
const SHORT: usize = 16;

/// Whether there may be a long chain.
pub(super) fn is_in(tokens: &[TokenWithSpan]) -> bool {
    let connects = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if matches!(word.keyword, Keyword::AND | Keyword::OR));
    tokens.iter().filter(connects).nth(SHORT).is_some()
}

/// Balances the chains of a tree. Cost: each operand is moved as often as its new tree has levels.
pub(super) fn balance(tree: &mut impl VisitMut) {
    let _ = walk::visit_mut(tree, &mut Balance);
}

struct Balance;

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let op = match expr {
            Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => op.clone(),
            _ => return ControlFlow::Continue(()),
        };
        if is_long(expr, &op) {
            let mut operands = Vec::new();
            let mut left = std::mem::replace(expr, null());
            while let Expr::BinaryOp { left: more, op: own, right } = left {
                if own != op {
                    left = Expr::BinaryOp { left: more, op: own, right };
                    break;
                }
                operands.push(*right);
                left = *more;
            }
            operands.push(left);
            operands.reverse();
            *expr = joined(operands, &op);
        }
        ControlFlow::Continue(())
    }
}

/// Whether the left side of a chain is long.
fn is_long(expr: &Expr, op: &BinaryOperator) -> bool {
    let (mut expr, mut count) = (expr, 1);
    while let Expr::BinaryOp { left, op: own, .. } = expr
        && own == op
    {
        count += 1;
        if count > SHORT {
            return true;
        }
        expr = left;
    }
    false
}

fn joined(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    if operands.len() < 2 {
        return operands.pop().unwrap_or_else(null);
    }
    let right = operands.split_off(operands.len() / 2);
    let (left, right) = (Box::new(joined(operands, op)), Box::new(joined(right, op)));
    Expr::BinaryOp { left, op: op.clone(), right }
}
