//! Dates, times and intervals.

use super::operator::Operator;
use crate::datum::{Datum, DatumRef, civil_from_days, days_from_civil, days_in_month};
use crate::error::{Error, Result};
use crate::sqlstate::{DATETIME_FIELD_OVERFLOW, INVALID_PARAMETER_VALUE};

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

pub(super) fn overflow(what: &str) -> Error {
    Error::new(DATETIME_FIELD_OVERFLOW, format!("{what} out of range"))
}

pub(super) fn negate(months: i32, days: i32, micros: i64) -> Result<Datum> {
    let (Some(months), Some(days), Some(micros)) =
        (months.checked_neg(), days.checked_neg(), micros.checked_neg())
    else {
        return Err(overflow("interval"));
    };
    Ok(Datum::Interval { months, days, micros })
}

/// The range of dates: 4714-11-24 BC to 5874897-12-31.
const FIRST_DAY: i32 = -2_440_588;
const LAST_DAY: i32 = 2_145_042_905;

fn in_range(day: Option<i32>) -> Result<Datum> {
    day.filter(|day| (FIRST_DAY..=LAST_DAY).contains(day)).map(Datum::Date).ok_or_else(|| overflow("date"))
}

/// Applies an operator to times.
pub(super) fn binary(operator: Operator, left: DatumRef<'_>, right: DatumRef<'_>) -> Result<Datum> {
    use DatumRef as D;
    use Operator as O;
    match (left, operator, right) {
        (D::Date(day), O::Add, D::Int(days)) => in_range(day.checked_add(days)),
        (D::Int(days), O::Add, D::Date(day)) => in_range(day.checked_add(days)),
        (D::Date(day), O::Subtract, D::Int(days)) => in_range(day.checked_sub(days)),
        (D::Date(a), O::Subtract, D::Date(b)) => {
            a.checked_sub(b).map(Datum::Int).ok_or_else(|| overflow("integer"))
        }
        (D::Timestamp(a), O::Subtract, D::Timestamp(b)) => {
            let micros = a.checked_sub(b).ok_or_else(|| overflow("interval"))?;
            Ok(Datum::Interval { months: 0, days: (micros / DAY) as i32, micros: micros % DAY })
        }
        (D::Time(a), O::Subtract, D::Time(b)) => Ok(Datum::Interval { months: 0, days: 0, micros: a - b }),
        (D::Timestamp(_) | D::Time(_), O::Add | O::Subtract, D::Interval { months, days, micros }) => {
            let span = if operator == O::Subtract { negate(months, days, micros)? } else { right.to_owned() };
            let Datum::Interval { months, days, micros } = span else { return Err(overflow("interval")) };
            match left {
                D::Time(time) => Ok(Datum::Time((time + micros % DAY).rem_euclid(DAY))),
                D::Timestamp(at) => {
                    let sum = add(at, months, days, micros);
                    let is_known = |at: &i64| *at >= i64::from(FIRST_DAY) * DAY;
                    sum.filter(is_known).map(Datum::Timestamp).ok_or_else(|| overflow("timestamp"))
                }
                _ => Err(overflow("timestamp")),
            }
        }
        (D::Interval { .. }, O::Add, D::Timestamp(_) | D::Time(_)) => binary(operator, right, left),
        (D::Interval { months: m, days: d, micros: u }, O::Add, D::Interval { months, days, micros }) => {
            let sum = (|| Some((m.checked_add(months)?, d.checked_add(days)?, u.checked_add(micros)?)))();
            let (months, days, micros) = sum.ok_or_else(|| overflow("interval"))?;
            Ok(Datum::Interval { months, days, micros })
        }
        (D::Interval { .. }, O::Subtract, D::Interval { months, days, micros }) => {
            binary(O::Add, left, negate(months, days, micros)?.borrow())
        }
        (D::Interval { months, days, micros }, O::Multiply, D::Double(by)) => {
            scale(months, days, micros, |part| part * by)
        }
        (D::Double(_), O::Multiply, D::Interval { .. }) => binary(operator, right, left),
        (D::Interval { .. }, O::Divide, D::Double(0.0)) => Err(super::arithmetic::by_zero()),
        (D::Interval { months, days, micros }, O::Divide, D::Double(by)) => {
            scale(months, days, micros, |part| part / by)
        }
        _ => Err(super::arithmetic::unexpected(operator, "dates, times and intervals", [left, right])),
    }
}

/// Adds months, then days, then microseconds to a timestamp. A day that its month lacks becomes the
/// last day of the month.
pub(super) fn add(at: i64, months: i32, days: i32, micros: i64) -> Option<i64> {
    let mut day = at.div_euclid(DAY);
    if months != 0 {
        let (year, month, of_month) = civil_from_days(day);
        let all = year * 12 + i64::from(month) - 1 + i64::from(months);
        let (year, month) = (all.div_euclid(12), all.rem_euclid(12) as u32 + 1);
        day = days_from_civil(year, month, of_month.min(days_in_month(year, month)));
    }
    day = day.checked_add(days.into())?;
    day.checked_mul(DAY)?.checked_add(at.rem_euclid(DAY))?.checked_add(micros)
}

