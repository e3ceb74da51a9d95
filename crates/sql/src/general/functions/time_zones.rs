//! `AT TIME ZONE`, which PostgreSQL also provides as the function `timezone(zone, moment)`. It
//! converts a timestamp with time zone to the local time in a zone, and a local time to a timestamp
//! with time zone.
//!
//! Zones are given by their names in the time zone database, by PostgreSQL's abbreviations for the
//! most common ones, or by offsets, which are positive to the west as in POSIX.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNanoType, TimestampMicrosecondType};
use arrow::temporal_conversions::as_datetime_with_timezone;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::batch::{data_type, field, kind_of};
use crate::datum::Datum;
use crate::error::Error;
use crate::general::errors::external;
use crate::general::markers::AT_ZONE;
use crate::sqlstate::{INVALID_PARAMETER_VALUE, UNDEFINED_FUNCTION};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Abbreviations with their offsets in hours to the east. They take precedence over names.
const ABBREVIATIONS: [(&str, i64); 20] = [
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("ZULU", 0),
    ("UT", 0),
    ("WET", 0),
    ("WEST", 1),
    ("BST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];

/// A time zone.
#[derive(Debug, Clone, Copy)]
enum Zone {
    /// A fixed offset in seconds to the east.
    Fixed(i64),
    /// A zone of the time zone database.
    Named(Tz),
}

impl Zone {
    /// Looks up a zone.
    ///
    /// Errors: 22023.
    fn named(text: &str) -> Result<Zone> {
        let upper = text.trim().to_ascii_uppercase();
        if let Some((_, hours)) = ABBREVIATIONS.iter().find(|(name, _)| *name == upper) {
            return Ok(Zone::Fixed(hours * 3_600));
        }
        // Letters before an offset, or a text in angle brackets, are the name of the zone.
        let letters = match upper.find('>').filter(|_| upper.starts_with('<')) {
            Some(end) => end + 1,
            None => upper.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(upper.len()),
        };
        if (letters == 0 || letters >= 3)
            && let Some(west) = upper.get(letters..).and_then(offset)
        {
            return Ok(Zone::Fixed(-west));
        }
        // Names are not case-sensitive.
        let spellings = [text.trim().to_owned(), capital(text.trim()), upper];
        let is_name = |text: &&String| text.starts_with(|c: char| c.is_ascii_alphabetic());
        let zone = spellings.iter().filter(is_name).find_map(|text| Tz::from_str(text).ok());
        zone.map(Zone::Named).ok_or_else(|| {
            let what = format!("time zone \"{text}\" not recognized");
            external(Error::new(INVALID_PARAMETER_VALUE, what))
        })
    }

    /// Returns the offset from UTC at a moment, in microseconds to the east.
    fn ahead(&self, moment: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => seconds * SECOND,
            Zone::Named(zone) => {
                let there = as_datetime_with_timezone::<TimestampMicrosecondType>(moment, *zone);
                there.map_or(0, |at| (at.naive_local() - at.naive_utc()).num_seconds() * SECOND)
            }
        }
    }

    /// Returns the local time at a moment.
    fn shown(&self, moment: i64) -> i64 {
        if is_infinite(moment) { moment } else { moment.saturating_add(self.ahead(moment)) }
    }

    /// Returns the moment of a local time. Of two moments it is the later one. If a clock change
    /// skips the local time, the offset before the change applies.
    fn moment(&self, shown: i64) -> i64 {
        if is_infinite(shown) {
            return shown;
        }
        let before = self.ahead(shown.saturating_sub(DAY));
        let after = self.ahead(shown.saturating_add(DAY));
        let later = shown.saturating_sub(after);
        if self.ahead(later) == after { later } else { shown.saturating_sub(before) }
    }
}

fn is_infinite(moment: i64) -> bool {
    moment == i64::MAX || moment == i64::MIN
}

/// Capitalizes each word, as in `Europe/Berlin` for `europe/berlin`.
fn capital(text: &str) -> String {
    let mut within = false;
    let change = |c: char| {
        let first = !std::mem::replace(&mut within, c.is_ascii_alphabetic());
        if first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    text.chars().map(change).collect()
}

/// Parses an offset such as `+2`, `-02:30` or `05` to seconds.
fn offset(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let parts: Vec<&str> = match digits.split_once(':') {
        None if digits.len() == 4 => vec![digits.get(..2)?, digits.get(2..)?],
        _ => digits.split(':').collect(),
    };
    let number = |part: &&str| {
        let is_one = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| part.parse::<i64>().ok()).flatten()
    };
    let numbers = parts.iter().map(number).collect::<Option<Vec<i64>>>()?;
    match *numbers.as_slice() {
        [hours] if hours <= 15 => Some(sign * hours * 3_600),
        [hours, minutes] if hours <= 15 && minutes < 60 => Some(sign * (hours * 3_600 + minutes * 60)),
        [hours, minutes, seconds] if hours <= 15 && minutes < 60 && seconds < 60 => {
            Some(sign * (hours * 3_600 + minutes * 60 + seconds))
        }
        _ => None,
    }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AtZone {
    signature: Signature,
}

/// See [`AT_ZONE`].
pub(crate) fn at_zone() -> ScalarUDF {
    ScalarUDF::from(AtZone { signature: Signature::any(2, Volatility::Immutable) })
}

/// Returns the type as which an argument is read. A timestamp without time zone is a local time.
fn read_as(given: &ColumnType) -> Result<ColumnType> {
    match given.kind {
        Type::Timestamp if !given.is_zoned => Ok(Type::Timestamp.into()),
        // A text may contain an offset, and a date is a moment in UTC.
        Type::Timestamp | Type::Text | Type::Date => Ok(ColumnType::zoned()),
        _ => {
            let what = format!("function timezone(unknown, {}) does not exist", crate::types::name_of(given));
            Err(external(Error::new(UNDEFINED_FUNCTION, what)))
        }
    }
}

fn moments(array: &ArrayRef) -> Result<TimestampMicrosecondArray> {
    let array = match array.data_type().is_string() {
        true => {
            let texts = cast(array, &DataType::Utf8View)?;
            let moment = |text: Option<&str>| match text {
                None => Ok(None),
                Some(text) => match Datum::parse(text, &ColumnType::zoned()).map_err(external)? {
                    Datum::Timestamp(moment) => Ok(Some(moment)),
                    _ => Ok(None),
                },
            };
            let moments = texts.as_string_view().iter().map(moment);
            return moments.collect::<Result<TimestampMicrosecondArray>>();
        }
        false => cast(array, &data_type(&Type::Timestamp.into()))?,
    };
    Ok(array.as_primitive::<TimestampMicrosecondType>().clone())
}

impl ScalarUDFImpl for AtZone {
    fn name(&self) -> &str {
        AT_ZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(data_type(&Type::Timestamp.into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let given = args.arg_fields.get(1).map_or_else(|| Type::Text.into(), |field| kind_of(field));
        let result = if read_as(&given)?.is_zoned { Type::Timestamp.into() } else { ColumnType::zoned() };
        Ok(Arc::new(field(AT_ZONE, &result, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let ([zones, given], [_, kind]) = (args.args.as_slice(), args.arg_fields.as_slice()) else {
            return Err(DataFusionError::Internal(format!("{AT_ZONE} has two arguments")));
        };
        let is_zoned = read_as(&kind_of(kind))?.is_zoned;
        let (zones, given) = (zones.to_array(rows)?, moments(&given.to_array(rows)?)?);
        let mut last: Option<(ScalarValue, Option<Zone>)> = None;
        let mut zone_of = |row: usize| -> Result<Option<Zone>> {
            let zone = ScalarValue::try_from_array(&zones, row)?;
            if let Some((known, zone_there)) = &last
                && *known == zone
            {
                return Ok(*zone_there);
            }
            let found = zone_from(&zones, row)?;
            last = Some((zone, found));
            Ok(found)
        };
        let value = |row: usize| -> Result<Option<i64>> {
            let Some(zone) = zone_of(row)? else { return Ok(None) };
            if given.is_null(row) {
                return Ok(None);
            }
            let at = given.value(row);
            Ok(Some(if is_zoned { zone.shown(at) } else { zone.moment(at) }))
        };
        let values = (0..rows).map(value).collect::<Result<TimestampMicrosecondArray>>()?;
        let result: ArrayRef = Arc::new(values);
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// Returns the zone of a row, given by name or by an interval to the east.
fn zone_from(zones: &ArrayRef, row: usize) -> Result<Option<Zone>> {
    if zones.is_null(row) {
        return Ok(None);
    }
    match zones.data_type() {
        DataType::Interval(_) => {
            let span = zones.as_primitive_opt::<IntervalMonthDayNanoType>().map(|spans| spans.value(row));
            let span = span.filter(|span| span.months == 0 && span.days == 0).ok_or_else(|| {
                let what = "interval time zone must not include months or days";
                external(Error::new(INVALID_PARAMETER_VALUE, what))
            })?;
            Ok(Some(Zone::Fixed(span.nanoseconds / 1_000_000_000)))
        }
        _ => {
            let texts = cast(zones, &DataType::Utf8View)?;
            Zone::named(texts.as_string_view().value(row)).map(Some)
        }
    }
}
