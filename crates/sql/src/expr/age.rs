//! Intervals between timestamps in years, months and days, and the normalization of intervals.

use super::time::{DAY, SECOND, overflow};
use crate::datum::{Datum, civil_from_days, days_in_month};
use crate::error::Result;

const HOUR: i64 = 3600 * SECOND;

/// Computes `age(later, earlier)` in whole months, and the rest of the last one.
pub(super) fn age(later: i64, earlier: i64) -> Result<Datum> {
    if later < earlier {
        let Datum::Interval { months, days, micros } = age(earlier, later)? else {
            return Err(overflow("interval"));
        };
        return super::time::negate(months, days, micros);
    }
    let parts = |at: i64| (civil_from_days(at.div_euclid(DAY)), at.rem_euclid(DAY));
    let ((year, month, day), time) = parts(later);
    let ((first_year, first_month, first_day), first_time) = parts(earlier);
    let mut micros = time - first_time;
    let mut days = i64::from(day) - i64::from(first_day);
    let mut months = (year - first_year) * 12 + i64::from(month) - i64::from(first_month);
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // The borrowed month has the length of the earlier timestamp's month.
        days += i64::from(days_in_month(first_year, first_month));
        months -= 1;
    }
    let months = i32::try_from(months).map_err(|_| overflow("interval"))?;
    Ok(Datum::Interval { months, days: days as i32, micros })
}

/// Carries whole units into the larger part, and then gives both parts the same sign.
fn carry(large: i64, small: i64, unit: i64) -> (i64, i64) {
    let (mut large, mut small) = (large + small / unit, small % unit);
    if large > 0 && small < 0 {
        (large, small) = (large - 1, small + unit);
    } else if large < 0 && small > 0 {
        (large, small) = (large + 1, small - unit);
    }
    (large, small)
}

fn interval(months: i64, days: i64, micros: i64) -> Result<Datum> {
    let narrow = |value: i64| i32::try_from(value).map_err(|_| overflow("interval"));
    Ok(Datum::Interval { months: narrow(months)?, days: narrow(days)?, micros })
}

/// Computes `justify_hours`: 24 hours become a day.
pub(super) fn justify_hours(months: i32, days: i32, micros: i64) -> Result<Datum> {
    let (days, micros) = carry(days.into(), micros, DAY);
    interval(months.into(), days, micros)
}

/// Computes `justify_days`: 30 days become a month.
pub(super) fn justify_days(months: i32, days: i32, micros: i64) -> Result<Datum> {
    let (months, days) = carry(months.into(), days.into(), 30);
    interval(months, days, micros)
}

/// Computes `justify_interval`: both, and all parts get the sign of the largest.
pub(super) fn justify_interval(months: i32, days: i32, micros: i64) -> Result<Datum> {
    let (mut months, mut days) = (i64::from(months), i64::from(days) + micros / DAY);
    let mut micros = micros % DAY;
    months += days / 30;
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    debug_assert!(micros.abs() < 24 * HOUR, "a day has 24 hours");
    interval(months, days, micros)
}
