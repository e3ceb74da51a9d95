//! Looks rows up by values of a column, instead of reading all of a tree.
//!
//! A join that knows the keys of one side asks for the rows of the other side that have one of
//! them. If the table is ordered by the column, the rows of a key are adjacent. Otherwise an index
//! lists the keys of its rows. These keys are sorted first, so that the rows are read as a part of
//! the table like any other, in the table's order and divided among threads (PostgreSQL's bitmap
//! scan, with keys in place of pages). The caller receives ranges and need not know how they were
//! found.

use cairn_table::{Direction, KeyRange, View};

use super::Access;
use super::ranges::all_with;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::{Cells, Env, NoContext};

/// The number of rows that can be read in order in the time of one lookup.
const ROWS_A_LOOKUP: u64 = 256;

/// This many lookups are always worthwhile.
const FEW: usize = 4;

impl Access {
    /// Whether [`Access::lookups`] can find rows by a column.
    pub fn can_look_up(&self, column: usize) -> bool {
        self.is_next(column) || self.index_on(column).is_some()
    }

    /// Returns the number of lookups that take no longer than reading this many rows.
    pub fn lookups_worth(rows: u64) -> usize {
        usize::try_from(rows / ROWS_A_LOOKUP).unwrap_or(usize::MAX).max(FEW)
    }

    /// Returns sorted ranges of the tree that contain all of its rows with one of these values in a
    /// column, and few others. `None` if that is not faster than reading all of its approximately
    /// `rows` rows. Values that the column cannot hold, and NULL, match no row.
    ///
    /// Errors: those of the table.
    pub fn lookups(
        &self,
        view: &View,
        column: usize,
        values: &[Datum],
        rows: u64,
    ) -> Result<Option<Vec<KeyRange>>> {
        let most = Access::lookups_worth(rows);
        if values.len() > most {
            return Ok(None);
        }
        if self.is_next(column) {
            return self.ranges_of(column, values, &Env::new(Cells::None, &[], &NoContext));
        }
        match self.index_on(column) {
            Some(index) => self.keys_in(view, index, column, values, most),
            None => Ok(None),
        }
    }

    /// Whether the tree is ordered by a column, after the columns with fixed values.
    fn is_next(&self, column: usize) -> bool {
        self.key_columns().get(self.range.prefix.len()).is_some_and(|next| next.column == column)
    }

    /// Returns an index that begins with a column, if this access path reads the table itself.
    fn index_on(&self, column: usize) -> Option<usize> {
        let indexes = self.table.def().indexes.iter();
        let begins = |index: &cairn_table::schema::IndexDef| {
            index.columns.first().is_some_and(|first| first.column == column)
        };
        let mut found = indexes.enumerate().filter(|(_, index)| self.index.is_none() && begins(index));
        found.next().map(|(at, _)| at)
    }

    /// Returns the keys of the table's rows that an index lists for these values; `None` if there
    /// are more than `most`.
    fn keys_in(
        &self,
        view: &View,
        index: usize,
        column: usize,
        values: &[Datum],
        most: usize,
    ) -> Result<Option<Vec<KeyRange>>> {
        let of_index = Access::of_tree(&self.table, Some(index));
        let env = Env::new(Cells::None, &[], &NoContext);
        let Some(ranges) = of_index.ranges_of(column, values, &env)? else { return Ok(None) };
        let mut keys = Vec::new();
        for (start, end) in &ranges {
            let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            let mut scan = view.scan_columns(&self.table, Some(index), range, Direction::Forward, &[])?;
            while let Some(row) = scan.next()? {
                if keys.len() == most {
                    return Ok(None);
                }
                keys.push(row.key().to_vec());
            }
        }
        keys.sort_unstable();
        Ok(Some(keys.iter().map(|key| all_with(key)).collect()))
    }
}
