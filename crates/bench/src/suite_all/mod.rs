//! Every suite in one run: hash, kv, pool, sql, index, and the validation of the simulator.
//!
//! ```text
//!   options ─► plan: suites ─► parts, each with a first guess of its seconds
//!                └─► measure: each part that has no result yet, within its share of the time ─► journal: a file a part
//!                                                                    └─► whole: parts of a suite put together ─► report
//! ```
//!
//! `docs/src/design/all.md` says why so.

mod guess;
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
pub mod text;
mod whole;

pub use journal::{Head, Journal, Sitting, started};
pub use measure::{Ending, Watch, measure};
pub use options::{Mode, Options, SuiteName};
pub use part::{Content, Part, PartResult, PartState, SuitePlan};
pub use plan::plan;
pub use schedule::Left;
pub use whole::{PartSummary, SuiteResult, Whole};

/// What directories of such runs are called, and the suite in their heads.
pub const NAME: &str = "all";
