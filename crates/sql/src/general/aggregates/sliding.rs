//! Totals over the rows of a window frame that rows leave: a queue of two stacks. It avoids
//! subtraction, which restores neither lost digits nor a finite value after an infinite one
//! (Tangwongsan, Hirzel, Schneider, Wu: General Incremental Sliding-Window Aggregation, VLDB 2015).
//!
//! ```text
//!   leaves ◄── earlier: each with the total of it and newer ones │ later: one total ◄── enters
//! ```

use std::fmt;
use std::mem::size_of;

use datafusion::error::{DataFusionError, Result};

/// Up to this many rows are added anew each time, in PostgreSQL's order. With more rows, totals are
/// kept.
const FEW: usize = 32;

/// A total of rows. The default is the total of no rows.
pub(crate) trait Fold: Copy + Default + fmt::Debug + Send + Sync + 'static {
    /// The value of a row that is added.
    type Item: Copy + fmt::Debug + Send + Sync + 'static;

    /// Adds a row. `None` on overflow.
    fn with(self, item: Self::Item) -> Option<Self>;

    /// Adds the rows of another total. `None` on overflow.
    fn joined(self, other: Self) -> Option<Self>;
}

/// The rows of a window frame.
#[derive(Debug)]
pub(crate) struct Queue<F: Fold> {
    /// The next row to leave is the last one. `None` marks a total that overflows; in PostgreSQL's
    /// order of additions it may not.
    earlier: Vec<(F::Item, Option<F>)>,
    later: Vec<F::Item>,
    later_total: Option<F>,
}

impl<F: Fold> Default for Queue<F> {
    fn default() -> Self {
        Queue { earlier: Vec::new(), later: Vec::new(), later_total: Some(F::default()) }
    }
}

impl<F: Fold> Queue<F> {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.earlier.len() + self.later.len()
    }

    /// Adds a row.
    pub fn enter(&mut self, item: F::Item) {
        self.later_total = self.later_total.and_then(|total| total.with(item));
        self.later.push(item);
    }

    /// Removes the oldest row. Each row moves between the stacks once.
    ///
    /// Errors: there is no row.
    pub fn leave(&mut self) -> Result<()> {
        if self.earlier.is_empty() {
            let mut total = Some(F::default());
            for item in self.later.drain(..).rev() {
                total = total.and_then(|total| total.with(item));
                self.earlier.push((item, total));
            }
            self.later_total = Some(F::default());
        }
        match self.earlier.pop() {
            Some(_) => Ok(()),
            None => Err(DataFusionError::Internal("more rows leave a window than are in it".to_owned())),
        }
    }

    /// Returns the total; `None` on overflow.
    pub fn total(&self) -> Option<F> {
        let total = match self.earlier.last() {
            _ if self.len() <= FEW => None,
            None => self.later_total,
            Some((_, earlier)) => {
                earlier.zip(self.later_total).and_then(|(earlier, later)| earlier.joined(later))
            }
        };
        total.or_else(|| {
            let earlier = self.earlier.iter().rev().map(|(item, _)| *item);
            earlier.chain(self.later.iter().copied()).try_fold(F::default(), F::with)
        })
    }

    /// Allocated bytes.
    pub fn allocated(&self) -> usize {
        self.earlier.capacity() * size_of::<(F::Item, Option<F>)>()
            + self.later.capacity() * size_of::<F::Item>()
    }
}
