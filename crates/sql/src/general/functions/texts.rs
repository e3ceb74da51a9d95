//! Functions of texts and bytes.

use arrow::datatypes::DataType;
use cairn_table::schema::ColumnType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use super::{RowFunction, text_of};
use crate::datum::Datum;
use crate::error::Error;
use crate::general::errors::external;
use crate::general::markers::{ESCAPED, SIMILAR};
use crate::general::rewrite::{escaped, similar};
use crate::general::tree::values::scalar;
use crate::sqlstate::{INVALID_PARAMETER_VALUE, UNDEFINED_FUNCTION};

/// `encode(bytes, format)`. DataFusion's base64 has no padding and no line breaks.
pub(super) fn encode() -> ScalarUDF {
    RowFunction::new("encode", &[2], DataType::Utf8View, |values| {
        let bytes = match values.first() {
            Some(
                ScalarValue::BinaryView(Some(bytes))
                | ScalarValue::Binary(Some(bytes))
                | ScalarValue::LargeBinary(Some(bytes)),
            ) => bytes,
            Some(value) if value.is_null() => return Ok(ScalarValue::Utf8View(None)),
            _ => {
                let what = "function encode(text, text) does not exist";
                return Err(external(Error::new(UNDEFINED_FUNCTION, what)));
            }
        };
        let Some(format) = values.get(1).and_then(text_of) else { return Ok(ScalarValue::Utf8View(None)) };
        let text = match format.to_ascii_lowercase().as_str() {
            "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            "base64" => base64(bytes),
            "escape" => escape(bytes),
            other => {
                let what = format!("unrecognized encoding: \"{other}\"");
                return Err(external(Error::new(INVALID_PARAMETER_VALUE, what)));
            }
        };
        Ok(ScalarValue::Utf8View(Some(text)))
    })
}

/// With padding, in lines of 76 characters.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for (at, group) in bytes.chunks(3).enumerate() {
        if at > 0 && at % 19 == 0 {
            text.push('\n');
        }
        let bits =
            group.iter().enumerate().fold(0_u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for digit in 0..4 {
            let place = (bits >> (18 - 6 * digit)) & 63;
            let character = DIGITS.get(place as usize).copied().unwrap_or(b'=');
            text.push(if digit <= group.len() { char::from(character) } else { '=' });
        }
    }
    text
}

/// Writes zero bytes and bytes from 128 as a backslash and octal digits.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            0 | 128.. => text.push_str(&format!("\\{byte:03o}")),
            b'\\' => text.push_str("\\\\"),
            plain => text.push(char::from(plain)),
        }
    }
    text
}

/// `to_hex(number)`. A negative integer has 32 bits, where DataFusion prints 64.
pub(super) fn to_hex() -> ScalarUDF {
    RowFunction::new("to_hex", &[1], DataType::Utf8View, |values| {
        let text = match values.first() {
            Some(ScalarValue::Int16(Some(value))) => format!("{:x}", i32::from(*value)),
            Some(ScalarValue::Int32(Some(value))) => format!("{value:x}"),
            Some(ScalarValue::Int64(Some(value))) => format!("{value:x}"),
            Some(value) if value.is_null() => return Ok(ScalarValue::Utf8View(None)),
            _ => {
                let what = "to_hex is of integers";
                return Err(external(Error::new(UNDEFINED_FUNCTION, what)));
            }
        };
        Ok(ScalarValue::Utf8View(Some(text)))
    })
}

/// Creates a function from texts to a list of texts. A NULL argument gives NULL.
pub(super) fn list_of_texts(
    name: &str,
    counts: &[usize],
    of: impl Fn(&[String]) -> crate::Result<Datum> + Send + Sync + 'static,
) -> ScalarUDF {
    let kind = ColumnType::from(cairn_table::row::Type::Text).list_of();
    RowFunction::new(name, counts, DataType::new_list(DataType::Utf8View, true), move |values| {
        let given: Option<Vec<String>> = values.iter().map(text_of).collect();
        let list = given.map_or(Ok(Datum::Null), |given| of(&given)).map_err(external)?;
        scalar(list.borrow(), &kind)
    })
}

/// The function that rewrites a pattern with its escape character.
fn pattern(name: &str, rewritten: fn(&str, &str) -> crate::error::Result<String>) -> ScalarUDF {
    RowFunction::new(name, &[2], DataType::Utf8View, move |values| {
        let (pattern, escape) = (values.first().and_then(text_of), values.get(1).and_then(text_of));
        let (Some(pattern), Some(escape)) = (pattern, escape) else {
            return Ok(ScalarValue::Utf8View(None));
        };
        Ok(ScalarValue::Utf8View(Some(rewritten(&pattern, &escape).map_err(external)?)))
    })
}

/// The functions that rewrite patterns of LIKE and SIMILAR TO.
pub(super) fn patterns() -> [ScalarUDF; 2] {
    [pattern(ESCAPED, escaped), pattern(SIMILAR, similar)]
}
