//! The kind and the size of filters.

use super::{bloom, ribbon};
use crate::{Error, Result};

/// The kinds of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FilterKind {
    /// A Bloom filter in cache lines (Putze, Sanders, Singler, *Cache-, Hash- and Space-Efficient
    /// Bloom Filters*, 2007): fastest to build and to query.
    #[default]
    Bloom,
    /// A homogeneous ribbon filter (Dillinger, Walzer, *Ribbon filter: practically smaller than
    /// Bloom and Xor*, 2021): 28 % smaller at the same false positive rate, ten times slower to
    /// build, twice as slow to query. For large data that is written once: the lowest levels.
    Ribbon,
}

const _: () = assert!(FilterPolicy::BITS_PER_KEY_MIN > 0.0);
const _: () = assert!(FilterPolicy::BITS_PER_KEY_MIN < FilterPolicy::BITS_PER_KEY_MAX);

/// The kind and the size of filters. The caller decides how many bits each level gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterPolicy {
    /// The kind.
    pub kind: FilterKind,
    /// Bits of the filter per key, from [`FilterPolicy::BITS_PER_KEY_MIN`] to
    /// [`FilterPolicy::BITS_PER_KEY_MAX`], including fractions.
    pub bits_per_key: f64,
}

impl FilterPolicy {
    /// The minimum number of bits per key that makes sense.
    pub const BITS_PER_KEY_MIN: f64 = 0.5;
    /// The maximum number of bits per key: one false positive in several million.
    pub const BITS_PER_KEY_MAX: f64 = 32.0;

    /// Returns a policy of Bloom filters with this many bits per key.
    pub fn bloom(bits_per_key: f64) -> Self {
        FilterPolicy { kind: FilterKind::Bloom, bits_per_key }
    }

    /// Returns a policy of ribbon filters with this many bits per key.
    pub fn ribbon(bits_per_key: f64) -> Self {
        FilterPolicy { kind: FilterKind::Ribbon, bits_per_key }
    }

    /// Checks the policy. Errors: [`Error::Filter`] when the bits are out of range or not a number.
    pub fn check(self) -> Result<()> {
        let range = FilterPolicy::BITS_PER_KEY_MIN..=FilterPolicy::BITS_PER_KEY_MAX;
        if range.contains(&self.bits_per_key) {
            return Ok(());
        }
        let what =
            format!("{} bits per key, expected {} to {}", self.bits_per_key, range.start(), range.end());
        Err(Error::Filter { what })
    }

    /// Returns the probability that an absent key passes a filter of many keys.
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
