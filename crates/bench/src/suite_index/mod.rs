//! The suite of compressed indexes: PostgreSQL's `cairn` access method beside its own, over the
//! guide's data and what it leaves as ideas.
//!
//! ```text
//!   options ─► sets: a table each ─► every index built on it, round by round ─► sizes
//!                └─► for each query, round by round, each contender in a shuffled order: one turn
//!                       │   only its index is valid ─ warm up ─ the plan is its own ─ samples ─ the answer is everybody's
//!                       └─► recorder: medians of rounds ─► Run ─► text, report, JSON
//! ```
//!
//! One private server with the guide's 64 MB of buffers, one table for all contenders: rows and
//! visibility are the same for everybody. A contender whose index the planner does not take for a
//! query has no figure there.

mod options;
#[cfg(feature = "peers")]
mod server;
#[cfg(feature = "peers")]
mod session;
pub mod sets;
#[cfg(test)]
mod tests;
pub mod text;

pub use options::Options;
pub use sets::{CONTENDERS, DataSet, Suite};

use crate::error::Result;
use crate::process::Stop;
use crate::results::Run;
use crate::suite_hash::Progress;

/// The suite's name in stored runs.
pub const NAME: &str = "index";

/// The sets that a run measures.
pub fn plan(options: &Options) -> Vec<DataSet> {
    let all = options.suites.iter().flat_map(|suite| sets::sets(*suite, options.scale));
    let wanted = |set: &DataSet| {
        options.filter.as_ref().is_none_or(|filter| set.name.contains(filter.as_str()))
            && (options.sets.is_empty() || options.sets.contains(&set.name))
    };
    all.filter(wanted).collect()
}

/// Runs the suite with everybody who was asked for and is here.
///
/// What fails on the way is noted in the result and the rest goes on. When `stop` is reached the
/// run ends with what it has. Errors: options that make no sense, a work directory that cannot be
/// written, no PostgreSQL.
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    options.check()?;
    measure(options, progress, stop)
}

#[cfg(feature = "peers")]
fn measure(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    server::measure(options, progress, stop)
}

#[cfg(not(feature = "peers"))]
fn measure(_: &Options, _: &dyn Progress, _: &Stop) -> Result<Run> {
    Err(crate::error::Error::invalid("this build has no peers, and so no PostgreSQL".to_owned()))
}
