//! Fields into bytes.

use super::format::Format;
use crate::datum::DatumRef;

/// Appends a row, with its end.
pub(super) fn row<'v>(values: impl Iterator<Item = DatumRef<'v>>, format: &Format, to: &mut Vec<u8>) {
    for (at, value) in values.enumerate() {
        if at > 0 {
            to.push(format.delimiter);
        }
        if value.is_null() {
            to.extend(format.null.as_bytes());
            continue;
        }
        let printed;
        let text = match value {
            DatumRef::Text(text) => text,
            other => {
                printed = other.to_string();
                &printed
            }
        };
        field(text, format, to);
    }
    to.push(b'\n');
}

/// Appends a text.
pub(super) fn field(text: &str, format: &Format, to: &mut Vec<u8>) {
    if !format.csv {
        for &byte in text.as_bytes() {
            let escaped = match byte {
                8 => b'b',
                12 => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                11 => b'v',
                b'\\' => b'\\',
                byte if byte == format.delimiter => byte,
                byte => {
                    to.push(byte);
                    continue;
                }
            };
            to.extend([b'\\', escaped]);
        }
        return;
    }
    let special =
        |&byte: &u8| byte == format.delimiter || byte == format.quote || byte == b'\n' || byte == b'\r';
    if text != format.null && text != "\\." && !text.as_bytes().iter().any(special) {
        to.extend(text.as_bytes());
        return;
    }
    to.push(format.quote);
    for &byte in text.as_bytes() {
        if byte == format.quote || byte == format.escape {
            to.push(format.escape);
        }
        to.push(byte);
    }
    to.push(format.quote);
}
