//! Rows, read one after the other or in batches.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::{Column, CommandTag};
use crate::datum::{Datum, DatumRef, FromDatum};
use crate::error::{Error, Result};
use crate::sqlstate::UNDEFINED_COLUMN;

/// The rows of a result. The connection is theirs until they are dropped; a statement that reads only ends there.
#[derive(Debug)]
pub struct Rows<'c> {
    columns: Arc<[Column]>,
    source: Source,
    verb: &'static str,
    count: u64,
    connection: PhantomData<&'c mut crate::Connection>,
}

#[derive(Debug)]
enum Source {
    /// All of them, the last one first.
    Datums { rest: Vec<Vec<Datum>>, current: Vec<Datum> },
}

impl Rows<'_> {
    /// What columns they have.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The next row; `None` after the last one.
    ///
    /// Errors: whatever computing it met. There are no more rows then.
    pub fn next(&mut self) -> Result<Option<RowView<'_>>> {
        match &mut self.source {
            Source::Datums { rest, current } => {
                let Some(row) = rest.pop() else { return Ok(None) };
                *current = row;
                self.count += 1;
                Ok(Some(RowView { datums: current }))
            }
        }
    }

    /// Up to 8192 rows at once, by column; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Err(Error::unsupported("reading rows in batches"))
    }

    /// What PostgreSQL would say after the last row: `SELECT 5`, `INSERT 0 3`. Counts the rows that were read.
    pub fn tag(&self) -> CommandTag {
        CommandTag::of_rows(self.verb, self.count)
    }
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'r> {
    datums: &'r [Datum],
}

impl<'r> RowView<'r> {
    /// The value of a column; NULL where there is no such column.
    pub fn get(&self, column: usize) -> DatumRef<'r> {
        self.datums.get(column).map_or(DatumRef::Null, Datum::borrow)
    }

    /// The value of a column as a type of Rust.
    ///
    /// Errors: 42703 where there is no such column, and those of [`FromDatum`].
    pub fn get_as<T: FromDatum>(&self, column: usize) -> Result<T> {
        if column >= self.len() {
            return Err(Error::new(UNDEFINED_COLUMN, format!("the result has no column {column}")));
        }
        T::from_datum(self.get(column))
    }

    /// How many columns it has.
    pub fn len(&self) -> usize {
        self.datums.len()
    }

    /// True where it has no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
