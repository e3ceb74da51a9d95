//! `to_date` and `to_timestamp`: parses timestamps by a pattern.

use super::template::{DAYS, Field, Item, MONTHS, ROMAN, is_separator, parse};
use crate::datum::{civil_from_days, days_from_civil, days_in_month};
use crate::error::{Error, Result};
use crate::expr::time::{DAY, SECOND, iso_week};
use crate::sqlstate::{DATETIME_FIELD_OVERFLOW, FEATURE_NOT_SUPPORTED, INVALID_DATETIME_FORMAT};

/// The fields parsed so far, each at most once.
#[derive(Default)]
struct Read {
    year: Option<i64>,
    /// The number of digits of the year. A year of two digits can be combined with a century.
    year_digits: u32,
    iso_year: Option<i64>,
    century: Option<i64>,
    before_christ: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_day_of_year: Option<i64>,
    /// 1 is Monday.
    weekday: Option<i64>,
    iso_week: Option<i64>,
    week_of_year: Option<i64>,
    week_of_month: Option<i64>,
    julian: Option<i64>,
    hour: Option<i64>,
    is_clock: bool,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    micros: Option<i64>,
    second_of_day: Option<i64>,
    zone_negative: bool,
    zone_hour: Option<i64>,
    zone_minute: Option<i64>,
}

/// Parses a timestamp by a pattern, in microseconds since 1970. Missing fields are those of the
/// first day of the year 1 BC, as in PostgreSQL.
///
/// Errors: 22007 for a text that does not match the pattern, 22008 for a day or an hour that does
/// not exist.
pub(in crate::expr) fn moment_from(text: &str, pattern: &str) -> Result<i64> {
    let (items, exact) = parse(pattern);
    let mut reader = Reader { rest: text, exact, skipped: 0 };
    let mut read = Read::default();
    for (at, item) in items.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        if !exact && (at == 0 || matches!(item, Item::Field { .. })) {
            reader.skip_blanks();
        }
        match item {
            Item::Separator(_) => reader.separator(),
            Item::Text(_) => reader.character(),
            Item::Field { field, name, fill, ordinal } => {
                let next = items.get(at + 1);
                let open = *fill || ordinal.is_some() || !is_digit(next);
                reader.field(&mut read, *field, name, open)?;
                if ordinal.is_some() && field.is_digits() {
                    reader.rest = reader.rest.get(2.min(reader.rest.len())..).unwrap_or_default();
                }
                if !exact {
                    reader.skipped = 0;
                    reader.skip_blanks();
                }
            }
        }
    }
    read.moment(text)
}

/// Whether the next item could continue a number.
fn is_digit(item: Option<&Item>) -> bool {
    match item {
        Some(Item::Field { field, .. }) => field.is_digits(),
        Some(Item::Text(c) | Item::Separator(c)) => c.is_ascii_digit(),
        None => false,
    }
}

struct Reader<'t> {
    rest: &'t str,
    exact: bool,
    /// The number of blanks skipped that are not in the pattern.
    skipped: i64,
}

