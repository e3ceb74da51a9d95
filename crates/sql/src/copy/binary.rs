//! PostgreSQL's binary format, of rows and of values.
//!
//! ```text
//! file:  "PGCOPY\n\377\r\n\0"  flags u32  length u32  [length bytes]  row*  -1 i16
//! row:   columns i16  value*
//! value: length i32 (-1: NULL)  [length bytes]
//! ```
//!
//! Everything is big-endian. Days and microseconds count from 2000-01-01.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::decode::{Cell, bad, utf8};
use super::fields::Span;
use crate::datum::{Datum, DatumRef, kept, pow10};
use crate::sqlstate::{DATETIME_FIELD_OVERFLOW, INVALID_BINARY_REPRESENTATION, NUMERIC_VALUE_OUT_OF_RANGE};
use crate::{Error, Result};

pub(super) const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY_MICROS;
const DAY_MICROS: i64 = 86_400_000_000;
/// The first and the last day that can be printed, in the years -290307 and 294246, counted from
/// 1970-01-01.
const FIRST_DAY: i32 = -106_751_981;
const LAST_DAY: i32 = 106_751_981;
/// The flags that a reader must understand; it may ignore the lower ones.
const CRITICAL: u32 = 0xffff_0000;
const NEGATIVE: u16 = 0x4000;
/// The base of the digits of a numeric.
const BASE: i128 = 10_000;

/// The result of looking for a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The row is incomplete.
    Nothing,
    /// The trailer, with its length.
    End(usize),
    /// A row, with its length.
    Row(usize),
}

