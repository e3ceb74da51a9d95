//! Iterates over the leaves of an access path's ranges, and chooses the rows that meet its
//! conditions.

use cairn_table::row::Type;
use cairn_table::{Block, BlockScan, ColumnBuf, Direction, KeyRange, View};
use cairn_vfs::sync::Arc;

use super::Access;
use super::columnar::{Bounds, Buffers, Chooser, Chosen, Members};
use super::ranges::narrow;
use crate::error::Result;
use crate::expr::Env;

/// Leaves that are read column by column.
#[derive(Debug)]
pub(crate) struct Leaves {
    view: View,
    /// The remaining ranges, the next one last.
    ranges: Vec<KeyRange>,
    scan: Option<BlockScan>,
    /// The columns that are read.
    read: Vec<usize>,
    condition: Option<Condition>,
}

/// The conditions on rows, with the buffers to evaluate them.
#[derive(Debug)]
struct Condition {
    bounds: Bounds,
    buffers: Buffers,
    chosen: Chosen,
}

/// The rows of a leaf.
pub(crate) struct Leaf<'l> {
    block: Block<'l>,
    /// `None` if all rows are chosen.
    chosen: Option<&'l Chosen>,
    rows: usize,
}

impl Leaves {
    /// Returns the leaves of `ranges`, the first one first. `None` if rows must be read one by one,
    /// because they are fetched through an index or the condition has another form. `read` are the
    /// columns to read, and `later` those of them for which [`Leaves::and_among`] may be called.
    ///
    /// Errors: those of computing the conditions' values.
    pub fn new(
        access: &Access,
        view: &View,
        mut ranges: Vec<KeyRange>,
        mut read: Vec<usize>,
        later: &[(usize, Type)],
        env: &Env<'_>,
    ) -> Result<Option<Leaves>> {
        let Some(conditions) = access.conditions.as_ref().filter(|_| !access.fetches) else {
            return Ok(None);
        };
        if !access.backward {
            ranges.reverse();
        }
        let mut condition = None;
        if conditions.columns().next().is_some() || !later.is_empty() {
            read.extend(conditions.columns().map(|(column, _)| column));
            let bounds = match conditions.bind(env)? {
                Chooser::Rows(bounds) => bounds,
                Chooser::Never => {
                    ranges.clear();
                    Bounds::default()
                }
                Chooser::Unknown => return Ok(None),
            };
            let buffers = Buffers::new(conditions.columns().chain(later.iter().copied()));
            condition = Some(Condition { bounds, buffers, chosen: Chosen::default() });
        }
        Ok(Some(Leaves { view: view.clone(), ranges, scan: None, read, condition }))
    }

    /// Whether a leaf has been read.
    pub fn have_begun(&self) -> bool {
        self.scan.is_some()
    }

    /// Restricts the leaves to these ranges, which are sorted.
    pub fn narrow(&mut self, access: &Access, lookups: &[KeyRange]) {
        narrow(&mut self.ranges, lookups, access.backward);
    }

    /// Restricts the rows of the remaining leaves to those whose value in a column is one of these
    /// numbers.
    pub fn and_among(&mut self, column: usize, members: &Arc<Members>) {
        if members.range().is_none() {
            self.ranges.clear();
            self.scan = None;
        } else if let Some(condition) = &mut self.condition {
            condition.bounds.and_among(column, Arc::clone(members));
        }
    }

    /// Passes the next leaf that has rows to `take`; `None` after the last one.
    ///
    /// Errors: of the table, and those of `take`.
    pub fn next_with<T>(
        &mut self,
        access: &Access,
        take: impl FnOnce(&Leaf<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => {
                    let Some((start, end)) = self.ranges.pop() else { return Ok(None) };
                    let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
                    let direction = if access.backward { Direction::Backward } else { Direction::Forward };
                    let (table, index) = (&access.table, access.index);
                    self.scan.insert(self.view.blocks(table, index, range, direction, &self.read)?)
                }
            };
            let Some(block) = scan.next()? else {
                self.scan = None;
                continue;
            };
            let mut leaf = Leaf { rows: block.rows(), block, chosen: None };
            if let Some(condition) = &mut self.condition {
                condition.bounds.choose(&leaf.block, &mut condition.buffers, &mut condition.chosen)?;
                let count = condition.chosen.count();
                if count == 0 {
                    continue;
                }
                leaf.chosen = (count < leaf.rows).then_some(&condition.chosen);
                leaf.rows = count;
            }
            return take(&leaf).map(Some);
        }
    }
}

impl Leaf<'_> {
    /// The number of rows; never 0.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a column of the rows to `to`.
    ///
    /// Errors: those of the table.
    pub fn read(&self, column: usize, to: &mut ColumnBuf) -> Result<()> {
        match self.chosen {
            None => self.block.column(column, to)?,
            Some(chosen) => self.block.column_of(column, chosen.words(), to)?,
        }
        Ok(())
    }
}
