//! Parses values as PostgreSQL does.

use std::str::FromStr;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::interval::parse_interval;
use super::number::too_fine;
use super::{Datum, OPEN, kept, pow10, rescale, rescale_exact};
use super::{days_from_civil, days_in_month};
use crate::sqlstate::{
    DATETIME_FIELD_OVERFLOW, INVALID_DATETIME_FORMAT, INVALID_PARAMETER_VALUE, INVALID_TEXT_REPRESENTATION,
    NUMERIC_VALUE_OUT_OF_RANGE,
};
use crate::types::name_of;
use crate::{Error, Result};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

impl Datum {
    /// Parses the text form of a value. Lengths are not checked; decimals are rounded to the type's
    /// scale.
    ///
    /// Errors: 22P02, 22007, 22008 and 22003, as in PostgreSQL.
    pub fn parse(text: &str, kind: &ColumnType) -> Result<Datum> {
        let invalid = || {
            let what = format!("invalid input syntax for type {}: \"{text}\"", name_of(kind));
            Error::new(INVALID_TEXT_REPRESENTATION, what)
        };
        if let Some(element) = kind.element() {
            return Datum::parse_list(text, &element);
        }
        let trimmed = text.trim();
        Ok(match kind.kind {
            Type::Boolean => Datum::Boolean(boolean(trimmed).ok_or_else(invalid)?),
            Type::SmallInt => Datum::SmallInt(integer(text, kind)?),
            Type::Int => Datum::Int(integer(text, kind)?),
            Type::BigInt => Datum::BigInt(integer(text, kind)?),
            Type::Real => {
                let value: f32 = float(trimmed).ok_or_else(invalid)?;
                in_range(trimmed, kind, value.is_infinite(), value == 0.0)?;
                Datum::Real(value)
            }
            Type::Double => {
                let value: f64 = float(trimmed).ok_or_else(invalid)?;
                in_range(trimmed, kind, value.is_infinite(), value == 0.0)?;
                Datum::Double(value)
            }
            Type::Decimal => {
                let (unscaled, scale, is_exact) = digits_of(trimmed).ok_or_else(invalid)?;
                let digits = kind.decimal.unwrap_or((38, scale));
                if !is_exact && kind.decimal.is_none_or(|digits| digits == OPEN) {
                    return Err(too_fine());
                }
                Datum::Decimal { unscaled: kept(unscaled, scale, digits)?, scale: digits.1 }
            }
            Type::Text if kind.is_json => {
                check_json(text).map_err(|what| {
                    Error::new(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
                        .with_detail(what)
                })?;
                Datum::Text(text.to_owned())
            }
            Type::Text => Datum::Text(text.to_owned()),
            Type::Blob => Datum::Blob(match text.strip_prefix("\\x") {
                Some(hex) => hex_bytes(hex)?,
                None => bytea(text).ok_or_else(|| {
                    Error::new(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")
                })?,
            }),
            Type::Date => Datum::Date(date(trimmed, kind)?),
            Type::Time => Datum::Time(time(trimmed).ok_or_else(|| datetime(trimmed, kind))?.0),
            Type::Timestamp => Datum::Timestamp(timestamp(trimmed, kind)?),
            Type::Interval => {
                let (months, days, micros) = parse_interval(trimmed, "second")?;
                Datum::Interval { months, days, micros }
            }
            Type::Uuid => Datum::Uuid(uuid(trimmed).ok_or_else(invalid)?),
            _ => return Err(Error::unsupported(format_args!("the type {kind}"))),
        })
    }
}

fn boolean(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let is = |whole: &str, least: usize| lower.len() >= least && whole.starts_with(&lower);
    if is("true", 1) || is("yes", 1) || is("on", 2) || lower == "1" {
        return Some(true);
    }
    (is("false", 1) || is("no", 1) || is("off", 2) || lower == "0").then_some(false)
}

fn integer<T: TryFrom<i64>>(text: &str, kind: &ColumnType) -> Result<T> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let what = format!("invalid input syntax for type {}: \"{text}\"", name_of(kind));
        return Err(Error::new(INVALID_TEXT_REPRESENTATION, what));
    }
    let value = trimmed.parse::<i64>().ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| {
        let what = format!("value \"{trimmed}\" is out of range for type {}", name_of(kind));
        Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what)
    })
}

/// Parsed directly as `T`. Going through a double would round a real twice.
fn float<T: FromStr>(text: &str) -> Option<T> {
    let lower = text.to_ascii_lowercase();
    let is_word =
        matches!(lower.as_str(), "nan" | "infinity" | "+infinity" | "inf" | "+inf" | "-infinity" | "-inf");
    let starts = lower.bytes().find(|byte| !matches!(byte, b'-' | b'+' | b'.'))?;
    (is_word || starts.is_ascii_digit()).then(|| lower.parse().ok()).flatten()
}

