//! Workloads: one description for every suite, reproducible from its seed.
//!
//! ```text
//!   Workload ──► Dataset ──► ReadOrder ──► chunks of keys ──► Session::run ──► Digest
//!   (words)      (bytes)     (prepared)    (only lookups       (the store)     (compared with the
//!                                           are left)                           data set's own)
//! ```

mod arena;
mod dataset;
mod distribution;
mod order;
mod records;
mod shape;

pub use arena::{Arena, KeyBatch};
pub use dataset::Dataset;
pub use distribution::{Distribution, Sampler};
pub use order::{CHUNK_KEYS, ReadOrder};
pub use records::{Records, Separator, check_column};
pub use shape::{KeyShape, ValueShape};

use std::fmt;

use cairn_vfs::Rng;
pub use cairn_workload::{Permutation, Zipf};
use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};

/// Default seed of all suites.
pub const DEFAULT_SEED: u64 = 12_345;

/// Shuffles items; every order is equally likely (Fisher, Yates).
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut dyn Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

/// The durability of a write when its call returns. The definitions are the same for every engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Lost if the process ends.
    Memory,
    /// Handed to the kernel: survives the process, but not a power failure.
    Buffered,
    /// On stable storage.
    #[default]
    Sync,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Memory => "memory",
            Durability::Buffered => "buffered",
            Durability::Sync => "sync",
        })
    }
}

/// Whether looked-up keys are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lookup {
    /// All of them are.
    #[default]
    Present,
    /// None of them are, although they resemble the stored ones.
    Absent,
}

impl fmt::Display for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lookup::Present => "present",
            Lookup::Absent => "absent",
        })
    }
}

/// A complete workload: equal values give the same bytes in the same order on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Number of keys, before any write of the workload itself.
    pub entries: u64,
    /// Shape of the keys.
    pub keys: KeyShape,
    /// Shape of the values.
    pub values: ValueShape,
    /// Distribution of the accessed keys.
    pub distribution: Distribution,
    /// Whether accessed keys exist.
    pub lookup: Lookup,
    /// Fraction of reads among the operations, 0 to 1. A constant store supports only 1.
    pub read_fraction: f64,
    /// Threads that issue operations, each in a closed loop.
    pub threads: u32,
    /// Durability of a write when its call returns.
    pub durability: Durability,
    /// Seed of all random draws.
    pub seed: u64,
}

impl Default for Workload {
    /// Returns one thread that reads a hundred thousand short records uniformly.
    fn default() -> Self {
        Workload {
            entries: 100_000,
            keys: KeyShape::default(),
            values: ValueShape::default(),
            distribution: Distribution::Uniform,
            lookup: Lookup::Present,
            read_fraction: 1.0,
            threads: 1,
            durability: Durability::Sync,
            seed: 1,
        }
    }
}

impl Workload {
    /// Checks that the parts are valid by themselves and together.
    ///
    /// Errors: [`Error::Invalid`] naming the part.
    pub fn check(&self) -> Result<()> {
        if self.entries == 0 {
            return Err(Error::invalid("entries 0: expected at least one"));
        }
        if self.threads == 0 {
            return Err(Error::invalid("threads 0: expected at least one"));
        }
        if !(0.0..=1.0).contains(&self.read_fraction) {
            return Err(Error::invalid(format!("read fraction {}: expected 0 to 1", self.read_fraction)));
        }
        self.keys.check()?;
        self.values.check()?;
        self.distribution.check()
    }
}

#[cfg(test)]
mod tests;
