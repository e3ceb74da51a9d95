//! Columns of a block, each decoded at its first use.

use cairn_table::row::Type;
use cairn_table::{Block, ColumnBuf};

use super::chosen::Chosen;
use crate::error::{Error, Result};
use crate::sqlstate::INTERNAL_ERROR;

/// If fewer than one in this many rows of a block is chosen, only the chosen rows are decoded.
pub(super) const FEW: usize = 4;

/// The columns of a block that may be needed.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// The column, its values, and whether they are those of the current block. Sorted by column.
    columns: Vec<(usize, ColumnBuf, bool)>,
}

impl Buffers {
    /// Returns buffers for columns of these types.
    pub fn new(columns: impl Iterator<Item = (usize, Type)>) -> Self {
        let mut columns: Vec<_> =
            columns.map(|(column, kind)| (column, ColumnBuf::new(kind), false)).collect();
        columns.sort_unstable_by_key(|(column, ..)| *column);
        columns.dedup_by_key(|(column, ..)| *column);
        Buffers { columns }
    }

    /// Begins another block, of which nothing has been read.
    pub fn clear(&mut self) {
        for (_, buffer, is_read) in &mut self.columns {
            buffer.clear();
            *is_read = false;
        }
    }

    fn place(&mut self, column: usize) -> Result<&mut (usize, ColumnBuf, bool)> {
        let found = self.columns.binary_search_by_key(&column, |(column, ..)| *column);
        found.ok().and_then(|at| self.columns.get_mut(at)).ok_or_else(|| {
            Error::new(INTERNAL_ERROR, format!("column {column} is looked at, and is not read"))
        })
    }

    /// Returns the values of all rows, and reads them if necessary.
    pub fn read(&mut self, block: &Block<'_>, column: usize) -> Result<&ColumnBuf> {
        let (_, buffer, is_read) = self.place(column)?;
        if !*is_read {
            buffer.clear();
            block.column(column, buffer)?;
            *is_read = true;
        }
        Ok(buffer)
    }

    /// Reads the values of the chosen rows only.
    pub fn read_chosen(&mut self, block: &Block<'_>, column: usize, chosen: &Chosen) -> Result<()> {
        let (_, buffer, is_read) = self.place(column)?;
        buffer.clear();
        *is_read = false;
        Ok(block.column_of(column, chosen.words(), buffer)?)
    }

    /// Whether the values of all rows have been read.
    pub fn is_read(&self, column: usize) -> bool {
        let found = self.columns.binary_search_by_key(&column, |(column, ..)| *column).ok();
        found.and_then(|at| self.columns.get(at)).is_some_and(|(_, _, is_read)| *is_read)
    }

    /// Returns a column that has been read.
    pub fn get(&self, column: usize) -> Option<&ColumnBuf> {
        let at = self.columns.binary_search_by_key(&column, |(column, ..)| *column).ok()?;
        self.columns.get(at).map(|(_, buffer, _)| buffer)
    }
}