/// Checks that digits have not become an infinity, nor a nonzero number zero.
fn in_range(text: &str, kind: &ColumnType, is_infinite: bool, is_zero: bool) -> Result<()> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_lost = is_infinite && mantissa.bytes().any(|byte| byte.is_ascii_digit())
        || is_zero && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    match is_lost {
        true => {
            let what = format!("\"{text}\" is out of range for type {}", name_of(kind));
            Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what))
        }
        false => Ok(()),
    }
}

/// Parses a number into its digits and its scale. Fractional digits beyond 128 bits are rounded
/// away.
pub(crate) fn parse_decimal(text: &str) -> Option<(i128, u8)> {
    digits_of(text).map(|(unscaled, scale, _)| (unscaled, scale))
}

/// Like [`parse_decimal`]; `None` also if a digit other than zero would be lost.
pub(crate) fn parse_decimal_exactly(text: &str) -> Option<(i128, u8)> {
    digits_of(text).filter(|&(.., is_exact)| is_exact).map(|(unscaled, scale, _)| (unscaled, scale))
}

fn digits_of(text: &str) -> Option<(i128, u8, bool)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty()
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let mut unscaled: i128 = 0;
    let mut scale = exponent.checked_neg()?;
    let (mut all, mut at, mut is_exact) = (whole.bytes().chain(fraction.bytes()), 0, true);
    while let Some(digit) = all.next() {
        let after_point = at >= whole.len();
        let next = unscaled.checked_mul(10).and_then(|value| value.checked_add((digit - b'0').into()));
        match next {
            Some(next) if !(after_point && scale >= 37) => {
                unscaled = next;
                scale += i32::from(after_point);
            }
            _ if after_point => {
                unscaled += i128::from(digit >= b'5');
                is_exact = digit == b'0' && all.all(|digit| digit == b'0');
                break;
            }
            _ => return None,
        }
        at += 1;
    }
    if scale < 0 {
        unscaled = unscaled.checked_mul(pow10(scale.unsigned_abs())?)?;
        scale = 0;
    }
    if scale > 38 {
        let from = u8::try_from(scale).ok();
        is_exact &= unscaled == 0 || from.is_some_and(|from| rescale_exact(unscaled, from, 38).is_some());
        // Dropping more than 255 digits leaves nothing of 128 bits.
        unscaled = from.map_or(Some(0), |from| rescale(unscaled, from, 38))?;
        scale = 38;
    }
    Some((if negative { -unscaled } else { unscaled }, scale as u8, is_exact))
}

/// Parses bytes from hexadecimal digits. Blanks may stand between two bytes.
///
/// Errors: 22023 for other characters, and for an odd number of digits.
fn hex_bytes(hex: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    let mut characters = hex.chars();
    while let Some(first) = characters.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit = |c: char| {
            c.to_digit(16).ok_or_else(|| {
                Error::new(INVALID_PARAMETER_VALUE, format!("invalid hexadecimal digit: \"{c}\""))
            })
        };
        let high = digit(first)?;
        let second = characters.next().ok_or_else(|| {
            Error::new(INVALID_PARAMETER_VALUE, "invalid hexadecimal data: odd number of digits")
        })?;
        bytes.push((high << 4 | digit(second)?) as u8);
    }
    Ok(bytes)
}

fn bytea(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
            continue;
        }
        let (octal, after) = rest.split_at_checked(3)?;
        let octal = std::str::from_utf8(octal).ok()?;
        bytes.push(u8::from_str_radix(octal, 8).ok()?);
        rest = after;
    }
    Some(bytes)
}

fn bytes_of_hex(hex: &[u8]) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.iter().map(|&digit| (digit as char).to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| {
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit)).collect()
    })
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let digits: Vec<u8> = inner.bytes().filter(|&byte| byte != b'-').collect();
    bytes_of_hex(&digits)?.try_into().ok()
}

fn datetime(text: &str, kind: &ColumnType) -> Error {
    let what = format!("invalid input syntax for type {}: \"{text}\"", name_of(kind));
    Error::new(INVALID_DATETIME_FORMAT, what)
}

fn date(text: &str, kind: &ColumnType) -> Result<i32> {
    if text.eq_ignore_ascii_case("epoch") {
        return Ok(0);
    }
    // A zone without a time does not affect the date. The JDBC driver sends `2024-02-29 +00`.
    let is_zone = |zone: &str| {
        zone.strip_prefix(['+', '-'])
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b':'))
    };
    let bare = text.split_once(' ').filter(|(_, zone)| is_zone(zone)).map_or(text, |(date, _)| date);
    let micros = timestamp(bare, kind)?;
    i32::try_from(micros.div_euclid(DAY)).map_err(|_| datetime(text, kind))
}

