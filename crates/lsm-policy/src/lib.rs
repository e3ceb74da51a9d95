//! Compaction policies: which tables of an LSM tree are merged, and when. Each is a pure function
//! from a [`State`] to a [`Job`].
//!
//! A policy knows no files, threads or clocks. `cairn-kv` asks it after every change and runs the
//! returned job. The simulator, `cairn-sim`, asks the same code about trees that exist only in the
//! simulation. Keys are any ordered type ([`Key`]): byte strings in the store, numbers of sampled
//! keys in the simulator. `docs/src/design/lsm-policy.md` has the reasons.
//!
//! Any policy accepts any state, so a store can be opened with a different policy than the one it
//! was written with.
//!
//! | policy | writes | space | lookups |
//! |---|---|---|---|
//! | [`Leveled`] | more | least | few runs |
//! | [`LazyLeveled`] | fewer | some | more runs, long scans as leveled |
//! | [`Universal`] | fewest | up to twice | more runs |
//! | [`Fifo`] | none | bounded | all runs; for data that is discarded by age |
//!
//! ```
//! use cairn_lsm_policy::{LevelInfo, State, Strategy, StrategyOptions};
//!
//! let policy = StrategyOptions::default().build()?;
//! let state = State::<&[u8]> { levels: vec![LevelInfo::default(); 7], ..State::default() };
//! assert_eq!(policy.pick(&state), None);
//! # Ok::<(), cairn_lsm_policy::InvalidOption>(())
//! ```
#![forbid(unsafe_code)]

pub mod bytes;
mod fifo;
mod job;
mod lazy;
mod leveled;
mod manual;
mod options;
mod overlap;
mod policy;
mod scores;
mod state;
#[cfg(test)]
mod tests;
mod universal;

use std::fmt::Debug;

pub use fifo::Fifo;
pub use job::{Input, Job, JobKind, Reason};
pub use lazy::LazyLeveled;
pub use leveled::{LevelTargets, Leveled};
pub use manual::{Manual, ManualStep};
pub use options::{
    FifoOptions, InvalidOption, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions,
};
pub use policy::Policy;
pub use scores::{LevelScore, Scores};
pub use state::{LevelInfo, RunInfo, RunningJob, State, TableInfo};
pub use universal::Universal;

/// A key as a policy sees it: something to compare and to copy.
pub trait Key: Copy + Ord + Debug {
    /// A key that outlives the state, as jobs have them.
    type Owned: Clone + Debug + PartialEq;

    /// Returns the key as a job keeps it.
    fn owned(self) -> Self::Owned;
}

impl Key for &[u8] {
    type Owned = Vec<u8>;

    fn owned(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Key for u32 {
    type Owned = u32;

    fn owned(self) -> u32 {
        self
    }
}

/// Chooses compactions. Deterministic: equal states give equal answers.
pub trait Strategy<K: Key>: Debug + Send + Sync {
    /// Returns its name in options and reports.
    fn name(&self) -> &'static str;

    /// Returns the next job, or `None` when there is nothing to do or the running jobs leave room
    /// for nothing.
    ///
    /// Running the returned jobs leads to a state without jobs after finitely many.
    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>>;

    /// Returns true if many runs in level 0 mean that compactions are behind, so that writers
    /// should wait. False for a strategy that merges nothing.
    fn merges(&self) -> bool {
        true
    }

    /// Returns how far the tree is from the shape that the strategy aims for.
    fn scores(&self, state: &State<K>) -> Scores;

    /// Returns the next step of a compaction that the user requested. Call it again until the
    /// request is done.
    fn compact_range(&self, state: &State<K>, manual: &Manual<K>) -> ManualStep<K::Owned>;
}
