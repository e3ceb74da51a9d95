//! Functions that search with regular expressions. Positions are in characters, counted from one.

use regex::Captures;

use super::{Options, Regular};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_PARAMETER_VALUE;

/// Errors: 22023 for a number that is too small, with the name of its parameter.
fn at_least(name: &str, value: i64, least: i64) -> Result<usize> {
    match usize::try_from(value) {
        Ok(number) if value >= least => Ok(number),
        _ => {
            let what = format!("invalid value for parameter \"{name}\": {value}");
            Err(Error::new(INVALID_PARAMETER_VALUE, what))
        }
    }
}

/// Parses the flags of a function that does not support the option for all matches.
///
/// Errors: 22023 for `g` and for unknown letters.
fn without_global(function: &str, flags: &str) -> Result<Options> {
    let options = Options::of_flags(flags)?;
    if options.global {
        let what = format!("{function}() does not support the \"global\" option");
        return Err(Error::new(INVALID_PARAMETER_VALUE, what));
    }
    Ok(options)
}

/// Returns the byte offset of a character, counted from one; beyond the end if there is no such
/// character.
fn byte_of(text: &str, character: usize) -> usize {
    let skipped = character.saturating_sub(1);
    match text.char_indices().nth(skipped) {
        Some((at, _)) => at,
        None if skipped == text.chars().count() => text.len(),
        None => text.len() + 1,
    }
}

fn character_of(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.chars().count()) + 1
}

/// Successive matches. After an empty match, the search resumes one character later.
struct Matches<'r, 't> {
    regular: &'r Regular,
    text: &'t str,
    next: usize,
}

impl<'t> Iterator for Matches<'_, 't> {
    type Item = Captures<'t>;

    fn next(&mut self) -> Option<Captures<'t>> {
        let found = self.regular.captures_at(self.text, self.next)?;
        let whole = found.get(0)?;
        self.next = match whole.is_empty() {
            false => whole.end(),
            true => whole.end() + self.text.get(whole.end()..)?.chars().next().map_or(1, char::len_utf8),
        };
        Some(found)
    }
}

impl Regular {
    fn matches<'r, 't>(&'r self, text: &'t str, start: usize) -> Matches<'r, 't> {
        Matches { regular: self, text, next: start }
    }
}

fn text_of(found: &Captures<'_>, group: usize) -> Datum {
    found.get(group).map_or(Datum::Null, |part| Datum::Text(part.as_str().to_owned()))
}

/// `regexp_like`.
///
/// Errors: those of the pattern and the flags, as everywhere here.
pub(in crate::expr) fn like(text: &str, pattern: &str, flags: &str) -> Result<Datum> {
    let regular = Regular::of(pattern, without_global("regexp_like", flags)?)?;
    Ok(Datum::Boolean(regular.is_match(text)))
}

/// `regexp_match`: the matches of the groups, or the whole match if there are no groups.
pub(crate) fn first_match(text: &str, pattern: &str, flags: &str) -> Result<Datum> {
    let options = without_global("regexp_match", flags)
        .map_err(|error| error.with_hint("Use the regexp_matches function instead."))?;
    let regular = Regular::of(pattern, options)?;
    Ok(regular.captures_at(text, 0).map_or(Datum::Null, |found| groups(&regular, &found)))
}

fn groups(regular: &Regular, found: &Captures<'_>) -> Datum {
    match regular.groups {
        0 => Datum::List(vec![text_of(found, 0)]),
        groups => Datum::List((1..=groups).map(|group| text_of(found, group)).collect()),
    }
}

/// `substring(text from pattern)`: the match of the first group, or the whole match if there are no
/// groups.
pub(in crate::expr) fn part(text: &str, pattern: &str) -> Result<Datum> {
    let regular = Regular::of(pattern, Options::default())?;
    let group = usize::from(regular.groups > 0);
    Ok(regular.captures_at(text, 0).map_or(Datum::Null, |found| text_of(&found, group)))
}

/// `regexp_count`.
pub(in crate::expr) fn count(text: &str, pattern: &str, start: i64, flags: &str) -> Result<Datum> {
    let start = byte_of(text, at_least("start", start, 1)?);
    let regular = Regular::of(pattern, without_global("regexp_count", flags)?)?;
    Ok(Datum::Int(i32::try_from(regular.matches(text, start).count()).unwrap_or(i32::MAX)))
}

