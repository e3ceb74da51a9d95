//! Reproducible random draws.

use cairn_vfs::{Rng, SeededRng};

/// A sequence of draws from a seed.
#[derive(Debug)]
pub struct Draw(SeededRng);

impl Draw {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Draw(SeededRng::new(seed))
    }

    /// Returns a number below `count`, which must not be 0.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.below(count.max(1) as u64) as usize
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.0.below((most - least + 1).max(1) as u64) as i64
    }

    /// Returns true with a probability of `percent` %.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// Returns one of the words; there must be at least one.
    pub fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of.get(self.below(of.len())).copied().unwrap_or_default()
    }

    /// Returns one of the elements; `None` if there are none.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        of.get(self.below(of.len()))
    }
}
