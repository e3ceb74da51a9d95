//! Maps column types to Arrow types and back.
//!
//! Text is `Utf8View`, which groups and compares short texts without following pointers. A uuid is
//! text too: its printed form sorts as its bytes do, and every function and comparison works on it.
//! Properties that an Arrow type cannot express are in the metadata of the field.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use crate::column::Column;

/// The metadata key of a field for properties that its Arrow type cannot express.
const KIND: &str = "cairn";

/// Returns the Arrow type of a column.
pub(crate) fn data_type(kind: &ColumnType) -> DataType {
    match kind.kind {
        Type::Boolean => DataType::Boolean,
        Type::SmallInt => DataType::Int16,
        Type::Int => DataType::Int32,
        Type::BigInt => DataType::Int64,
        Type::Real => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::Decimal => {
            let (precision, scale) = kind.decimal.unwrap_or((38, 0));
            DataType::Decimal128(precision, scale as i8)
        }
        Type::Blob => DataType::BinaryView,
        Type::Date => DataType::Date32,
        Type::Time => DataType::Time64(TimeUnit::Microsecond),
        Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Utf8View,
    }
}

/// Returns the Arrow field of a column.
pub(crate) fn field(name: &str, kind: &ColumnType, nullable: bool) -> Field {
    let field = Field::new(name, data_type(kind), nullable);
    let more = match kind {
        ColumnType { kind: Type::Uuid, .. } => "uuid".to_owned(),
        ColumnType { is_json: true, .. } => "json".to_owned(),
        ColumnType { is_zoned: true, .. } => "timestamptz".to_owned(),
        ColumnType { kind: Type::Text, length: Some(length), .. } => format!("varchar({length})"),
        ColumnType { decimal: Some((precision, _)), .. } if *precision < 38 => {
            format!("decimal({precision})")
        }
        _ => return field,
    };
    field.with_metadata(HashMap::from([(KIND.to_owned(), more)]))
}

/// Marks a text field as JSON.
pub(crate) fn as_json(field: Field) -> Field {
    field.with_metadata(HashMap::from([(KIND.to_owned(), "json".to_owned())]))
}

/// Returns the Arrow schema of result columns.
pub(crate) fn schema_of(columns: &[Column]) -> SchemaRef {
    let fields: Vec<Field> = columns.iter().map(|column| field(&column.name, &column.kind, true)).collect();
    Arc::new(Schema::new(fields))
}

/// Returns the column type of a field's values. An Arrow type without an exact counterpart maps to
/// the nearest one, or to text.
pub(crate) fn kind_of(field: &Field) -> ColumnType {
    if let Some(more) = field.metadata().get(KIND) {
        // The metadata may be stale: an expression over the column keeps it, but may have another
        // type.
        let (is_text, is_timestamp) =
            (field.data_type().is_string(), matches!(field.data_type(), DataType::Timestamp(..)));
        match more.as_str() {
            "uuid" if is_text => return Type::Uuid.into(),
            "json" if is_text => return ColumnType::json(),
            "timestamptz" if is_timestamp => return ColumnType::zoned(),
            // A list of timestamps is returned as text, in which each element has its zone.
            "timestamptz" if is_list_of_moments(field.data_type()) => {
                let mut text = ColumnType::new(Type::Text);
                text.is_zoned = true;
                return text;
            }
            other if field.data_type().is_decimal() => {
                // The metadata describes the column; an expression over it may have another
                // precision.
                if let DataType::Decimal128(precision, scale) = field.data_type()
                    && other == format!("decimal({precision})")
                {
                    return ColumnType::decimal(*precision, (*scale).clamp(0, 38) as u8);
                }
            }
            other if is_text => {
                let length = other.strip_prefix("varchar(").and_then(|rest| rest.strip_suffix(')'));
                if let Some(length) = length.and_then(|length| length.parse().ok()) {
                    return ColumnType::varchar(length);
                }
            }
            _ => {}
        }
    }
    match field.data_type() {
        DataType::Boolean => Type::Boolean.into(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Type::SmallInt.into(),
        DataType::Int32 | DataType::UInt16 => Type::Int.into(),
        DataType::Int64 | DataType::UInt32 => Type::BigInt.into(),
        DataType::UInt64 => ColumnType::decimal(38, 0),
        DataType::Float16 | DataType::Float32 => Type::Real.into(),
        DataType::Float64 => Type::Double.into(),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => ColumnType::decimal(38, (*scale).clamp(0, 38) as u8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Type::Blob.into()
        }
        DataType::Date32 | DataType::Date64 => Type::Date.into(),
        DataType::Time32(_) | DataType::Time64(_) => Type::Time.into(),
        DataType::Timestamp(..) => Type::Timestamp.into(),
        DataType::Interval(_) | DataType::Duration(_) => Type::Interval.into(),
        DataType::Dictionary(_, values) => kind_of(&Field::new("", (**values).clone(), true)),
        _ => Type::Text.into(),
    }
}

fn is_list_of_moments(kind: &DataType) -> bool {
    match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            matches!(item.data_type(), DataType::Timestamp(..)) || is_list_of_moments(item.data_type())
        }
        _ => false,
    }
}

/// Returns the element type if the field holds lists.
pub(crate) fn element_of(field: &Field) -> Option<ColumnType> {
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let is_zoned = field.metadata().get(KIND).is_some_and(|more| more == "timestamptz");
            match element_of(item).unwrap_or_else(|| kind_of(item)) {
                element if is_zoned && element.kind == Type::Timestamp => Some(ColumnType::zoned()),
                element => Some(element),
            }
        }
        _ => None,
    }
}
