//! Binary format of lists: encodes those of results from their texts, and decodes those of
//! parameters.
//!
//! ```text
//! | dimensions i32 | has NULL i32 | element type u32 | length i32, 1 i32 | ... |
//! | length i32, bytes | ... |     a length of -1 is NULL
//! ```

use cairn_sql::{ColumnType, Datum};

use crate::codec::cursor::Cursor;
use crate::error::Failure;
use crate::sqlstate;

use super::{binary, kind_of, oid_of};

/// A list parsed from its text.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    /// The length of each dimension, the outermost first.
    lengths: Vec<usize>,
    elements: Vec<Option<String>>,
}

/// Appends a list with elements of this type. `text` has the form of results: `{1,"a b",NULL}`.
pub fn encode(out: &mut Vec<u8>, element: &ColumnType, text: &str) {
    let list = read(text).unwrap_or_default();
    let dimensions = if list.elements.is_empty() { &[] } else { list.lengths.as_slice() };
    out.extend((dimensions.len() as i32).to_be_bytes());
    out.extend(i32::from(list.elements.iter().any(Option::is_none)).to_be_bytes());
    out.extend(oid_of(element).to_be_bytes());
    for length in dimensions {
        out.extend((*length as i32).to_be_bytes());
        out.extend(1_i32.to_be_bytes());
    }
    for value in &list.elements {
        let datum = value.as_deref().and_then(|value| Datum::parse(value, element).ok());
        let Some(datum) = datum else {
            out.extend((-1_i32).to_be_bytes());
            continue;
        };
        let at = out.len();
        out.extend([0; 4]);
        binary::encode(out, element, datum.borrow());
        let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
        if let Some(place) = out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Decodes a list whose elements have the type with this OID.
///
/// Errors: 22P03 for bytes that are not such a list, 0A000 for lists of lists, and those of the
/// elements.
pub fn decode(type_oid: u32, element: &ColumnType, bytes: &[u8]) -> Result<Datum, Failure> {
    let malformed = || {
        let message = format!("incorrect binary data format for a parameter of type {element}[]");
        Failure::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
    };
    let mut cursor = Cursor::new(bytes, "an array");
    let mut header = || cursor.i32().map_err(|_| malformed());
    let (dimensions, _, given) = (header()?, header()?, header()? as u32);
    let told = |type_oid: u32| kind_of(type_oid).map(|kind| kind.kind);
    if given != type_oid && told(given) != told(type_oid) {
        return Err(malformed());
    }
    let count = match dimensions {
        0 => 0,
        1 => {
            let (count, _first) = (header()?, header()?);
            usize::try_from(count).map_err(|_| malformed())?
        }
        _ => {
            let message = "an array of arrays is not supported as a parameter";
            return Err(Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
    };
    // BOUND: each element takes at least four bytes.
    let mut items = Vec::with_capacity(count.min(bytes.len() / 4));
    for _ in 0..count {
        items.push(match cursor.value().map_err(|_| malformed())? {
            Some(bytes) => binary::decode(given, element, bytes)?,
            None => Datum::Null,
        });
    }
    cursor.finish().map_err(|_| malformed())?;
    Ok(Datum::List(items))
}

/// Parses `{...}`; `None` for text that is not a list.
fn read(text: &str) -> Option<List> {
    let mut list = List::default();
    let mut rest = text.chars().peekable();
    let mut counts: Vec<usize> = Vec::new();
    loop {
        match rest.next()? {
            '{' => {
                counts.push(0);
                if rest.peek() == Some(&'}') {
                    continue;
                }
                if rest.peek() != Some(&'{') {
                    element(&mut rest, &mut list)?;
                }
            }
            ',' => {
                *counts.last_mut()? += 1;
                if rest.peek() != Some(&'{') {
                    element(&mut rest, &mut list)?;
                }
            }
            '}' => {
                // There is one comma fewer than elements.
                let length = counts.pop()? + 1;
                let depth = counts.len();
                if list.lengths.len() <= depth {
                    list.lengths.resize(depth + 1, 0);
                }
                *list.lengths.get_mut(depth)? = length;
                if counts.is_empty() {
                    return rest.next().is_none().then_some(list);
                }
            }
            _ => return None,
        }
    }
}

fn element(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, to: &mut List) -> Option<()> {
    let mut value = String::new();
    if rest.next_if_eq(&'"').is_some() {
        loop {
            match rest.next()? {
                '"' => break,
                '\\' => value.push(rest.next()?),
                other => value.push(other),
            }
        }
        to.elements.push(Some(value));
        return Some(());
    }
    while let Some(next) = rest.next_if(|next| !matches!(next, ',' | '}')) {
        value.push(next);
    }
    to.elements.push((value != "NULL").then_some(value));
    Some(())
}

#[cfg(test)]
mod tests {
    use cairn_sql::Type;

    use super::*;

    /// Goal: lists are encoded as PostgreSQL does it. Method: its bytes.
    #[test]
    fn lists_in_binary() {
        let encoded = |kind: ColumnType, text: &str| {
            let mut out = Vec::new();
            encode(&mut out, &kind, text);
            out
        };
        assert_eq!(encoded(Type::Int.into(), "{}"), b"\0\0\0\0\0\0\0\0\0\0\0\x17");
        assert_eq!(
            encoded(Type::Int.into(), "{7,NULL}"),
            b"\0\0\0\x01\0\0\0\x01\0\0\0\x17\0\0\0\x02\0\0\0\x01\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff"
        );
        let list = read("{{\"a,\\\"b\",NULL},{\"NULL\",c}}").unwrap();
        assert_eq!(list.lengths, [2, 2]);
        let elements: Vec<Option<&str>> = list.elements.iter().map(Option::as_deref).collect();
        assert_eq!(elements, [Some("a,\"b"), None, Some("NULL"), Some("c")]);
        assert_eq!(read("{1"), None);
    }

    /// Goal: exactly the lists that clients may send are decoded. Method: encoded lists, each cut
    /// off at every length; a list of another element type, one with trailing bytes, and a list of
    /// lists.
    #[test]
    fn lists_from_clients() {
        for (kind, type_oid, text) in [
            (Type::Int, 23, "{7,NULL,-1}"),
            (Type::BigInt, 20, "{}"),
            (Type::Text, 25, "{\"a b\",\"\",NULL}"),
            (Type::Uuid, 2950, "{00000000-0000-0000-0000-0000000000ff}"),
        ] {
            let kind = ColumnType::from(kind);
            let mut bytes = Vec::new();
            encode(&mut bytes, &kind, text);
            assert_eq!(decode(type_oid, &kind, &bytes).unwrap().to_string(), text);
            for end in 0..bytes.len() {
                assert_eq!(
                    decode(type_oid, &kind, &bytes[..end]).unwrap_err().sqlstate,
                    "22P03",
                    "{text} {end}"
                );
            }
        }
        let mut bytes = Vec::new();
        encode(&mut bytes, &Type::Int.into(), "{1}");
        assert_eq!(decode(25, &Type::Text.into(), &bytes).unwrap_err().sqlstate, "22P03");
        encode(&mut bytes, &Type::Int.into(), "{1}");
        assert_eq!(decode(23, &Type::Int.into(), &bytes).unwrap_err().sqlstate, "22P03");
        bytes.clear();
        encode(&mut bytes, &Type::Int.into(), "{{1},{2}}");
        assert_eq!(decode(23, &Type::Int.into(), &bytes).unwrap_err().sqlstate, "0A000");
    }
}
