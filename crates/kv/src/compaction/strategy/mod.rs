//! Compaction strategies decide which tables are merged and when. They are pure functions from a
//! [`State`] to a [`Job`].
//!
//! A strategy knows no files, threads or clocks. The database calls it after every change and runs
//! the returned job; the simulator calls it for trees that exist only in the simulation. Any
//! strategy accepts any state, so a keyspace can be opened with a different strategy than the one
//! it was written with.
//!
//! | strategy | writes | space | lookups |
//! |---|---|---|---|
//! | [`Leveled`] | more | least | few runs |
//! | [`LazyLeveled`] | fewer | some | more runs, long scans as leveled |
//! | [`Universal`] | fewest | up to twice | more runs |
//! | [`Fifo`] | none | bounded | all runs; for data that is discarded by age |

mod fifo;
mod job;
mod lazy;
mod leveled;
mod manual;
mod options;
mod overlap;
mod scores;
mod state;
#[cfg(test)]
mod tests;
mod universal;

use std::fmt::Debug;

pub use fifo::Fifo;
pub use job::{Input, Job, JobKind, Reason};
pub use lazy::LazyLeveled;
pub use leveled::Leveled;
pub use manual::{Manual, ManualStep};
pub use options::{FifoOptions, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions};
pub use scores::{LevelScore, Scores};
pub use state::{LevelInfo, RunInfo, RunningJob, State, TableInfo};
pub use universal::Universal;

/// Chooses compactions. Deterministic: equal states give equal answers.
pub trait Strategy: Debug + Send + Sync + 'static {
    /// Returns its name in options and reports.
    fn name(&self) -> &'static str;

    /// Returns the next job, or `None` when there is nothing to do or the running jobs leave room
    /// for nothing.
    ///
    /// Running the returned jobs leads to a state without jobs after finitely many.
    fn pick(&self, state: &State<'_>) -> Option<Job>;

    /// Returns true if many runs in level 0 mean that compactions are behind, so that writers
    /// should wait. False for a strategy that merges nothing.
    fn merges(&self) -> bool {
        true
    }

    /// Returns how far the tree is from the shape that the strategy aims for.
    fn scores(&self, state: &State<'_>) -> Scores;

    /// Returns the next step of a compaction that the user requested. Call it again until the
    /// request is done.
    fn compact_range(&self, state: &State<'_>, manual: &Manual<'_>) -> ManualStep;
}