/// Multiplies or divides an interval. Fractions of a month carry into days, at thirty per month,
/// and fractions of a day into hours.
fn scale(months: i32, days: i32, micros: i64, by: impl Fn(f64) -> f64) -> Result<Datum> {
    let (all_months, all_days) = (by(months.into()), by(days.into()));
    let of_month = round(all_months.fract() * 30.0);
    let mut seconds = round((all_days.fract() + of_month.fract()) * 86_400.0);
    let mut whole_days = all_days.trunc() + of_month.trunc();
    if seconds.abs() >= 86_400.0 {
        whole_days += (seconds / 86_400.0).trunc();
        seconds %= 86_400.0;
    }
    let all_micros = (by(micros as f64) + seconds * 1e6).round_ties_even();
    if !(all_months.abs() < 2_147_483_648.0
        && whole_days.abs() < 2_147_483_648.0
        && all_micros.abs() < 9.2e18)
    {
        return Err(overflow("interval"));
    }
    Ok(Datum::Interval { months: all_months as i32, days: whole_days as i32, micros: all_micros as i64 })
}

/// Rounds to six fractional digits, so that a tenth remains exactly a tenth.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Converts seconds since 1970 to a timestamp.
pub(super) fn from_seconds(seconds: f64) -> Result<i64> {
    let micros = (seconds * 1e6).round_ties_even();
    if micros.abs() < 9.2e18 { Ok(micros as i64) } else { Err(overflow("timestamp")) }
}

/// EXTRACT, as a numeric. Fields with a fraction are computed in millionths.
pub(crate) fn extract(field: &str, datum: DatumRef<'_>) -> Result<Datum> {
    let unknown = || {
        let kind = datum.type_of().map_or("unknown", |kind| crate::types::name_of(&kind.into()));
        Error::new(INVALID_PARAMETER_VALUE, format!("unit \"{field}\" not recognized for type {kind}"))
    };
    let field = match field {
        "years" | "months" | "weeks" | "days" | "hours" | "minutes" | "seconds" => &field[..field.len() - 1],
        field => field,
    };
    let whole = |value: i64| Datum::Decimal { unscaled: value.into(), scale: 0 };
    let micros = |value: i128| Datum::Decimal { unscaled: value, scale: 6 };
    let (day, time) = match datum {
        DatumRef::Date(day) => (i64::from(day), 0),
        DatumRef::Timestamp(at) => (at.div_euclid(DAY), at.rem_euclid(DAY)),
        DatumRef::Time(time) => (0, time),
        DatumRef::Interval { months, days, micros: time } => {
            return Ok(match field {
                "year" => whole((months / 12).into()),
                "month" => whole((months % 12).into()),
                "quarter" => whole((months % 12 / 3 + 1).into()),
                "decade" => whole((months / 120).into()),
                "century" => whole((months / 1_200).into()),
                "millennium" => whole((months / 12_000).into()),
                "week" | "dow" | "isodow" | "doy" | "isoyear" | "julian" => {
                    return Err(unsupported(field, datum));
                }
                "day" => whole(days.into()),
                "epoch" => {
                    // Here a year has 365.25 days, a month 30.
                    let years = i128::from(months / 12) * 31_557_600 * 1_000_000;
                    let months = i128::from(months % 12) * 30 * i128::from(DAY);
                    micros(years + months + i128::from(days) * i128::from(DAY) + i128::from(time))
                }
                _ => return of_time(field, time).ok_or_else(unknown),
            });
        }
        _ => return Err(unknown()),
    };
    match (datum, field) {
        // The only time zone is UTC.
        (DatumRef::Timestamp(_), "timezone" | "timezone_hour" | "timezone_minute") => return Ok(whole(0)),
        (
            DatumRef::Date(_),
            "hour" | "minute" | "second" | "millisecond" | "milliseconds" | "microsecond" | "microseconds"
            | "timezone" | "timezone_hour" | "timezone_minute",
        ) => {
            return Err(unsupported(field, datum));
        }
        (
            DatumRef::Time(_),
            "hour" | "minute" | "second" | "millisecond" | "milliseconds" | "microsecond" | "microseconds"
            | "epoch",
        ) => {}
        (
            DatumRef::Time(_),
            "year" | "month" | "day" | "quarter" | "decade" | "century" | "millennium" | "dow" | "isodow"
            | "doy" | "week" | "isoyear" | "julian" | "timezone" | "timezone_hour" | "timezone_minute",
        ) => {
            return Err(unsupported(field, datum));
        }
        _ => {}
    }
    let (year, month, of_month) = civil_from_days(day);
    Ok(match field {
        "year" => whole(if year > 0 { year } else { year - 1 }),
        "month" => whole(month.into()),
        "day" => whole(of_month.into()),
        "quarter" => whole(i64::from(month - 1) / 3 + 1),
        "decade" => whole(year.div_euclid(10)),
        // There is no century 0: 1 BC is in century -1.
        "century" => whole(if year > 0 { (year + 99) / 100 } else { -((100 - year) / 100) }),
        "millennium" => whole(if year > 0 { (year + 999) / 1000 } else { -((1000 - year) / 1000) }),
        "julian" => {
            const JULIAN_1970: i64 = 2_440_588;
            // Six fractional digits of a day suffice in most cases.
            let since = i128::from(day + JULIAN_1970) * 1_000_000;
            match datum {
                DatumRef::Date(_) => whole(day + JULIAN_1970),
                _ => micros(since + i128::from(time) * 1_000_000 / i128::from(DAY)),
            }
        }
        "dow" => whole((day + 4).rem_euclid(7)),
        "isodow" => whole((day + 3).rem_euclid(7) + 1),
        "doy" => whole(day - days_from_civil(year, 1, 1) + 1),
        "week" => whole(iso_week(day).1),
        "isoyear" => whole(match iso_week(day).0 {
            year @ 1.. => year,
            year => year - 1,
        }),
        "epoch" => match datum {
            DatumRef::Date(_) => whole(day * 86_400),
            _ => micros(i128::from(day) * i128::from(DAY) + i128::from(time)),
        },
        _ => return of_time(field, time).ok_or_else(unknown),
    })
}

