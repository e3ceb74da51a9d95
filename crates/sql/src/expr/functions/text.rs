//! Functions on texts. Positions and lengths are in characters, counted from 1.

use super::Kind::{Boolean, Integer, Text};
use super::{Call, Function, check_length, function, kernels};
use crate::datum::{Datum, DatumRef};
use crate::error::{Error, Result};
use crate::expr::letter_case;
use crate::sqlstate::{INVALID_PARAMETER_VALUE, PROGRAM_LIMIT_EXCEEDED, SUBSTRING_ERROR};

pub(super) static ROWS: &[Function] = &[
    function("ascii", &[Text], Integer, |c| {
        Ok(Datum::Int(c.text(0).chars().next().map_or(0, |c| c as i32)))
    })
    .doc("Code point of the first character; 0 for an empty text.", &[("ascii('x')", "120")]),
    function("bit_length", &[Text], Integer, |c| Ok(Datum::Int((c.text(0).len() * 8) as i32)))
        .doc("Number of bits of a text in UTF-8.", &[("bit_length('jose')", "32")]),
    function("btrim", &[Text, Text], Text, |c| Ok(trimmed(c, Side::Both)))
        .optional(1)
        .doc(
            "Removes blanks, or the characters of the second argument, at both ends.",
            &[("btrim('  x ')", "x"), ("btrim('xyxtrimyyx', 'xyz')", "trim")],
        ),
    function("chr", &[Integer], Text, chr)
        .doc("Character of a code point.", &[("chr(65)", "A"), ("chr(233)", "é"), ("chr(0)", "54000")]),
    function("initcap", &[Text], Text, |c| Ok(Datum::Text(letter_case::initcap(c.text(0))))).doc(
        "First letter of each word in upper case, the others in lower case.",
        &[("initcap('hi THOMAS')", "Hi Thomas")],
    ),
    function("left", &[Text, Integer], Text, |c| Ok(end(c, Side::Start))).doc(
        "First n characters; for a negative n, all but the last -n.",
        &[("left('abcde', 2)", "ab"), ("left('abcde', -2)", "abc")],
    ),
    function("length", &[Text], Integer, |c| Ok(Datum::Int(c.text(0).chars().count() as i32)))
        .vectorised(kernels::length)
        .doc("Number of characters.", &[("length('jos\u{e9}')", "4")]),
    // The general path rewrites these names to `length`.
    function("char_length", &[Text], Integer, |c| Ok(Datum::Int(c.text(0).chars().count() as i32)))
        .aliases(&["character_length"])
        .native()
        .doc("Number of characters.", &[("char_length('jos\u{e9}')", "4")]),
    function("lower", &[Text], Text, |c| Ok(Datum::Text(letter_case::lower(c.text(0)))))
        .doc("In lower case.", &[("lower('TOM')", "tom"), ("lower('\u{c4}B')", "\u{e4}b")]),
    function("lpad", &[Text, Integer, Text], Text, |c| pad(c, Side::Start)).optional(1).doc(
        "Fills the start up to a length with blanks, or with the third argument. A longer text is cut.",
        &[("lpad('hi', 5, 'xy')", "xyxhi"), ("lpad('hello', 2)", "he")],
    ),
    function("ltrim", &[Text, Text], Text, |c| Ok(trimmed(c, Side::Start))).optional(1).doc(
        "Removes blanks, or the characters of the second argument, at the start.",
        &[("ltrim('zzzytest', 'xyz')", "test")],
    ),
    function("octet_length", &[Text], Integer, |c| Ok(Datum::Int(c.text(0).len() as i32)))
        .doc("Number of bytes of a text in UTF-8.", &[("octet_length('jos\u{e9}')", "5")]),
    function("overlay", &[Text, Text, Integer, Integer], Text, overlay).optional(1).doc(
        "Replaces a part by another text, of that text's length if none is given.",
        &[
            ("overlay('Txxxxas' placing 'hom' from 2 for 4)", "Thomas"),
            ("overlay('abcdef', 'X', 3)", "abXdef"),
        ],
    ),
    function("repeat", &[Text, Integer], Text, |c| {
        let times = usize::try_from(c.int(1)).unwrap_or(0);
        check_length(c.text(0).len().saturating_mul(times))?;
        Ok(Datum::Text(c.text(0).repeat(times)))
    })
    .doc("A text several times.", &[("repeat('Pg', 4)", "PgPgPgPg"), ("repeat('a', -1)", "")]),
    function("replace", &[Text, Text, Text], Text, replace).doc(
        "Replaces all occurrences of a text.",
        &[("replace('abcdefabcdef', 'cd', 'XX')", "abXXefabXXef")],
    ),
    function("reverse", &[Text], Text, |c| Ok(Datum::Text(c.text(0).chars().rev().collect())))
        .doc("The characters in reverse.", &[("reverse('abcde')", "edcba")]),
    function("right", &[Text, Integer], Text, |c| Ok(end(c, Side::End))).doc(
        "Last n characters; for a negative n, all but the first -n.",
        &[("right('abcde', 2)", "de"), ("right('abcde', -2)", "cde")],
    ),
    function("rpad", &[Text, Integer, Text], Text, |c| pad(c, Side::End)).optional(1).doc(
        "Fills the end up to a length with blanks, or with the third argument. A longer text is cut.",
        &[("rpad('hi', 5, 'xy')", "hixyx"), ("rpad('abc', 2)", "ab")],
    ),
    function("rtrim", &[Text, Text], Text, |c| Ok(trimmed(c, Side::End))).optional(1).doc(
        "Removes blanks, or the characters of the second argument, at the end.",
        &[("rtrim('testxxzx', 'xyz')", "test")],
    ),
    function("split_part", &[Text, Text, Integer], Text, split_part).doc(
        "The nth part of a text with a separator; a negative n counts from the end.",
        &[("split_part('a,b,c', ',', 2)", "b"), ("split_part('a,b,c', ',', -1)", "c")],
    ),
    function("starts_with", &[Text, Text], Boolean, |c| Ok(Datum::Boolean(c.text(0).starts_with(c.text(1)))))
        .native()
        .doc("Whether a text begins with another.", &[("starts_with('alphabet', 'alph')", "t")]),
    function("strpos", &[Text, Text], Integer, position).doc(
        "Position of the first occurrence of a text; 0 if there is none.",
        &[("strpos('high', 'ig')", "2"), ("position('z' in 'high')", "0")],
    ),
    function("substr", &[Text, Integer, Integer], Text, substring).optional(1).doc(
        "Part that begins at a position, up to a length.",
        &[("substr('alphabet', 3)", "phabet"), ("substr('alphabet', 3, 2)", "ph"), ("substr('a', 1, -1)", "22011")],
    ),
    function("substring", &[Text, Integer, Integer], Text, substring).optional(1).doc(
        "Part that begins at a position, up to a length.",
        &[("substring('Thomas' from 2 for 3)", "hom"), ("substring('Thomas', 3)", "omas")],
    ),
    function("translate", &[Text, Text, Text], Text, |c| Ok(translate(c))).doc(
        "Replaces each character of the second argument by that at the same place of the third, or removes it.",
        &[("translate('12345', '143', 'ax')", "a2x5")],
    ),
    // Written `trim(x)` it is part of the grammar, and means `btrim`.
    function("trim", &[Text], Text, |c| Ok(trimmed(c, Side::Both)))
        .grammar()
        .doc("Removes blanks at both ends.", &[("trim('  x ')", "x"), ("trim(both 'xy' from 'yxabxy')", "ab")]),
    function("upper", &[Text], Text, |c| Ok(Datum::Text(letter_case::upper(c.text(0)))))
        .doc("In upper case.", &[("upper('tom')", "TOM")]),
];

