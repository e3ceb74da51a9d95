//! `OVERRIDING SYSTEM VALUE` and `OVERRIDING USER VALUE` of an INSERT, which the parser does not
//! know.

use datafusion::sql::sqlparser::ast::{Insert, SetExpr, Statement};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::tokens::{BLANK, Cursor, is_word, solid};

/// What the word INSERT is called in a tree where that stood behind it. No word without quotes has
/// blanks, so nobody can write it.
const SYSTEM: &str = "INSERT OVERRIDING SYSTEM VALUE";
const USER: &str = "INSERT OVERRIDING USER VALUE";

/// What an INSERT says of values for identity columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Overriding {
    /// Nothing.
    #[default]
    Neither,
    /// They count.
    System,
    /// They do not count: the sequences do.
    User,
}

impl Overriding {
    /// What an INSERT says.
    pub fn of(insert: &Insert) -> Self {
        match &insert.insert_token.0.token {
            Token::Word(word) if word.value == SYSTEM => Overriding::System,
            Token::Word(word) if word.value == USER => Overriding::User,
            _ => Overriding::Neither,
        }
    }
}

/// A statement as a text that says the same to [`super::one`].
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

/// The text of an INSERT with the clause that its tree does not print.
fn with_clause(insert: &Insert, text: &str) -> Option<String> {
    let mark = match Overriding::of(insert) {
        Overriding::Neither => return None,
        Overriding::System => SYSTEM,
        Overriding::User => USER,
    };
    let clause = mark.strip_prefix("INSERT ")?;
    // What stands before the rows.
    let mut target = insert.clone();
    (target.source, target.on, target.returning) = (None, None, None);
    let target = target.to_string();
    let target = target.trim_end_matches("DEFAULT VALUES");
    Some(format!("{target}{clause} {}", text.strip_prefix(target)?))
}

/// Moves what stands behind the target of an INSERT into the word INSERT.
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

/// What the INSERT at the n-th token says, and which tokens say it.
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
    // There is nothing to be overridden then, and PostgreSQL does not take it.
    if is_word(next.peek(), "default") {
        return None;
    }
    Some((name, start..next.at))
}
