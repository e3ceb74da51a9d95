//! Compares answers of TPC-H, some of which come from engines with decimal numbers and others from
//! engines with floating-point numbers.

use crate::core::answer::Cell;
use crate::core::time::date_text;

/// TPC-H tolerates a hundredth in sums of money. For larger numbers, a millionth covers the effect
/// of adding in another order.
const ABSOLUTE: f64 = 0.01;
const RELATIVE: f64 = 1e-6;

/// A stored value.
#[derive(Debug, Clone, PartialEq)]
enum StoredCell {
    Null,
    Number(f64),
    Text(String),
}

/// The rows of an answer, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grid(Vec<Vec<StoredCell>>);

impl Grid {
    /// Adds a row.
    pub fn add(&mut self, row: &[Cell<'_>]) {
        let kept = |cell: &Cell<'_>| match *cell {
            Cell::Null => StoredCell::Null,
            Cell::Int(value) => StoredCell::Number(value as f64),
            Cell::Real(value) => StoredCell::Number(value),
            Cell::Decimal(units, scale) => StoredCell::Number(units as f64 / 10_f64.powi(i32::from(scale))),
            Cell::Text(text) => StoredCell::Text(text.to_owned()),
            Cell::Date(days) => StoredCell::Text(date_text(days)),
        };
        self.0.push(row.iter().map(kept).collect());
    }

    /// Returns the rows sorted by their texts, for rows whose order `ORDER BY` does not determine.
    fn sorted(&self) -> Vec<&Vec<StoredCell>> {
        let texts = |row: &Vec<StoredCell>| -> Vec<String> {
            let text =
                |kept: &StoredCell| if let StoredCell::Text(text) = kept { Some(text.clone()) } else { None };
            row.iter().filter_map(text).collect()
        };
        let mut rows: Vec<&Vec<StoredCell>> = self.0.iter().collect();
        rows.sort_by_cached_key(|row| texts(row));
        rows
    }
}

/// Returns the first difference between an answer and the expected one, or `None` if they agree.
pub fn differs(expected: &Grid, got: &Grid) -> Option<String> {
    if expected.0.len() != got.0.len() {
        return Some(format!("expected {} rows, got {}", expected.0.len(), got.0.len()));
    }
    let place = first(expected.0.iter().zip(&got.0))?;
    // Rows with equal sort keys may come in any order.
    first(expected.sorted().into_iter().zip(got.sorted())).map(|_| place)
}

fn first<'g>(mut rows: impl Iterator<Item = (&'g Vec<StoredCell>, &'g Vec<StoredCell>)>) -> Option<String> {
    let differ = |(expected, got): &(&Vec<StoredCell>, &Vec<StoredCell>)| {
        expected.len() != got.len() || expected.iter().zip(got.iter()).any(|(a, b)| !alike(a, b))
    };
    rows.find(differ).map(|(expected, got)| format!("expected {expected:?}, got {got:?}"))
}

fn alike(a: &StoredCell, b: &StoredCell) -> bool {
    match (a, b) {
        (StoredCell::Number(a), StoredCell::Number(b)) => {
            (a - b).abs() <= ABSOLUTE.min(a.abs() * 1e-3).max(a.abs() * RELATIVE)
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[&[Cell<'_>]]) -> Grid {
        let mut grid = Grid::default();
        rows.iter().for_each(|row| grid.add(row));
        grid
    }

    /// Goal: differences due to rounding and undetermined order are tolerated, and no others.
    #[test]
    fn rounding_and_order_are_tolerated() {
        let (a, b) = ([Cell::Text("a"), Cell::Real(1e9)], [Cell::Text("b"), Cell::Int(7)]);
        let right = grid(&[&a, &b]);
        assert_eq!(differs(&right, &right), None);
        assert_eq!(differs(&right, &grid(&[&b, &a])), None);
        let near = [Cell::Text("a"), Cell::Real(1e9 + 100.0)];
        assert_eq!(differs(&right, &grid(&[&near, &b])), None);
        let far = [Cell::Text("a"), Cell::Real(1.00001e9)];
        for wrong in [
            grid(&[&far, &b]),
            grid(&[&a]),
            grid(&[&a, &[Cell::Text("b"), Cell::Null]]),
            grid(&[&a, &b[..1]]),
        ] {
            assert!(differs(&right, &wrong).is_some(), "{wrong:?}");
        }
        assert_eq!(differs(&grid(&[&[Cell::Date(0)]]), &grid(&[&[Cell::Text("1970-01-01")]])), None);
        assert!(differs(&grid(&[&[Cell::Real(0.05)]]), &grid(&[&[Cell::Real(0.06)]])).is_some());
    }
}
