//! Converts columns of table leaves to Arrow arrays. Buffers of numbers are moved, not copied.

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BinaryViewArray, BooleanArray, PrimitiveArray, StringArray,
    StringViewArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{ByteValues, ColumnBuf, ColumnValues, Validity};
use cairn_vfs::sync::Arc;

use crate::datum::DatumRef;

/// Returns the Arrow array of a column that was read block by block.
///
/// Errors: texts that are not UTF-8, which only a damaged file holds; intervals beyond the range of
/// Arrow's nanoseconds; columns too long for Arrow's offsets.
pub(crate) fn array_of(column: ColumnBuf, kind: &ColumnType) -> Result<ArrayRef, ArrowError> {
    let (values, validity) = column.into_parts();
    Ok(match values {
        ColumnValues::Boolean(values) => {
            let nulls = nulls_of(&validity, values.len());
            Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
        }
        ColumnValues::SmallInt(values) => numbers::<Int16Type>(values, &validity, kind),
        ColumnValues::Int(values) if kind.kind == Type::Date => {
            numbers::<Date32Type>(values, &validity, kind)
        }
        ColumnValues::Int(values) => numbers::<Int32Type>(values, &validity, kind),
        ColumnValues::BigInt(values) => match kind.kind {
            Type::Time => numbers::<Time64MicrosecondType>(values, &validity, kind),
            Type::Timestamp => numbers::<TimestampMicrosecondType>(values, &validity, kind),
            _ => numbers::<Int64Type>(values, &validity, kind),
        },
        ColumnValues::Real(values) => numbers::<Float32Type>(values, &validity, kind),
        ColumnValues::Double(values) => numbers::<Float64Type>(values, &validity, kind),
        ColumnValues::Decimal(values) => numbers::<Decimal128Type>(values, &validity, kind),
        ColumnValues::Interval(values) => {
            let nanoseconds = |micros: i64| micros.checked_mul(1_000).ok_or_else(super::too_long_span);
            let values = values.into_iter().map(|value| {
                let nanoseconds = nanoseconds(value.micros)?;
                Ok(IntervalMonthDayNano { months: value.months, days: value.days, nanoseconds })
            });
            numbers::<IntervalMonthDayNanoType>(values.collect::<Result<_, ArrowError>>()?, &validity, kind)
        }
        ColumnValues::Uuid(values) => {
            let text = |(at, value)| validity.is_valid(at).then(|| DatumRef::Uuid(value).to_string());
            Arc::new(values.into_iter().enumerate().map(text).collect::<StringViewArray>())
        }
        ColumnValues::Bytes(ByteValues { ends, bytes }) => {
            let nulls = nulls_of(&validity, ends.len().saturating_sub(1));
            let offset = |end: usize| i32::try_from(end).map_err(|_| too_long());
            let offsets: Vec<i32> = ends.into_iter().map(offset).collect::<Result<_, _>>()?;
            let (offsets, bytes) = (OffsetBuffer::new(offsets.into()), Buffer::from(bytes));
            // The views of the array share these bytes.
            match kind.kind {
                Type::Blob => Arc::new(BinaryViewArray::from(&BinaryArray::try_new(offsets, bytes, nulls)?)),
                _ => Arc::new(StringViewArray::from(&StringArray::try_new(offsets, bytes, nulls)?)),
            }
        }
    })
}

fn too_long() -> ArrowError {
    ArrowError::MemoryError("the texts of a batch are 2 GiB or more".to_owned())
}

fn nulls_of(validity: &Validity, len: usize) -> Option<NullBuffer> {
    validity.bits().map(|bits| NullBuffer::new(BooleanBuffer::new(Buffer::from(bits), 0, len)))
}

fn numbers<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    validity: &Validity,
    kind: &ColumnType,
) -> ArrayRef {
    let nulls = nulls_of(validity, values.len());
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls);
    Arc::new(array.with_data_type(super::data_type(kind)))
}
