//! `to_char` for timestamps and intervals.

use super::template::{Case, DAYS, Field, Item, MONTHS, ROMAN, parse};
use crate::datum::{civil_from_days, days_from_civil};
use crate::error::{Error, Result};
use crate::expr::functions::check_length;
use crate::expr::time::{DAY, SECOND, iso_week};
use crate::sqlstate::INVALID_DATETIME_FORMAT;

/// The parts of a timestamp or an interval.
struct Parts {
    year: i64,
    /// 0 for an interval of whole years.
    month: i64,
    day: i64,
    /// Days since 1970-01-01.
    date: i64,
    /// Microseconds of the day; for an interval, those beyond its days.
    time: i64,
    is_span: bool,
    is_zoned: bool,
}

/// Formats a timestamp by a pattern. `is_zoned` says that its type has a time zone, which is always
/// UTC.
///
/// Errors: 54000 for a text that is too long.
pub(in crate::expr) fn moment_text(at: i64, is_zoned: bool, pattern: &str) -> Result<String> {
    let date = at.div_euclid(DAY);
    let (year, month, day) = civil_from_days(date);
    let time = at.rem_euclid(DAY);
    let parts = Parts { year, month: month.into(), day: day.into(), date, time, is_span: false, is_zoned };
    text(&parts, pattern)
}

/// Formats an interval by a pattern.
///
/// Errors: 22007 for fields that intervals lack, such as the name of a day.
pub(in crate::expr) fn span_text(months: i32, days: i32, micros: i64, pattern: &str) -> Result<String> {
    let (year, month) = (i64::from(months / 12), i64::from(months % 12));
    let parts =
        Parts { year, month, day: days.into(), date: 0, time: micros, is_span: true, is_zoned: false };
    text(&parts, pattern)
}

fn text(parts: &Parts, pattern: &str) -> Result<String> {
    let mut out = String::new();
    for item in parse(pattern).0 {
        match item {
            Item::Text(c) | Item::Separator(c) => out.push(c),
            Item::Field { field, fill, ordinal, .. } => {
                let start = out.len();
                parts.field(field, fill, &mut out)?;
                if let Some(case) = ordinal.filter(|_| field.is_digits())
                    && let Some(number) = out.get(start..)
                {
                    let suffix = ordinal_of(number);
                    out += &cased(suffix, case);
                }
            }
        }
        check_length(out.len())?;
    }
    Ok(out)
}

/// Returns "st", "nd", "rd" or "th" for a number.
pub(super) fn ordinal_of(number: &str) -> &'static str {
    let mut digits = number.bytes().rev().filter(u8::is_ascii_digit);
    let (last, before) = (digits.next(), digits.next());
    match last {
        _ if before == Some(b'1') => "th",
        Some(b'1') => "st",
        Some(b'2') => "nd",
        Some(b'3') => "rd",
        _ => "th",
    }
}

fn cased(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_ascii_uppercase(),
        Case::Capital => text.to_owned(),
        Case::Lower => text.to_ascii_lowercase(),
    }
}

/// Writes a number, padded with zeros.
fn digits(out: &mut String, value: i64, width: usize, fill: bool) {
    let width = if fill { 0 } else { width };
    *out += &format!("{value:0width$}");
}

/// Like [`digits`], with additional room for a sign.
fn signed(out: &mut String, value: i64, width: usize, fill: bool) {
    digits(out, value, width + usize::from(value < 0), fill);
}

fn padded(out: &mut String, text: &str, width: usize, fill: bool) {
    let width = if fill { 0 } else { width };
    *out += &format!("{text:<width$}");
}

impl Parts {
    /// Returns the year as printed. There is no year 0 in AD or BC.
    fn said(&self, year: i64) -> i64 {
        if self.is_span || year > 0 { year } else { 1 - year }
    }

    fn day_of_year(&self) -> i64 {
        if self.is_span {
            (self.year * 12 + self.month) * 30 + self.day
        } else {
            self.date - days_from_civil(self.year, 1, 1) + 1
        }
    }

    fn iso_day_of_year(&self) -> i64 {
        let week = iso_week(self.date).1;
        (week - 1) * 7 + self.weekday_from_monday()
    }

    /// 1 to 7.
    fn weekday_from_monday(&self) -> i64 {
        (self.date + 3).rem_euclid(7) + 1
    }

    fn field(&self, field: Field, fill: bool, out: &mut String) -> Result<()> {
        use Field as F;
        let only_moments = matches!(
            field,
            F::Era(..)
                | F::DayName(_)
                | F::DayShort(_)
                | F::DayOfWeek
                | F::IsoDayOfWeek
                | F::MonthName(_)
                | F::MonthShort(_)
                | F::Zone(_)
                | F::ZoneHour
                | F::ZoneMinute
                | F::Offset
        );
        if self.is_span && only_moments {
            let what = "invalid format specification for an interval value";
            return Err(Error::new(INVALID_DATETIME_FORMAT, what)
                .with_hint("Intervals are not tied to specific calendar dates."));
        }
        match field {
            F::Year(_) | F::YearWithComma | F::IsoYear(_) | F::Century | F::Era(..) => {
                self.year_field(field, fill, out);
            }
            F::Half(..) | F::Fraction(_) | F::Hour12 | F::Hour24 | F::Minute | F::Second | F::SecondOfDay => {
                self.time_field(field, fill, out)
            }
            F::Zone(_) | F::ZoneHour | F::ZoneMinute | F::Offset => self.zone_field(field, fill, out),
            _ => self.date_field(field, fill, out),
        }
        Ok(())
    }

