//! What is asked of a store: one description for every suite, reproducible from its seed.
//!
//! ```text
//!   Workload ──► Dataset ──► ReadOrder ──► chunks of keys ──► Session::run ──► Digest
//!   (words)      (bytes)     (prepared)    (nothing to do      (the store)     (compared with the
//!                                           but look up)                        data set's own)
//! ```

mod arena;
mod dataset;
mod distribution;
mod order;
mod permutation;
mod records;
mod shape;
mod zipf;

pub use arena::{Arena, KeyBatch};
pub use dataset::Dataset;
pub use distribution::{Distribution, Sampler};
pub use order::{CHUNK_KEYS, ReadOrder};
pub use permutation::Permutation;
pub use records::{Records, Separator, check_column};
pub use shape::{KeyShape, ValueShape};
pub use zipf::Zipf;

use std::fmt;

use cairn_vfs::Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What all suites draw from where nobody asks for another seed.
pub const DEFAULT_SEED: u64 = 12_345;

/// Puts items into an order that `rng` draws, every one as likely as any other (Fisher, Yates).
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut dyn Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

/// What a write has survived when it returns. Every engine, ours or not, is held to the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Lost with the process.
    Memory,
    /// Handed to the kernel: survives the process, not the power.
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

/// Whether the keys that are looked up are in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lookup {
    /// All of them.
    #[default]
    Present,
    /// None of them, though they look alike.
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

/// One workload, complete: the same value gives the same bytes and the same order on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// How many keys, before any write of the workload itself.
    pub entries: u64,
    /// What keys look like.
    pub keys: KeyShape,
    /// What values look like.
    pub values: ValueShape,
    /// Which keys are asked for.
    pub distribution: Distribution,
    /// Whether those keys exist.
    pub lookup: Lookup,
    /// Share of reads among the operations, 0 to 1. A constant store knows only 1.
    pub read_fraction: f64,
    /// Threads that issue operations, each in a closed loop.
    pub threads: u32,
    /// What a write has survived when it returns.
    pub durability: Durability,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for Workload {
    /// One thread that reads a hundred thousand short records uniformly.
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
    /// Checks that the parts make sense by themselves and together.
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
