//! Rows that are looked up by values of a column, where otherwise all of a tree would be read.
//!
//! A join that knows the keys of one side asks for the rows of the other side that have one of
//! them. In the order of its own tree a table has those of a key together. Elsewhere an index has
//! them, and says the keys of their rows: these are put in order first, so that what has been found
//! is read as a part of the table like any other, in the table's order and divided among threads as
//! that is (the bitmap scans of PostgreSQL, with keys in the place of pages). Whoever is given
//! ranges by this need not know how they came about.

use cairn_table::{Direction, KeyRange, View};

use super::Access;
use super::ranges::all_with;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::{Cells, Env, NoContext};

/// As many rows are read in order while one is looked up.
const ROWS_A_LOOKUP: u64 = 256;

/// So many are always looked up.
const FEW: usize = 4;

impl Access {
    /// Whether [`Access::lookups`] may find rows by a column.
    pub fn can_look_up(&self, column: usize) -> bool {
        self.is_next(column) || self.index_on(column).is_some()
    }

    /// How many lookups are not slower than reading so many rows.
    pub fn lookups_worth(rows: u64) -> usize {
        usize::try_from(rows / ROWS_A_LOOKUP).unwrap_or(usize::MAX).max(FEW)
    }

    /// Parts of its tree, in order, that have all of its rows with one of these values in a column,
    /// and few others. `None` where that is not faster than reading the `rows` rows that it has,
    /// about. Values of other types than the column's are none of it, and NULL is not either.
    ///
    /// Errors: of the table.
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

    /// Whether its tree is in the order of a column, behind those with one value each.
    fn is_next(&self, column: usize) -> bool {
        self.key_columns().get(self.range.prefix.len()).is_some_and(|next| next.column == column)
    }

    /// An index that begins with a column, for who reads the table itself.
    fn index_on(&self, column: usize) -> Option<usize> {
        let indexes = self.table.def().indexes.iter();
        let begins = |index: &cairn_table::schema::IndexDef| {
            index.columns.first().is_some_and(|first| first.column == column)
        };
        let mut found = indexes.enumerate().filter(|(_, index)| self.index.is_none() && begins(index));
        found.next().map(|(at, _)| at)
    }

    /// The keys of the table's rows that an index has for these values; `None` where there are more
    /// than so many.
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
