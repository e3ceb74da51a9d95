//! A row that is assembled from an engine's own representation.

use crate::core::answer::Cell;

/// A row. Only a row with more than eight cells allocates memory.
#[derive(Debug, Clone)]
pub struct Cells<'a> {
    few: [Cell<'a>; 8],
    count: usize,
    many: Vec<Cell<'a>>,
}

impl<'a> Cells<'a> {
    /// Creates a row without cells.
    #[inline]
    pub fn new() -> Self {
        Cells { few: [Cell::Null; 8], count: 0, many: Vec::new() }
    }

    /// Adds a cell.
    #[inline]
    pub fn push(&mut self, cell: Cell<'a>) {
        if let (true, Some(place)) = (self.many.is_empty(), self.few.get_mut(self.count)) {
            *place = cell;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(cell);
    }

    /// Returns all cells, in order.
    #[inline]
    pub fn row(&self) -> &[Cell<'a>] {
        if self.many.is_empty() { self.few.get(..self.count).unwrap_or_default() } else { &self.many }
    }
}

impl Default for Cells<'_> {
    fn default() -> Self {
        Cells::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rows of every length are returned unchanged. Method: lengths around the number of
    /// cells that need no allocation.
    #[test]
    fn rows_of_all_lengths() {
        for length in 0..20 {
            let (mut cells, numbers) = (Cells::default(), 0..length);
            numbers.clone().for_each(|number| cells.push(Cell::Int(number)));
            assert_eq!(cells.row(), numbers.map(Cell::Int).collect::<Vec<_>>());
        }
    }
}
