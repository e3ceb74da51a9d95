//! Columns into rows.

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeListArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    LargeListArray, ListArray, RecordBatch, StringViewArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::Field;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use super::{data_type, kind_of};
use crate::datum::{Datum, DatumRef, put_item};

/// A batch whose columns are what their types say.
#[derive(Debug)]
pub(crate) struct BatchReader {
    columns: Vec<Reader>,
    rows: usize,
}

#[derive(Debug)]
enum Reader {
    Boolean(BooleanArray),
    SmallInt(Int16Array),
    Int(Int32Array),
    BigInt(Int64Array),
    Real(Float32Array),
    Double(Float64Array),
    Decimal(Decimal128Array, u8),
    Text(StringViewArray),
    Blob(BinaryViewArray),
    Date(Date32Array),
    Time(Time64MicrosecondArray),
    Timestamp(TimestampMicrosecondArray),
    Interval(IntervalMonthDayNanoArray),
    Uuid(StringViewArray),
    Null,
}

impl BatchReader {
    /// Reads a batch as columns of these types.
    ///
    /// Errors: values that the types cannot have.
    pub fn new(batch: &RecordBatch, kinds: &[ColumnType]) -> Result<Self, ArrowError> {
        let columns = batch.columns().iter().zip(kinds).map(|(array, kind)| Reader::new(array, kind));
        Ok(BatchReader { columns: columns.collect::<Result<_, _>>()?, rows: batch.num_rows() })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    pub fn get(&self, row: usize, column: usize) -> DatumRef<'_> {
        self.columns.get(column).map_or(DatumRef::Null, |column| column.get(row))
    }
}

/// An array as one of another type; lists and the like as text.
pub(crate) fn conform(array: &ArrayRef, kind: &ColumnType) -> Result<ArrayRef, ArrowError> {
    let to = data_type(kind);
    if *array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if array.data_type().is_nested() {
        let text = |row: usize| (!array.is_null(row)).then(|| nested(array, row)).transpose();
        return Ok(Arc::new((0..array.len()).map(text).collect::<Result<StringViewArray, _>>()?));
    }
    cast_with_options(array, &to, &options)
}

/// A list as PostgreSQL writes it; other nested values as Arrow does.
fn nested(array: &ArrayRef, row: usize) -> Result<String, ArrowError> {
    let Some(values) = elements(array, row) else {
        let formatter = ArrayFormatter::try_new(array, &FormatOptions::default().with_null("NULL"))?;
        return Ok(formatter.value(row).to_string());
    };
    let mut text = String::from("{");
    let reader = match values.data_type().is_nested() {
        true => None,
        false => {
            let kind = kind_of(&Field::new("", values.data_type().clone(), true));
            Some(Reader::new(&values, &kind)?)
        }
    };
    for at in 0..values.len() {
        if at > 0 {
            text.push(',');
        }
        match &reader {
            _ if values.is_null(at) => text.push_str("NULL"),
            Some(reader) => put_item(&reader.get(at).to_string(), &mut text),
            None => text.push_str(&nested(&values, at)?),
        }
    }
    text.push('}');
    Ok(text)
}

/// The elements of a list; `None` for what is none.
fn elements(array: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let any = array.as_any();
    any.downcast_ref::<ListArray>()
        .map(|lists| lists.value(row))
        .or_else(|| any.downcast_ref::<LargeListArray>().map(|lists| lists.value(row)))
        .or_else(|| any.downcast_ref::<FixedSizeListArray>().map(|lists| lists.value(row)))
}

impl Reader {
    fn new(array: &ArrayRef, kind: &ColumnType) -> Result<Reader, ArrowError> {
        let array = conform(array, kind)?;
        let any = array.as_any();
        let reader = match kind.kind {
            Type::Boolean => any.downcast_ref().cloned().map(Reader::Boolean),
            Type::SmallInt => any.downcast_ref().cloned().map(Reader::SmallInt),
            Type::Int => any.downcast_ref().cloned().map(Reader::Int),
            Type::BigInt => any.downcast_ref().cloned().map(Reader::BigInt),
            Type::Real => any.downcast_ref().cloned().map(Reader::Real),
            Type::Double => any.downcast_ref().cloned().map(Reader::Double),
            Type::Decimal => {
                let scale = kind.decimal.map_or(0, |(_, scale)| scale);
                any.downcast_ref().cloned().map(|array| Reader::Decimal(array, scale))
            }
            Type::Blob => any.downcast_ref().cloned().map(Reader::Blob),
            Type::Date => any.downcast_ref().cloned().map(Reader::Date),
            Type::Time => any.downcast_ref().cloned().map(Reader::Time),
            Type::Timestamp => any.downcast_ref().cloned().map(Reader::Timestamp),
            Type::Interval => any.downcast_ref().cloned().map(Reader::Interval),
            Type::Uuid => any.downcast_ref().cloned().map(Reader::Uuid),
            _ => any.downcast_ref().cloned().map(Reader::Text),
        };
        Ok(reader.unwrap_or(Reader::Null))
    }

    fn get(&self, row: usize) -> DatumRef<'_> {
        fn valid(array: &dyn Array, row: usize) -> bool {
            row < array.len() && array.is_valid(row)
        }
        match self {
            Reader::Boolean(array) if valid(array, row) => DatumRef::Boolean(array.value(row)),
            Reader::SmallInt(array) if valid(array, row) => DatumRef::SmallInt(array.value(row)),
            Reader::Int(array) if valid(array, row) => DatumRef::Int(array.value(row)),
            Reader::BigInt(array) if valid(array, row) => DatumRef::BigInt(array.value(row)),
            Reader::Real(array) if valid(array, row) => DatumRef::Real(array.value(row)),
            Reader::Double(array) if valid(array, row) => DatumRef::Double(array.value(row)),
            Reader::Decimal(array, scale) if valid(array, row) => {
                DatumRef::Decimal { unscaled: array.value(row), scale: *scale }
            }
            Reader::Text(array) if valid(array, row) => DatumRef::Text(array.value(row)),
            Reader::Blob(array) if valid(array, row) => DatumRef::Blob(array.value(row)),
            Reader::Date(array) if valid(array, row) => DatumRef::Date(array.value(row)),
            Reader::Time(array) if valid(array, row) => DatumRef::Time(array.value(row)),
            Reader::Timestamp(array) if valid(array, row) => DatumRef::Timestamp(array.value(row)),
            Reader::Interval(array) if valid(array, row) => {
                let value = array.value(row);
                DatumRef::Interval {
                    months: value.months,
                    days: value.days,
                    micros: value.nanoseconds / 1_000,
                }
            }
            Reader::Uuid(array) if valid(array, row) => {
                match Datum::parse(array.value(row), &Type::Uuid.into()) {
                    Ok(Datum::Uuid(bytes)) => DatumRef::Uuid(bytes),
                    _ => DatumRef::Null,
                }
            }
            _ => DatumRef::Null,
        }
    }
}
