//! Lists of values as PostgreSQL writes them: `{1,"a, b",NULL}`.

use cairn_table::schema::ColumnType;

use super::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_TEXT_REPRESENTATION;

impl Datum {
    /// Reads a list of values of a type.
    ///
    /// Errors: as [`items`], and those of the values.
    pub(super) fn parse_list(text: &str, element: &ColumnType) -> Result<Datum> {
        let item = |item: Option<String>| match item {
            None => Ok(Datum::Null),
            Some(text) => Datum::parse(&text, element),
        };
        items(text)?.into_iter().map(item).collect::<Result<_>>().map(Datum::List)
    }
}

/// What may be around items and braces.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Appends an item, in quotes if it would be taken for something else.
pub(crate) fn put_item(value: &str, to: &mut String) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || is_space(c);
    if !value.is_empty() && !value.eq_ignore_ascii_case("null") && !value.contains(special) {
        return to.push_str(value);
    }
    to.push('"');
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            to.push('\\');
        }
        to.push(c);
    }
    to.push('"');
}

/// The items of an array as PostgreSQL writes one: `{1,"a, \"b\"",NULL}`.
///
/// Errors: 22P02 for what is none, 0A000 for arrays of arrays.
pub(crate) fn items(array: &str) -> Result<Vec<Option<String>>> {
    let malformed = || {
        Error::new(INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{array}\"")).with_detail(
            "An array is written as {item,item}, with quotes around items that hold commas or braces.",
        )
    };
    let inner = array
        .trim_matches(is_space)
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(malformed)?;
    let mut items = Vec::new();
    let mut rest = inner.trim_start_matches(is_space);
    if rest.is_empty() {
        return Ok(items);
    }
    if rest.starts_with('{') {
        return Err(Error::unsupported("an array of arrays"));
    }
    loop {
        let (item, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (item, behind) = quoted_item(quoted).ok_or_else(malformed)?;
                (Some(item), behind)
            }
            None => plain_item(rest).ok_or_else(malformed)?,
        };
        items.push(item);
        rest = match behind.trim_start_matches(is_space) {
            "" => return Ok(items),
            behind => behind.strip_prefix(',').ok_or_else(malformed)?.trim_start_matches(is_space),
        };
    }
}

/// What is in quotes, and what is behind the second.
fn quoted_item(text: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((item, text.get(at + 1..)?)),
            '\\' => item.push(characters.next()?.1),
            other => item.push(other),
        }
    }
    None
}

/// An item without quotes, which NULL is none of, and what is behind it.
fn plain_item(text: &str) -> Option<(Option<String>, &str)> {
    let mut item = String::new();
    let mut end = text.len();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' => {
                end = at;
                break;
            }
            '"' | '{' | '}' => return None,
            '\\' => item.push(characters.next()?.1),
            other => item.push(other),
        }
    }
    let item = item.trim_end_matches(is_space);
    let is_null = item.eq_ignore_ascii_case("null");
    (!item.is_empty()).then(|| ((!is_null).then(|| item.to_owned()), text.get(end..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: arrays in quotes are read as PostgreSQL reads them. Method: quotes, escapes, NULL, spaces, and what is no array.
    #[test]
    fn arrays() {
        let read = |array: &str| -> Vec<String> {
            items(array).unwrap().into_iter().map(|item| item.unwrap_or("<null>".to_owned())).collect()
        };
        assert_eq!(read("{}"), Vec::<String>::new());
        assert_eq!(read(" { 1, 2 ,3 } "), ["1", "2", "3"]);
        assert_eq!(
            read(r#"{"a,b",c d,"\"\\{",NULL,"NULL",""}"#),
            ["a,b", "c d", "\"\\{", "<null>", "NULL", ""]
        );
        for wrong in ["", "1,2", "{1", "{1,}", "{,1}", "{\"a}", "{a\"b}", "{\"a\"b}", "{a\\"] {
            assert_eq!(items(wrong).unwrap_err().sqlstate(), "22P02", "{wrong}");
        }
    }
}
