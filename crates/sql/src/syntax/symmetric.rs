//! BETWEEN SYMMETRIC, which the parser does not support.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, Ident, VisitMut};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::build::{nested, null, take};
use super::tokens::replace;
use crate::syntax::walk::{visit_expressions, visit_expressions_mut};

/// Stands for the word during parsing. No text can contain it, because its first byte is invalid
/// there.
const MARK: &str = "\0symmetric";

/// Replaces SYMMETRIC by `mark ||`, which the parser takes for a part of the first bound.
/// ASYMMETRIC is the default, and is removed.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: &Token, said: &str| {
        matches!(token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(said))
    };
    let mut after_between = false;
    let mut at = 0;
    while let Some(TokenWithSpan { token, .. }) = tokens.get(at) {
        if matches!(token, Token::Whitespace(_)) {
            at += 1;
            continue;
        }
        let (is_mark, is_nothing) = (is(token, "symmetric"), is(token, "asymmetric"));
        if after_between && (is_mark || is_nothing) {
            let mark = Word { value: MARK.to_owned(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
            let put = [Token::Word(mark), Token::StringConcat];
            replace(tokens, at..=at, put.into_iter().filter(|_| is_mark));
            after_between = false;
        } else {
            after_between = is(token, "between");
            at += 1;
        }
    }
}

/// Whether there is anything to correct.
pub(super) fn is_in(tokens: &[TokenWithSpan]) -> bool {
    tokens.iter().any(|token| matches!(&token.token, Token::Word(word) if word.value == MARK))
}

/// The most expressions that may be duplicated. Each nested BETWEEN SYMMETRIC doubles its contents.
const MOST_COPIED: usize = 10_000;

/// Rewrites marked bounds so that either one may be the lower one.
///
/// Errors: too many expressions would be duplicated.
pub(super) fn correct(tree: &mut impl VisitMut) -> Result<(), ()> {
    let mut left = MOST_COPIED;
    let done = visit_expressions_mut(tree, |expr| {
        if let Expr::Between { expr: of, negated, low, high } = expr
            && unmark(low)
        {
            for copied in [&**of, low, high] {
                if !count(copied, &mut left) {
                    return ControlFlow::Break(());
                }
            }
            let (of, negated, low, high) = (take(of), *negated, take(low), take(high));
            let between = |low: &Expr, high: &Expr| {
                let (low, high) = (Box::new(low.clone()), Box::new(high.clone()));
                Box::new(Expr::Between { expr: Box::new(of.clone()), negated, low, high })
            };
            let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
            let (left, right) = (between(&low, &high), between(&high, &low));
            *expr = nested(Expr::BinaryOp { left, op, right });
        }
        ControlFlow::Continue(())
    });
    if done.is_break() { Err(()) } else { Ok(()) }
}

/// Subtracts the number of a tree's expressions from `left`. Returns false if there are more.
fn count(expr: &Expr, left: &mut usize) -> bool {
    let counted = visit_expressions(expr, |_| {
        *left = left.saturating_sub(1);
        if *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    counted.is_continue()
}

/// Removes the mark, which is the leftmost operand.
fn unmark(expr: &mut Expr) -> bool {
    let Expr::BinaryOp { left, op, right } = expr else { return false };
    let is_mark = matches!(&**left, Expr::Identifier(Ident { value, .. }) if value == MARK);
    if is_mark && *op == BinaryOperator::StringConcat {
        *expr = std::mem::replace(right, null());
        return true;
    }
    unmark(left)
}