fn invalid(what: String) -> Error {
    Error::new(INVALID_DATETIME_FORMAT, what)
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        let rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        self.skipped += (self.rest.len() - rest.len()) as i64;
        self.rest = rest;
    }

    fn character(&mut self) {
        if !self.exact && self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
    }

    /// Skips a blank or separator, if there is one.
    fn separator(&mut self) {
        let first = self.rest.chars().next();
        if self.exact {
            self.character();
        } else if first.is_some_and(is_separator) {
            let mut characters = self.rest.chars();
            characters.next();
            self.rest = characters.as_str();
        } else {
            self.skipped -= 1;
        }
    }

    /// Parses an integer of all digits if `open`, otherwise of at most `width` characters.
    fn number(&mut self, name: &str, width: usize, open: bool) -> Result<(i64, u32)> {
        let text = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let sign = usize::from(text.starts_with(['-', '+']));
        let digits = text.get(sign..).unwrap_or_default().bytes().take_while(u8::is_ascii_digit).count();
        let most = if open { sign + digits } else { (sign + digits).min(width) };
        let shown = || text.chars().take(width).collect::<String>();
        if !open && text.len() < width {
            let what = format!("source string too short for \"{name}\" formatting field");
            let detail = format!("Field requires {width} characters, but only {} remain.", text.len());
            return Err(invalid(what)
                .with_detail(detail)
                .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        if digits == 0 || most <= sign {
            let what = format!("invalid value \"{}\" for \"{name}\"", shown());
            return Err(invalid(what).with_detail("Value must be an integer."));
        }
        if !open && most < width {
            let what = format!("invalid value \"{}\" for \"{name}\"", shown());
            let detail = format!("Field requires {width} characters, but only {most} could be parsed.");
            return Err(invalid(what)
                .with_detail(detail)
                .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let number = text.get(..most).unwrap_or_default();
        self.rest = text.get(most..).unwrap_or_default();
        let value = number.parse::<i32>().map_err(|_| {
            let what = format!("value for \"{name}\" in source string is out of range");
            Error::new(DATETIME_FIELD_OVERFLOW, what)
        })?;
        Ok((value.into(), (most - sign) as u32))
    }

    /// Finds which of several words the text begins with, ignoring case.
    fn word<'w>(&mut self, name: &str, words: impl Iterator<Item = &'w str>) -> Result<usize> {
        let mut found: Option<(usize, usize)> = None;
        for (at, word) in words.enumerate() {
            let is_here = self.rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
            if is_here && found.is_none_or(|(_, length)| length < word.len()) {
                found = Some((at, word.len()));
            }
        }
        let Some((at, length)) = found else {
            let shown: String = self.rest.chars().take_while(|c| !c.is_ascii_whitespace()).collect();
            return Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail("The given value did not match any of the allowed values for this field."));
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(at)
    }

    fn field(&mut self, read: &mut Read, field: Field, name: &str, open: bool) -> Result<()> {
        use Field as F;
        let set = |place: &mut Option<i64>, value: i64| match place.replace(value) {
            Some(before) if before != value => {
                let what = format!("conflicting values for \"{name}\" field in formatting string");
                Err(invalid(what)
                    .with_detail("This value contradicts a previous setting for the same field type."))
            }
            _ => Ok(()),
        };
        match field {
            F::Year(count) => {
                let (year, digits) = self.number(name, count as usize, open)?;
                read.year_digits = count;
                set(
                    &mut read.year,
                    if count < 4 && digits < 4 { nearest_year(year, digits.max(count)) } else { year },
                )
            }
            F::YearWithComma => {
                let (thousands, _) = self.number(name, 1, true)?;
                self.rest = self
                    .rest
                    .strip_prefix(',')
                    .ok_or_else(|| invalid(format!("invalid input string for \"{name}\"")))?;
                let (year, _) = self.number(name, 3, false)?;
                read.year_digits = 4;
                set(&mut read.year, thousands * 1000 + year)
            }
            F::IsoYear(count) => {
                let (year, digits) = self.number(name, count as usize, open)?;
                set(
                    &mut read.iso_year,
                    if count < 4 && digits < 4 { nearest_year(year, digits.max(count)) } else { year },
                )
            }
            F::Century => set(&mut read.century, self.number(name, 2, open)?.0),
            F::Era(_, points) => {
                let words = if points { ["A.D.", "B.C."] } else { ["AD", "BC"] };
                read.before_christ = self.word(name, words.into_iter())? == 1;
                Ok(())
            }
            F::Half(_, points) => {
                let words = if points { ["A.M.", "P.M."] } else { ["AM", "PM"] };
                read.afternoon = Some(self.word(name, words.into_iter())? == 1);
                read.is_clock = true;
                Ok(())
            }
            F::Month => set(&mut read.month, self.number(name, 2, open)?.0),
            F::MonthName(_) => set(&mut read.month, self.word(name, MONTHS.into_iter())? as i64 + 1),
            F::MonthShort(_) => {
                let short = MONTHS.into_iter().filter_map(|month| month.get(..3));
                set(&mut read.month, self.word(name, short)? as i64 + 1)
            }
            F::Roman(_) => set(&mut read.month, self.word(name, ROMAN.into_iter())? as i64 + 1),
            F::Day => set(&mut read.day, self.number(name, 2, open)?.0),
            F::DayOfYear => set(&mut read.day_of_year, self.number(name, 3, open)?.0),
            F::IsoDayOfYear => set(&mut read.iso_day_of_year, self.number(name, 3, open)?.0),
            F::DayOfWeek => {
                let from_sunday = self.number(name, 1, open)?.0;
                set(&mut read.weekday, if from_sunday == 1 { 7 } else { from_sunday - 1 })
            }
            F::IsoDayOfWeek => set(&mut read.weekday, self.number(name, 1, open)?.0),
            F::DayName(_) => {
                let day = self.word(name, DAYS.into_iter())? as i64;
                set(&mut read.weekday, if day == 0 { 7 } else { day })
            }
            F::DayShort(_) => {
                let day = self.word(name, DAYS.into_iter().filter_map(|day| day.get(..3)))? as i64;
                set(&mut read.weekday, if day == 0 { 7 } else { day })
            }
            F::IsoWeek => set(&mut read.iso_week, self.number(name, 2, open)?.0),
            F::WeekOfYear => set(&mut read.week_of_year, self.number(name, 2, open)?.0),
            F::WeekOfMonth => set(&mut read.week_of_month, self.number(name, 1, open)?.0),
            F::Julian => set(&mut read.julian, self.number(name, 7, true)?.0),
            // A quarter does not determine a date, so it is parsed and ignored.
            F::Quarter => self.number(name, 1, open).map(|_| ()),
            F::Hour12 => {
                read.is_clock = true;
                set(&mut read.hour, self.number(name, 2, open)?.0)
            }
            F::Hour24 => set(&mut read.hour, self.number(name, 2, open)?.0),
            F::Minute => set(&mut read.minute, self.number(name, 2, open)?.0),
            F::Second => set(&mut read.second, self.number(name, 2, open)?.0),
            F::SecondOfDay => set(&mut read.second_of_day, self.number(name, 5, open)?.0),
            F::Fraction(count) => {
                let (value, digits) = self.number(name, count as usize, open)?;
                // The digits are a fraction: ".5" is half a second.
                let micros = match digits {
                    0..=6 => value * 10_i64.pow(6 - digits),
                    _ => value / 10_i64.pow((digits - 6).min(18)),
                };
                set(&mut read.micros, micros)
            }
            F::ZoneHour => {
                if let Some(rest) = self.rest.strip_prefix(['+', '-', ' ']) {
                    read.zone_negative = self.rest.starts_with('-');
                    self.rest = rest;
                }
                set(&mut read.zone_hour, self.number(name, 2, open)?.0)
            }
            F::ZoneMinute => set(&mut read.zone_minute, self.number(name, 2, open)?.0),
            F::Zone(_) | F::Offset => {
                let what = format!("formatting field \"{name}\" is only supported in to_char");
                Err(Error::new(FEATURE_NOT_SUPPORTED, what))
            }
        }
    }
}

/// Returns the year nearest to 2020 that ends in these digits.
fn nearest_year(year: i64, digits: u32) -> i64 {
    match digits {
        1 | 2 if year < 70 => year + 2000,
        1 | 2 => year + 1900,
        3 if year < 520 => year + 2000,
        3 if year < 1000 => year + 1000,
        _ => year,
    }
}

impl Read {
    fn moment(&self, text: &str) -> Result<i64> {
        let out_of_range = || {
            let what = format!("date/time field value out of range: \"{text}\"");
            Error::new(DATETIME_FIELD_OVERFLOW, what)
        };
        let date = self.date().ok_or_else(out_of_range)?;
        let time = self.time(&out_of_range)?;
        let zone = (self.zone_hour.unwrap_or(0) * 60 + self.zone_minute.unwrap_or(0)) * 60 * SECOND;
        let zone = if self.zone_negative { -zone } else { zone };
        date.checked_mul(DAY).and_then(|at| at.checked_add(time)?.checked_sub(zone)).ok_or_else(out_of_range)
    }

    fn year(&self) -> i64 {
        let year = match (self.year, self.century) {
            (Some(year), Some(century)) if self.year_digits <= 2 => {
                let of_century = year % 100;
                if of_century == 0 { century * 100 } else { (century - 1) * 100 + of_century }
            }
            (Some(year), _) => year,
            (None, Some(century)) => (century - 1) * 100 + 1,
            (None, None) => return 0,
        };
        // 1 BC is the year 0.
        if self.before_christ && year > 0 {
            1 - year
        } else if year < 0 {
            year + 1
        } else {
            year
        }
    }

    /// Returns the days since 1970-01-01; `None` if the day does not exist.
    fn date(&self) -> Option<i64> {
        if let Some(julian) = self.julian {
            return Some(julian - 2_440_588);
        }
        let first_week = |year: i64| {
            // The fourth of January is always in the first week.
            let fourth = days_from_civil(year, 1, 4);
            fourth - (fourth + 3).rem_euclid(7)
        };
        if let Some(year) = self.iso_year {
            if let Some(day) = self.iso_day_of_year {
                return (1..=371).contains(&day).then(|| first_week(year) + day - 1);
            }
            let week = self.iso_week.unwrap_or(1);
            let monday = first_week(year) + (week - 1) * 7;
            let date = monday + self.weekday.unwrap_or(1) - 1;
            let fits = week >= 1 && iso_week(monday) == (year, week);
            return fits.then_some(date);
        }
        let year = self.year();
        if let Some(day) = self.day_of_year.or_else(|| self.week_of_year.map(|week| (week - 1) * 7 + 1))
            && (self.month.is_none() || self.day_of_year.is_some())
            && self.day.is_none()
        {
            let days = days_from_civil(year + 1, 1, 1) - days_from_civil(year, 1, 1);
            return (1..=days).contains(&day).then(|| days_from_civil(year, 1, 1) + day - 1);
        }
        let month = u32::try_from(self.month.unwrap_or(1)).ok().filter(|month| (1..=12).contains(month))?;
        let day = self.day.or_else(|| self.week_of_month.map(|week| (week - 1) * 7 + 1)).unwrap_or(1);
        let day = u32::try_from(day).ok().filter(|day| (1..=days_in_month(year, month)).contains(day))?;
        let date = days_from_civil(year, month, day);
        debug_assert_eq!(civil_from_days(date), (year, month, day), "days and dates are inverse");
        Some(date)
    }

    fn time(&self, out_of_range: &dyn Fn() -> Error) -> Result<i64> {
        let (mut hour, mut minute, mut second) =
            (self.hour.unwrap_or(0), self.minute.unwrap_or(0), self.second.unwrap_or(0));
        if let Some(all) = self.second_of_day {
            (hour, minute, second) = (all / 3600, all / 60 % 60, all % 60);
        }
        if self.is_clock {
            if !(1..=12).contains(&hour) {
                return Err(invalid(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 };
        }
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err(out_of_range());
        }
        Ok(((hour * 60 + minute) * 60 + second) * SECOND + self.micros.unwrap_or(0))
    }
}
