//! Converts values between types.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::functions::Kind;
use super::functions::casts::{self, Context};
use super::value::Val;
use crate::datum::{Datum, DatumRef, items, pow10, rescale};
use crate::error::{Error, Result};
use crate::sqlstate::{
    CANNOT_COERCE, DATETIME_FIELD_OVERFLOW, NUMERIC_VALUE_OUT_OF_RANGE, STRING_DATA_RIGHT_TRUNCATION,
};
use crate::types::name_of;

const DAY: i64 = 86_400_000_000;

/// Whether values of a type can be assigned to columns of another without a cast.
pub(crate) fn is_assignable(from: &ColumnType, to: &ColumnType) -> bool {
    let is_listed =
        || casts::context(Kind::of(from), Kind::of(to)).is_some_and(|context| context >= Context::Assignment);
    from.kind == to.kind || to.kind == Type::Text || is_listed()
}

/// Ranks numeric types by their range; `None` for other types.
pub(super) fn rank(kind: Type) -> Option<u8> {
    Some(match kind {
        Type::SmallInt => 0,
        Type::Int => 1,
        Type::BigInt => 2,
        Type::Decimal => 3,
        Type::Real => 4,
        Type::Double => 5,
        _ => return None,
    })
}

/// Converts a value as CAST does: texts are parsed, numbers and times rounded, long texts
/// truncated.
///
/// Errors: 22003 for numbers out of range, those of [`Datum::parse`] for texts, 42846 if there is
/// no such cast.
pub(crate) fn cast<'a>(datum: DatumRef<'a>, to: &ColumnType) -> Result<Val<'a>> {
    if let Some(element) = to.element() {
        return list(datum, &element, to);
    }
    let Some(length) = to.length else { return convert(datum, to) };
    if to.kind != Type::Text {
        return Ok(rounded(convert(datum, to)?, length));
    }
    let end = |text: &str| text.char_indices().nth(length as usize).map_or(text.len(), |(at, _)| at);
    if let DatumRef::Text(text) = datum {
        return Ok(DatumRef::Text(text.get(..end(text)).unwrap_or(text)).into());
    }
    let value = convert(datum, to)?;
    match value.get() {
        DatumRef::Text(text) if end(text) < text.len() => {
            Ok(Datum::Text(text.get(..end(text)).unwrap_or(text).to_owned()).into())
        }
        _ => Ok(value),
    }
}

/// Converts a value for assignment to a column. Unlike in [`cast`], a long text is an error unless
/// only blanks are lost.
pub(crate) fn assign<'a>(datum: DatumRef<'a>, to: &ColumnType) -> Result<Val<'a>> {
    let value = convert(datum, to)?;
    let Some(length) = to.length else { return Ok(value) };
    let DatumRef::Text(text) = value.get() else { return Ok(rounded(value, length)) };
    // A text never has more characters than bytes.
    if text.len() <= length as usize {
        return Ok(value);
    }
    let Some((cut, _)) = text.char_indices().nth(length as usize) else { return Ok(value) };
    let (kept, lost) = text.split_at(cut);
    if lost.bytes().all(|byte| byte == b' ') {
        return Ok(Datum::Text(kept.to_owned()).into());
    }
    let what = format!("value too long for type character varying({length})");
    Err(Error::new(STRING_DATA_RIGHT_TRUNCATION, what))
}

