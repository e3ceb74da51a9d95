//! Draws that repeat themselves.

use cairn_vfs::{Rng, SeededRng};

/// Draws of a seed.
#[derive(Debug)]
pub struct Draw(SeededRng);

impl Draw {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Draw(SeededRng::new(seed))
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.below(count.max(1) as u64) as usize
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        least + self.0.below((most - least + 1).max(1) as u64) as i64
    }

    /// True that often in a hundred times.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    /// One of these; there is at least one.
    pub fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of.get(self.below(of.len())).copied().unwrap_or_default()
    }

    /// One of these, by its place.
    pub fn one<'t, T>(&mut self, of: &'t [T]) -> Option<&'t T> {
        of.get(self.below(of.len()))
    }
}
