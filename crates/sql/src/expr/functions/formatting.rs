//! Functions that parse and format values by patterns such as `YYYY-MM-DD` and `9,999.99`.

use cairn_table::schema::ColumnType;

use super::Kind::{
    self, BigInt, Date, Double, Integer, Interval, Numeric, Real, Text, Timestamp, TimestampTz,
};
use super::{Call, Function, function};
use crate::datum::{Datum, DatumRef};
use crate::error::Result;
use crate::expr::{pattern, time};

pub(super) static ROWS: &[Function] = &[
    to_char(&[Timestamp, Text], |c| time_to_char(c, false)).doc(
        "Time by a pattern.",
        &[("to_char(timestamp '2002-04-20 17:31:12.66', 'HH12:MI:SS')", "05:31:12")],
    ),
    to_char(&[TimestampTz, Text], |c| time_to_char(c, true)).doc(
        "Time by a pattern.",
        &[("to_char(timestamptz '2002-04-20 17:31:12+00', 'YYYY-MM-DD OF')", "2002-04-20 +00")],
    ),
    to_char(&[Interval, Text], |c| time_to_char(c, false))
        .doc("Interval by a pattern.", &[("to_char(interval '15h 2m 12s', 'HH24:MI:SS')", "15:02:12")]),
    to_char(&[Integer, Text], number_to_char).doc(
        "Number by a pattern.",
        &[("to_char(125, '999')", " 125"), ("to_char(482, 'FMRN')", "CDLXXXII")],
    ),
    to_char(&[BigInt, Text], number_to_char)
        .doc("Number by a pattern.", &[("to_char(125::bigint, '999')", " 125")]),
    to_char(&[Numeric, Text], number_to_char).doc(
        "Number by a pattern.",
        &[("to_char(-125.8, '999D99S')", "125.80-"), ("to_char(1234.5, '9,999.99')", " 1,234.50")],
    ),
    to_char(&[Real, Text], number_to_char)
        .doc("Number by a pattern.", &[("to_char(125.8::real, '999D9')", " 125.8")]),
    to_char(&[Double, Text], number_to_char)
        .doc("Number by a pattern.", &[("to_char(-125.8::float8, '999D99S')", "125.80-")]),
    function("to_date", &[Text, Text], Date, |c| {
        Ok(Datum::Date(pattern::moment_from(c.text(0), c.text(1))?.div_euclid(time::DAY) as i32))
    })
    .doc(
        "Date of a text, by a pattern.",
        &[
            ("to_date('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05"),
            ("to_date('2000-13-01', 'YYYY-MM-DD')", "22008"),
        ],
    ),
    // The general path knows a constant pattern, which determines the number of digits. Ten suffice
    // for most.
    function("to_number", &[Text, Text], Numeric, |c| {
        let (unscaled, scale) = pattern::number_from(c.text(0), c.text(1))?;
        Ok(Datum::Decimal { unscaled, scale })
    })
    .refined(|_| ColumnType::decimal(38, 10))
    .doc("Number of a text, by a pattern.", &[("to_number('12,454.8-', '99G999D9S')", "-12454.8")]),
    function("to_timestamp", &[Text, Text], TimestampTz, |c| {
        Ok(Datum::Timestamp(pattern::moment_from(c.text(0), c.text(1))?))
    })
    .doc(
        "Time of a text, by a pattern.",
        &[("to_timestamp('05 Dec 2000', 'DD Mon YYYY')", "2000-12-05 00:00:00+00")],
    ),
];

const fn to_char(arguments: &'static [Kind], body: fn(&Call<'_>) -> Result<Datum>) -> Function {
    function("to_char", arguments, Text, body)
}

fn time_to_char(c: &Call<'_>, is_zoned: bool) -> Result<Datum> {
    Ok(Datum::Text(match c.value(0) {
        DatumRef::Timestamp(at) => pattern::moment_text(at, is_zoned, c.text(1))?,
        DatumRef::Interval { months, days, micros } => pattern::span_text(months, days, micros, c.text(1))?,
        _ => return Err(c.unexpected("to_char")),
    }))
}

fn number_to_char(c: &Call<'_>) -> Result<Datum> {
    Ok(Datum::Text(pattern::number_text(c.value(0), c.text(1))?))
}
