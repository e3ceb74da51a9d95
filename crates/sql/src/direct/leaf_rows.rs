//! Columns of the rows of a range, as they are, a leaf at a time: what is decoded column by column costs a fraction of rows that are put together first and taken apart again.

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
    /// Of each column of the result, which of those it is.
    outputs: Vec<usize>,
    /// Rows of the leaf, and the one it is at.
    rows: usize,
    at: usize,
}

/// A column of the leaf.
#[derive(Debug)]
struct Column {
    kind: Type,
    scale: u8,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Fixed(ColumnBuf),
    Texts { ends: Vec<usize>, text: String, validity: Validity },
}

impl LeafRows {
    /// The rows that a SELECT asks for, if they can be read so: columns and nothing else, which the tree has all of, and not only a few of them, by conditions on one column each, or on two.
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
                columns.push(Column { kind, scale, values: Values::Fixed(ColumnBuf::new(kind)) });
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
        Ok(leaves.map(|leaves| LeafRows { leaves, read, columns, outputs: places, rows: 0, at: 0 }))
    }

    /// Goes to the next row; false after the last one.
    ///
    /// Errors: of the table.
    #[inline]
    pub fn advance(&mut self, access: &Access) -> Result<bool> {
        self.at += 1;
        Ok(self.at < self.rows || self.fill(access)?)
    }

    /// Goes to the next leaf that has rows, and to its first one.
    fn fill(&mut self, access: &Access) -> Result<bool> {
        (self.rows, self.at) = (0, 0);
        let (read, columns) = (&self.read, &mut self.columns);
        let rows = self.leaves.next_with(access, |leaf| {
            for (&at, column) in read.iter().zip(columns) {
                let mut buffer = match &mut column.values {
                    Values::Fixed(buffer) if column.kind != Type::Text => {
                        buffer.clear();
                        leaf.read(at, buffer)?;
                        continue;
                    }
                    _ => ColumnBuf::new(column.kind),
                };
                leaf.read(at, &mut buffer)?;
                column.values = texts(buffer)?;
            }
            Ok(leaf.rows())
        })?;
        self.rows = rows.unwrap_or(0);
        Ok(self.rows > 0)
    }

    /// How many columns the result has.
    pub fn columns(&self) -> usize {
        self.outputs.len()
    }

    /// A column of the row that it is at; NULL where there is none.
    #[inline]
    pub fn get(&self, column: usize) -> DatumRef<'_> {
        let column = self.outputs.get(column).and_then(|at| self.columns.get(*at));
        column.map_or(DatumRef::Null, |column| column.get(self.at))
    }
}

/// Texts, looked at once all together.
///
/// Errors: bytes that are no UTF-8, which no sound file has.
fn texts(buffer: ColumnBuf) -> Result<Values> {
    let (values, validity) = buffer.into_parts();
    let ColumnValues::Bytes(values) = values else {
        return Ok(Values::Texts { ends: Vec::new(), text: String::new(), validity: Validity::default() });
    };
    let text = String::from_utf8(values.bytes)
        .map_err(|_| Error::new(DATA_CORRUPTED, "a text in a table is not UTF-8"))?;
    Ok(Values::Texts { ends: values.ends, text, validity })
}

impl Column {
    #[inline]
    fn get(&self, at: usize) -> DatumRef<'_> {
        match &self.values {
            Values::Texts { ends, text, validity } => {
                let ends = (ends.get(at).copied(), ends.get(at + 1).copied());
                match ends {
                    (Some(start), Some(end)) if validity.is_valid(at) => {
                        text.get(start..end).map_or(DatumRef::Null, DatumRef::Text)
                    }
                    _ => DatumRef::Null,
                }
            }
            Values::Fixed(buffer) if buffer.validity().is_valid(at) => {
                fixed(buffer, at, self.kind, self.scale).unwrap_or(DatumRef::Null)
            }
            Values::Fixed(_) => DatumRef::Null,
        }
    }
}

#[inline]
fn fixed(buffer: &ColumnBuf, at: usize, kind: Type, scale: u8) -> Option<DatumRef<'_>> {
    Some(match buffer.values() {
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
        ColumnValues::Decimal(values) => DatumRef::Decimal { unscaled: *values.get(at)?, scale },
        ColumnValues::Interval(values) => {
            let Interval { months, days, micros } = *values.get(at)?;
            DatumRef::Interval { months, days, micros }
        }
        ColumnValues::Uuid(values) => DatumRef::Uuid(*values.get(at)?),
        ColumnValues::Bytes(values) => DatumRef::Blob(values.get(at)?),
    })
}