/// Returns the length of the file header; `None` while it is incomplete.
pub(super) fn header(bytes: &[u8]) -> Result<Option<usize>> {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes.get(..known) != SIGNATURE.get(..known) {
        return Err(bad("COPY file signature not recognized"));
    }
    let rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    let Some((flags, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some((len, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    if u32::from_be_bytes(*flags) & CRITICAL != 0 {
        return Err(bad("unrecognized critical flags in COPY file header"));
    }
    let len = usize::try_from(i32::from_be_bytes(*len))
        .map_err(|_| bad("invalid COPY file header (wrong length)"))?;
    Ok((rest.len() >= len).then_some(SIGNATURE.len() + 8 + len))
}

/// Locates the values of the first row.
pub(super) fn tuple(bytes: &[u8], columns: usize, spans: &mut Vec<Span>) -> Result<Found> {
    spans.clear();
    let Some(count) = bytes.first_chunk::<2>() else { return Ok(Found::Nothing) };
    let count = i16::from_be_bytes(*count);
    if count == -1 {
        return Ok(Found::End(2));
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(bad(format!("row field count is {count}, expected {columns}")));
    }
    let mut at = 2;
    for _ in 0..columns {
        let Some(len) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) else { return Ok(Found::Nothing) };
        at += 4;
        let len = i32::from_be_bytes(*len);
        if len == -1 {
            spans.push(Span::Null);
            continue;
        }
        let len = usize::try_from(len).map_err(|_| bad("invalid field size"))?;
        if bytes.len() - at < len {
            return Ok(Found::Nothing);
        }
        spans.push(Span::Row(at, at + len));
        at += len;
    }
    Ok(Found::Row(at))
}

impl Datum {
    /// Returns the date `days` days after 2000-01-01, the epoch of PostgreSQL's binary formats.
    ///
    /// Errors: 22008 for a date that cannot be printed, PostgreSQL's infinities included.
    pub fn date_after_2000(days: i32) -> Result<Datum> {
        date(days).map(Datum::Date)
    }

    /// Returns the timestamp `micros` microseconds after 2000-01-01, the epoch of PostgreSQL's
    /// binary formats.
    ///
    /// Errors: as [`Datum::date_after_2000`].
    pub fn timestamp_after_2000(micros: i64) -> Result<Datum> {
        timestamp(micros).map(Datum::Timestamp)
    }
}

fn date(days: i32) -> Result<i32> {
    let days = days.checked_add(EPOCH_DAYS).filter(|days| (FIRST_DAY..=LAST_DAY).contains(days));
    days.ok_or_else(|| Error::new(DATETIME_FIELD_OVERFLOW, "date out of range"))
}

fn timestamp(micros: i64) -> Result<i64> {
    const END: i64 = (LAST_DAY as i64 + 1) * DAY_MICROS;
    // The least number is an infinity. Every other one is after the first day, which is farther
    // from 2000 than 64 bits of microseconds reach.
    let finite = Some(micros).filter(|micros| *micros > i64::MIN);
    let micros = finite.and_then(|micros| micros.checked_add(EPOCH_MICROS)).filter(|micros| *micros < END);
    micros.ok_or_else(|| Error::new(DATETIME_FIELD_OVERFLOW, "timestamp out of range"))
}

fn wrong() -> Error {
    Error::new(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| wrong())
}

/// Decodes a value of a column.
pub(super) fn get<'a>(bytes: &'a [u8], kind: &ColumnType) -> Result<Cell<'a>> {
    let value = match kind.kind {
        Type::Boolean => DatumRef::Boolean(exact::<1>(bytes)? != [0]),
        Type::SmallInt => DatumRef::SmallInt(i16::from_be_bytes(exact(bytes)?)),
        Type::Int => DatumRef::Int(i32::from_be_bytes(exact(bytes)?)),
        Type::BigInt => DatumRef::BigInt(i64::from_be_bytes(exact(bytes)?)),
        // NaN is normalized: its sign and payload are dropped.
        Type::Real => match f32::from_be_bytes(exact(bytes)?) {
            value if value.is_nan() => DatumRef::Real(f32::NAN),
            value => DatumRef::Real(value),
        },
        Type::Double => match f64::from_be_bytes(exact(bytes)?) {
            value if value.is_nan() => DatumRef::Double(f64::NAN),
            value => DatumRef::Double(value),
        },
        Type::Decimal => numeric(bytes, kind)?,
        Type::Text if kind.is_json => return Datum::parse(utf8(bytes)?, kind).map(Cell::Owned),
        Type::Text => DatumRef::Text(utf8(bytes)?),
        Type::Blob => DatumRef::Blob(bytes),
        Type::Date => DatumRef::Date(date(i32::from_be_bytes(exact(bytes)?))?),
        Type::Time => {
            let micros = i64::from_be_bytes(exact(bytes)?);
            DatumRef::Time(Some(micros).filter(|micros| (0..=DAY_MICROS).contains(micros)).ok_or_else(wrong)?)
        }
        Type::Timestamp => DatumRef::Timestamp(timestamp(i64::from_be_bytes(exact(bytes)?))?),
        Type::Interval => {
            let (micros, rest) = bytes.split_first_chunk::<8>().ok_or_else(wrong)?;
            let (days, months) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
            let (days, months) = (i32::from_be_bytes(*days), i32::from_be_bytes(exact(months)?));
            DatumRef::Interval { months, days, micros: i64::from_be_bytes(*micros) }
        }
        Type::Uuid => DatumRef::Uuid(exact(bytes)?),
        _ => return Err(Error::unsupported(format_args!("the type {kind} in binary format"))),
    };
    Ok(Cell::Borrowed(value))
}

fn numeric(bytes: &[u8], kind: &ColumnType) -> Result<DatumRef<'static>> {
    let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
    let mut words = bytes.chunks(2).map(|word| exact(word).map(u16::from_be_bytes));
    let mut word = || words.next().unwrap_or_else(|| Err(wrong()));
    let (count, weight, sign, display) = (word()?, word()? as i16, word()?, word()?);
    if sign & !NEGATIVE != 0 {
        return Err(Error::unsupported("numeric NaN or infinity"));
    }
    let mut unscaled: i128 = 0;
    // The weight of the last digit taken. Digits that are not written are 0.
    let mut last = i32::from(weight) + 1;
    for _ in 0..count {
        let digit = i128::from(word()?);
        if digit >= BASE {
            return Err(wrong());
        }
        unscaled =
            unscaled.checked_mul(BASE).and_then(|value| value.checked_add(digit)).ok_or_else(overflow)?;
        last -= 1;
    }
    let scale = (-last).max(0) * 4;
    if last > 0 {
        let factor = pow10(u32::try_from(last * 4).unwrap_or(u32::MAX)).ok_or_else(overflow)?;
        unscaled = unscaled.checked_mul(factor).ok_or_else(overflow)?;
    }
    let unscaled = if sign == NEGATIVE { -unscaled } else { unscaled };
    let scale = u8::try_from(scale).map_err(|_| overflow())?;
    let digits = kind.decimal.unwrap_or((38, display.min(38) as u8));
    Ok(DatumRef::Decimal { unscaled: kept(unscaled, scale, digits)?, scale: digits.1 })
}

