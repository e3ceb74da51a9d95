//! Reads rows from record batches.

use arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeListArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray,
    LargeListArray, ListArray, RecordBatch, StringViewArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use super::{data_type, kind_of};
use crate::datum::{Datum, DatumRef, put_item, zoned_text};

/// A batch whose columns have been converted to their declared types.
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
    /// Errors: values outside the range of their type.
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

/// Converts an array to the Arrow type of `kind`. Nested arrays, such as lists, become text.
pub(crate) fn conform(array: &ArrayRef, kind: &ColumnType) -> Result<ArrayRef, ArrowError> {
    let to = data_type(kind);
    if *array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if array.data_type().is_nested() {
        let text = |row: usize| (!array.is_null(row)).then(|| nested(array, row, kind.is_zoned)).transpose();
        return Ok(Arc::new((0..array.len()).map(text).collect::<Result<StringViewArray, _>>()?));
    }
    cast_with_options(array, &to, &options)
}

/// Formats a list or a row as PostgreSQL does, and other nested values as Arrow does. `is_zoned`
/// says that its timestamps have a time zone and are in UTC.
fn nested(array: &ArrayRef, row: usize, is_zoned: bool) -> Result<String, ArrowError> {
    if let Some(columns) = array.as_any().downcast_ref::<StructArray>() {
        return record(columns, row);
    }
    let Some(values) = elements(array, row) else {
        let formatter = ArrayFormatter::try_new(array, &FormatOptions::default().with_null("NULL"))?;
        return Ok(formatter.value(row).to_string());
    };
    let item = match array.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Arc::clone(item)
        }
        other => Arc::new(Field::new("", other.clone(), true)),
    };
    let is_list = elements_of(values.data_type());
    let mut text = String::from("{");
    let printer = Printer::new(&values, &item, is_zoned)?;
    for at in 0..values.len() {
        if at > 0 {
            text.push(',');
        }
        match printer.text(at)? {
            None => text.push_str("NULL"),
            Some(item) if is_list => text.push_str(&item),
            Some(item) => put_item(&item, &mut text),
        }
    }
    text.push('}');
    Ok(text)
}

fn elements_of(kind: &DataType) -> bool {
    matches!(kind, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// Formats a composite row: `(1,"a b",)`.
fn record(columns: &StructArray, row: usize) -> Result<String, ArrowError> {
    let mut text = String::from("(");
    for (at, (column, field)) in columns.columns().iter().zip(columns.fields()).enumerate() {
        if at > 0 {
            text.push(',');
        }
        if let Some(value) = Printer::new(&column.slice(row, 1), field, false)?.text(0)? {
            put_column(&value, &mut text);
        }
    }
    text.push(')');
    Ok(text)
}

/// Appends a column of a composite row, in quotes if it would be misread without them. NULL is
/// written as nothing.
fn put_column(value: &str, to: &mut String) {
    let special = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !value.is_empty() && !value.contains(special) {
        return to.push_str(value);
    }
    to.push('"');
    for c in value.chars() {
        if matches!(c, '"' | '\\') {
            to.push(c);
        }
        to.push(c);
    }
    to.push('"');
}

/// Formats the values of an array of any type.
enum Printer {
    Plain(Reader, bool),
    Nested(ArrayRef, bool),
}

impl Printer {
    fn new(values: &ArrayRef, field: &Field, is_zoned: bool) -> Result<Printer, ArrowError> {
        if values.data_type().is_nested() {
            return Ok(Printer::Nested(Arc::clone(values), is_zoned));
        }
        let field = field.clone().with_data_type(values.data_type().clone());
        let kind = kind_of(&field);
        let is_zoned = kind.is_zoned || (is_zoned && kind.kind == Type::Timestamp);
        Ok(Printer::Plain(Reader::new(values, &kind)?, is_zoned))
    }

    fn text(&self, at: usize) -> Result<Option<String>, ArrowError> {
        match self {
            Printer::Nested(values, _) if values.is_null(at) => Ok(None),
            Printer::Nested(values, is_zoned) => nested(values, at, *is_zoned).map(Some),
            Printer::Plain(reader, is_zoned) => Ok(match reader.get(at) {
                DatumRef::Null => None,
                value if *is_zoned => Some(zoned_text(value)),
                value => Some(value.to_string()),
            }),
        }
    }
}

/// Returns the elements of a list; `None` if the array is not one of lists.
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
