//! The types for keys that are byte strings, as in a store.

pub use crate::{
    Fifo, FifoOptions, Input, InvalidOption, JobKind, LazyLeveled, LazyOptions, LevelScore, Leveled,
    LeveledOptions, Policy, Reason, Scores, StrategyOptions, Universal, UniversalOptions,
};

/// A level of a store.
pub type LevelInfo<'a> = crate::LevelInfo<&'a [u8]>;
/// A sorted run of a store.
pub type RunInfo<'a> = crate::RunInfo<&'a [u8]>;
/// A table of a store.
pub type TableInfo<'a> = crate::TableInfo<&'a [u8]>;
/// The output range of a running job of a store.
pub type RunningJob<'a> = crate::RunningJob<&'a [u8]>;
/// The state of a store.
pub type State<'a> = crate::State<&'a [u8]>;
/// A compaction of a store.
pub type Job = crate::Job<Vec<u8>>;
/// A user's request to compact a range of a store.
pub type Manual<'k> = crate::Manual<&'k [u8]>;
/// The next step of such a request.
pub type ManualStep = crate::ManualStep<Vec<u8>>;

/// A policy for stores.
pub trait Strategy: for<'a> crate::Strategy<&'a [u8]> {}

impl<S: for<'a> crate::Strategy<&'a [u8]>> Strategy for S {}
