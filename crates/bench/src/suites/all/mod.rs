//! Every suite in one run: hash, kv, pool, sql, index, and the validation of the simulator.
//!
//! ```text
//!   options ─► plan: suites ─► parts, each with a first estimate of its duration
//!                └─► measure: each part without a result, within its share of the time
//!                      └─► journal: one file per part ─► whole: parts of a suite merged ─► report
//! ```
//!
//! `docs/src/design/all.md` explains the reasons for this design.

mod estimate;
mod journal;
mod measure;
mod merge;
mod options;
mod part;
mod plan;
mod schedule;
mod sizes;
#[cfg(test)]
mod tests;
mod whole;

pub use journal::{Head, Journal, Sitting, latest, started};
pub use measure::{Ending, Watch, measure};
pub use options::{Mode, Options, SuiteName};
pub use part::{Content, Part, PartResult, PartState, SuitePlan};
pub use plan::plan;
pub use schedule::TimeLeft;
pub use whole::{PartSummary, SuiteResult, Whole};

/// Prefix of the directories of such runs.
pub const NAME: &str = "all";
