//! Patterns of SIMILAR TO.

use super::translate::translate;
use super::{Options, Regular};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_ESCAPE_SEQUENCE;

/// Converts a pattern of SIMILAR TO to a regular expression. It matches the whole text, supports
/// `%` and `_`, and escapes characters that are special in regular expressions only.
///
/// Errors: 22025 for more than one escape character.
pub(crate) fn similar(pattern: &str, escape: &str) -> Result<String> {
    Ok(format!("^(?:{})$", plain(pattern, escape)?))
}

/// Like [`similar`], for a part of a text.
fn plain(pattern: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, rest) = (characters.next(), characters.next());
    if rest.is_some() {
        return Err(Error::new(INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut regular = String::new();
    let mut within = false;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => {
                regular.push('\\');
                regular.extend(characters.next());
            }
            ']' if within => {
                within = false;
                regular.push(']');
            }
            '\\' => regular.push_str("\\\\"),
            '[' if within && characters.peek() == Some(&':') => {
                // A character class such as `[:alpha:]`.
                regular.push('[');
                for class in characters.by_ref() {
                    regular.push(class);
                    if class == ']' {
                        break;
                    }
                }
            }
            // Sets cannot be nested.
            '[' if within => regular.push_str("\\["),
            other if within => regular.push(other),
            '[' => {
                within = true;
                regular.push('[');
            }
            '%' => regular.push_str(".*"),
            '_' => regular.push('.'),
            '(' => regular.push_str("(?:"),
            '.' | '^' | '$' => regular.extend(['\\', character]),
            other => regular.push(other),
        }
    }
    Ok(regular)
}

/// `substring(text SIMILAR pattern ESCAPE escape)`: the match of the part of the pattern between
/// two `escape "`. The part before them matches as little as possible.
///
/// Errors: 22025 for more than one escape character, 2200C unless there are no separators or two.
pub(in crate::expr) fn similar_part(text: &str, pattern: &str, escape: &str) -> Result<Datum> {
    let separator = format!("{escape}\"");
    let parts: Vec<&str> =
        if escape.is_empty() { vec![pattern] } else { pattern.split(&separator).collect() };
    let translated = |part: &str| translate(&plain(part, escape)?, Options::default());
    let regex = match parts.as_slice() {
        [whole] => format!("\\A({})\\z", translated(whole)?),
        [before, part, behind] => {
            format!("\\A(?U:{})({})(?:{})\\z", translated(before)?, translated(part)?, translated(behind)?)
        }
        _ => {
            let what = "SQL regular expression may not contain more than two escape-double-quote separators";
            return Err(Error::new("2200C", what));
        }
    };
    let found = Regular::of_translated(&regex)?.captures_at(text, 0);
    let part = found.and_then(|found| found.get(1).map(|part| part.as_str().to_owned()));
    Ok(part.map_or(Datum::Null, Datum::Text))
}
