//! Bytes into fields.

use super::format::Format;
use crate::error::{Error, Result};
use crate::sqlstate::BAD_COPY_FILE_FORMAT;

/// The fields of one row; `None` for NULL.
pub(super) type Fields = Vec<Option<String>>;

/// Where the first row in the bytes ends, and where the next one begins. `None` when it is not whole; `last`: there are no more bytes.
pub(super) fn row_end(bytes: &[u8], format: &Format, last: bool) -> Option<(usize, usize)> {
    let mut quoted = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if !format.csv => at += 1,
            _ if format.csv && quoted && byte == format.escape && format.escape != format.quote => at += 1,
            _ if format.csv && byte == format.quote => quoted = !quoted,
            b'\n' if !quoted => {
                let end = if at > 0 && bytes.get(at - 1) == Some(&b'\r') { at - 1 } else { at };
                return Some((end, at + 1));
            }
            _ => {}
        }
        at += 1;
    }
    (last && !bytes.is_empty()).then_some((bytes.len(), bytes.len()))
}

/// Whether a row says that there are no more.
pub(super) fn is_end(row: &[u8]) -> bool {
    row == b"\\."
}

/// The fields of a row.
///
/// Errors: 22P04.
pub(super) fn fields(row: &[u8], format: &Format) -> Result<Fields> {
    if format.csv { csv(row, format) } else { text(row, format) }
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

fn text(row: &[u8], format: &Format) -> Result<Fields> {
    let mut fields = Fields::new();
    let mut rest = row;
    loop {
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            if byte == format.delimiter {
                break;
            }
            at += if byte == b'\\' { 2 } else { 1 };
        }
        let at = at.min(rest.len());
        let (field, after) = rest.split_at(at);
        fields.push(if field == format.null.as_bytes() { None } else { Some(utf8(unescape(field))?) });
        match after.split_first() {
            Some((_, after)) => rest = after,
            None => return Ok(fields),
        }
    }
}

fn unescape(field: &[u8]) -> Vec<u8> {
    if !field.contains(&b'\\') {
        return field.to_vec();
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut at = 0;
    while let Some(&byte) = field.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(&escaped) = field.get(at) else { break };
        at += 1;
        let digits = |from: usize, most: usize, radix: u32| {
            let digits = field.get(from..).unwrap_or_default().iter().take(most);
            let digits: Vec<u32> = digits.map_while(|&digit| (digit as char).to_digit(radix)).collect();
            (digits.iter().fold(0, |all, digit| all * radix + digit) as u8, digits.len())
        };
        bytes.push(match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => {
                let (value, count) = digits(at - 1, 3, 8);
                at += count - 1;
                value
            }
            b'x' => match digits(at, 2, 16) {
                (_, 0) => b'x',
                (value, count) => {
                    at += count;
                    value
                }
            },
            other => other,
        });
    }
    bytes
}

fn csv(row: &[u8], format: &Format) -> Result<Fields> {
    let mut fields = Fields::new();
    let mut at = 0;
    loop {
        let (mut field, mut was_quoted, mut quoted) = (Vec::new(), false, false);
        loop {
            let byte = row.get(at).copied();
            match byte {
                None if quoted => {
                    return Err(Error::new(BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field"));
                }
                None => break,
                Some(byte)
                    if quoted
                        && byte == format.escape
                        && row
                            .get(at + 1)
                            .is_some_and(|&next| next == format.quote || next == format.escape) =>
                {
                    field.extend(row.get(at + 1));
                    at += 1;
                }
                Some(byte) if byte == format.quote => {
                    quoted = !quoted;
                    was_quoted = true;
                }
                Some(byte) if byte == format.delimiter && !quoted => break,
                Some(byte) => field.push(byte),
            }
            at += 1;
        }
        let is_null = !was_quoted && field == format.null.as_bytes();
        fields.push(if is_null { None } else { Some(utf8(field)?) });
        if at >= row.len() {
            return Ok(fields);
        }
        at += 1;
        if at == row.len() {
            // The delimiter was the last byte: an empty field is behind it.
            fields.push(if format.null.is_empty() { None } else { Some(String::new()) });
            return Ok(fields);
        }
    }
}
