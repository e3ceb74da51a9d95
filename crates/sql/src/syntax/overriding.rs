//! `OVERRIDING SYSTEM VALUE` and `OVERRIDING USER VALUE` in an INSERT, which the parser does not
//! support.

use sqlparser::ast::{Insert, SetExpr, Statement};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{BLANK, Cursor, is_word, solid};

/// The text of the INSERT keyword in a tree that had such a clause. No statement can contain it,
/// because an unquoted word has no blanks.
const SYSTEM: &str = "INSERT OVERRIDING SYSTEM VALUE";
const USER: &str = "INSERT OVERRIDING USER VALUE";

/// The treatment of given values for identity columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Overriding {
    /// No clause.
    #[default]
    Neither,
    /// Given values are used.
    System,
    /// Given values are ignored, and those of the sequences used.
    User,
}

impl Overriding {
    /// Returns the clause of an INSERT.
    pub fn of(insert: &Insert) -> Self {
        match &insert.insert_token.0.token {
            Token::Word(word) if word.value == SYSTEM => Overriding::System,
            Token::Word(word) if word.value == USER => Overriding::User,
            _ => Overriding::Neither,
        }
    }
}

/// Returns the text of a statement, which [`super::one`] parses to an equivalent tree.
pub(crate) fn sql_of(statement: &Statement) -> String {
    let text = statement.to_string();
    let marked = match statement {
        Statement::Insert(insert) => with_clause(insert, &text),
        Statement::Query(query) => match &*query.body {
            SetExpr::Insert(insert) => {
                text.strip_suffix(&insert.to_string()).map(|with| format!("{with}{}", sql_of(insert)))
            }
            _ => None,
        },
        _ => None,
    };
    marked.unwrap_or(text)
}

/// Returns the text of an INSERT with its clause, which the tree does not print.
fn with_clause(insert: &Insert, text: &str) -> Option<String> {
    let mark = match Overriding::of(insert) {
        Overriding::Neither => return None,
        Overriding::System => SYSTEM,
        Overriding::User => USER,
    };
    let clause = mark.strip_prefix("INSERT ")?;
    // The part before the rows.
    let mut target = insert.clone();
    (target.source, target.on, target.returning) = (None, None, None);
    let target = target.to_string();
    let target = target.trim_end_matches("DEFAULT VALUES");
    Some(format!("{target}{clause} {}", text.strip_prefix(target)?))
}

/// Moves the clause after the target of an INSERT into the INSERT keyword.
pub(super) fn spell_out(tokens: &mut [TokenWithSpan]) {
    if !tokens.iter().any(|token| is_word(Some(token), "overriding")) {
        return;
    }
    let solid = solid(tokens);
    for first in 0..solid.len() {
        let Some((name, clause)) = overriding(tokens, &solid, first) else { continue };
        if let Some(TokenWithSpan { token: Token::Word(insert), .. }) =
            solid.get(first).and_then(|at| tokens.get_mut(*at))
        {
            name.clone_into(&mut insert.value);
        }
        for place in solid.get(clause).unwrap_or_default() {
            if let Some(token) = tokens.get_mut(*place) {
                token.token = BLANK;
            }
        }
    }
}

/// Returns the mark for the INSERT at the n-th token, and the tokens of its clause.
fn overriding(
    tokens: &[TokenWithSpan],
    solid: &[usize],
    first: usize,
) -> Option<(&'static str, std::ops::Range<usize>)> {
    let mut next = Cursor::new(tokens, solid, first);
    if !next.words(&["insert", "into"]) {
        return None;
    }
    next.name()?;
    if next.words(&["as"]) {
        next.name()?;
    }
    if next.token(&Token::LParen) {
        while !next.token(&Token::RParen) {
            next.peek()?;
            next.at += 1;
        }
    }
    let start = next.at;
    let name = if next.words(&["overriding", "system", "value"]) {
        SYSTEM
    } else if next.words(&["overriding", "user", "value"]) {
        USER
    } else {
        return None;
    };
    // DEFAULT VALUES has nothing to override, and PostgreSQL rejects the combination.
    if is_word(next.peek(), "default") {
        return None;
    }
    Some((name, start..next.at))
}
