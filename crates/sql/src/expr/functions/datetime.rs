//! Functions on dates, times and intervals.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::Kind::{self, Boolean};
use super::Kind::{Date, Double, Integer, Interval, Numeric, Text, Time, Timestamp, TimestampTz};
use super::{Body, Call, Form, Function, function, general, kernels};
use crate::datum::{Datum, DatumRef};
use crate::error::Result;
use crate::expr::cast::{as_double, cast};
use crate::expr::{age, construct, time};

/// Today, for calls that the compiler makes.
pub(crate) static CURRENT_DATE: Function = current_date();

/// `EXTRACT(field FROM value)`.
pub(crate) static EXTRACT: Function = extract_row(Timestamp);

pub(super) static ROWS: &[Function] = &[
    age_row(&[Timestamp, Timestamp]).doc(
        "Difference in years, months and days.",
        &[("age(timestamp '2001-04-10', timestamp '1957-06-13')", "43 years 9 mons 27 days")],
    ),
    age_row(&[TimestampTz, TimestampTz]).doc(
        "Difference in years, months and days.",
        &[(
            "age(timestamptz '2024-03-01 00:00:00+00', timestamptz '2023-01-15 00:00:00+00')",
            "1 year 1 mon 17 days",
        )],
    ),
    // With one argument, the compiler adds the current date in front.
    Function::new("age", &[Timestamp], Interval, Body::Form(Form::AgeToday))
        .stable()
        .native()
        .doc("Difference to the midnight of the current day.", &[]),
    Function::new("age", &[TimestampTz], Interval, Body::Form(Form::AgeToday))
        .stable()
        .native()
        .doc("Difference to the midnight of the current day.", &[]),
    function("clock_timestamp", &[], TimestampTz, |c| Ok(Datum::Timestamp(c.context.clock_time())))
        .volatile()
        .native()
        .doc("Current time, which goes on within a statement.", &[]),
    current_date(),
    function("current_time", &[], Time, current_time)
        .aliases(&["localtime"])
        .stable()
        .grammar()
        .native()
        .doc("Time of day of the start of the transaction.", &[]),
    transaction_time("current_timestamp", TimestampTz).grammar(),
    function("date_bin", &[Interval, Timestamp, Timestamp], Timestamp, date_bin).doc(
        "Start of the bin that contains a time. Bins have a length, and one of them starts at an origin.",
        &[(
            "date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')",
            "2020-02-11 15:30:00",
        )],
    ),
    function("date_bin", &[Interval, TimestampTz, TimestampTz], TimestampTz, date_bin).doc(
        "Start of the bin that contains a time.",
        &[(
            "date_bin('1 day', timestamptz '2020-02-11 15:44:17+00', timestamptz '2001-01-01 00:00:00+00')",
            "2020-02-11 00:00:00+00",
        )],
    ),
    date_part(&[Text, Timestamp])
        .doc("Field of a time.", &[("date_part('hour', timestamp '2001-02-16 20:38:40')", "20")]),
    date_part(&[Text, TimestampTz])
        .doc("Field of a time.", &[("date_part('day', timestamptz '2001-02-16 20:38:40+00')", "16")]),
    date_part(&[Text, Date])
        .doc("Field of the date's midnight.", &[("date_part('day', date '2001-02-16')", "16")]),
    date_part(&[Text, Time])
        .doc("Field of a time of day.", &[("date_part('minute', time '20:38:40')", "38")]),
    date_part(&[Text, Interval])
        .doc("Field of an interval.", &[("date_part('month', interval '2 years 3 months')", "3")]),
    date_trunc(&[Text, Timestamp], Timestamp).doc(
        "Start of the hour, day, month or another unit of time.",
        &[("date_trunc('hour', timestamp '2001-02-16 20:38:40')", "2001-02-16 20:00:00")],
    ),
    date_trunc(&[Text, TimestampTz], TimestampTz).doc(
        "Start of the hour, day, month or another unit of time.",
        &[("date_trunc('day', timestamptz '2001-02-16 20:38:40+00')", "2001-02-16 00:00:00+00")],
    ),
    general("date_trunc", &[Text, TimestampTz, Text], TimestampTz).doc(
        "Start of a unit of time in a time zone.",
        &[(
            "date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'Australia/Sydney')",
            "2001-02-16 13:00:00+00",
        )],
    ),
    date_trunc(&[Text, Interval], Interval).doc(
        "Without the smaller units.",
        &[("date_trunc('hour', interval '2 days 3 hours 40 minutes')", "2 days 03:00:00")],
    ),
    extract_row(Date).doc("Field of a date.", &[("extract(doy from date '2001-02-16')", "47")]),
    extract_row(Time).doc("Field of a time of day.", &[("extract(hour from time '17:12:28.5')", "17")]),
    extract_row(Timestamp)
        .doc("Field of a time.", &[("extract(second from timestamp '2001-02-16 20:38:28.5')", "28.500000")]),
    extract_row(TimestampTz)
        .doc("Field of a time.", &[("extract(hour from timestamptz '2001-02-16 20:38:40+00')", "20")]),
    extract_row(Interval)
        .doc("Field of an interval.", &[("extract(day from interval '40 days 1 minute')", "40")]),
    is_finite(&[Date]).doc("Whether a date is finite, as all are.", &[("isfinite(date '2001-02-16')", "t")]),
    is_finite(&[Timestamp])
        .doc("Whether a time is finite, as all are.", &[("isfinite(timestamp '2001-02-16 21:28:30')", "t")]),
    is_finite(&[TimestampTz]).doc(
        "Whether a time is finite, as all are.",
        &[("isfinite(timestamptz '2001-02-16 21:28:30+00')", "t")],
    ),
    is_finite(&[Interval])
        .doc("Whether an interval is finite, as all are.", &[("isfinite(interval '4 hours')", "t")]),
    justify("justify_days", |c| {
        interval(c).and_then(|(months, days, micros)| age::justify_days(months, days, micros))
    })
    .doc(
        "Writes 30 days as a month.",
        &[("justify_days(interval '1 year 65 days')", "1 year 2 mons 5 days")],
    ),
    justify("justify_hours", |c| {
        interval(c).and_then(|(months, days, micros)| age::justify_hours(months, days, micros))
    })
    .doc(
        "Writes 24 hours as a day.",
        &[("justify_hours(interval '50 hours 10 minutes')", "2 days 02:10:00")],
    ),
    justify("justify_interval", |c| {
        interval(c).and_then(|(months, days, micros)| age::justify_interval(months, days, micros))
    })
    .doc(
        "Both, with one sign for all units.",
        &[("justify_interval(interval '1 mon -1 hour')", "29 days 23:00:00")],
    ),
    transaction_time("localtimestamp", Timestamp).grammar(),
    function("make_date", &[Integer, Integer, Integer], Date, |c| {
        Ok(Datum::Date(construct::date(c.int(0), c.int(1), c.int(2))?))
    })
    .doc(
        "Date of a year, a month and a day. Negative years are BC.",
        &[("make_date(2013, 7, 15)", "2013-07-15"), ("make_date(2024, 2, 30)", "22008")],
    ),
    function(
        "make_interval",
        &[Integer, Integer, Integer, Integer, Integer, Integer, Double],
        Interval,
        |c| {
            let seconds = if c.values.len() > 6 { c.double(6) } else { 0.0 };
            construct::interval(std::array::from_fn(|at| c.int(at)), seconds)
        },
    )
    .optional(7)
    .argument_names(&["years", "months", "weeks", "days", "hours", "mins", "secs"])
    .doc(
        "Interval of years, months, weeks, days, hours, mins and secs, which may be named.",
        &[("make_interval(1, 2, 0, 10)", "1 year 2 mons 10 days"), ("make_interval(days => 10)", "10 days")],
    ),
    function("make_time", &[Integer, Integer, Double], Time, |c| {
        Ok(Datum::Time(construct::time(c.int(0), c.int(1), c.double(2))?))
    })
    .doc(
        "Time of day of an hour, a minute and seconds.",
        &[("make_time(8, 15, 23.5)", "08:15:23.5"), ("make_time(25, 0, 0)", "22008")],
    ),
    make_timestamp("make_timestamp", Timestamp).doc(
        "Time of a year, a month, a day, an hour, a minute and seconds.",
        &[("make_timestamp(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5")],
    ),
    make_timestamp("make_timestamptz", TimestampTz).doc(
        "Time of a year, a month, a day, an hour, a minute and seconds.",
        &[("make_timestamptz(2013, 7, 15, 8, 15, 23.5)", "2013-07-15 08:15:23.5+00")],
    ),
    general("make_timestamptz", &[Integer, Integer, Integer, Integer, Integer, Double, Text], TimestampTz)
        .doc(
            "Time in a time zone.",
            &[("make_timestamptz(2013, 7, 15, 8, 15, 23.5, 'Europe/Berlin')", "2013-07-15 06:15:23.5+00")],
        ),
    transaction_time("now", TimestampTz).aliases(&["transaction_timestamp"]),
    function("statement_timestamp", &[], TimestampTz, |c| Ok(Datum::Timestamp(c.context.statement_time())))
        .stable()
        .native()
        .doc("Start of the statement.", &[]),
    general("timezone", &[Text, Timestamp], TimestampTz).doc(
        "Time of a clock in a time zone. Also `AT TIME ZONE`.",
        &[("timestamp '2001-02-16 20:38:40' at time zone 'America/Denver'", "2001-02-17 03:38:40+00")],
    ),
    general("timezone", &[Text, TimestampTz], Timestamp).doc(
        "Clock in a time zone. Also `AT TIME ZONE`.",
        &[("timestamptz '2001-02-16 20:38:40-05' at time zone 'America/Denver'", "2001-02-16 18:38:40")],
    ),
    function("to_timestamp", &[Double], TimestampTz, |c| {
        Ok(Datum::Timestamp(time::from_seconds(c.double(0))?))
    })
    .doc("Time of seconds since 1970, in UTC.", &[("to_timestamp(1284352323)", "2010-09-13 04:32:03+00")]),
];

