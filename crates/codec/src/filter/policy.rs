//! Which filter, and how large.

use super::{bloom, ribbon};
use crate::{Error, Result};

/// The kinds of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FilterKind {
    /// A Bloom filter in cache lines (Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient
    /// Bloom Filters*, 2007): built and asked fastest.
    #[default]
    Bloom,
    /// A homogeneous ribbon filter (Dillinger, Walzer, *Ribbon filter: practically smaller than
    /// Bloom and Xor*, 2021): 28 % smaller at the same rate of false positives, ten times slower to
    /// build, twice as slow to ask. For what is written once and large: the lowest levels.
    Ribbon,
}

/// The kind and the size of filters. How many bits which level should get is the caller's to
/// decide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterPolicy {
    /// The kind.
    pub kind: FilterKind,
    /// Bits of the filter for each key: any number of [`FilterPolicy::BITS_PER_KEY_MIN`] to
    /// [`FilterPolicy::BITS_PER_KEY_MAX`], fractions included.
    pub bits_per_key: f64,
}

impl FilterPolicy {
    /// The fewest bits a key that make sense.
    pub const BITS_PER_KEY_MIN: f64 = 0.5;
    /// The most bits a key: one false positive in some millions.
    pub const BITS_PER_KEY_MAX: f64 = 32.0;

    /// Bloom filters of so many bits a key.
    pub fn bloom(bits_per_key: f64) -> Self {
        FilterPolicy { kind: FilterKind::Bloom, bits_per_key }
    }

    /// Ribbon filters of so many bits a key.
    pub fn ribbon(bits_per_key: f64) -> Self {
        FilterPolicy { kind: FilterKind::Ribbon, bits_per_key }
    }

    /// Errors: [`Error::Filter`] when the bits are out of range or not a number.
    pub fn check(self) -> Result<()> {
        let range = FilterPolicy::BITS_PER_KEY_MIN..=FilterPolicy::BITS_PER_KEY_MAX;
        if range.contains(&self.bits_per_key) {
            return Ok(());
        }
        let what =
            format!("{} bits per key, expected {} to {}", self.bits_per_key, range.start(), range.end());
        Err(Error::Filter { what })
    }

    /// The chance that an absent key passes, for a filter of many keys.
    pub fn false_positive_rate(self) -> f64 {
        let bits = self.clamped().bits_per_key;
        match self.kind {
            FilterKind::Bloom => bloom::false_positive_rate(bits, bloom::best_probes(bits)),
            FilterKind::Ribbon => ribbon::false_positive_rate(bits),
        }
    }

    pub(super) fn clamped(self) -> Self {
        let bits =
            if self.bits_per_key.is_nan() { FilterPolicy::BITS_PER_KEY_MIN } else { self.bits_per_key };
        let bits_per_key = bits.clamp(FilterPolicy::BITS_PER_KEY_MIN, FilterPolicy::BITS_PER_KEY_MAX);
        FilterPolicy { bits_per_key, ..self }
    }
}
