//! Rewrites clauses of identity columns and sequences that the parser does not support.
//!
//! | PostgreSQL                          | here                                            |
//! |-------------------------------------|-------------------------------------------------|
//! | options of a sequence, in any order | in the parser's order                           |
//! | `SEQUENCE NAME s` among them        | `CACHE` with the name in place of its number    |
//! | `ALTER c SET GENERATED ALWAYS`      | `ALTER c ADD GENERATED AS IDENTITY (CACHE ...)` |
//! | `ALTER c DROP IDENTITY IF EXISTS`   | the same, without ALWAYS and BY DEFAULT         |
//!
//! The text in place of a number is not a number, so that no statement can contain it. The CACHE
//! option itself has no effect here.

use cairn_table::schema::Identity;
use sqlparser::ast::{AlterColumnOperation, Expr, GeneratedAs, SequenceOptions, Value};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{Cursor, is_word, replace, solid};
use crate::error::{Error, Result};
use crate::sqlstate::SYNTAX_ERROR;

const SET_ALWAYS: &str = "set always";
const SET_BY_DEFAULT: &str = "set by default";
const DROP: &str = "drop";
const DROP_IF_EXISTS: &str = "drop if exists";

/// The change of an identity by ALTER COLUMN.
#[derive(Debug)]
pub(crate) enum IdentityChange<'a> {
    Add(Identity, &'a [SequenceOptions]),
    Set(Identity),
    Drop { may_miss: bool },
}

impl<'a> IdentityChange<'a> {
    /// Returns the change that an operation makes; `None` for other operations.
    ///
    /// Errors: 42601 for ADD GENERATED without ALWAYS or BY DEFAULT.
    pub fn of(op: &'a AlterColumnOperation) -> Result<Option<Self>> {
        let AlterColumnOperation::AddGenerated { generated_as, sequence_options } = op else {
            return Ok(None);
        };
        let options = sequence_options.as_deref().unwrap_or_default();
        if let Some(identity) = generated_as.as_ref().and_then(kind_of) {
            return Ok(Some(IdentityChange::Add(identity, options)));
        }
        Ok(Some(match instead_of_cache(options) {
            Some(SET_ALWAYS) => IdentityChange::Set(Identity::Always),
            Some(SET_BY_DEFAULT) => IdentityChange::Set(Identity::ByDefault),
            Some(DROP) => IdentityChange::Drop { may_miss: false },
            Some(DROP_IF_EXISTS) => IdentityChange::Drop { may_miss: true },
            _ => return Err(Error::new(SYNTAX_ERROR, "GENERATED takes ALWAYS or BY DEFAULT")),
        }))
    }
}

/// Returns the kind of identity of a declared column; `None` for a generated column.
pub(crate) fn kind_of(generated: &GeneratedAs) -> Option<Identity> {
    match generated {
        GeneratedAs::Always => Some(Identity::Always),
        GeneratedAs::ByDefault => Some(Identity::ByDefault),
        GeneratedAs::ExpStored => None,
    }
}

/// Returns the explicit name of a sequence, as written.
pub(crate) fn sequence_name(options: &[SequenceOptions]) -> Option<&str> {
    instead_of_cache(options).filter(|text| !text.starts_with(|first: char| first.is_ascii_digit()))
}

fn instead_of_cache(options: &[SequenceOptions]) -> Option<&str> {
    options.iter().find_map(|option| match option {
        SequenceOptions::Cache(Expr::Value(value)) => match &value.value {
            Value::Number(text, _) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    })
}

/// Rewrites the clauses in place. Other statements stay as they are.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) {
    let is_of_interest = |token| {
        is_word(Some(token), "identity")
            || is_word(Some(token), "generated")
            || is_word(Some(token), "sequence")
    };
    if !tokens.iter().any(is_of_interest) {
        return;
    }
    let solid = solid(tokens);
    // From the end, so that positions before a change stay valid.
    for first in (0..solid.len()).rev() {
        let Some((range, instead)) = change(tokens, &solid, first).or_else(|| options(tokens, &solid, first))
        else {
            continue;
        };
        let (Some(&from), Some(&to)) =
            (solid.get(range.start), range.end.checked_sub(1).and_then(|last| solid.get(last)))
        else {
            continue;
        };
        replace(tokens, from..=to, instead);
    }
}

/// A range of positions among the tokens that are not blanks, and its replacement.
type Change = (std::ops::Range<usize>, Vec<Token>);

fn number(text: &str) -> Token {
    Token::Number(text.to_owned(), false)
}