const fn current_date() -> Function {
    function("current_date", &[], Date, |c| {
        Ok(Datum::Date(c.context.transaction_time().div_euclid(time::DAY) as i32))
    })
    .stable()
    .grammar()
    .native()
    .doc("Date of the start of the transaction.", &[])
}

fn current_time(c: &Call<'_>) -> Result<Datum> {
    Ok(Datum::Time(c.context.transaction_time().rem_euclid(time::DAY)))
}

const fn transaction_time(name: &'static str, kind: Kind) -> Function {
    function(name, &[], kind, |c| Ok(Datum::Timestamp(c.context.transaction_time())))
        .stable()
        .native()
        .doc("Start of the transaction.", &[])
}

const fn age_row(arguments: &'static [Kind]) -> Function {
    function("age", arguments, Interval, |c| match (c.value(0), c.value(1)) {
        (DatumRef::Timestamp(later), DatumRef::Timestamp(earlier)) => age::age(later, earlier),
        _ => Err(c.unexpected("age")),
    })
}

const fn date_part(arguments: &'static [Kind]) -> Function {
    function("date_part", arguments, Double, |c| {
        let field = c.text(0).to_lowercase();
        // A date counts as its midnight.
        let field_of = |value: DatumRef<'_>| time::extract(&field, value);
        let part = match c.value(1) {
            date @ DatumRef::Date(_) => field_of(cast(date, &Type::Timestamp.into())?.get())?,
            other => field_of(other)?,
        };
        Ok(Datum::Double(as_double(part.borrow())))
    })
    .native()
}

