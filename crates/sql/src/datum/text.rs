//! Prints values as PostgreSQL does.

use std::fmt::{self, Display, Formatter, Write};

use super::{Datum, DatumRef, civil_from_days, put_item};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

impl Display for Datum {
    /// Writes PostgreSQL's text form; nothing for NULL.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.borrow().fmt(f)
    }
}

impl Display for DatumRef<'_> {
    /// Writes PostgreSQL's text form; nothing for NULL.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            DatumRef::Null => Ok(()),
            DatumRef::Boolean(value) => f.write_char(if value { 't' } else { 'f' }),
            DatumRef::SmallInt(value) => Display::fmt(&value, f),
            DatumRef::Int(value) => Display::fmt(&value, f),
            DatumRef::BigInt(value) => Display::fmt(&value, f),
            DatumRef::Real(value) => float(f, &format!("{value:e}"), value.is_finite(), 6, value.into()),
            DatumRef::Double(value) => float(f, &format!("{value:e}"), value.is_finite(), 15, value),
            DatumRef::Decimal { unscaled, scale } => decimal(f, unscaled, scale),
            DatumRef::Text(text) => f.write_str(text),
            DatumRef::Blob(bytes) => {
                f.write_str("\\x")?;
                hex(f, bytes)
            }
            DatumRef::Date(days) => {
                let before = date(f, days.into())?;
                f.write_str(before)
            }
            DatumRef::Time(micros) => time(f, micros),
            DatumRef::Timestamp(micros) => {
                let before = date(f, micros.div_euclid(DAY))?;
                f.write_char(' ')?;
                time(f, micros.rem_euclid(DAY))?;
                f.write_str(before)
            }
            DatumRef::Interval { months, days, micros } => interval(f, months, days, micros),
            DatumRef::Uuid(bytes) => {
                for (at, part) in [(0, 4), (4, 6), (6, 8), (8, 10), (10, 16)].into_iter().enumerate() {
                    if at > 0 {
                        f.write_char('-')?;
                    }
                    hex(f, bytes.get(part.0..part.1).unwrap_or_default())?;
                }
                Ok(())
            }
            DatumRef::List(items) => {
                let mut text = String::from("{");
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    match item {
                        Datum::Null => text.push_str("NULL"),
                        Datum::List(_) => text.push_str(&item.to_string()),
                        item => put_item(&item.to_string(), &mut text),
                    }
                }
                text.push('}');
                f.write_str(&text)
            }
        }
    }
}

/// Formats a timestamp whose type has a time zone, which is always UTC.
pub(crate) fn zoned_text(moment: DatumRef<'_>) -> String {
    let plain = moment.to_string();
    match plain.strip_suffix(" BC") {
        Some(before) => format!("{before}+00 BC"),
        None => plain + "+00",
    }
}

fn hex(f: &mut Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// `shortest` is the shortest number that parses as the same value, as digits and exponent
/// (`1.5e-7`). Exponents from -4 up to `digits` are written out.
fn float(f: &mut Formatter<'_>, shortest: &str, finite: bool, digits: i32, value: f64) -> fmt::Result {
    if !finite {
        return f.write_str(match (value.is_nan(), value > 0.0) {
            (true, _) => "NaN",
            (false, true) => "Infinity",
            (false, false) => "-Infinity",
        });
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return write!(f, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    f.write_str(sign)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    if exponent < 0 {
        f.write_str("0.")?;
        (1..-exponent).try_for_each(|_| f.write_char('0'))?;
        return f.write_str(&all);
    }
    let point = exponent as usize + 1;
    for (at, digit) in all.chars().enumerate() {
        if at == point {
            f.write_char('.')?;
        }
        f.write_char(digit)?;
    }
    (all.len()..point).try_for_each(|_| f.write_char('0'))
}

fn decimal(f: &mut Formatter<'_>, unscaled: i128, scale: u8) -> fmt::Result {
    let digits = unscaled.unsigned_abs().to_string();
    if unscaled < 0 {
        f.write_char('-')?;
    }
    let scale = usize::from(scale);
    if scale == 0 {
        return f.write_str(&digits);
    }
    match digits.len().checked_sub(scale).filter(|&whole| whole > 0) {
        Some(whole) => {
            let (whole, fraction) = digits.split_at(whole);
            write!(f, "{whole}.{fraction}")
        }
        None => write!(f, "0.{digits:0>scale$}"),
    }
}

/// Writes the date, and returns the suffix that follows the rest of the value.
fn date(f: &mut Formatter<'_>, days: i64) -> Result<&'static str, fmt::Error> {
    let (year, month, day) = civil_from_days(days);
    let (year, before) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    write!(f, "{year:04}-{month:02}-{day:02}")?;
    Ok(before)
}

fn time(f: &mut Formatter<'_>, micros: i64) -> fmt::Result {
    let seconds = micros / SECOND;
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    fraction(f, micros % SECOND)
}

fn fraction(f: &mut Formatter<'_>, micros: i64) -> fmt::Result {
    if micros == 0 {
        return Ok(());
    }
    let digits = format!("{micros:06}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

fn interval(f: &mut Formatter<'_>, months: i32, days: i32, micros: i64) -> fmt::Result {
    let mut before = false; // something has been written
    // the last part written is negative, so that a positive one needs a sign
    let mut negative = false;
    let mut part = |f: &mut Formatter<'_>, count: i32, unit: &str| -> fmt::Result {
        if count == 0 {
            return Ok(());
        }
        let space = if before { " " } else { "" };
        let plus = if negative && count > 0 { "+" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        (before, negative) = (true, count < 0);
        write!(f, "{space}{plus}{count} {unit}{plural}")
    };
    part(f, months / 12, "year")?;
    part(f, months % 12, "mon")?;
    part(f, days, "day")?;
    if micros == 0 && before {
        return Ok(());
    }
    if before {
        f.write_char(' ')?;
    }
    if micros < 0 {
        f.write_char('-')?;
    } else if negative {
        f.write_char('+')?;
    }
    let micros = micros.unsigned_abs();
    let seconds = micros / SECOND.unsigned_abs();
    write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    fraction(f, (micros % SECOND.unsigned_abs()) as i64)
}