/// Rewrites `SET GENERATED ...` and `DROP IDENTITY ...` after `ALTER [COLUMN] name`.
fn change(tokens: &[TokenWithSpan], solid: &[usize], first: usize) -> Option<Change> {
    let mut next = Cursor::new(tokens, solid, first);
    let mark = if next.words(&["set", "generated", "always"]) {
        SET_ALWAYS
    } else if next.words(&["set", "generated", "by", "default"]) {
        SET_BY_DEFAULT
    } else if next.words(&["drop", "identity", "if", "exists"]) {
        DROP_IF_EXISTS
    } else if next.words(&["drop", "identity"]) {
        DROP
    } else {
        return None;
    };
    // `ALTER TABLE t DROP identity` drops a column of that name.
    let before = Cursor::new(tokens, solid, first.checked_sub(2)?).peek();
    if !is_word(before, "alter") && !is_word(before, "column") {
        return None;
    }
    let words = ["ADD", "GENERATED", "AS", "IDENTITY"].map(Token::make_keyword);
    let options = [Token::LParen, Token::make_keyword("CACHE"), number(mark), Token::RParen];
    Some((first..next.at, words.into_iter().chain(options).collect()))
}

/// Rewrites the options of a sequence after `AS IDENTITY (` and `CREATE SEQUENCE name`.
fn options(tokens: &[TokenWithSpan], solid: &[usize], first: usize) -> Option<Change> {
    let mut next = Cursor::new(tokens, solid, first);
    let is_column = next.words(&["as", "identity"]) && next.token(&Token::LParen);
    if !is_column {
        next.at = first;
        if !next.words(&["sequence"]) || next.words(&["name"]) {
            return None;
        }
        let _ = next.words(&["if", "not", "exists"]);
        next.name()?;
        if next.words(&["as"]) {
            next.name()?;
        }
    }
    let start = next.at;
    // For each option, its position in the parser's order, and its tokens.
    let mut clauses: Vec<(u8, Vec<Token>)> = Vec::new();
    while let Some((rank, clause)) = clause(&mut next, is_column) {
        // The parser rejects duplicates.
        if clauses.iter().any(|(other, _)| *other == rank) {
            return None;
        }
        clauses.push((rank, clause));
    }
    // A name takes the place of CACHE, which has no effect.
    if clauses.iter().any(|(rank, _)| *rank == NAME) {
        clauses.retain(|(rank, _)| *rank != CACHE);
    }
    if clauses.is_sorted_by_key(|(rank, _)| *rank) && !clauses.iter().any(|(rank, _)| *rank == NAME) {
        return None;
    }
    clauses.sort_by_key(|(rank, _)| *rank);
    Some((start..next.at, clauses.into_iter().flat_map(|(_, clause)| clause).collect()))
}

const NAME: u8 = 4;
const CACHE: u8 = 5;

/// Parses an option.
fn clause(next: &mut Cursor<'_>, is_column: bool) -> Option<(u8, Vec<Token>)> {
    const NUMBERS: [(u8, &[&str], &str); 5] = [
        (0, &["increment", "by"], "INCREMENT"),
        (1, &["minvalue"], "MINVALUE"),
        (2, &["maxvalue"], "MAXVALUE"),
        (3, &["start", "with"], "START"),
        (CACHE, &["cache"], "CACHE"),
    ];
    const WORDS: [(u8, &[&str]); 4] =
        [(1, &["no", "minvalue"]), (2, &["no", "maxvalue"]), (6, &["no", "cycle"]), (6, &["cycle"])];
    let mut ahead = *next;
    for (rank, words) in WORDS {
        if ahead.words(words) {
            *next = ahead;
            let keyword = |word: &&str| Token::make_keyword(&word.to_ascii_uppercase());
            return Some((rank, words.iter().map(keyword).collect()));
        }
    }
    if is_column && ahead.words(&["sequence", "name"]) {
        let name = ahead.name()?;
        *next = ahead;
        return Some((NAME, vec![Token::make_keyword("CACHE"), number(&name)]));
    }
    for (rank, words, keyword) in NUMBERS {
        let (first, rest) = words.split_first()?;
        if ahead.words(&[first]) {
            let _ = ahead.words(rest);
            let mut clause = vec![Token::make_keyword(keyword)];
            if let Some(sign) = ahead.peek().filter(|token| matches!(token.token, Token::Minus | Token::Plus))
            {
                clause.push(sign.token.clone());
                ahead.at += 1;
            }
            let digits = ahead.peek().filter(|token| matches!(token.token, Token::Number(..)))?;
            clause.push(digits.token.clone());
            ahead.at += 1;
            *next = ahead;
            return Some((rank, clause));
        }
    }
    None
}
