//! Commands on traces of workloads.

mod dump;
mod import;
mod record;
mod stats;

use std::path::Path;
use std::sync::Arc;

use cairn_trace::{Ending, Trace};
use cairn_vfs::Fs;
use serde_json::{Value, json};

use crate::args::trace::TraceCommand;
use crate::error::Result;
use crate::output::Outcome;

/// Carries out one of them.
pub fn run(fs: &Arc<dyn Fs>, command: TraceCommand) -> Result<Outcome> {
    match command {
        TraceCommand::Record(args) => record::record(fs, &args),
        TraceCommand::Import(args) => import::import(fs, &args),
        TraceCommand::Stats(args) => stats::stats(fs, &args),
        TraceCommand::Dump(args) => dump::dump(fs, &args),
    }
}

/// How a trace ends, in words; nothing of one that is complete.
fn ending(trace: &Trace) -> Option<String> {
    match trace.ending() {
        Ending::Complete { dropped: 0 } => None,
        Ending::Complete { dropped } => Some(format!("{dropped} operations were not recorded")),
        Ending::Cut { offset } => {
            Some(format!("no end: the program was killed or still runs; read up to byte {offset}"))
        }
        Ending::Damaged { offset } => Some(format!("damaged at byte {offset}, read up to there")),
    }
}

/// A trace in a few fields.
fn summary(path: &Path, trace: &Trace) -> Value {
    let (ending, dropped) = match trace.ending() {
        Ending::Complete { dropped } => ("complete", Some(dropped)),
        Ending::Cut { .. } => ("cut", None),
        Ending::Damaged { .. } => ("damaged", None),
    };
    json!({
        "trace": path.display().to_string(),
        "source": trace.header().source,
        "records": trace.records(),
        "bytes": trace.bytes(),
        "seconds": trace.last_ns() as f64 / 1e9,
        "lanes": trace.lanes(),
        "sample": trace.header().sample,
        "ending": ending,
        "dropped": dropped,
    })
}
