//! Columns of the rows of a range, as they are, a leaf at a time: what is decoded column by column
//! costs a fraction of rows that are put together first and taken apart again.

use cairn_table::row::{Interval, Type};
use cairn_table::{ColumnBuf, ColumnValues, Validity, View};

use super::leaves::Leaves;
use super::{Access, Output, Ranges, Select};
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::expr::Env;
use crate::sqlstate::DATA_CORRUPTED;

/// Who wants fewer rows than these gets them one by one: a leaf has more.
const FEW: u64 = 32;

/// Rows of a range.
#[derive(Debug)]
pub(crate) struct LeafRows {
    leaves: Leaves,
    /// Columns of the table that the result has, each once.
    read: Vec<usize>,
    columns: Vec<Column>,
    /// Of each column of the result, which of those it is; `None` where each is its own.
    outputs: Option<Vec<usize>>,
    /// Rows of the leaf, and the one it is at.
    rows: usize,
    at: usize,
}

/// A column of the leaf.
#[derive(Debug)]
struct Column {
    kind: Type,
    scale: u8,
    /// `None` where nothing is NULL.
    validity: Option<Validity>,
    values: Values,
}

/// What most columns are comes without a second look at what it is: values are asked for one by
/// one.
#[derive(Debug)]
enum Values {
    Ints(Vec<i32>),
    BigInts(Vec<i64>),
    Decimals(Vec<i128>),
    Texts { ends: Vec<usize>, text: String },
    Others(ColumnValues),
}

impl LeafRows {
    /// The rows that a SELECT asks for, if they can be read so: columns and nothing else, which the
    /// tree has all of, and not only a few of them, by conditions on one column each, or on two.
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
        // Cheaper to know than the bounds are.
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

    /// Goes to the next row; false after the last one.
    ///
    /// Errors: of the table.
    pub fn advance(&mut self, access: &Access) -> Result<bool> {
        Ok(self.step() || self.fill(access)?)
    }

    /// Goes to the next row of the leaf that it is at; false, and it stays, where that has no more.
    #[inline]
    pub fn step(&mut self) -> bool {
        let is_there = self.at + 1 < self.rows;
        self.at += usize::from(is_there);
        is_there
    }

    /// Goes to the next leaf that has rows, and to its first one.
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

    /// How many columns the result has.
    #[inline]
    pub fn columns(&self) -> usize {
        self.outputs.as_ref().map_or(self.columns.len(), Vec::len)
    }

    /// A column of the row that it is at; NULL where there is none.
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
    /// Takes a leaf's values. Texts are looked at once all together.
    ///
    /// Errors: bytes that are no UTF-8, which no sound file has.
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
