//! Reads plain columns of a range's rows, a leaf at a time. Decoding whole columns costs a fraction
//! of assembling rows and taking them apart again.

use cairn_table::row::{Interval, Type};
use cairn_table::{ColumnBuf, ColumnValues, Validity, View};

use super::leaves::Leaves;
use super::{Access, Output, Ranges, Select};
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::expr::Env;
use crate::sqlstate::DATA_CORRUPTED;

/// Fewer rows than this are read one by one, because a leaf has more.
const FEW: u64 = 32;

/// The rows of a range.
#[derive(Debug)]
pub(crate) struct LeafRows {
    leaves: Leaves,
    /// The distinct table columns of the result.
    read: Vec<usize>,
    columns: Vec<Column>,
    /// For each result column, its position in `read`; `None` if the positions are the same.
    outputs: Option<Vec<usize>>,
    /// The number of rows of the leaf, and the current one.
    rows: usize,
    at: usize,
}

/// A column of the leaf.
#[derive(Debug)]
struct Column {
    kind: Type,
    scale: u8,
    /// `None` if no value is NULL.
    validity: Option<Validity>,
    values: Values,
}

/// Values of a column. The most common types have variants of their own, which saves a dispatch per
/// value.
#[derive(Debug)]
enum Values {
    Ints(Vec<i32>),
    BigInts(Vec<i64>),
    Decimals(Vec<i128>),
    Texts { ends: Vec<usize>, text: String },
    Others(ColumnValues),
}

impl LeafRows {
    /// Returns the rows of a SELECT; `None` unless it can be read in this way. It must select
    /// nothing but columns, all of which the tree has, want more than a few rows, and have
    /// conditions on one or two columns each.
    ///
    /// Errors: those of computing the bounds and the conditions' values.
    pub fn new(
        select: &Select,
        access: &Access,
        view: &View,
        env: &Env<'_>,
        wanted: u64,
    ) -> Result<Option<LeafRows>> {
        let Output::Columns(outputs) = &select.output else { return Ok(None) };
        let def = access.table.def();
        if access.range.is_point || wanted < FEW {
            return Ok(None);
        }
        let (mut read, mut columns, mut places) = (Vec::new(), Vec::new(), Vec::with_capacity(outputs.len()));
        for &(column, scale) in outputs {
            let Some(kind) = def.columns.get(column).map(|column| column.kind.kind) else { return Ok(None) };
            let known = read.iter().position(|at| *at == column);
            places.push(known.unwrap_or(read.len()));
            if known.is_none() {
                read.push(column);
                columns.push(Column { kind, scale, validity: None, values: Values::Ints(Vec::new()) });
            }
        }
        // This check is cheaper than computing the bounds.
        if access.conditions.is_none() || access.fetches {
            return Ok(None);
        }
        let ranges = match access.ranges(env, &mut Vec::with_capacity(32))? {
            Ranges::Some(ranges) => ranges,
            Ranges::None => Vec::new(),
            Ranges::Point => return Ok(None),
        };
        let leaves = Leaves::new(access, view, ranges, read.clone(), &[], env)?;
        let outputs = (places.len() != read.len()).then_some(places);
        Ok(leaves.map(|leaves| LeafRows { leaves, read, columns, outputs, rows: 0, at: 0 }))
    }

    /// Advances to the next row; false after the last one.
    ///
    /// Errors: those of the table.
    pub fn advance(&mut self, access: &Access) -> Result<bool> {
        Ok(self.step() || self.fill(access)?)
    }

    /// Advances to the next row of the current leaf. Returns false, without moving, after its last
    /// row.
    #[inline]
    pub fn step(&mut self) -> bool {
        let is_there = self.at + 1 < self.rows;
        self.at += usize::from(is_there);
        is_there
    }

    /// Advances to the first row of the next leaf that has rows.
    fn fill(&mut self, access: &Access) -> Result<bool> {
        (self.rows, self.at) = (0, 0);
        let (read, columns) = (&self.read, &mut self.columns);
        let rows = self.leaves.next_with(access, |leaf| {
            for (&at, column) in read.iter().zip(columns) {
                let mut buffer = ColumnBuf::with_capacity(column.kind, leaf.rows());
                leaf.read(at, &mut buffer)?;
                column.fill(buffer)?;
            }
            Ok(leaf.rows())
        })?;
        self.rows = rows.unwrap_or(0);
        Ok(self.rows > 0)
    }

