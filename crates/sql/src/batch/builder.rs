//! Builds record batches from rows.

use arrow::array::{
    ArrayRef, BinaryViewBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
    Float64Builder, Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder, NullArray,
    RecordBatch, RecordBatchOptions, StringViewBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::{IntervalMonthDayNano, SchemaRef};
use arrow::error::ArrowError;
use cairn_table::row::{Type, Value};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use crate::datum::DatumRef;

/// The columns of a batch under construction.
#[derive(Debug)]
pub(crate) struct Columns {
    schema: SchemaRef,
    columns: Vec<Builder>,
    rows: usize,
}

#[derive(Debug)]
enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Int(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder),
    Text(StringViewBuilder),
    Blob(BinaryViewBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Interval {
        to: IntervalMonthDayNanoBuilder,
        /// An interval's time part did not fit Arrow's nanoseconds, which reach 292 years.
        too_long: bool,
    },
    Uuid(StringViewBuilder),
    /// The column was given a value of another type.
    Misfit,
}

impl Columns {
    /// Returns empty columns of these types. `schema` has their fields in the same order.
    pub fn new(schema: SchemaRef, kinds: &[ColumnType], rows: usize) -> Self {
        Columns { columns: kinds.iter().map(|kind| Builder::new(kind, rows)).collect(), schema, rows: 0 }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a row; `value` returns the value of the n-th column.
    #[inline]
    pub fn push<'v>(&mut self, mut value: impl FnMut(usize) -> Value<'v>) {
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.push(&value(at));
        }
        self.rows += 1;
    }

    /// Returns the batch, and begins a new one.
    ///
    /// Errors: NULL in a column that forbids it; values of another type than their column's;
    /// intervals beyond the range of Arrow's nanoseconds.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        for column in &self.columns {
            match column {
                Builder::Interval { too_long: true, .. } => {
                    return Err(super::too_long_span());
                }
                Builder::Misfit => {
                    let what = "a value of another type than its column's".to_owned();
                    return Err(ArrowError::InvalidArgumentError(what));
                }
                _ => {}
            }
        }
        let arrays = self.columns.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

impl Builder {
    fn new(kind: &ColumnType, rows: usize) -> Self {
        match kind.kind {
            Type::Boolean => Builder::Boolean(BooleanBuilder::with_capacity(rows)),
            Type::SmallInt => Builder::SmallInt(Int16Builder::with_capacity(rows)),
            Type::Int => Builder::Int(Int32Builder::with_capacity(rows)),
            Type::BigInt => Builder::BigInt(Int64Builder::with_capacity(rows)),
            Type::Real => Builder::Real(Float32Builder::with_capacity(rows)),
            Type::Double => Builder::Double(Float64Builder::with_capacity(rows)),
            Type::Decimal => Builder::Decimal(
                Decimal128Builder::with_capacity(rows).with_data_type(super::data_type(kind)),
            ),
            Type::Blob => Builder::Blob(BinaryViewBuilder::with_capacity(rows)),
            Type::Date => Builder::Date(Date32Builder::with_capacity(rows)),
            Type::Time => Builder::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            Type::Timestamp => Builder::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows)),
            Type::Interval => {
                Builder::Interval { to: IntervalMonthDayNanoBuilder::with_capacity(rows), too_long: false }
            }
            Type::Uuid => Builder::Uuid(StringViewBuilder::with_capacity(rows)),
            _ => Builder::Text(StringViewBuilder::with_capacity(rows)),
        }
    }

    #[inline]
    fn push(&mut self, value: &Value<'_>) {
        match (self, value) {
            (Builder::Boolean(to), Value::Boolean(value)) => to.append_value(*value),
            (Builder::SmallInt(to), Value::SmallInt(value)) => to.append_value(*value),
            (Builder::Int(to), Value::Int(value)) => to.append_value(*value),
            (Builder::BigInt(to), Value::BigInt(value)) => to.append_value(*value),
            (Builder::Real(to), Value::Real(value)) => to.append_value(*value),
            (Builder::Double(to), Value::Double(value)) => to.append_value(*value),
            (Builder::Decimal(to), Value::Decimal(value)) => to.append_value(*value),
            (Builder::Text(to), Value::Text(value)) => to.append_value(value),
            (Builder::Blob(to), Value::Blob(value)) => to.append_value(value),
            (Builder::Date(to), Value::Date(value)) => to.append_value(*value),
            (Builder::Time(to), Value::Time(value)) => to.append_value(*value),
            (Builder::Timestamp(to), Value::Timestamp(value)) => to.append_value(*value),
            (Builder::Interval { to, too_long }, Value::Interval(value)) => {
                let nanoseconds = value.micros.checked_mul(1_000);
                *too_long |= nanoseconds.is_none();
                let nanoseconds = nanoseconds.unwrap_or_default();
                to.append_value(IntervalMonthDayNano { months: value.months, days: value.days, nanoseconds });
            }
            (Builder::Uuid(to), Value::Uuid(value)) => to.append_value(DatumRef::Uuid(*value).to_string()),
            (builder, Value::Null) => builder.push_null(),
            (builder, _) => *builder = Builder::Misfit,
        }
    }

    fn push_null(&mut self) {
        match self {
            Builder::Boolean(to) => to.append_null(),
            Builder::SmallInt(to) => to.append_null(),
            Builder::Int(to) => to.append_null(),
            Builder::BigInt(to) => to.append_null(),
            Builder::Real(to) => to.append_null(),
            Builder::Double(to) => to.append_null(),
            Builder::Decimal(to) => to.append_null(),
            Builder::Text(to) | Builder::Uuid(to) => to.append_null(),
            Builder::Blob(to) => to.append_null(),
            Builder::Date(to) => to.append_null(),
            Builder::Time(to) => to.append_null(),
            Builder::Timestamp(to) => to.append_null(),
            Builder::Interval { to, .. } => to.append_null(),
            Builder::Misfit => {}
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Boolean(from) => Arc::new(from.finish()),
            Builder::SmallInt(from) => Arc::new(from.finish()),
            Builder::Int(from) => Arc::new(from.finish()),
            Builder::BigInt(from) => Arc::new(from.finish()),
            Builder::Real(from) => Arc::new(from.finish()),
            Builder::Double(from) => Arc::new(from.finish()),
            Builder::Decimal(from) => Arc::new(from.finish()),
            Builder::Text(from) | Builder::Uuid(from) => Arc::new(from.finish()),
            Builder::Blob(from) => Arc::new(from.finish()),
            Builder::Date(from) => Arc::new(from.finish()),
            Builder::Time(from) => Arc::new(from.finish()),
            Builder::Timestamp(from) => Arc::new(from.finish()),
            Builder::Interval { to, .. } => Arc::new(to.finish()),
            Builder::Misfit => Arc::new(NullArray::new(0)),
        }
    }
}