/// Parses a timestamp into microseconds since 1970. A UTC offset applies to types with a time zone;
/// for other types it is parsed and ignored, as in PostgreSQL.
fn timestamp(text: &str, kind: &ColumnType) -> Result<i64> {
    if text.eq_ignore_ascii_case("epoch") {
        return Ok(0);
    }
    let (text, before) = match text.strip_suffix("BC").or_else(|| text.strip_suffix("bc")) {
        Some(rest) => (rest.trim_end(), true),
        None => (text, false),
    };
    let (date, rest) = match text.split_once([' ', 'T', 't']) {
        Some((date, rest)) => (date, Some(rest)),
        None => (text, None),
    };
    let invalid = || datetime(text, kind);
    let mut parts = date.split(['-', '/']);
    let mut part = || {
        parts
            .next()
            .filter(|part| !part.is_empty() && part.len() <= 6 && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let (first, month, day) = (part(), part(), part());
    let (year, month, day) = match (first, month, day) {
        (Some(year), Some(month), Some(day)) if parts.next().is_none() && year.len() >= 3 => {
            (year, month, day)
        }
        // Eight digits in a row.
        (Some(all), None, None) if all.len() == 8 => return Err(invalid()),
        _ => return Err(invalid()),
    };
    let number = |part: &str| part.parse::<i64>().map_err(|_| invalid());
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let year = if before { 1 - year } else { year };
    let out_of_range =
        || Error::new(DATETIME_FIELD_OVERFLOW, format!("date/time field value out of range: \"{text}\""));
    let month =
        u32::try_from(month).ok().filter(|month| (1..=12).contains(month)).ok_or_else(out_of_range)?;
    let day = u32::try_from(day).ok().filter(|day| (1..=days_in_month(year, month)).contains(day));
    let day = day.ok_or_else(out_of_range)?;
    // The years within the range of 64-bit microseconds.
    if !(-290_307..=294_246).contains(&year) || (before && year > 0) || (!before && year < 1) {
        return Err(out_of_range());
    }
    let days = days_from_civil(year, month, day);
    let (micros, offset) = match rest {
        Some(rest) => time(rest.trim()).ok_or_else(invalid)?,
        None => (0, 0),
    };
    Ok(days * DAY + micros - if kind.is_zoned { offset } else { 0 })
}

/// Parses a time into microseconds since midnight and its UTC offset.
fn time(text: &str) -> Option<(i64, i64)> {
    let (text, afternoon) = match text.get(text.len().saturating_sub(2)..) {
        Some(half) if half.eq_ignore_ascii_case("pm") => (text[..text.len() - 2].trim_end(), Some(true)),
        Some(half) if half.eq_ignore_ascii_case("am") => (text[..text.len() - 2].trim_end(), Some(false)),
        _ => (text, None),
    };
    let zone = text.find(['+', '-', 'Z', 'z', ' ']);
    let (clock, zone) = zone.map_or((text, ""), |at| text.split_at(at));
    let mut parts = clock.split(':');
    let two = |part: &str| {
        part.parse::<i64>().ok().filter(|_| part.len() <= 2 && part.as_bytes()[0].is_ascii_digit())
    };
    let mut hour = two(parts.next().filter(|part| !part.is_empty())?)?;
    let minute = two(parts.next().filter(|part| !part.is_empty())?)?;
    let micros = parts.next().map_or(Some(0), seconds)?;
    if parts.next().is_some() {
        return None;
    }
    match afternoon {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let all = (hour * 60 + minute) * 60 * SECOND + micros;
    if hour > 24 || minute > 59 || micros > 60 * SECOND || all > DAY {
        return None;
    }
    Some((all, offset(zone.trim())?))
}

pub(super) fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty()
        || whole.len() > 2
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    Some(whole.parse::<i64>().ok()? * SECOND + micros_of_fraction(fraction))
}

fn micros_of_fraction(digits: &str) -> i64 {
    let mut micros = 0;
    for at in 0..6 {
        micros = micros * 10 + digits.as_bytes().get(at).map_or(0, |digit| i64::from(digit - b'0'));
    }
    micros + i64::from(digits.as_bytes().get(6).is_some_and(|&digit| digit >= b'5'))
}

fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty()
        || zone.eq_ignore_ascii_case("z")
        || zone.eq_ignore_ascii_case("utc")
        || zone.eq_ignore_ascii_case("gmt")
    {
        return Some(0);
    }
    let negative = zone.starts_with('-');
    let digits = zone.strip_prefix(['-', '+'])?;
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let micros = (hours * 60 + minutes) * 60 * SECOND;
    ((0..=15).contains(&hours) && (0..60).contains(&minutes)).then_some(if negative {
        -micros
    } else {
        micros
    })
}

/// Errors: the cause, for a text that is not JSON.
pub(crate) fn check_json(text: &str) -> std::result::Result<(), String> {
    super::json::check(text)
}
