//! Cursors over the rows of an access path.

use std::ops::Bound;

use cairn_table::{Direction, KeyRange, RowBuf, RowRef, Scan, View};

use super::ranges::narrow;
use super::{Access, Ranges};
use crate::error::Result;
use crate::expr::{Cells, Env};

/// Iterates over the rows of an access path that meet its condition. It does not keep the access
/// path: the caller passes the same one to each call.
#[derive(Debug)]
pub(crate) struct Cursor {
    view: View,
    /// The remaining ranges, the next one last.
    ranges: Vec<KeyRange>,
    scan: Option<Scan>,
    buffer: RowBuf,
    key: Vec<u8>,
    /// There is at most one row, which has not been looked up yet.
    point: bool,
    /// The current row is that of the scan, not that of the buffer.
    from_scan: bool,
}

impl Cursor {
    /// Begins a cursor.
    ///
    /// Errors: those of computing the bounds.
    pub fn new(
        access: &Access,
        view: &View,
        env: &Env<'_>,
        mut key: Vec<u8>,
        buffer: RowBuf,
    ) -> Result<Cursor> {
        let ranges = access.ranges(env, &mut key)?;
        let point = ranges == Ranges::Point;
        let mut ranges = match ranges {
            Ranges::Some(ranges) => ranges,
            _ => Vec::new(),
        };
        if !access.backward {
            ranges.reverse();
        }
        Ok(Cursor { view: view.clone(), ranges, scan: None, buffer, key, point, from_scan: false })
    }

    /// Returns a cursor over ranges computed elsewhere, the first one first.
    pub fn over(access: &Access, view: &View, mut ranges: Vec<KeyRange>) -> Cursor {
        if !access.backward {
            ranges.reverse();
        }
        let (key, buffer) = (Vec::new(), RowBuf::default());
        Cursor { view: view.clone(), ranges, scan: None, buffer, key, point: false, from_scan: false }
    }

    /// Restricts the cursor to these ranges, which are sorted. Call it before the first row.
    pub fn narrow(&mut self, access: &Access, lookups: &[KeyRange]) {
        narrow(&mut self.ranges, lookups, access.backward);
    }

    /// Advances to the next row; false after the last one.
    ///
    /// Errors: of the table, and of computing the condition.
    pub fn advance(&mut self, access: &Access, env: &Env<'_>) -> Result<bool> {
        loop {
            if !self.step(access)? {
                return Ok(false);
            }
            let Some(residual) = &access.residual else { return Ok(true) };
            let row = Env { row: Cells::Row(self.row(access)?), ..*env };
            if residual.holds(&row)? {
                return Ok(true);
            }
        }
    }

    /// Returns the current row.
    ///
    /// Errors: those of the table.
    pub fn row<'a>(&'a self, access: &'a Access) -> Result<RowRef<'a>> {
        match &self.scan {
            Some(scan) if self.from_scan => Ok(scan.row()?),
            _ => Ok(self.buffer.row(&access.table)),
        }
    }

    fn step(&mut self, access: &Access) -> Result<bool> {
        if self.point {
            self.point = false;
            return Ok(self.view.get_columns(&access.table, &self.key, &access.columns, &mut self.buffer)?);
        }
        loop {
            let Some(scan) = &mut self.scan else {
                let Some((start, end)) = self.ranges.pop() else { return Ok(false) };
                let range = (borrow(&start), borrow(&end));
                let direction = if access.backward { Direction::Backward } else { Direction::Forward };
                // If rows are fetched, only the keys are read from the index.
                let columns: &[usize] = if access.fetches { &[] } else { &access.columns };
                let (table, index) = (&access.table, access.index);
                self.scan = Some(self.view.scan_columns(table, index, range, direction, columns)?);
                continue;
            };
            if !scan.advance()? {
                self.scan = None;
                continue;
            }
            if !access.fetches {
                self.from_scan = true;
                return Ok(true);
            }
            self.key.clear();
            self.key.extend(scan.row()?.key());
            if self.view.get_columns(&access.table, &self.key, &access.columns, &mut self.buffer)? {
                return Ok(true);
            }
        }
    }
}

fn borrow(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