/// The part of a text that a function works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
    Both,
}

fn chr(c: &Call<'_>) -> Result<Datum> {
    match u32::try_from(c.int(0)).ok().filter(|&code| code != 0).and_then(char::from_u32) {
        Some(c) => Ok(Datum::Text(c.to_string())),
        None => Err(Error::new(PROGRAM_LIMIT_EXCEEDED, "requested character not valid")),
    }
}

fn trimmed(c: &Call<'_>, side: Side) -> Datum {
    let (text, characters) = (c.text(0), c.optional_text(1));
    let goes = |c: char| characters.map_or(c == ' ', |characters| characters.contains(c));
    Datum::Text(
        match side {
            Side::Start => text.trim_start_matches(goes),
            Side::End => text.trim_end_matches(goes),
            Side::Both => text.trim_matches(goes),
        }
        .to_owned(),
    )
}

/// Returns the first or the last characters.
fn end(c: &Call<'_>, side: Side) -> Datum {
    let (text, count) = (c.text(0), c.int(1));
    let length = text.chars().count() as i64;
    let count = if count < 0 { (length + count).max(0) } else { count.min(length) } as usize;
    Datum::Text(match side {
        Side::Start => text.chars().take(count).collect(),
        _ => text.chars().skip(length as usize - count).collect(),
    })
}