/// Appends a value, preceded by its length.
pub(super) fn put(value: DatumRef<'_>, to: &mut Vec<u8>) {
    if value.is_null() {
        return to.extend((-1_i32).to_be_bytes());
    }
    let start = to.len();
    to.extend([0; 4]);
    match value {
        DatumRef::Null => {}
        DatumRef::Boolean(value) => to.push(value.into()),
        DatumRef::SmallInt(value) => to.extend(value.to_be_bytes()),
        DatumRef::Int(value) => to.extend(value.to_be_bytes()),
        DatumRef::BigInt(value) => to.extend(value.to_be_bytes()),
        DatumRef::Real(value) => to.extend(value.to_be_bytes()),
        DatumRef::Double(value) => to.extend(value.to_be_bytes()),
        DatumRef::Decimal { unscaled, scale } => put_numeric(unscaled, scale, to),
        DatumRef::Text(value) => to.extend(value.as_bytes()),
        DatumRef::Blob(value) => to.extend(value),
        DatumRef::Date(days) => to.extend(days.saturating_sub(EPOCH_DAYS).to_be_bytes()),
        DatumRef::Time(micros) => to.extend(micros.to_be_bytes()),
        DatumRef::Timestamp(micros) => to.extend(micros.saturating_sub(EPOCH_MICROS).to_be_bytes()),
        DatumRef::Interval { months, days, micros } => {
            to.extend(micros.to_be_bytes());
            to.extend(days.to_be_bytes());
            to.extend(months.to_be_bytes());
        }
        DatumRef::Uuid(bytes) => to.extend(bytes),
        // No column has this type. In results, lists are sent as text.
        DatumRef::List(_) => to.extend(value.to_string().as_bytes()),
    }
    let len = (to.len() - start - 4) as u32;
    if let Some(place) = to.get_mut(start..start + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

fn put_numeric(unscaled: i128, scale: u8, to: &mut Vec<u8>) {
    // The digits, of base 10,000, are aligned to the decimal point.
    let padding = (4 - scale % 4) % 4;
    let after = i32::from(scale + padding) / 4;
    let mut rest = unscaled.unsigned_abs();
    let mut digits: Vec<u16> = Vec::new();
    // The scale may end within the lowest digit.
    if padding > 0 && rest > 0 {
        let place = 10_u128.pow(padding.into());
        let part = BASE.unsigned_abs() / place;
        digits.push((rest % part * place) as u16);
        rest /= part;
    }
    while rest > 0 {
        digits.push((rest % BASE.unsigned_abs()) as u16);
        rest /= BASE.unsigned_abs();
    }
    let weight = digits.len() as i32 - after - 1;
    let written = digits.len() - digits.iter().take_while(|digit| **digit == 0).count();
    let sign = if unscaled < 0 { NEGATIVE } else { 0 };
    let weight = if written == 0 { 0 } else { weight as i16 };
    to.extend((written as u16).to_be_bytes());
    to.extend(weight.to_be_bytes());
    to.extend(sign.to_be_bytes());
    to.extend(u16::from(scale).to_be_bytes());
    digits.iter().rev().take(written).for_each(|digit| to.extend(digit.to_be_bytes()));
}