const fn date_trunc(arguments: &'static [Kind], result: Kind) -> Function {
    function("date_trunc", arguments, result, |c| {
        let field = c.text(0).to_lowercase();
        match c.value(1) {
            DatumRef::Timestamp(at) => Ok(Datum::Timestamp(time::truncate(&field, at)?)),
            DatumRef::Interval { months, days, micros } => time::truncate_span(&field, months, days, micros),
            _ => Err(c.unexpected("date_trunc")),
        }
    })
    .vectorised(kernels::date_trunc)
}

const fn extract_row(kind: Kind) -> Function {
    let arguments: &'static [Kind] = match kind {
        Date => &[Text, Date],
        Time => &[Text, Time],
        Timestamp => &[Text, Timestamp],
        TimestampTz => &[Text, TimestampTz],
        _ => &[Text, Interval],
    };
    function("extract", arguments, Numeric, |c| time::extract(c.text(0), c.value(1)))
        .refined(|_| ColumnType::decimal(38, 6))
        .native()
}

const fn is_finite(arguments: &'static [Kind]) -> Function {
    function("isfinite", arguments, Boolean, |_| Ok(Datum::Boolean(true)))
}

const fn justify(name: &'static str, body: fn(&Call<'_>) -> Result<Datum>) -> Function {
    function(name, &[Interval], Interval, body)
}

/// Returns the months, days and microseconds of the first argument.
fn interval(c: &Call<'_>) -> Result<(i32, i32, i64)> {
    match c.value(0) {
        DatumRef::Interval { months, days, micros } => Ok((months, days, micros)),
        _ => Err(c.unexpected("justify")),
    }
}

const fn make_timestamp(name: &'static str, kind: Kind) -> Function {
    function(name, &[Integer, Integer, Integer, Integer, Integer, Double], kind, |c| {
        let (day, time) = ((c.int(0), c.int(1), c.int(2)), (c.int(3), c.int(4), c.double(5)));
        Ok(Datum::Timestamp(construct::moment(day, time)?))
    })
}

fn date_bin(c: &Call<'_>) -> Result<Datum> {
    construct::bin(c.value(0), c.value(1), c.value(2))
}