    fn year_field(&self, field: Field, fill: bool, out: &mut String) {
        use Field as F;
        let last = |year: i64, count: u32| match count {
            4 => year,
            count => year % 10_i64.pow(count),
        };
        match field {
            F::Year(count) => signed(out, last(self.said(self.year), count), count as usize, fill),
            F::YearWithComma => {
                let year = self.said(self.year);
                *out += &format!("{},{:03}", year / 1000, (year % 1000).abs());
            }
            F::IsoYear(count) => {
                let year = if self.is_span { self.year } else { iso_week(self.date).0 };
                signed(out, last(self.said(year), count), count as usize, fill);
            }
            F::Century => {
                let century = match self.year {
                    year if self.is_span => year / 100,
                    year if year > 0 => (year - 1) / 100 + 1,
                    year => year / 100 - 1,
                };
                signed(out, century, 2, fill);
            }
            F::Era(case, points) => {
                let era = match (self.year > 0, points) {
                    (true, true) => "A.D.",
                    (true, false) => "AD",
                    (false, true) => "B.C.",
                    (false, false) => "BC",
                };
                *out += &cased(era, case);
            }
            _ => {}
        }
    }

    fn date_field(&self, field: Field, fill: bool, out: &mut String) {
        use Field as F;
        let month = usize::try_from(self.month - 1).ok();
        let of = |names: &[&'static str; 12]| month.and_then(|at| names.get(at)).copied().unwrap_or_default();
        let weekday = DAYS.get(self.weekday_from_monday() as usize % 7).copied().unwrap_or_default();
        match field {
            F::Day => digits(out, self.day, 2, fill),
            F::DayOfYear => digits(out, self.day_of_year(), 3, fill),
            F::IsoDayOfYear => digits(out, self.iso_day_of_year(), 3, fill),
            F::DayOfWeek => digits(out, self.weekday_from_monday() % 7 + 1, 1, fill),
            F::IsoDayOfWeek => digits(out, self.weekday_from_monday(), 1, fill),
            F::DayName(case) => padded(out, &cased(weekday, case), 9, fill),
            F::DayShort(case) => *out += &cased(weekday.get(..3).unwrap_or_default(), case),
            F::IsoWeek => digits(out, iso_week(self.date).1, 2, fill),
            F::Julian => *out += &(self.date + 2_440_588).to_string(),
            F::Month => signed(out, self.month, 2, fill),
            F::MonthName(case) => padded(out, &cased(of(&MONTHS), case), 9, fill),
            F::MonthShort(case) => *out += &cased(of(&MONTHS).get(..3).unwrap_or_default(), case),
            F::Quarter if month.is_some() => digits(out, (self.month - 1) / 3 + 1, 1, fill),
            F::Roman(case) if month.is_some() => padded(out, &cased(of(&ROMAN), case), 4, fill),
            F::WeekOfMonth => digits(out, (self.day - 1) / 7 + 1, 1, fill),
            F::WeekOfYear => digits(out, (self.day_of_year() - 1) / 7 + 1, 2, fill),
            _ => {}
        }
    }

    fn time_field(&self, field: Field, fill: bool, out: &mut String) {
        use Field as F;
        let hour = self.time / (3600 * SECOND);
        match field {
            F::Half(case, points) => {
                let half = match (hour % 24 >= 12, points) {
                    (false, true) => "A.M.",
                    (false, false) => "AM",
                    (true, true) => "P.M.",
                    (true, false) => "PM",
                };
                *out += &cased(half, case);
            }
            F::Hour12 => signed(out, if hour % 12 == 0 { 12 } else { hour % 12 }, 2, fill),
            F::Hour24 => signed(out, hour, 2, fill),
            F::Minute => signed(out, self.time / (60 * SECOND) % 60, 2, fill),
            F::Second => signed(out, self.time / SECOND % 60, 2, fill),
            F::SecondOfDay => *out += &(self.time / SECOND).to_string(),
            F::Fraction(count) => {
                let part = self.time % SECOND / 10_i64.pow(6 - count);
                digits(out, part, count as usize, false);
            }
            _ => {}
        }
    }

    fn zone_field(&self, field: Field, fill: bool, out: &mut String) {
        match field {
            Field::Zone(case) if self.is_zoned => *out += &cased("UTC", case),
            Field::ZoneHour => *out += "+00",
            Field::ZoneMinute => *out += "00",
            Field::Offset => *out += if fill { "+0" } else { "+00" },
            _ => {}
        }
    }
}
