//! What the rows of a window come to, where rows leave it: a queue of two stacks, so that nothing
//! has to be taken away again, which neither brings back the digits that were lost nor an infinite
//! number (Tangwongsan, Hirzel, Schneider, Wu: General Incremental Sliding-Window Aggregation, VLDB
//! 2015).
//!
//! ```text
//!   leaves ◄── earlier: each with the total of itself and those behind │ later: one total ◄── enters
//! ```

use std::fmt;
use std::mem::size_of;

use datafusion::error::{DataFusionError, Result};

/// So many rows are taken together anew each time, in PostgreSQL's order. Of more the totals are
/// kept.
const FEW: usize = 32;

/// A total of rows. The default is that of none.
pub(super) trait Fold: Copy + Default + fmt::Debug + Send + Sync + 'static {
    /// What counts of a row.
    type Item: Copy + fmt::Debug + Send + Sync + 'static;

    /// With one more row. `None` where that is beyond the type.
    fn with(self, item: Self::Item) -> Option<Self>;

    /// With the rows of another total. `None` as there.
    fn joined(self, other: Self) -> Option<Self>;
}

/// The rows of a window.
#[derive(Debug)]
pub(super) struct Queue<F: Fold> {
    /// The next one to leave is the last; `None` for totals that are beyond the type, which
    /// PostgreSQL's order may keep within.
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
    /// How many there are.
    pub fn len(&self) -> usize {
        self.earlier.len() + self.later.len()
    }

    /// One more.
    pub fn enter(&mut self, item: F::Item) {
        self.later_total = self.later_total.and_then(|total| total.with(item));
        self.later.push(item);
    }

    /// One less, the first that came. Each row is moved once in its time.
    ///
    /// Errors: there is none.
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

    /// Their total; `None` where it is beyond the type.
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

    /// Bytes that it has allocated.
    pub fn allocated(&self) -> usize {
        self.earlier.capacity() * size_of::<(F::Item, Option<F>)>()
            + self.later.capacity() * size_of::<F::Item>()
    }
}