fn unsupported(field: &str, datum: DatumRef<'_>) -> Error {
    let kind = datum.type_of().map_or("unknown", |kind| crate::types::name_of(&kind.into()));
    let what = format!("unit \"{field}\" not supported for type {kind}");
    Error::new(crate::sqlstate::FEATURE_NOT_SUPPORTED, what)
}

fn of_time(field: &str, time: i64) -> Option<Datum> {
    let whole = |value: i64| Datum::Decimal { unscaled: value.into(), scale: 0 };
    let second = time % (60 * SECOND);
    Some(match field {
        "hour" => whole(time / (3600 * SECOND)),
        "minute" => whole(time / (60 * SECOND) % 60),
        "second" => Datum::Decimal { unscaled: second.into(), scale: 6 },
        "milliseconds" | "millisecond" => Datum::Decimal { unscaled: second.into(), scale: 3 },
        "microseconds" | "microsecond" => whole(second),
        _ => return None,
    })
}

/// Returns the ISO year and week number of a day. The first week is the one with the year's first
/// Thursday.
pub(super) fn iso_week(day: i64) -> (i64, i64) {
    let thursday = day - (day + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// DATE_TRUNC of an interval.
///
/// Errors: 22023 for an unknown unit, 0A000 for weeks.
pub(super) fn truncate_span(field: &str, months: i32, days: i32, micros: i64) -> Result<Datum> {
    let whole = |months: i32| Ok(Datum::Interval { months, days: 0, micros: 0 });
    let micros = match field {
        "millennium" | "millennia" => return whole(months / 12_000 * 12_000),
        "century" | "centuries" => return whole(months / 1_200 * 1_200),
        "decade" | "decades" => return whole(months / 120 * 120),
        "year" | "years" => return whole(months / 12 * 12),
        "quarter" | "quarters" => return whole(months / 3 * 3),
        "month" | "months" => return whole(months),
        "day" | "days" => 0,
        "hour" | "hours" => micros - micros % (3600 * SECOND),
        "minute" | "minutes" => micros - micros % (60 * SECOND),
        "second" | "seconds" => micros - micros % SECOND,
        "milliseconds" => micros - micros % 1_000,
        "microseconds" => micros,
        "week" | "weeks" => return Err(unsupported(field, DatumRef::Interval { months, days, micros })),
        _ => {
            let what = format!("unit \"{field}\" not recognized for type interval");
            return Err(Error::new(INVALID_PARAMETER_VALUE, what));
        }
    };
    Ok(Datum::Interval { months, days, micros })
}

/// DATE_TRUNC.
pub(crate) fn truncate(field: &str, at: i64) -> Result<i64> {
    let (day, time) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    let (year, month, _) = civil_from_days(day);
    let start =
        |year, month| days_from_civil(year, month, 1).checked_mul(DAY).ok_or_else(|| overflow("timestamp"));
    Ok(match field {
        "microseconds" => at,
        "milliseconds" => at - at.rem_euclid(1_000),
        "second" => at - at.rem_euclid(SECOND),
        "minute" => at - at.rem_euclid(60 * SECOND),
        "hour" => at - at.rem_euclid(3600 * SECOND),
        "day" => at.checked_sub(time).ok_or_else(|| overflow("timestamp"))?,
        "week" => (day - (day + 3).rem_euclid(7)).checked_mul(DAY).ok_or_else(|| overflow("timestamp"))?,
        "month" => start(year, month)?,
        "quarter" => start(year, (month - 1) / 3 * 3 + 1)?,
        "year" => start(year, 1)?,
        "decade" => start(year.div_euclid(10) * 10, 1)?,
        "century" => start((year - 1).div_euclid(100) * 100 + 1, 1)?,
        "millennium" => start((year - 1).div_euclid(1000) * 1000 + 1, 1)?,
        _ => {
            return Err(Error::new(
                INVALID_PARAMETER_VALUE,
                format!("unit \"{field}\" not recognized for type timestamp without time zone"),
            ));
        }
    })
}
