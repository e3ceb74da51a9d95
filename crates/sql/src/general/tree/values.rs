//! Conversion of single values between DataFusion's representation and ours.

use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use cairn_table::row::{Interval, Type, Value};
use cairn_table::schema::ColumnType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;

use crate::batch::{data_type, too_long_span};
use crate::datum::{Datum, DatumRef, OPEN, rescale_exact, too_fine};
use crate::error::Error;
use crate::general::errors::external;
use crate::sqlstate::DATATYPE_MISMATCH;
use crate::types::name_of;

/// Converts a value to DataFusion's representation, with the Arrow type of a column of this type.
///
/// Errors: intervals beyond the range of Arrow's nanoseconds.
pub(crate) fn scalar(datum: DatumRef<'_>, kind: &ColumnType) -> Result<ScalarValue> {
    if let Some(element) = kind.element() {
        return list(datum, &element);
    }
    let (precision, scale) = kind.decimal.map_or((38, 0), |(precision, scale)| (precision, scale));
    Ok(match datum {
        DatumRef::Null => ScalarValue::try_from(&data_type(kind)).unwrap_or(ScalarValue::Null),
        DatumRef::Boolean(value) => ScalarValue::Boolean(Some(value)),
        DatumRef::SmallInt(value) => ScalarValue::Int16(Some(value)),
        DatumRef::Int(value) => ScalarValue::Int32(Some(value)),
        DatumRef::BigInt(value) => ScalarValue::Int64(Some(value)),
        DatumRef::Real(value) => ScalarValue::Float32(Some(value)),
        DatumRef::Double(value) => ScalarValue::Float64(Some(value)),
        DatumRef::Decimal { unscaled, scale: own } => {
            let (unscaled, scale) = match crate::datum::rescale(unscaled, own, scale) {
                Some(unscaled) => (unscaled, scale),
                None => (unscaled, own),
            };
            ScalarValue::Decimal128(Some(unscaled), precision.max(scale), scale as i8)
        }
        DatumRef::Text(text) => ScalarValue::Utf8View(Some(text.to_owned())),
        DatumRef::Blob(bytes) => ScalarValue::BinaryView(Some(bytes.to_owned())),
        DatumRef::Date(value) => ScalarValue::Date32(Some(value)),
        DatumRef::Time(value) => ScalarValue::Time64Microsecond(Some(value)),
        DatumRef::Timestamp(value) => ScalarValue::TimestampMicrosecond(Some(value), None),
        DatumRef::Interval { months, days, micros } => {
            let nanoseconds = micros.checked_mul(1_000).ok_or_else(too_long_span)?;
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds }))
        }
        DatumRef::Uuid(_) => ScalarValue::Utf8View(Some(datum.to_string())),
        DatumRef::List(_) => {
            let what = Error::new(DATATYPE_MISMATCH, format!("a list is no {}", name_of(kind)));
            return Err(external(what));
        }
    })
}

/// Converts a list to DataFusion's representation.
fn list(datum: DatumRef<'_>, element: &ColumnType) -> Result<ScalarValue> {
    let element = match (element.kind, element.decimal) {
        (Type::Decimal, None) => &ColumnType::decimal(OPEN.0, OPEN.1),
        _ => element,
    };
    let kind = data_type(element);
    let DatumRef::List(items) = datum else {
        return ScalarValue::try_from(&DataType::new_list(kind, true));
    };
    let item = |item: &Datum| match (item.borrow(), element.decimal) {
        // All items of a list have the same scale. An item must not lose digits.
        (DatumRef::Decimal { unscaled, scale }, Some((precision, to))) => {
            let unscaled = rescale_exact(unscaled, scale, to).ok_or_else(|| external(too_fine()))?;
            Ok(ScalarValue::Decimal128(Some(unscaled), precision, to as i8))
        }
        (item, _) => scalar(item, element),
    };
    let items = items.iter().map(item).collect::<Result<Vec<_>>>()?;
    Ok(ScalarValue::List(ScalarValue::new_list(&items, &kind, true)))
}

/// Like [`scalar`], for a value of a table.
///
/// Errors: those of [`scalar`].
pub(crate) fn scalar_of(value: Value<'_>, kind: &ColumnType) -> Result<ScalarValue> {
    let scale = kind.decimal.map_or(0, |(_, scale)| scale);
    scalar(DatumRef::from_value(value, scale), kind)
}

/// Converts a literal to a value of a column's type; `None` if it has another type.
pub(crate) fn datum(value: &ScalarValue, kind: &ColumnType) -> Option<Datum> {
    if value.is_null() {
        return Some(Datum::Null);
    }
    Some(match (value, kind.kind) {
        (ScalarValue::Boolean(Some(value)), Type::Boolean) => Datum::Boolean(*value),
        (ScalarValue::Int16(Some(value)), Type::SmallInt) => Datum::SmallInt(*value),
        (ScalarValue::Int32(Some(value)), Type::Int) => Datum::Int(*value),
        (ScalarValue::Int64(Some(value)), Type::BigInt) => Datum::BigInt(*value),
        (ScalarValue::Float32(Some(value)), Type::Real) => Datum::Real(*value),
        (ScalarValue::Float64(Some(value)), Type::Double) => Datum::Double(*value),
        (ScalarValue::Decimal128(Some(unscaled), _, scale), Type::Decimal) => {
            Datum::Decimal { unscaled: *unscaled, scale: u8::try_from(*scale).ok()? }
        }
        (
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            Type::Text,
        ) => Datum::Text(text.clone()),
        (
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            Type::Uuid,
        ) => {
            // A uuid is compared as text here, so the text must be in the form in which uuids are
            // printed.
            let datum = Datum::parse(text, kind).ok()?;
            (datum.to_string() == *text).then_some(datum)?
        }
        (ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)), Type::Blob) => {
            Datum::Blob(bytes.clone())
        }
        (ScalarValue::Date32(Some(value)), Type::Date) => Datum::Date(*value),
        (ScalarValue::Time64Microsecond(Some(value)), Type::Time) => Datum::Time(*value),
        (ScalarValue::TimestampMicrosecond(Some(value), None), Type::Timestamp) => Datum::Timestamp(*value),
        (ScalarValue::IntervalMonthDayNano(Some(value)), Type::Interval) => {
            let Interval { months, days, micros } =
                Interval { months: value.months, days: value.days, micros: value.nanoseconds / 1_000 };
            Datum::Interval { months, days, micros }
        }
        _ => return None,
    })
}

/// Returns the type of a parameter with the given Arrow type.
pub(crate) fn parameter_type(kind: &DataType) -> ColumnType {
    match kind {
        DataType::List(item) | DataType::LargeList(item) => parameter_type(item.data_type()).list_of(),
        DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Nanosecond, _) => {
            Type::Timestamp.into()
        }
        DataType::Decimal128(precision, scale) => {
            ColumnType::decimal(*precision, (*scale).clamp(0, 38) as u8)
        }
        other => crate::batch::kind_of(&arrow::datatypes::Field::new("", other.clone(), true)),
    }
}
