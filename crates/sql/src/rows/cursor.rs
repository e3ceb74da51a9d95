//! The position of a cursor, and the steps of FETCH and MOVE.

use super::{RowView, Source};
use crate::error::{Error, Result};
use crate::expr::Context;
use crate::sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE;
use crate::syntax::Direction;

/// The rows of a cursor.
#[derive(Debug)]
pub(crate) struct CursorRows {
    pub source: Source,
    /// The current row, counted from 1; 0 before the first one.
    at: u64,
    /// It is after the last row.
    is_past: bool,
    /// It can move backward: all of its rows are materialized.
    scrolls: bool,
}

/// One FETCH or MOVE.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The cursor that it belongs to.
    pub name: String,
    pub rows: CursorRows,
    steps: Steps,
}

/// The remaining steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// Skips some rows, and returns some.
    On { skip: u64, give: u64 },
    /// Returns rows by their numbers, in steps of 1 or -1, and stops at a position: 0 is before the
    /// first row, the number of rows plus 1 is after the last.
    To { next: i64, give: i64, step: i64, end: i64 },
}

impl CursorRows {
    /// Returns the rows of a cursor before its first row.
    pub fn new(source: Source, scrolls: bool) -> Self {
        CursorRows { source, at: 0, is_past: false, scrolls }
    }

    /// Whether there is a current row.
    fn is_on_row(&self) -> bool {
        self.at > 0 && !self.is_past
    }

    /// Returns the count of a MOVE that does not change the position; `None` for others. PostgreSQL
    /// allows these for any cursor.
    pub fn standing(&self, direction: Direction) -> Option<u64> {
        match direction {
            Direction::Forward(0) | Direction::Backward(0) | Direction::Relative(0) => {
                Some(self.is_on_row().into())
            }
            Direction::BackwardAll if self.at == 0 && !self.is_past => Some(0),
            _ => None,
        }
    }

    /// Advances to the next row; false after the last one.
    fn advance(&mut self, context: &dyn Context) -> Result<bool> {
        if self.is_past {
            return Ok(false);
        }
        let is_there = self.source.advance(context)?;
        match is_there {
            true => self.at += 1,
            false => self.is_past = true,
        }
        Ok(is_there)
    }

    /// Errors: 55000 for moving backward where that is not possible.
    fn steps(&self, direction: Direction) -> Result<Steps> {
        match &self.source {
            Source::Materialized(materialized) if self.scrolls => {
                let rows = i64::try_from(materialized.rows()).unwrap_or(i64::MAX - 1);
                let here = if self.is_past { rows + 1 } else { i64::try_from(self.at).unwrap_or(rows) };
                Ok(among(rows, here, direction))
            }
            _ => self.onwards(direction),
        }
    }

    /// Returns the steps for a cursor that can only move forward.
    fn onwards(&self, direction: Direction) -> Result<Steps> {
        let on = |skip: u64, give: u64| Ok(Steps::On { skip, give });
        // PostgreSQL counts one more position after the last row.
        let here = self.at.saturating_add(self.is_past.into());
        match direction {
            Direction::ForwardAll => on(0, u64::MAX),
            Direction::Forward(count) if count > 0 => on(0, count.unsigned_abs()),
            Direction::Backward(count) if count < 0 => on(0, count.unsigned_abs()),
            Direction::Relative(count) if count > 0 => on(count.unsigned_abs() - 1, 1),
            Direction::Absolute(row) if row > 0 && row.unsigned_abs() > here => {
                on(row.unsigned_abs() - self.at - 1, 1)
            }
            Direction::Absolute(0) if here == 0 => on(0, 0),
            // The current row cannot be read again.
            Direction::Forward(0) | Direction::Relative(0) if !self.is_on_row() => on(0, 0),
            _ => {
                let what = "cursor can only scan forward";
                let hint = "Declare it with SCROLL option to enable backward scan.";
                Err(Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, what).with_hint(hint))
            }
        }
    }
}

