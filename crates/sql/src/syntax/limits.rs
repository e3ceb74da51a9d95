//! What a statement may be at most, so that hostile ones end in an error instead of ending the process.
//!
//! The parser loops over operators of one level and makes a tree that is as deep as there are operators; that tree is walked and dropped by recursion. How deep a
//! statement can get is bounded by the tokens between two commas, added up over the brackets around them, and that is known before there is a tree.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Statement, visit_relations};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::sqlstate::{PROGRAM_LIMIT_EXCEEDED, STATEMENT_TOO_COMPLEX};

/// Bytes of a statement.
pub(super) const LONGEST: usize = 64 << 20;
/// Levels of a tree.
pub(super) const DEEPEST: usize = 1_000;
/// Brackets in brackets.
pub(super) const MOST_BRACKETS: usize = 200;
/// From this depth on there may be more frames than a thread's stack holds.
pub(crate) const DEEP: usize = 150;
const STACK: usize = 64 << 20;

pub(super) fn check_length(sql: &str) -> Result<()> {
    if sql.len() <= LONGEST {
        return Ok(());
    }
    Err(Error::new(
        PROGRAM_LIMIT_EXCEEDED,
        format!("a statement of {} bytes is too long: {LONGEST} is the most", sql.len()),
    ))
}

/// How deep a tree these tokens can make.
pub(super) fn depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut levels = vec![0usize];
    let (mut sum, mut most) = (0usize, 0usize);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(0);
                sum += 1;
            }
            Token::RParen | Token::RBracket | Token::RBrace if levels.len() > 1 => {
                // What was in the brackets is over, but there may be more behind them: `a[1][2]`.
                sum -= levels.pop().unwrap_or_default();
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
            }
            Token::Comma => {
                if let Some(level) = levels.last_mut() {
                    sum -= std::mem::take(level);
                }
            }
            Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period => {}
            Token::Word(word) if !deepens(word.keyword) => {}
            _ => {
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
                sum += 1;
            }
        }
        most = most.max(sum);
        if levels.len() > MOST_BRACKETS || most > DEEPEST {
            let what = format!(
                "the statement is nested too deeply: {DEEPEST} levels and {MOST_BRACKETS} brackets are the most"
            );
            return Err(Error::new(STATEMENT_TOO_COMPLEX, what));
        }
    }
    Ok(most)
}

/// How many relations a statement names. Those with commas between them are joined one by one, each a level of the plan.
///
/// Errors: 54001 for more than a plan may have levels.
pub(super) fn relations(statement: &Statement) -> Result<usize> {
    let mut count = 0;
    let _: ControlFlow<()> = visit_relations(statement, |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    if count <= DEEPEST {
        return Ok(count);
    }
    let what = format!("the statement names {count} relations: {DEEPEST} are the most");
    Err(Error::new(STATEMENT_TOO_COMPLEX, what))
}

/// Words that stand between or before expressions and queries.
fn deepens(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::IN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::CASE
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::JOIN
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::OPERATOR
            | Keyword::EXPLAIN
            | Keyword::SIMILAR
            | Keyword::PRIOR
            | Keyword::DIV
            | Keyword::XOR
            | Keyword::INTERVAL
            | Keyword::PREPARE
    )
}

/// Runs `f` where there is room on the stack for trees of this depth.
pub(crate) fn deep<T>(depth: usize, f: impl FnOnce() -> T) -> T {
    if depth <= DEEP {
        return f();
    }
    stacker::maybe_grow(STACK / 2, STACK, f)
}
