//! Which tables are merged when, as pure functions: a [`State`] in, a [`Job`] out.
//!
//! A strategy knows no files, threads or clocks. The database asks it after every change and runs
//! what it gets; the simulator asks it for trees that exist nowhere. Any strategy takes any state,
//! so a keyspace can be opened with another one than it was written with.
//!
//! | strategy | writes | space | lookups |
//! |---|---|---|---|
//! | [`Leveled`] | more | least | few runs |
//! | [`LazyLeveled`] | fewer | some | more runs, long scans as leveled |
//! | [`Universal`] | fewest | up to twice | more runs |
//! | [`Fifo`] | none | bounded | all runs: for data that is thrown away by age |

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

/// Chooses compactions. Equal states give equal answers.
pub trait Strategy: Debug + Send + Sync + 'static {
    /// Its name in options and reports.
    fn name(&self) -> &'static str;

    /// What to do next; `None` when there is nothing to do, or nothing that the running jobs leave
    /// room for.
    ///
    /// Jobs that are carried out bring the tree to a state without jobs after finitely many.
    fn pick(&self, state: &State<'_>) -> Option<Job>;

    /// Whether many runs in level 0 mean that compactions are behind, and writers are to wait. Not
    /// where nothing is merged.
    fn merges(&self) -> bool {
        true
    }

    /// How far the tree is from what the strategy wants.
    fn scores(&self, state: &State<'_>) -> Scores;

    /// The next step of a compaction that the user asked for. Repeat until it is done.
    fn compact_range(&self, state: &State<'_>, manual: &Manual<'_>) -> ManualStep;
}
