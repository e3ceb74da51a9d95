//! Small tables, made on the spot.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow::datatypes::{DataType, Field, Schema};
use cairn_vfs::sync::Arc;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::MemTable;

/// Types of columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Number,
    Short,
    Text,
    Flag,
    Real,
    /// A list of numbers.
    Numbers,
    /// A list of texts.
    Texts,
}

impl Kind {
    fn data_type(self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        match self {
            Kind::Number => DataType::Int64,
            Kind::Short => DataType::Int16,
            Kind::Text => DataType::Utf8View,
            Kind::Flag => DataType::Boolean,
            Kind::Real => DataType::Float32,
            Kind::Numbers => list(DataType::Int64),
            Kind::Texts => list(DataType::Utf8View),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone)]
pub(super) struct Cell(ScalarValue);

/// NULL.
pub(super) const NULL: Cell = Cell(ScalarValue::Null);

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell(ScalarValue::Utf8View(Some(text.to_owned())))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell(ScalarValue::Utf8View(Some(text)))
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Cell(ScalarValue::Boolean(Some(flag)))
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell(ScalarValue::Int64(Some(number)))
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        i64::from(number).into()
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        (number as i64).into()
    }
}

impl From<f32> for Cell {
    fn from(number: f32) -> Self {
        Cell(ScalarValue::Float32(Some(number)))
    }
}

impl From<Vec<i64>> for Cell {
    fn from(numbers: Vec<i64>) -> Self {
        let values: Vec<ScalarValue> =
            numbers.into_iter().map(|number| ScalarValue::Int64(Some(number))).collect();
        Cell(ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Int64)))
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(NULL, Into::into)
    }
}

/// A table with its rows.
#[derive(Debug)]
pub(super) struct Relation {
    columns: Vec<(&'static str, Kind)>,
    rows: Vec<Vec<Cell>>,
}

impl Relation {
    /// Columns that are all of one type each, by their names: `oid:n relname:t relkind:t`. `n` number, `s` short, `t` text, `b` flag, `r` real, `N` numbers, `T` texts.
    pub fn of(columns: &'static str) -> Self {
        let column = |part: &'static str| {
            let (name, kind) = part.split_once(':').unwrap_or((part, "t"));
            let kind = match kind {
                "n" => Kind::Number,
                "s" => Kind::Short,
                "b" => Kind::Flag,
                "r" => Kind::Real,
                "N" => Kind::Numbers,
                "T" => Kind::Texts,
                _ => Kind::Text,
            };
            (name, kind)
        };
        Relation { columns: columns.split_whitespace().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "{:?}", self.columns);
        self.rows.push(row);
    }

    /// Adds a row by the names of its columns; the others are NULL, zero or false.
    pub fn push_named(&mut self, values: &[(&str, Cell)]) {
        let row = self.columns.iter().map(|(name, kind)| {
            let given = values.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone());
            given.unwrap_or_else(|| match kind {
                Kind::Number => 0i64.into(),
                Kind::Short => Cell(ScalarValue::Int16(Some(0))),
                Kind::Flag => false.into(),
                Kind::Real => 0f32.into(),
                _ => NULL,
            })
        });
        self.rows.push(row.collect());
    }

    fn array(&self, at: usize, kind: DataType) -> Option<ArrayRef> {
        if self.rows.is_empty() {
            return Some(new_empty_array(&kind));
        }
        let null = ScalarValue::try_from(&kind).ok()?;
        let values = self.rows.iter().map(|row| match row.get(at) {
            Some(Cell(value)) if !value.is_null() => value.cast_to(&kind).unwrap_or_else(|_| null.clone()),
            _ => null.clone(),
        });
        ScalarValue::iter_to_array(values).ok()
    }

    /// As DataFusion has tables.
    pub fn provider(self) -> Option<Arc<dyn TableProvider>> {
        let fields: Vec<Field> =
            self.columns.iter().map(|(name, kind)| Field::new(*name, kind.data_type(), true)).collect();
        let arrays = fields.iter().enumerate().map(|(at, field)| self.array(at, field.data_type().clone()));
        let arrays = arrays.collect::<Option<Vec<_>>>()?;
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options).ok()?;
        Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]]).ok()?))
    }
}
