//! Constructor functions: dates and times from their parts, time bins, and texts from the items of
//! an array.

use super::time::{DAY, SECOND, add, overflow};
use super::value::Val;
use crate::datum::{Datum, DatumRef, Item, days_from_civil, days_in_month, nested_items};
use crate::error::{Error, Result};
use crate::sqlstate::{DATETIME_FIELD_OVERFLOW, INTERNAL_ERROR};

/// The range of dates: 4714-11-24 BC to 5874897-12-31.
const FIRST_DAY: i64 = -2_440_588;
const LAST_DAY: i64 = 2_145_042_905;

/// Returns the days since 1970 of a date. A year below zero is BC; there is no year 0.
fn days(year: i64, month: i64, day: i64) -> Result<i64> {
    let out_of_range = || {
        let what = format!("date field value out of range: {year}-{month:02}-{day:02}");
        Error::new(DATETIME_FIELD_OVERFLOW, what)
    };
    let astronomical = match year {
        0 => return Err(out_of_range()),
        1.. => year,
        _ => year + 1,
    };
    let month =
        u32::try_from(month).ok().filter(|month| (1..=12).contains(month)).ok_or_else(out_of_range)?;
    let last = days_in_month(astronomical, month);
    let day = u32::try_from(day).ok().filter(|day| (1..=last).contains(day)).ok_or_else(out_of_range)?;
    let days = days_from_civil(astronomical, month, day);
    let is_known = (FIRST_DAY..=LAST_DAY).contains(&days);
    is_known.then_some(days).ok_or_else(|| {
        Error::new(DATETIME_FIELD_OVERFLOW, format!("date out of range: {year}-{month:02}-{day:02}"))
    })
}

/// `make_date`.
///
/// Errors: 22008 for a date that does not exist, as everywhere here.
pub(super) fn date(year: i64, month: i64, day: i64) -> Result<i32> {
    i32::try_from(days(year, month, day)?).map_err(|_| overflow("date"))
}

/// `make_time`, in microseconds.
pub(super) fn time(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let is_time = (0..=24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..=60.0).contains(&second)
        && (hour < 24 || minute == 0 && second == 0.0);
    let micros = (hour * 60 + minute) * 60 * SECOND + (second * 1e6).round_ties_even() as i64;
    if is_time && micros <= DAY {
        return Ok(micros);
    }
    let what = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
    Err(Error::new(DATETIME_FIELD_OVERFLOW, what))
}

/// `make_timestamp`, in microseconds since 1970.
pub(super) fn moment(
    (year, month, day): (i64, i64, i64),
    (hour, minute, second): (i64, i64, f64),
) -> Result<i64> {
    let (days, time) = (days(year, month, day)?, time(hour, minute, second)?);
    let micros = days.checked_mul(DAY).and_then(|micros| micros.checked_add(time));
    micros.ok_or_else(|| overflow("timestamp"))
}

/// `make_interval`, from years, months, weeks, days, hours and minutes, and from seconds.
pub(super) fn interval(wholes: [i64; 6], seconds: f64) -> Result<Datum> {
    let [years, months, weeks, days, hours, minutes] = wholes;
    let too_long = || overflow("interval");
    let micros = seconds * 1e6;
    if micros.is_nan() || micros.abs() >= 9.2e18 {
        return Err(too_long());
    }
    let micros = (hours * 60 + minutes) * 60 * SECOND + micros.round_ties_even() as i64;
    Ok(Datum::Interval {
        months: i32::try_from(years * 12 + months).map_err(|_| too_long())?,
        days: i32::try_from(weeks * 7 + days).map_err(|_| too_long())?,
        micros,
    })
}

/// `date_bin`: the start of the bin that contains a timestamp. Bins have the length `stride`, and
/// one of them starts at `origin`.
///
/// Errors: 0A000 for a stride of months, 22008 for one that is not positive.
pub(super) fn bin(stride: DatumRef<'_>, at: DatumRef<'_>, origin: DatumRef<'_>) -> Result<Datum> {
    let (DatumRef::Interval { months, days, micros }, DatumRef::Timestamp(at), DatumRef::Timestamp(origin)) =
        (stride, at, origin)
    else {
        return Err(Error::new(INTERNAL_ERROR, "internal error: date_bin got a value of an unexpected type"));
    };
    if months != 0 {
        return Err(Error::unsupported("timestamps in bins of months or years"));
    }
    let stride = add(0, 0, days, micros).ok_or_else(|| overflow("interval"))?;
    if stride <= 0 {
        return Err(Error::new(DATETIME_FIELD_OVERFLOW, "stride must be greater than zero"));
    }
    let since = at.checked_sub(origin).ok_or_else(|| overflow("interval"))?;
    let start = since.div_euclid(stride).checked_mul(stride).and_then(|since| since.checked_add(origin));
    start.map(Datum::Timestamp).ok_or_else(|| overflow("timestamp"))
}

/// `array_to_string`: joins the items of an array, given in its text form, with a separator. NULLs
/// are replaced by the third argument, or left out.
///
/// Errors: those of parsing the array.
pub(super) fn join_items(arguments: &[Val<'_>]) -> Result<Datum> {
    let [list, separator, rest @ ..] = arguments else { return Ok(Datum::Null) };
    if list.is_null() || separator.is_null() {
        return Ok(Datum::Null);
    }
    let null = rest.first().filter(|text| !text.is_null()).map(|text| text.text().into_owned());
    let mut texts: Vec<String> = Vec::new();
    join(nested_items(&list.text())?, null.as_deref(), &mut texts);
    let text = texts.join(&separator.text());
    super::functions::check_length(text.len())?;
    Ok(Datum::Text(text))
}

fn join(items: Vec<Item>, null: Option<&str>, texts: &mut Vec<String>) {
    for item in items {
        match item {
            Item::Null => texts.extend(null.map(str::to_owned)),
            Item::Text(text) => texts.push(text),
            Item::List(items) => join(items, null, texts),
        }
    }
}