/// Rounds a time to `digits` fractional digits of a second. Halves round away from zero, which for
/// timestamps is the year 2000, the epoch of PostgreSQL.
fn rounded(value: Val<'_>, digits: u32) -> Val<'_> {
    const YEAR_2000: i64 = 10_957 * DAY;
    let unit = 10_i64.pow(6_u32.saturating_sub(digits));
    let round = |micros: i64| {
        let up = if micros < 0 { -(unit / 2) } else { unit / 2 };
        micros.checked_add(up).map_or(micros, |micros| micros / unit * unit)
    };
    match value.get() {
        DatumRef::Time(micros) => DatumRef::Time(round(micros)).into(),
        DatumRef::Interval { months, days, micros } => {
            DatumRef::Interval { months, days, micros: round(micros) }.into()
        }
        DatumRef::Timestamp(micros) => match micros.checked_sub(YEAR_2000) {
            Some(since) => DatumRef::Timestamp(round(since) + YEAR_2000).into(),
            None => value,
        },
        _ => value,
    }
}

fn convert<'a>(datum: DatumRef<'a>, to: &ColumnType) -> Result<Val<'a>> {
    if let DatumRef::List(_) = datum {
        return Err(Error::new(CANNOT_COERCE, format!("cannot cast a list to type {}", name_of(to))));
    }
    let Some(from) = datum.type_of() else { return Ok(Val::NULL) };
    if from == to.kind && from != Type::Decimal && !(to.is_json && from == Type::Text) {
        return Ok(datum.into());
    }
    Ok(match (datum, to.kind) {
        (DatumRef::Text(text), Type::Text) if to.is_json => Datum::parse(text, to).map(|_| datum.into())?,
        (DatumRef::Text(text), _) => Datum::parse(text, to)?.into(),
        (DatumRef::Boolean(value), Type::Text) => DatumRef::Text(if value { "true" } else { "false" }).into(),
        (_, Type::Text) => Datum::Text(datum.to_string()).into(),
        (DatumRef::Boolean(value), Type::Int) => DatumRef::Int(value.into()).into(),
        (DatumRef::Int(value), Type::Boolean) => DatumRef::Boolean(value != 0).into(),
        (DatumRef::Date(days), Type::Timestamp) => match i64::from(days).checked_mul(DAY) {
            Some(micros) => DatumRef::Timestamp(micros).into(),
            None => return Err(Error::new(DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")),
        },
        (DatumRef::Timestamp(micros), Type::Date) => DatumRef::Date(micros.div_euclid(DAY) as i32).into(),
        (DatumRef::Timestamp(micros), Type::Time) => DatumRef::Time(micros.rem_euclid(DAY)).into(),
        (DatumRef::Time(micros), Type::Interval) => DatumRef::Interval { months: 0, days: 0, micros }.into(),
        (DatumRef::Interval { micros, .. }, Type::Time) => DatumRef::Time(micros.rem_euclid(DAY)).into(),
        _ => match rank(from).and(rank(to.kind)) {
            Some(_) => number(datum, to)?.into(),
            None => {
                let from = ColumnType::new(from);
                let what = format!("cannot cast type {} to {}", name_of(&from), name_of(to));
                return Err(Error::new(CANNOT_COERCE, what));
            }
        },
    })
}

/// Converts a list, or the text of one, to a list with other items.
fn list<'a>(datum: DatumRef<'a>, element: &ColumnType, to: &ColumnType) -> Result<Val<'a>> {
    Ok(match datum {
        DatumRef::Null => Val::NULL,
        DatumRef::List(items) => {
            let item = |item: &Datum| cast(item.borrow(), element).map(Val::into_datum);
            Datum::List(items.iter().map(item).collect::<Result<_>>()?).into()
        }
        DatumRef::Text(text) => {
            let item = |item: Option<String>| match item {
                Some(text) => cast(DatumRef::Text(&text), element).map(Val::into_datum),
                None => Ok(Datum::Null),
            };
            Datum::List(items(text)?.into_iter().map(item).collect::<Result<_>>()?).into()
        }
        other => {
            let from = other.type_of().map_or("unknown", |kind| name_of(&kind.into()));
            return Err(Error::new(CANNOT_COERCE, format!("cannot cast type {from} to {}", name_of(to))));
        }
    })
}

fn out_of_range(to: &ColumnType) -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{} out of range", name_of(to)))
}

