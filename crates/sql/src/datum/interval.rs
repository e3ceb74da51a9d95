//! Parses intervals, and applies the restrictions of interval types.
//!
//! ```text
//! 1 year 2 mons -3 days 04:05:06.7    units, and hours with minutes
//! 1-2                                 years and months of the SQL standard
//! P1Y2M3DT4H5M6S                      ISO 8601
//! ```

use super::Datum;
use super::parse::seconds;
use crate::error::{Error, Result};
use crate::sqlstate::{INTERVAL_FIELD_OVERFLOW, INVALID_DATETIME_FORMAT, INVALID_PARAMETER_VALUE};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Months, days and microseconds.
type Span = (i32, i32, i64);

/// Parses an interval. `unit` is that of a number without a unit.
///
/// Errors: 22007 for malformed text, 22015 for an interval out of range.
pub(crate) fn parse_interval(text: &str, unit: &str) -> Result<Span> {
    let mut sum = Sum::default();
    let read = match text.trim().strip_prefix('P') {
        Some(rest) => sum.iso(rest),
        None => sum.words(text, unit),
    };
    if read.is_none() {
        let what = format!("invalid input syntax for type interval: \"{text}\"");
        return Err(Error::new(INVALID_DATETIME_FORMAT, what));
    }
    sum.span().ok_or_else(|| {
        let what = format!("interval field value out of range: \"{text}\"");
        Error::new(INTERVAL_FIELD_OVERFLOW, what)
    })
}

/// Evaluates a literal `INTERVAL 'text' first TO last (precision)`.
///
/// Errors: as [`parse_interval`]; 22023 for an invalid precision.
pub(crate) fn typed_interval(
    text: &str,
    first: Option<&str>,
    last: Option<&str>,
    precision: Option<u64>,
) -> Result<Datum> {
    let (first, last) = (first.map(str::to_ascii_lowercase), last.map(str::to_ascii_lowercase));
    let unit = last.as_deref().or(first.as_deref()).unwrap_or("second");
    // Two parts with a colon are hours and minutes, unless the type says otherwise.
    let colons = text.matches(':').count();
    let is_short = first.as_deref() == Some("minute") && last.as_deref() == Some("second") && colons == 1;
    let padded = match is_short {
        true => text.replacen(
            text.split_ascii_whitespace().find(|word| word.contains(':')).unwrap_or(""),
            &{
                let word = text.split_ascii_whitespace().find(|word| word.contains(':')).unwrap_or("");
                match word.strip_prefix('-') {
                    Some(rest) => format!("-0:{rest}"),
                    None => format!("0:{}", word.strip_prefix('+').unwrap_or(word)),
                }
            },
            1,
        ),
        false => text.to_owned(),
    };
    let (mut months, mut days, mut micros) = parse_interval(&padded, unit)?;
    match unit {
        "year" => (months, days, micros) = (months / 12 * 12, 0, 0),
        "month" => (days, micros) = (0, 0),
        "day" => micros = 0,
        "hour" => micros = micros / HOUR * HOUR,
        "minute" => micros = micros / MINUTE * MINUTE,
        _ => {}
    }
    if let Some(precision) = precision {
        if precision > 6 {
            let what = format!("interval({precision}) precision must be between 0 and 6");
            return Err(Error::new(INVALID_PARAMETER_VALUE, what));
        }
        micros = rounded(micros, precision as u32);
    }
    Ok(Datum::Interval { months, days, micros })
}

/// Rounds microseconds to `digits` fractional digits of a second; halves away from zero.
pub(super) fn rounded(micros: i64, digits: u32) -> i64 {
    let unit = 10_i64.pow(6_u32.saturating_sub(digits));
    let up = if micros < 0 { -(unit / 2) } else { unit / 2 };
    micros.checked_add(up).map_or(micros, |micros| micros / unit * unit)
}

/// The sum of the parts of an interval.
#[derive(Debug, Default)]
struct Sum {
    months: f64,
    days: f64,
    micros: i128,
    ago: bool,
}

impl Sum {
    fn span(&self) -> Option<Span> {
        let days = self.days + self.months.fract() * 30.0;
        let micros = self.micros.checked_add((days.fract() * 86_400e6).round() as i128)?;
        let sign = if self.ago { -1.0 } else { 1.0 };
        let fits = |value: f64| (value.abs() < 2_147_483_648.0).then_some((value.trunc() * sign) as i32);
        let micros = i64::try_from(if self.ago { micros.checked_neg()? } else { micros }).ok()?;
        Some((fits(self.months)?, fits(days)?, micros))
    }

