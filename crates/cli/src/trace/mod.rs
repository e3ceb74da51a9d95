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
use crate::error::{Error, Result};
use crate::output::{self, Outcome};

/// Runs one of the commands.
pub fn run(fs: &Arc<dyn Fs>, command: TraceCommand) -> Result<Outcome> {
    match command {
        TraceCommand::Record(args) => record::record(fs, &args),
        TraceCommand::Import(args) => import::import(fs, &args),
        TraceCommand::Stats(args) => stats::stats(fs, &args),
        TraceCommand::Dump(args) => dump::dump(fs, &args),
    }
}

/// Prints a note on standard error if the trace is flawed. For commands that continue with its
/// intact part.
pub fn tell_flaw(trace: &Trace) {
    if let Some(flaw) = trace.ending().flaw() {
        output::note(&format!("{}: {flaw}", trace.path().display()));
    }
}

/// Describes the share of keys in a trace, and why its recorder lowered it.
fn share(trace: &Trace) -> String {
    match (trace.sample(), trace.lowered()) {
        (1, _) => "all keys".to_owned(),
        (sample, None) => format!("one key in {sample}"),
        (sample, Some(lowered)) => format!("one key in {sample} ({lowered})"),
    }
}

/// Checks that a trace is not damaged. One that was cut is not: its program may have been killed.
///
/// Errors: the trace is damaged. For commands that have already printed its intact part.
pub fn check_sound(trace: &Trace) -> Result<()> {
    match (trace.ending(), trace.ending().flaw()) {
        (Ending::Damaged { .. }, Some(flaw)) => {
            Err(Error::usage(format!("{}: {flaw}", trace.path().display())))
        }
        _ => Ok(()),
    }
}

/// Returns a summary of a trace.
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
        "timed": trace.header().timed,
        "secs": if trace.header().timed { trace.last_ns() as f64 / 1e9 } else { 0.0 },
        "lanes": trace.lanes(),
        "sample": trace.sample(),
        "lowered": trace.lowered(),
        "ending": ending,
        "dropped": dropped,
    })
}