fn number(datum: DatumRef<'_>, to: &ColumnType) -> Result<Datum> {
    let range = || out_of_range(to);
    match to.kind {
        Type::Real | Type::Double => {
            let value = as_double(datum);
            if to.kind == Type::Double {
                return Ok(Datum::Double(value));
            }
            let narrow = match datum {
                DatumRef::Real(value) => value,
                _ => value as f32,
            };
            match narrow {
                _ if narrow.is_infinite() && value.is_finite() => Err(super::too_large()),
                0.0 if value != 0.0 => Err(super::arithmetic::underflow()),
                narrow => Ok(Datum::Real(narrow)),
            }
        }
        Type::Decimal => decimal(datum, to),
        _ => {
            let whole = as_integer(datum).ok_or_else(range)?;
            Ok(match to.kind {
                Type::SmallInt => Datum::SmallInt(whole.try_into().map_err(|_| range())?),
                Type::Int => Datum::Int(whole.try_into().map_err(|_| range())?),
                _ => Datum::BigInt(whole.try_into().map_err(|_| range())?),
            })
        }
    }
}

fn decimal(datum: DatumRef<'_>, to: &ColumnType) -> Result<Datum> {
    let Some((precision, scale)) = to.decimal else { return open_decimal(datum) };
    let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
    let unscaled = match datum {
        DatumRef::Decimal { unscaled, scale: from } => rescale(unscaled, from, scale),
        DatumRef::Real(_) | DatumRef::Double(_) => {
            // Six or fifteen significant digits, as in PostgreSQL. The digits after them are
            // artifacts of binary fractions.
            let text = match datum {
                DatumRef::Real(value) => format!("{value:.5e}"),
                other => format!("{:.14e}", as_double(other)),
            };
            crate::datum::parse_decimal(&text).and_then(|(unscaled, from)| rescale(unscaled, from, scale))
        }
        other => as_integer(other).and_then(|whole| rescale(whole, 0, scale)),
    };
    let most = pow10(precision.into());
    let fits = |value: &i128| most.is_none_or(|most| value.unsigned_abs() < most.unsigned_abs());
    let unscaled = unscaled.filter(fits).ok_or_else(overflow)?;
    Ok(Datum::Decimal { unscaled, scale })
}

/// Converts to a numeric with the number's own scale.
fn open_decimal(datum: DatumRef<'_>) -> Result<Datum> {
    let scale = match datum {
        DatumRef::Decimal { scale, .. } => scale,
        DatumRef::Real(value) => digits_after(&format!("{value:.5e}")),
        DatumRef::Double(value) => digits_after(&format!("{value:.14e}")),
        _ => 0,
    };
    decimal(datum, &ColumnType::decimal(38, scale))
}

/// Returns the number of fractional digits of a number in exponent notation.
fn digits_after(number: &str) -> u8 {
    let (digits, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let behind = digits.split_once('.').map_or(0, |(_, digits)| digits.trim_end_matches('0').len());
    let exponent: i64 = exponent.parse().unwrap_or_default();
    (behind as i64 - exponent).clamp(0, 38) as u8
}

/// Returns the nearest integer; `None` if there is none.
pub(super) fn as_integer(datum: DatumRef<'_>) -> Option<i128> {
    match datum {
        DatumRef::SmallInt(value) => Some(value.into()),
        DatumRef::Int(value) => Some(value.into()),
        DatumRef::BigInt(value) => Some(value.into()),
        DatumRef::Decimal { unscaled, scale } => rescale(unscaled, scale, 0),
        DatumRef::Real(_) | DatumRef::Double(_) => {
            let rounded = as_double(datum).round_ties_even();
            (rounded.is_finite() && rounded.abs() < 1e38).then_some(rounded as i128)
        }
        _ => None,
    }
}

/// Returns the nearest double; NaN for a value that is not a number.
pub(super) fn as_double(datum: DatumRef<'_>) -> f64 {
    match datum {
        DatumRef::SmallInt(value) => value.into(),
        DatumRef::Int(value) => value.into(),
        DatumRef::BigInt(value) => value as f64,
        DatumRef::Real(value) => value.into(),
        DatumRef::Double(value) => value,
        DatumRef::Decimal { scale: 0, unscaled } => unscaled as f64,
        // Both operands are exact as doubles, so that the division rounds once.
        DatumRef::Decimal { scale: scale @ ..=22, unscaled } if unscaled.unsigned_abs() < 1 << 53 => {
            unscaled as f64 / 10_f64.powi(scale.into())
        }
        // Parsed from text, because a division would round twice.
        DatumRef::Decimal { .. } => datum.to_string().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}