    /// Adds `count` of a unit; `None` for a word that is not a unit.
    fn add(&mut self, count: f64, unit: &str) -> Option<()> {
        let unit = match unit {
            // Their final `s` is not a plural.
            "s" | "ms" | "us" => unit,
            unit => unit.strip_suffix('s').unwrap_or(unit),
        };
        let micros = |unit: f64| (count * unit * 1e6).round() as i128;
        match unit {
            "millennium" | "millennia" | "mil" => self.months += (count * 12_000.0).round(),
            "century" | "centurie" | "cent" | "c" => self.months += (count * 1_200.0).round(),
            "decade" | "dec" => self.months += (count * 120.0).round(),
            "year" | "y" | "yr" => self.months += (count * 12.0).round(),
            "month" | "mon" => self.months += count,
            "week" | "w" => self.days += count * 7.0,
            "day" | "d" => self.days += count,
            "hour" | "h" | "hr" => self.micros = self.micros.checked_add(micros(3600.0))?,
            "minute" | "m" | "min" => self.micros = self.micros.checked_add(micros(60.0))?,
            "second" | "s" | "sec" => self.micros = self.micros.checked_add(micros(1.0))?,
            "millisecond" | "msecond" | "msec" | "ms" => {
                self.micros = self.micros.checked_add(micros(1e-3))?
            }
            "microsecond" | "usecond" | "usec" | "us" => {
                self.micros = self.micros.checked_add(micros(1e-6))?
            }
            _ => return None,
        }
        Some(())
    }

    fn words(&mut self, text: &str, unit: &str) -> Option<()> {
        let mut words = text.split_ascii_whitespace().flat_map(split_unit).peekable();
        let mut any = false;
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case("ago") {
                self.ago = true;
                continue;
            }
            if word == "@" {
                continue;
            }
            any = true;
            if word.contains(':') {
                self.micros = self.micros.checked_add(clock(word)?)?;
                continue;
            }
            if let Some(months) = years_and_months(word) {
                self.months += months;
                continue;
            }
            let count: f64 = word.parse().ok().filter(|count: &f64| count.is_finite())?;
            if word.bytes().any(|byte| byte.is_ascii_alphabetic() && !byte.eq_ignore_ascii_case(&b'e')) {
                return None;
            }
            // `1 2:03` is one day and two hours, three minutes.
            let is_unit = |word: &&str| {
                word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.eq_ignore_ascii_case("ago")
            };
            let next = match words.peek() {
                Some(next) if is_unit(next) => words.next().unwrap_or(unit).to_ascii_lowercase(),
                Some(next) if next.contains(':') => "day".to_owned(),
                Some(next) if !next.eq_ignore_ascii_case("ago") => return None,
                _ => unit.to_owned(),
            };
            self.add(count, &next)?;
        }
        any.then_some(())
    }

    /// Parses `1Y2M3DT4H5M6S`, the text after the P.
    fn iso(&mut self, text: &str) -> Option<()> {
        let mut rest = text;
        let (mut is_time, mut any) = (false, false);
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix('T').filter(|_| !is_time) {
                (is_time, rest) = (true, behind);
                continue;
            }
            let at = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let (number, behind) = rest.split_at_checked(at)?;
            let count: f64 = number.replace(',', ".").parse().ok()?;
            let unit = match (behind.chars().next()?, is_time) {
                ('Y', false) => "year",
                ('M', false) => "month",
                ('W', false) => "week",
                ('D', false) => "day",
                ('H', true) => "hour",
                ('M', true) => "minute",
                ('S', true) => "second",
                _ => return None,
            };
            self.add(count, unit)?;
            any = true;
            rest = behind.get(1..)?;
        }
        any.then_some(())
    }
}

/// Parses `04:05:06.7`, and returns microseconds.
fn clock(word: &str) -> Option<i128> {
    let negative = word.starts_with('-');
    let mut parts = word.strip_prefix(['-', '+']).unwrap_or(word).split(':');
    let (hours, minutes) = (digits(parts.next()?)?, parts.next()?);
    let (minutes, rest) = match (minutes.contains('.'), parts.next()) {
        // Two parts, of which the second has a fraction, are minutes and seconds.
        (true, None) => {
            return clock(&format!(
                "{}0:{}",
                if negative { "-" } else { "" },
                word.trim_start_matches(['-', '+'])
            ));
        }
        (_, rest) => (digits(minutes).filter(|part| *part < 60)?, rest),
    };
    let rest = rest.map_or(Some(0), seconds).filter(|rest| *rest <= MINUTE)?;
    if parts.next().is_some() {
        return None;
    }
    let all =
        i128::from(hours) * i128::from(HOUR) + i128::from(minutes) * i128::from(MINUTE) + i128::from(rest);
    Some(if negative { -all } else { all })
}

/// Parses `1-2`, and returns fourteen months.
fn years_and_months(word: &str) -> Option<f64> {
    let (sign, plain) = match word.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, word.strip_prefix('+').unwrap_or(word)),
    };
    let (years, months) = plain.split_once('-')?;
    let (years, months) = (digits(years)?, digits(months).filter(|months| *months < 12)?);
    Some(sign * (years as f64 * 12.0 + months as f64))
}

/// Parses a number that consists of digits only.
fn digits(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Splits `1d` into `1` and `d`; leaves other words as they are.
fn split_unit(word: &str) -> impl Iterator<Item = &str> {
    let at = word.find(|c: char| c.is_ascii_alphabetic()).filter(|&at| at > 0 && !word.contains(':'));
    let (number, unit) = at.map_or((word, ""), |at| word.split_at(at));
    [number, unit].into_iter().filter(|part| !part.is_empty())
}
