//! Binary format of values. Numbers are big-endian; dates and times count from 2000-01-01.

use cairn_sql::{ColumnType, Datum, DatumRef, Type};

use crate::error::Failure;
use crate::sqlstate;

use super::{list, numeric, oid, text};

/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;
const DAY_MICROS: i64 = 86_400_000_000;

/// Appends a value of a column of type `kind`; the caller handles NULL. A value of a type other
/// than its column's is converted if both are numbers, and sent as its text otherwise.
#[inline]
pub fn encode(out: &mut Vec<u8>, kind: &ColumnType, value: DatumRef<'_>) {
    match (kind.kind, value) {
        (Type::Int, DatumRef::Int(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::BigInt, DatumRef::BigInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::SmallInt, DatumRef::SmallInt(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::Boolean, DatumRef::Boolean(value)) => out.push(value.into()),
        (Type::Real, DatumRef::Real(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::Double, DatumRef::Double(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::Double, DatumRef::Real(value)) => out.extend_from_slice(&f64::from(value).to_be_bytes()),
        (Type::Decimal, DatumRef::Decimal { unscaled, scale }) => numeric::encode(out, unscaled, scale),
        (Type::Text, DatumRef::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (Type::Blob, DatumRef::Blob(bytes)) => out.extend_from_slice(bytes),
        (Type::Date, DatumRef::Date(days)) => {
            out.extend_from_slice(&days.saturating_sub(EPOCH_DAYS).to_be_bytes());
        }
        (Type::Time, DatumRef::Time(micros)) => out.extend_from_slice(&micros.to_be_bytes()),
        (Type::Timestamp, DatumRef::Timestamp(micros)) => {
            out.extend_from_slice(&micros.saturating_sub(EPOCH_MICROS).to_be_bytes());
        }
        (Type::Interval, DatumRef::Interval { months, days, micros }) => {
            out.extend_from_slice(&micros.to_be_bytes());
            out.extend_from_slice(&days.to_be_bytes());
            out.extend_from_slice(&months.to_be_bytes());
        }
        (Type::Uuid, DatumRef::Uuid(bytes)) => out.extend_from_slice(&bytes),
        (_, other) => whole_number(out, kind, other),
    }
}

/// Appends an integer of a width other than its column's, or any other value as text.
fn whole_number(out: &mut Vec<u8>, kind: &ColumnType, value: DatumRef<'_>) {
    let wide = match value {
        DatumRef::SmallInt(value) => Some(i64::from(value)),
        DatumRef::Int(value) => Some(i64::from(value)),
        DatumRef::BigInt(value) => Some(value),
        _ => None,
    };
    match (kind.kind, wide) {
        (Type::BigInt, Some(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (Type::Int, Some(value)) => {
            let value = value.clamp(i32::MIN.into(), i32::MAX.into());
            out.extend_from_slice(&(value as i32).to_be_bytes());
        }
        (Type::SmallInt, Some(value)) => {
            let value = value.clamp(i16::MIN.into(), i16::MAX.into());
            out.extend_from_slice(&(value as i16).to_be_bytes());
        }
        (Type::Double, Some(value)) => out.extend_from_slice(&(value as f64).to_be_bytes()),
        (Type::Decimal, Some(value)) => numeric::encode(out, value.into(), 0),
        _ => text::encode(out, value),
    }
}

/// Decodes a value of the type with this OID. If the type is left to the statement, decodes a value
/// of type `kind`.
///
/// Errors: 22P03 for bytes that are not such a value, 22003 for a value out of range, 22008 for a
/// date or timestamp out of range.
pub fn decode(type_oid: u32, kind: &ColumnType, bytes: &[u8]) -> Result<Datum, Failure> {
    let what = super::kind_of(type_oid).unwrap_or_else(|| kind.clone());
    let malformed = || {
        let message = format!("incorrect binary data format for a parameter of type {what}");
        Failure::new(sqlstate::INVALID_BINARY_REPRESENTATION, message)
    };
    if let Some(element) = what.element() {
        let type_oid = super::element_oid_of(type_oid).unwrap_or_else(|| super::oid_of(&element));
        return list::decode(type_oid, &element, bytes);
    }
    let range = || Failure::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, format!("{what} out of range"));
    if type_oid == oid::NUMERIC || (type_oid == 0 && kind.kind == Type::Decimal) {
        return numeric::decode(bytes);
    }
    if type_oid == oid::OID {
        return Ok(Datum::BigInt(u32::from_be_bytes(fixed(bytes).ok_or_else(malformed)?).into()));
    }
    let read = match what.kind {
        Type::Boolean => fixed::<1>(bytes).map(|[byte]| Datum::Boolean(byte != 0)),
        Type::SmallInt => fixed(bytes).map(|bytes| Datum::SmallInt(i16::from_be_bytes(bytes))),
        Type::Int => fixed(bytes).map(|bytes| Datum::Int(i32::from_be_bytes(bytes))),
        Type::BigInt => fixed(bytes).map(|bytes| Datum::BigInt(i64::from_be_bytes(bytes))),
        // NaNs are normalized, so that there is only one.
        Type::Real => fixed(bytes)
            .map(f32::from_be_bytes)
            .map(|value| Datum::Real(if value.is_nan() { f32::NAN } else { value })),
        Type::Double => fixed(bytes)
            .map(f64::from_be_bytes)
            .map(|value| Datum::Double(if value.is_nan() { f64::NAN } else { value })),
        Type::Decimal => return numeric::decode(bytes),
        Type::Blob => Some(Datum::Blob(bytes.to_owned())),
        Type::Date => {
            let days = i32::from_be_bytes(fixed(bytes).ok_or_else(malformed)?);
            Some(Datum::date_after_2000(days)?)
        }
        Type::Time => {
            let micros = i64::from_be_bytes(fixed(bytes).ok_or_else(malformed)?);
            if !(0..=DAY_MICROS).contains(&micros) {
                return Err(range());
            }
            Some(Datum::Time(micros))
        }
        Type::Timestamp => {
            let micros = i64::from_be_bytes(fixed(bytes).ok_or_else(malformed)?);
            Some(Datum::timestamp_after_2000(micros)?)
        }
        Type::Interval => interval(bytes),
        Type::Uuid => fixed(bytes).map(Datum::Uuid),
        // The binary format of jsonb has a version byte before the text.
        _ if type_oid == oid::JSONB => {
            return text::decode(&what, bytes.strip_prefix(&[1]).ok_or_else(malformed)?);
        }
        _ => return text::decode(&what, bytes),
    };
    read.ok_or_else(malformed)
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn interval(bytes: &[u8]) -> Option<Datum> {
    let (micros, rest) = bytes.split_first_chunk::<8>()?;
    let (days, months) = rest.split_first_chunk::<4>()?;
    Some(Datum::Interval {
        months: i32::from_be_bytes(fixed(months)?),
        days: i32::from_be_bytes(*days),
        micros: i64::from_be_bytes(*micros),
    })
}
