//! The suite of compressed indexes: PostgreSQL's `cairn` access method beside PostgreSQL's own,
//! over the data of the benchmark guide and the variants that the guide suggests.
//!
//! ```text
//!   options ─► sets: one table each ─► every index built on it, round by round ─► sizes
//!                └─► for each query, round by round, each contender in shuffled order: one turn
//!                       │   only its index valid ─ warm-up ─ plan check ─ samples ─ answer check
//!                       └─► recorder: medians of rounds ─► Run ─► text, report, JSON
//! ```
//!
//! There is one private server with the guide's 64 MB of buffers, and one table for all contenders,
//! so that rows and visibility are the same for all. A contender whose index the planner does not
//! use for a query has no measurement there.

mod options;
mod server;
mod session;
pub mod sets;
#[cfg(test)]
mod tests;
pub mod text;

pub use options::Options;
pub use sets::{CONTENDERS, DataSet, Suite};

use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::results::Run;
use crate::stores::catalog::Catalog;

/// The suite's name in stored runs.
pub const NAME: &str = "index";

/// Returns the data sets that a run measures.
pub fn plan(options: &Options) -> Vec<DataSet> {
    let all = options.suites.iter().flat_map(|suite| sets::sets(*suite, options.scale));
    let wanted = |set: &DataSet| {
        options.filter.as_ref().is_none_or(|filter| set.name.contains(filter.as_str()))
            && (options.sets.is_empty() || options.sets.contains(&set.name))
    };
    all.filter(wanted).collect()
}

/// Runs the suite with all requested contenders that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written, no PostgreSQL.
pub fn run(options: &Options, catalog: &Catalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    options.check()?;
    let tools = catalog
        .postgres
        .ok_or_else(|| Error::invalid("this build has no peers, so PostgreSQL is not available"))?;
    server::run(options, tools, progress, stop)
}
