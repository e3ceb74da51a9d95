//! The rows that an access finds.

use std::ops::Bound;

use cairn_table::{Direction, KeyRange, RowBuf, RowRef, Scan, View};

use super::ranges::narrow;
use super::{Access, Ranges};
use crate::error::Result;
use crate::expr::{Cells, Env};

/// Goes over the rows of an access that meet its condition. It does not keep the access: whoever
/// calls it gives it the same one each time.
#[derive(Debug)]
pub(crate) struct Cursor {
    view: View,
    /// Those that are left, the next one last.
    ranges: Vec<KeyRange>,
    scan: Option<Scan>,
    buffer: RowBuf,
    key: Vec<u8>,
    /// There is one row at most, and it has not been looked for.
    point: bool,
    /// Where the row is.
    from_scan: bool,
}

impl Cursor {
    /// Begins.
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

    /// Over ranges that somebody else has found, the first one first.
    pub fn over(access: &Access, view: &View, mut ranges: Vec<KeyRange>) -> Cursor {
        if !access.backward {
            ranges.reverse();
        }
        let (key, buffer) = (Vec::new(), RowBuf::default());
        Cursor { view: view.clone(), ranges, scan: None, buffer, key, point: false, from_scan: false }
    }

    /// Only rows of these ranges count, which are in order. Before the first row.
    pub fn narrow(&mut self, access: &Access, lookups: &[KeyRange]) {
        narrow(&mut self.ranges, lookups, access.backward);
    }

    /// Goes to the next row; false after the last one.
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

    /// The row that it is at.
    ///
    /// Errors: of the table.
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
                // Of rows that are fetched the index gives the keys only.
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