/// `regexp_substr`.
pub(in crate::expr) fn substr(
    text: &str,
    pattern: &str,
    (start, n): (i64, i64),
    flags: &str,
    group: i64,
) -> Result<Datum> {
    let (start, n) = (byte_of(text, at_least("start", start, 1)?), at_least("n", n, 1)?);
    let group = at_least("subexpr", group, 0)?;
    let regular = Regular::of(pattern, without_global("regexp_substr", flags)?)?;
    if group > regular.groups {
        return Ok(Datum::Null);
    }
    Ok(regular.matches(text, start).nth(n - 1).map_or(Datum::Null, |found| text_of(&found, group)))
}

/// `regexp_instr`.
pub(in crate::expr) fn instr(
    text: &str,
    pattern: &str,
    (start, n, end): (i64, i64, i64),
    flags: &str,
    group: i64,
) -> Result<Datum> {
    let (start, n) = (byte_of(text, at_least("start", start, 1)?), at_least("n", n, 1)?);
    if !matches!(end, 0 | 1) {
        at_least("endoption", -1, 0)?;
    }
    let group = at_least("subexpr", group, 0)?;
    let regular = Regular::of(pattern, without_global("regexp_instr", flags)?)?;
    let found = regular.matches(text, start).nth(n - 1);
    let place =
        found.filter(|_| group <= regular.groups).and_then(|found| found.get(group).map(|part| part.range()));
    let byte = place.map(|place| if end == 1 { place.end } else { place.start });
    let at = byte.map_or(0, |byte| character_of(text, byte));
    Ok(Datum::Int(i32::try_from(at).unwrap_or(i32::MAX)))
}

/// `regexp_replace`. `n` is the number of the match to replace: 0 for all; `None` leaves it to the
/// flags.
pub(in crate::expr) fn replace(
    text: &str,
    pattern: &str,
    by: &str,
    (start, n): (i64, Option<i64>),
    flags: &str,
) -> Result<Datum> {
    let start = byte_of(text, at_least("start", start, 1)?);
    let options = Options::of_flags(flags)?;
    let n = match n {
        Some(n) => at_least("n", n, 0)?,
        None => usize::from(!options.global),
    };
    let regular = Regular::of(pattern, Options { global: false, ..options })?;
    let (mut out, mut kept) = (String::with_capacity(text.len()), 0);
    for (at, found) in regular.matches(text, start).enumerate() {
        if n > 0 && at + 1 < n {
            continue;
        }
        let Some(whole) = found.get(0) else { continue };
        out.push_str(text.get(kept..whole.start()).unwrap_or_default());
        expand(by, &found, &mut out);
        crate::expr::functions::check_length(out.len())?;
        kept = whole.end();
        if n > 0 {
            break;
        }
    }
    out.push_str(text.get(kept..).unwrap_or_default());
    Ok(Datum::Text(out))
}

/// Writes the replacement of a match: `\1` is the match of a group, `\&` the whole match, `\\` a
/// backslash.
fn expand(by: &str, found: &Captures<'_>, out: &mut String) {
    let mut characters = by.chars();
    while let Some(c) = characters.next() {
        let mut ahead = characters.clone();
        let group = match (c, ahead.next()) {
            ('\\', Some('&')) => 0,
            ('\\', Some(digit @ '1'..='9')) => digit.to_digit(10).unwrap_or_default() as usize,
            ('\\', Some('\\')) => {
                out.push('\\');
                characters = ahead;
                continue;
            }
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push_str(found.get(group).map_or("", |part| part.as_str()));
        characters = ahead;
    }
}

/// `regexp_split_to_array`. Empty matches at the edges, and directly after another match, split
/// nothing.
pub(crate) fn split(text: &str, pattern: &str, flags: &str) -> Result<Datum> {
    let regular = Regular::of(pattern, without_global("regexp_split_to_array", flags)?)?;
    let (mut parts, mut kept) = (Vec::new(), 0);
    for found in regular.matches(text, 0) {
        let Some(whole) = found.get(0).filter(|whole| whole.start() < text.len() && whole.end() > kept)
        else {
            continue;
        };
        parts.push(Datum::Text(text.get(kept..whole.start()).unwrap_or_default().to_owned()));
        kept = whole.end();
    }
    parts.push(Datum::Text(text.get(kept..).unwrap_or_default().to_owned()));
    Ok(Datum::List(parts))
}