    /// The number of result columns.
    #[inline]
    pub fn columns(&self) -> usize {
        self.outputs.as_ref().map_or(self.columns.len(), Vec::len)
    }

    /// Returns a column of the current row; NULL if there is no such column.
    #[inline]
    pub fn get(&self, column: usize) -> DatumRef<'_> {
        let column = match &self.outputs {
            None => column,
            Some(outputs) => outputs.get(column).copied().unwrap_or(usize::MAX),
        };
        self.columns.get(column).map_or(DatumRef::Null, |column| column.get(self.at))
    }
}

impl Column {
    /// Takes the values of a leaf. Texts are validated all at once.
    ///
    /// Errors: bytes that are not UTF-8, which only a damaged file holds.
    fn fill(&mut self, buffer: ColumnBuf) -> Result<()> {
        let (values, validity) = buffer.into_parts();
        self.validity = (validity.nulls() > 0).then_some(validity);
        self.values = match (values, self.kind) {
            (ColumnValues::Int(values), Type::Int) => Values::Ints(values),
            (ColumnValues::BigInt(values), Type::BigInt) => Values::BigInts(values),
            (ColumnValues::Decimal(values), _) => Values::Decimals(values),
            (ColumnValues::Bytes(values), Type::Text) => {
                let text = String::from_utf8(values.bytes)
                    .map_err(|_| Error::new(DATA_CORRUPTED, "a text in a table is not UTF-8"))?;
                Values::Texts { ends: values.ends, text }
            }
            (values, _) => Values::Others(values),
        };
        Ok(())
    }

    #[inline]
    fn get(&self, at: usize) -> DatumRef<'_> {
        if self.validity.as_ref().is_some_and(|validity| !validity.is_valid(at)) {
            return DatumRef::Null;
        }
        let found = match &self.values {
            Values::Ints(values) => values.get(at).map(|value| DatumRef::Int(*value)),
            Values::BigInts(values) => values.get(at).map(|value| DatumRef::BigInt(*value)),
            Values::Decimals(values) => {
                values.get(at).map(|value| DatumRef::Decimal { unscaled: *value, scale: self.scale })
            }
            Values::Texts { ends, text } => match ends.get(at..) {
                Some([start, end, ..]) => text.get(*start..*end).map(DatumRef::Text),
                _ => None,
            },
            Values::Others(values) => other(values, at, self.kind),
        };
        found.unwrap_or(DatumRef::Null)
    }
}

fn other(values: &ColumnValues, at: usize, kind: Type) -> Option<DatumRef<'_>> {
    Some(match values {
        ColumnValues::Boolean(values) => DatumRef::Boolean(*values.get(at)?),
        ColumnValues::SmallInt(values) => DatumRef::SmallInt(*values.get(at)?),
        ColumnValues::Int(values) if kind == Type::Date => DatumRef::Date(*values.get(at)?),
        ColumnValues::Int(values) => DatumRef::Int(*values.get(at)?),
        ColumnValues::BigInt(values) => match kind {
            Type::Time => DatumRef::Time(*values.get(at)?),
            Type::Timestamp => DatumRef::Timestamp(*values.get(at)?),
            _ => DatumRef::BigInt(*values.get(at)?),
        },
        ColumnValues::Real(values) => DatumRef::Real(*values.get(at)?),
        ColumnValues::Double(values) => DatumRef::Double(*values.get(at)?),
        ColumnValues::Decimal(values) => DatumRef::Decimal { unscaled: *values.get(at)?, scale: 0 },
        ColumnValues::Interval(values) => {
            let Interval { months, days, micros } = *values.get(at)?;
            DatumRef::Interval { months, days, micros }
        }
        ColumnValues::Uuid(values) => DatumRef::Uuid(*values.get(at)?),
        ColumnValues::Bytes(values) => DatumRef::Blob(values.get(at)?),
    })
}
