//! Arrays in PostgreSQL's notation: `{1,"a, b",NULL}`.

use cairn_table::schema::ColumnType;

use super::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::INVALID_TEXT_REPRESENTATION;

impl Datum {
    /// Parses an array of values of a type.
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

/// Whether it is a space that may surround items and braces.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Appends an item, in quotes if it would be misread without them.
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

/// An item of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Null,
    Text(String),
    /// An array with one dimension less.
    List(Vec<Item>),
}

/// The largest number of dimensions of an array.
const MOST_DIMENSIONS: usize = 6;

/// Parses an array of one dimension in PostgreSQL's notation: `{1,"a, \"b\"",NULL}`.
///
/// Errors: 22P02 for malformed text, 0A000 for arrays of arrays.
pub(crate) fn items(array: &str) -> Result<Vec<Option<String>>> {
    let plain = |item: Item| match item {
        Item::Null => Ok(None),
        Item::Text(text) => Ok(Some(text)),
        Item::List(_) => Err(Error::unsupported("a multidimensional array")),
    };
    nested_items(array)?.into_iter().map(plain).collect()
}

/// Parses an array whose items may be arrays, all of the same length.
///
/// Errors: 22P02 for malformed text.
pub(crate) fn nested_items(array: &str) -> Result<Vec<Item>> {
    let malformed = || {
        Error::new(INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{array}\"")).with_detail(
            "An array is written as {item,item}, with quotes around items that hold commas or braces.",
        )
    };
    let trimmed = array.trim_matches(is_space);
    // Explicit bounds are discarded, so that every array starts at 1.
    let body = match trimmed.strip_prefix('[').and_then(|rest| rest.split_once('=')) {
        Some((_, body)) => body.trim_start_matches(is_space),
        None => trimmed,
    };
    let inner = body.strip_prefix('{').ok_or_else(malformed)?;
    let (items, rest) = braces(inner, 1).ok_or_else(malformed)?;
    let is_whole = rest.is_empty() && depth(&items).is_some();
    is_whole.then_some(items).ok_or_else(malformed)
}

/// Returns the length of each dimension of an array; `None` if its parts differ.
fn depth(items: &[Item]) -> Option<Vec<usize>> {
    let mut parts = items.iter().map(|item| match item {
        Item::List(items) => depth(items).map(Some),
        _ => Some(None),
    });
    let first = parts.next().unwrap_or(Some(None))?;
    for part in parts {
        if part? != first {
            return None;
        }
    }
    Some(std::iter::once(items.len()).chain(first.unwrap_or_default()).collect())
}

/// Parses the items after an opening brace. Also returns the text after the closing one.
// BOUND: at most `MOST_DIMENSIONS` levels.
fn braces(text: &str, level: usize) -> Option<(Vec<Item>, &str)> {
    let mut items = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((items, rest));
    }
    loop {
        let behind = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (item, behind) = quoted_item(quoted)?;
                items.push(Item::Text(item));
                behind
            }
            None => match rest.strip_prefix('{') {
                Some(inner) if level < MOST_DIMENSIONS => {
                    let (list, behind) = braces(inner, level + 1)?;
                    items.push(Item::List(list));
                    behind
                }
                Some(_) => return None,
                None => {
                    let (item, behind) = plain_item(rest)?;
                    items.push(item.map_or(Item::Null, Item::Text));
                    behind
                }
            },
        };
        let behind = behind.trim_start_matches(is_space);
        if let Some(rest) = behind.strip_prefix('}') {
            return Some((items, rest));
        }
        rest = behind.strip_prefix(',')?.trim_start_matches(is_space);
    }
}

/// Parses an item after its opening quote. Also returns the text after the closing one.
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

/// Parses an item without quotes; `None` for NULL. Also returns the text after it.
fn plain_item(text: &str) -> Option<(Option<String>, &str)> {
    let mut item = String::new();
    let mut end = text.len();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            ',' | '}' => {
                end = at;
                break;
            }
            '"' | '{' => return None,
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

    /// Goal: arrays are parsed as in PostgreSQL. Method: quotes, escapes, NULL, spaces, and
    /// malformed arrays.
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
