//! PostgreSQL's binary formats of the types that the lab uses.

use super::failure::fail;
use super::ffi::Oid;
use crate::core::answer::Cell;
use crate::core::error::Result;
use crate::stores::copy_text::append_text;

/// Type numbers of `pg_type`.
mod oid {
    use crate::peers::sql::postgres::ffi::Oid;

    pub(super) const BOOL: Oid = 16;
    pub(super) const NAME: Oid = 19;
    pub(super) const INT8: Oid = 20;
    pub(super) const INT2: Oid = 21;
    pub(super) const INT4: Oid = 23;
    pub(super) const TEXT: Oid = 25;
    pub(super) const FLOAT4: Oid = 700;
    pub(super) const FLOAT8: Oid = 701;
    pub(super) const UNKNOWN: Oid = 705;
    pub(super) const BPCHAR: Oid = 1042;
    pub(super) const VARCHAR: Oid = 1043;
    pub(super) const DATE: Oid = 1082;
    pub(super) const NUMERIC: Oid = 1700;
}

/// Days from 1970 to 2000, the epoch of PostgreSQL's dates.
const EPOCH_DAYS: i32 = 10_957;

/// Decodes a value of a result.
#[inline]
pub(super) fn decode(kind: Oid, bytes: &[u8]) -> Result<Cell<'_>> {
    let wrong = || fail(format!("{} bytes for a value of type {kind}", bytes.len()));
    Ok(match kind {
        oid::BOOL => Cell::Int(i64::from(*bytes.first().ok_or_else(wrong)?)),
        oid::INT2 => Cell::Int(i64::from(i16::from_be_bytes(bytes.try_into().map_err(|_| wrong())?))),
        oid::INT4 => Cell::Int(i64::from(i32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?))),
        oid::INT8 => Cell::Int(i64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        oid::FLOAT4 => Cell::Real(f64::from(f32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?))),
        oid::FLOAT8 => Cell::Real(f64::from_be_bytes(bytes.try_into().map_err(|_| wrong())?)),
        oid::DATE => {
            let days = i32::from_be_bytes(bytes.try_into().map_err(|_| wrong())?);
            Cell::Date(days.saturating_add(EPOCH_DAYS))
        }
        oid::NUMERIC => numeric(bytes).ok_or_else(wrong)?,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::UNKNOWN => {
            Cell::Text(std::str::from_utf8(bytes).map_err(fail)?)
        }
        other => return Err(fail(format!("type {other}, which the lab's queries do not have"))),
    })
}

/// Decodes a decimal number: four words of 16 bits, then its digits in base 10,000.
///
/// ```text
///   digits │ weight of the first one │ sign │ digits after the point │ digit │ …
/// ```
fn numeric(bytes: &[u8]) -> Option<Cell<'static>> {
    let (words, _) = bytes.as_chunks::<2>();
    let word = |index: usize| words.get(index).map(|word| i16::from_be_bytes(*word));
    let (count, weight, sign, scale) = (word(0)?, word(1)?, word(2)? as u16, word(3)?);
    if sign != 0 && sign != 0x4000 {
        return Some(Cell::Real(f64::NAN));
    }
    let mut mantissa = 0_i128;
    for index in 0..usize::try_from(count).ok()? {
        mantissa = mantissa.checked_mul(10_000)?.checked_add(i128::from(word(4 + index)?))?;
    }
    let mantissa = if sign == 0 { mantissa } else { -mantissa };
    // The exponent of the last base-10,000 digit.
    let places = i32::from(weight) - i32::from(count) + 1;
    let whole = u32::try_from(places).ok().and_then(|places| 10_000_i128.checked_pow(places));
    if let (0, Some(factor)) = (scale, whole)
        && let Some(value) = mantissa.checked_mul(factor).and_then(|value| i64::try_from(value).ok())
    {
        return Some(Cell::Int(value));
    }
    let power = 10_000_f64.powi(places.abs());
    Some(Cell::Real(if places < 0 { mantissa as f64 / power } else { mantissa as f64 * power }))
}

/// Appends the value of a parameter to `bytes`. Returns true if it is in binary format; otherwise
/// it is zero-terminated text.
#[inline]
pub(super) fn encode(kind: Oid, cell: Cell<'_>, bytes: &mut Vec<u8>) -> Result<bool> {
    match (kind, cell) {
        (oid::INT2, Cell::Int(value)) => {
            bytes.extend_from_slice(&i16::try_from(value).map_err(fail)?.to_be_bytes());
        }
        (oid::INT4, Cell::Int(value)) => {
            bytes.extend_from_slice(&i32::try_from(value).map_err(fail)?.to_be_bytes());
        }
        (oid::INT8, Cell::Int(value)) => bytes.extend_from_slice(&value.to_be_bytes()),
        (oid::FLOAT8, Cell::Real(value)) => bytes.extend_from_slice(&value.to_be_bytes()),
        (oid::TEXT | oid::VARCHAR | oid::BPCHAR, Cell::Text(text)) => {
            bytes.extend_from_slice(text.as_bytes());
        }
        (oid::DATE, Cell::Date(days)) => {
            bytes.extend_from_slice(&days.saturating_sub(EPOCH_DAYS).to_be_bytes());
        }
        (_, cell) => {
            append_text(cell, bytes);
            bytes.push(0);
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: [i16; 6], count: usize) -> Vec<u8> {
        words.iter().take(count).flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Goal: decimal numbers are decoded correctly, whole ones as integers. Method: PostgreSQL's
    /// own bytes of several numbers.
    #[test]
    fn decimals_are_decoded() {
        let table = [
            (words([0, 0, 0, 0, 0, 0], 4), Cell::Int(0)),
            (words([1, 0, 0, 0, 7, 0], 5), Cell::Int(7)),
            (words([1, 1, 0, 0, 3, 0], 5), Cell::Int(30_000)),
            (words([2, 1, 0x4000, 0, 1, 2345], 6), Cell::Int(-12_345)),
            (words([2, 0, 0, 2, 12, 3400], 6), Cell::Real(12.34)),
            (words([1, -1, 0, 2, 500, 0], 5), Cell::Real(0.05)),
            (words([1, 0, 0, 2, 25, 0], 5), Cell::Real(25.0)),
        ];
        for (bytes, expected) in table {
            assert_eq!(numeric(&bytes), Some(expected));
        }
        assert!(numeric(&[0, 1]).is_none() && decode(oid::INT4, &[1]).is_err() && decode(9999, &[]).is_err());
    }

    /// Goal: decoding returns the encoded value; a value without a binary format here becomes
    /// zero-terminated text. Method: a round trip of each type.
    #[test]
    fn values_travel() {
        for (kind, cell) in [
            (oid::INT2, Cell::Int(-3)),
            (oid::INT4, Cell::Int(70_000)),
            (oid::INT8, Cell::Int(1 << 40)),
            (oid::FLOAT8, Cell::Real(1.5)),
            (oid::VARCHAR, Cell::Text("é")),
            (oid::DATE, Cell::Date(20_000)),
        ] {
            let mut bytes = Vec::new();
            assert!(encode(kind, cell, &mut bytes).unwrap());
            assert_eq!(decode(kind, &bytes).unwrap(), cell);
        }
        let mut bytes = Vec::new();
        for cell in [Cell::Decimal(-5, 2), Cell::Int(4), Cell::Date(0)] {
            assert!(!encode(oid::NUMERIC, cell, &mut bytes).unwrap());
        }
        assert_eq!(bytes, b"-0.05\x004\x001970-01-01\x00");
        assert!(encode(oid::INT2, Cell::Int(1 << 20), &mut bytes).is_err());
    }
}