fn pad(c: &Call<'_>, side: Side) -> Result<Datum> {
    let (text, fill) = (c.text(0), c.optional_text(2).unwrap_or(" "));
    let length = usize::try_from(c.int(1)).unwrap_or(0);
    // In characters, of up to four bytes.
    check_length(length.saturating_mul(fill.chars().map(char::len_utf8).max().unwrap_or(1)))?;
    let has = text.chars().count();
    if has >= length || fill.is_empty() {
        return Ok(Datum::Text(text.chars().take(length).collect()));
    }
    let fill: String = fill.chars().cycle().take(length - has).collect();
    Ok(Datum::Text(if side == Side::Start { fill + text } else { text.to_owned() + &fill }))
}

fn replace(c: &Call<'_>) -> Result<Datum> {
    let (text, from, to) = (c.text(0), c.text(1), c.text(2));
    if from.is_empty() {
        return Ok(Datum::Text(text.to_owned()));
    }
    if to.len() > from.len() {
        let longer = text.matches(from).count().saturating_mul(to.len() - from.len());
        check_length(text.len().saturating_add(longer))?;
    }
    Ok(Datum::Text(text.replace(from, to)))
}

fn split_part(c: &Call<'_>) -> Result<Datum> {
    let (text, separator, part) = (c.text(0), c.text(1), c.int(2));
    let parts: Vec<&str> = if separator.is_empty() { vec![text] } else { text.split(separator).collect() };
    let at = match part {
        0 => return Err(Error::new(INVALID_PARAMETER_VALUE, "field position must not be zero")),
        1.. => usize::try_from(part - 1).ok(),
        _ => parts.len().checked_sub(part.unsigned_abs() as usize),
    };
    Ok(Datum::Text(at.and_then(|at| parts.get(at)).copied().unwrap_or_default().to_owned()))
}

fn position(c: &Call<'_>) -> Result<Datum> {
    let (text, part) = (c.text(0), c.text(1));
    let before = text.find(part).and_then(|at| text.get(..at));
    Ok(Datum::Int(before.map_or(0, |before| before.chars().count() as i32 + 1)))
}

/// Returns the number of characters or bytes to skip, and the number to take.
pub(super) fn part(from: i64, count: Option<i64>) -> Result<(usize, usize)> {
    let end = match count {
        Some(count) if count < 0 => {
            return Err(Error::new(SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let start = from.max(1);
    let skip = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok((skip, usize::try_from(end.saturating_sub(start)).unwrap_or(0)))
}

fn substring(c: &Call<'_>) -> Result<Datum> {
    let (skip, take) = part(c.int(1), c.optional_int(2))?;
    Ok(Datum::Text(c.text(0).chars().skip(skip).take(take).collect()))
}

/// Replaces each character of `from` by the one at the same position in `to`, or removes it if
/// there is none.
fn translate(c: &Call<'_>) -> Datum {
    let (from, to) = (c.text(1), c.text(2));
    let becomes = |c: char| match from.chars().position(|of| of == c) {
        Some(at) => to.chars().nth(at),
        None => Some(c),
    };
    Datum::Text(c.text(0).chars().filter_map(becomes).collect())
}

/// Replaces a part of a text or of bytes. The part is as long as its replacement, unless a length
/// is given.
pub(super) fn overlay(c: &Call<'_>) -> Result<Datum> {
    let (from, count) = (c.int(2), c.optional_int(3));
    if from <= 0 {
        return Err(Error::new(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    // The start of the text after the part. A negative length moves it before the part.
    let rest = |length: usize| from.saturating_add(count.unwrap_or(length as i64)).max(1);
    if let (DatumRef::Blob(bytes), DatumRef::Blob(by)) = (c.value(0), c.value(1)) {
        let (skip, rest) = (from as usize - 1, rest(by.len()) as usize - 1);
        let head = bytes.iter().take(skip);
        return Ok(Datum::Blob(head.chain(by).chain(bytes.iter().skip(rest)).copied().collect()));
    }
    let (text, by) = (c.text(0), c.text(1));
    let (skip, rest) = (from as usize - 1, rest(by.chars().count()) as usize - 1);
    let head = text.chars().take(skip);
    Ok(Datum::Text(head.chain(by.chars()).chain(text.chars().skip(rest)).collect()))
}
