//! LIKE.

use super::letter_case;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_ESCAPE_SEQUENCE;

/// Whether a text matches a pattern, in which `%` stands for any text and `_` for any character.
/// `escape` takes the special meaning of the next character away; `None` for no escape.
///
/// Time is at worst proportional to text times pattern: after a mismatch only the last `%` takes
/// one more character.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>, insensitive: bool) -> Result<bool> {
    if !insensitive {
        return matches(text, pattern, escape);
    }
    // The escape character must not change with the case of letters.
    let (pattern, escape) = match escape {
        Some(escape) if escape != '\\' => (with_backslashes(pattern, escape), Some('\\')),
        _ => (pattern.to_owned(), escape),
    };
    matches(&letter_case::lower(text), &letter_case::lower(&pattern), escape)
}

/// Replaces the escape character of a pattern by a backslash.
fn with_backslashes(pattern: &str, escape: char) -> String {
    let mut with = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == escape {
            with.push('\\');
            with.extend(characters.next());
        } else if character == '\\' {
            with.push_str("\\\\");
        } else {
            with.push(character);
        }
    }
    with
}

fn matches(text: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // The state to resume from after the last `%`: the pattern after it, and the text that it has
    // not consumed.
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut ahead = pattern.clone();
        let matched = match ahead.next() {
            None => text.as_str().is_empty(),
            Some('%') if escape != Some('%') => {
                if ahead.as_str().is_empty() {
                    return Ok(true);
                }
                retry = Some((ahead.clone(), text.clone()));
                pattern = ahead;
                continue;
            }
            Some('_') if escape != Some('_') => text.next().is_some(),
            Some(c) if Some(c) == escape && text.as_str().is_empty() => false,
            Some(c) if Some(c) == escape => {
                let literal = ahead.next().ok_or_else(|| {
                    Error::new(INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
                })?;
                text.next() == Some(literal)
            }
            Some(c) => text.next() == Some(c),
        };
        if matched && pattern.as_str().is_empty() {
            return Ok(true);
        }
        if matched {
            pattern = ahead;
            continue;
        }
        let Some((behind, rest)) = &mut retry else { return Ok(false) };
        if rest.next().is_none() {
            return Ok(false);
        }
        (pattern, text) = (behind.clone(), rest.clone());
    }
}
