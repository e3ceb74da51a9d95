//! LIKE.

use crate::error::{Error, Result};
use crate::sqlstate::INVALID_ESCAPE_SEQUENCE;

/// Whether a text is like a pattern, in which `%` is any text and `_` any character. `escape` before one of them takes its meaning away; `None` for no escape.
///
/// Time is that of text times pattern at worst: on a mismatch only the last `%` takes one more character.
pub(super) fn like(text: &str, pattern: &str, escape: Option<char>, insensitive: bool) -> Result<bool> {
    if insensitive {
        return matches(&text.to_lowercase(), &pattern.to_lowercase(), escape);
    }
    matches(text, pattern, escape)
}

fn matches(text: &str, pattern: &str, escape: Option<char>) -> Result<bool> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // Where to go on after the last `%`: the pattern behind it, and the text that it has not taken.
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
