//! The cells of a row, and the rows of a query reduced to two numbers. They suffice to detect an
//! engine that returns nothing, too few rows, or wrong ones.

use std::fmt;

use crate::core::digest::checksum;

/// A value that is passed in or returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// Any integer; a boolean is 0 or 1.
    Int(i64),
    /// A floating-point number, or a returned decimal number.
    Real(f64),
    /// A decimal number that is passed in: a multiple of its smallest unit, and the number of
    /// digits after the point.
    Decimal(i64, u8),
    /// Text. A date is passed in as `2026-11-21`.
    Text(&'a str),
    /// A returned date, in days since 1970.
    Date(i32),
}

/// Odd, so that multiplication is invertible; the first 64 bits of the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of the returned rows. It depends on the order of columns, but not on the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the rows' checksums.
    pub sum: u64,
}

impl Answer {
    /// Adds a row.
    #[inline]
    pub fn add(&mut self, row: &[Cell<'_>]) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(row_checksum(row));
    }

    /// Returns the answer that consists of these rows.
    pub fn of<'c>(rows: impl IntoIterator<Item = &'c [Cell<'c>]>) -> Self {
        let mut answer = Answer::default();
        rows.into_iter().for_each(|row| answer.add(row));
        answer
    }

    /// Returns the answer that consists of the rows of both.
    #[must_use]
    pub fn merge(self, other: Answer) -> Answer {
        Answer { rows: self.rows + other.rows, sum: self.sum.wrapping_add(other.sum) }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, checksum {:016x}", self.rows, self.sum)
    }
}

/// Mixes the cells in their order. Equal numbers have equal checksums, whatever type an engine
/// gives them. Fractions of floating-point numbers are rounded away, because engines add in
/// different orders.
#[inline]
pub fn row_checksum(row: &[Cell<'_>]) -> u64 {
    let mut sum = 1_u64;
    for cell in row {
        let of_cell = match *cell {
            Cell::Null => 0x6e75_6c6c,
            Cell::Int(value) => value as u64,
            Cell::Real(value) => value.round() as i64 as u64,
            Cell::Decimal(units, scale) => (units / 10_i64.pow(u32::from(scale))) as u64,
            Cell::Text(text) => checksum(text.as_bytes()),
            Cell::Date(days) => days as u64,
        };
        sum = (sum ^ of_cell).wrapping_mul(GOLDEN).rotate_left(29);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the order of rows does not matter, but the order of columns and every value do.
    /// Method: answers that differ in one respect.
    #[test]
    fn answers_tell_apart() {
        let (one, two) = ([Cell::Int(1), Cell::Text("a")], [Cell::Int(2), Cell::Null]);
        let both = Answer::of([&one[..], &two[..]]);
        assert_eq!(both, Answer::of([&two[..], &one[..]]));
        assert_eq!(both, Answer::of([&one[..]]).merge(Answer::of([&two[..]])));
        for other in [
            [Cell::Text("a"), Cell::Int(1)],
            [Cell::Int(1), Cell::Text("b")],
            [Cell::Int(-1), Cell::Text("a")],
            [Cell::Null, Cell::Text("a")],
        ] {
            assert_ne!(Answer::of([&other[..]]), Answer::of([&one[..]]), "{other:?}");
        }
        assert_eq!(Answer::of([&[Cell::Int(3)][..]]), Answer::of([&[Cell::Real(3.0)][..]]));
        assert_eq!(both.to_string(), format!("2 rows, checksum {:016x}", both.sum));
    }
}
