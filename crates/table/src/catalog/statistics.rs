//! Statistics about the contents of tables, for query planning.

use super::bytes::{Reader, Writer};
use crate::row::{KeyFormat, Order, Type, Value};

/// Statistics of a table as of the time they were gathered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableStatistics {
    /// Number of rows.
    pub rows: u64,
    /// Statistics of each column, in column order.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of a column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ColumnStatistics {
    /// Number of rows in which the column is NULL.
    pub nulls: u64,
    /// Approximate number of distinct values.
    pub distinct: u64,
    /// The least value, if there is one and keys can hold its type.
    pub min: Option<OwnedValue>,
    /// The greatest value, under the same condition.
    pub max: Option<OwnedValue>,
    /// Average size of a value in bytes.
    pub average_width: u32,
}

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedValue {
    /// A value of a type that has no bytes of its own.
    Plain(Value<'static>),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl OwnedValue {
    /// Returns the value, borrowing its bytes.
    pub fn value(&self) -> Value<'_> {
        match self {
            OwnedValue::Plain(value) => *value,
            OwnedValue::Text(text) => Value::Text(text),
            OwnedValue::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> Self {
        OwnedValue::Plain(match value {
            Value::Text(text) => return OwnedValue::Text(text.to_owned()),
            Value::Blob(bytes) => return OwnedValue::Blob(bytes.to_vec()),
            Value::Null => Value::Null,
            Value::Boolean(value) => Value::Boolean(value),
            Value::SmallInt(value) => Value::SmallInt(value),
            Value::Int(value) => Value::Int(value),
            Value::BigInt(value) => Value::BigInt(value),
            Value::Real(value) => Value::Real(value),
            Value::Double(value) => Value::Double(value),
            Value::Decimal(value) => Value::Decimal(value),
            Value::Date(value) => Value::Date(value),
            Value::Time(value) => Value::Time(value),
            Value::Timestamp(value) => Value::Timestamp(value),
            Value::Interval(value) => Value::Interval(value),
            Value::Uuid(value) => Value::Uuid(value),
        })
    }
}

fn put_value(kind: Type, to: &mut Writer, value: Option<&OwnedValue>) {
    let mut key = Vec::new();
    let value = value
        .filter(|value| KeyFormat::new(vec![(kind, Order::default())]).encode(&[value.value()], &mut key));
    to.option(value.map(|_| &key[..]), Writer::bytes);
}

fn get_value(kind: Type, from: &mut Reader<'_>) -> Option<Option<OwnedValue>> {
    from.option(|from| {
        let mut value = None;
        let is_key = KeyFormat::new(vec![(kind, Order::default())])
            .decode(from.bytes()?, |found| value = Some(OwnedValue::from(found)));
        value.filter(|_| is_key)
    })
}

/// Encodes statistics: for each column the number of NULLs, the number of distinct values, the
/// average width, the least and the greatest value. The last two are encoded as one-column keys
/// (`row/key.rs`).
pub(super) fn put(statistics: &TableStatistics, kinds: &[Type]) -> Vec<u8> {
    let mut to = Writer::default();
    to.u8(1);
    to.u64(statistics.rows);
    to.u32(kinds.len() as u32);
    for (at, kind) in kinds.iter().enumerate() {
        let column = statistics.columns.get(at).cloned().unwrap_or_default();
        to.u64(column.nulls);
        to.u64(column.distinct);
        to.u32(column.average_width);
        put_value(*kind, &mut to, column.min.as_ref());
        put_value(*kind, &mut to, column.max.as_ref());
    }
    debug_assert!(
        get(&to.0, kinds).is_some_and(|found| found.rows == statistics.rows),
        "statistics of {} columns are not read as they were written",
        kinds.len()
    );
    to.0
}

pub(super) fn get(bytes: &[u8], kinds: &[Type]) -> Option<TableStatistics> {
    let mut from = Reader(bytes);
    from.u8().filter(|layout| *layout == 1)?;
    let rows = from.u64()?;
    from.u32().filter(|count| *count as usize == kinds.len())?;
    let mut columns = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let (nulls, distinct, average_width) = (from.u64()?, from.u64()?, from.u32()?);
        let (min, max) = (get_value(*kind, &mut from)?, get_value(*kind, &mut from)?);
        columns.push(ColumnStatistics { nulls, distinct, min, max, average_width });
    }
    from.0.is_empty().then_some(TableStatistics { rows, columns })
}