/// Returns the steps from the position `here` among `rows` rows.
fn among(rows: i64, here: i64, direction: Direction) -> Steps {
    let past = rows + 1;
    // The rows forward or backward from `here`, and the final position.
    let walk = |count: i64, step: i64| {
        let room = if step > 0 { rows - here } else { here - 1 };
        let end =
            if step > 0 { here.saturating_add(count).min(past) } else { (here - count.min(here)).max(0) };
        Steps::To { next: here + step, give: count.min(room).max(0), step, end }
    };
    let only = |row: i64| {
        let end = row.clamp(0, past);
        Steps::To { next: end, give: i64::from((1..past).contains(&end)), step: 1, end }
    };
    match direction {
        Direction::ForwardAll => walk(i64::MAX, 1),
        Direction::BackwardAll => walk(i64::MAX, -1),
        Direction::Forward(0) => only(here),
        Direction::Forward(count) if count > 0 => walk(count, 1),
        Direction::Forward(count) => walk(count.saturating_neg(), -1),
        Direction::Backward(count) => among(rows, here, Direction::Forward(count.saturating_neg())),
        Direction::Absolute(row) if row < 0 => only(past.saturating_add(row)),
        Direction::Absolute(row) => only(row),
        Direction::Relative(count) => only(here.saturating_add(count)),
    }
}

impl Walk {
    /// Begins to move a cursor in a direction.
    ///
    /// Errors: 55000 for moving backward where that is not possible.
    pub fn new(name: &str, rows: CursorRows, direction: Direction) -> Result<Walk> {
        let steps = rows.steps(direction)?;
        Ok(Walk { name: name.to_owned(), rows, steps })
    }

    /// Advances to the next row to return; false after the last one.
    ///
    /// Errors: those of the rows. The cursor cannot be read after an error.
    pub fn advance(&mut self, context: &dyn Context) -> Result<bool> {
        match &mut self.steps {
            Steps::On { skip, give } => {
                while *skip > 0 {
                    *skip -= 1;
                    if !self.rows.advance(context)? {
                        return Ok(false);
                    }
                }
                if *give == 0 {
                    return Ok(false);
                }
                *give -= 1;
                self.rows.advance(context)
            }
            Steps::To { next, give, step, end } => {
                let (row, is_row) = if *give > 0 { (*next, true) } else { (*end, false) };
                (*next, *give) = (*next + *step, *give - i64::from(is_row));
                let Source::Materialized(materialized) = &mut self.rows.source else { return Ok(false) };
                let row = u64::try_from(row).unwrap_or(0);
                self.rows.is_past = row > materialized.rows();
                self.rows.at = row.min(materialized.rows());
                if is_row { materialized.go_to(row) } else { Ok(false) }
            }
        }
    }

    /// Moves to the end, and returns the number of rows that FETCH would have returned.
    ///
    /// Errors: as [`Walk::advance`].
    pub fn pass(&mut self, context: &dyn Context) -> Result<u64> {
        let mut rows = 0;
        while self.advance(context)? {
            rows += 1;
        }
        Ok(rows)
    }

    /// Returns the current row.
    ///
    /// Errors: rows that do not match the catalog.
    pub fn view(&self) -> Result<RowView<'_>> {
        self.rows.source.view()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: FETCH returns the same rows and ends at the same position as in PostgreSQL. Method:
    /// all directions from all positions of a few rows, compared with a direct transcription of the
    /// manual.
    #[test]
    fn all_ways_among_few_rows() {
        for rows in 0..4_i64 {
            for here in 0..=rows + 1 {
                let is_row = |row: &i64| (1..=rows).contains(row);
                for count in -6..=6_i64 {
                    let onwards: Vec<i64> = match count {
                        0 => vec![here],
                        _ => (1..=count.abs()).map(|step| here + step * count.signum()).collect(),
                    };
                    let expected = |places: Vec<i64>| {
                        let end = places.last().map_or(here, |last| (*last).clamp(0, rows + 1));
                        (places.into_iter().filter(is_row).collect::<Vec<_>>(), end)
                    };
                    for (direction, places) in [
                        (Direction::Forward(count), onwards.clone()),
                        (Direction::Backward(-count), onwards),
                        (Direction::Relative(count), vec![here + count]),
                        (Direction::Absolute(count), vec![if count < 0 { rows + 1 + count } else { count }]),
                        (Direction::ForwardAll, (here + 1..=rows + 1).chain([rows + 1]).collect()),
                        (Direction::BackwardAll, (0..here).rev().chain([0]).collect()),
                    ] {
                        let Steps::To { next, give, step, end } = among(rows, here, direction) else {
                            panic!()
                        };
                        let given: Vec<i64> = (0..give).map(|at| next + at * step).collect();
                        assert_eq!((given, end), expected(places), "{direction:?} from {here} of {rows}");
                    }
                }
            }
        }
    }
}
