//! Text format of values.

use cairn_sql::{ColumnType, Datum, DatumRef, Type};

use crate::codec::backend;
use crate::error::Failure;
use crate::sqlstate;

/// Appends a value in PostgreSQL's text format; the caller handles NULL.
#[inline]
pub fn encode(out: &mut Vec<u8>, value: DatumRef<'_>) {
    match value {
        DatumRef::SmallInt(value) => integer(out, value.into()),
        DatumRef::Int(value) => integer(out, value.into()),
        DatumRef::BigInt(value) => integer(out, value),
        DatumRef::Text(text) => out.extend_from_slice(text.as_bytes()),
        DatumRef::Boolean(value) => out.push(if value { b't' } else { b'f' }),
        DatumRef::Blob(bytes) => hex(out, bytes),
        other => backend::append(out, &other),
    }
}

/// Appends like [`encode`], for a column of this type: a timestamp with time zone gets its UTC
/// offset, before an era if it has one.
#[inline]
pub fn encode_of(out: &mut Vec<u8>, kind: &ColumnType, value: DatumRef<'_>) {
    encode(out, value);
    if kind.is_zoned && matches!(value, DatumRef::Timestamp(_)) {
        let at = out.strip_suffix(b" BC").map_or(out.len(), <[u8]>::len);
        out.splice(at..at, *b"+00");
    }
}

/// Appends an integer, two digits at a time. The standard library's formatting would cost more than
/// the rest of a small row.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    const PAIRS: [u8; 200] = pairs();
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    while rest >= 100 {
        let pair = (rest % 100) as usize * 2;
        rest /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    let pair = rest as usize * 2;
    if rest >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = PAIRS[pair + 1];
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

const fn pairs() -> [u8; 200] {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[number * 2] = b'0' + (number / 10) as u8;
        pairs[number * 2 + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
}

fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.extend_from_slice(b"\\x");
    out.extend(
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
}

/// Parses a value of a type from its text.
///
/// Errors: those of a cast from text, such as 22P02 and 22003.
pub fn decode(kind: &ColumnType, bytes: &[u8]) -> Result<Datum, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Failure::new(
            sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\" in a parameter",
        )
    })?;
    if text.contains('\0') {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(Failure::new(sqlstate::CHARACTER_NOT_IN_REPERTOIRE, message));
    }
    if kind.is_list {
        // Each numeric of a list keeps its own digits.
        let mut open = kind.clone();
        open.decimal = None;
        return Ok(Datum::parse(text, &open)?);
    }
    // Fast path: casts accept all that `FromStr` accepts. Text that it refuses may still be valid,
    // with blanks around it.
    match kind.kind {
        Type::Text if !kind.is_json => return Ok(Datum::Text(text.to_owned())),
        Type::Int => {
            if let Ok(value) = text.parse() {
                return Ok(Datum::Int(value));
            }
        }
        Type::BigInt => {
            if let Ok(value) = text.parse() {
                return Ok(Datum::BigInt(value));
            }
        }
        _ => {}
    }
    Ok(Datum::parse(text, kind)?)
}
