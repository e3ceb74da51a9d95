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

/// Carries out one of them.
pub fn run(fs: &Arc<dyn Fs>, command: TraceCommand) -> Result<Outcome> {
    match command {
        TraceCommand::Record(args) => record::record(fs, &args),
        TraceCommand::Import(args) => import::import(fs, &args),
        TraceCommand::Stats(args) => stats::stats(fs, &args),
        TraceCommand::Dump(args) => dump::dump(fs, &args),
    }
}

/// Says on standard error what is wrong with a trace, if anything is; for commands that go on with
/// what there is of it.
pub fn tell_flaw(trace: &Trace) {
    if let Some(flaw) = trace.ending().flaw() {
        output::note(&format!("{}: {flaw}", trace.path().display()));
    }
}

/// Whose operations a trace has, in words, and why only theirs where its recorder decided that.
fn share(trace: &Trace) -> String {
    match (trace.sample(), trace.lowered()) {
        (1, _) => "all keys".to_owned(),
        (sample, None) => format!("one key in {sample}"),
        (sample, Some(lowered)) => format!("one key in {sample} ({lowered})"),
    }
}

/// Sees that a trace is sound as far as it goes. One that was cut is: its program may have been
/// killed.
///
/// Errors: the trace is damaged. For commands that have shown what there is.
pub fn check_sound(trace: &Trace) -> Result<()> {
    match (trace.ending(), trace.ending().flaw()) {
        (Ending::Damaged { .. }, Some(flaw)) => {
            Err(Error::usage(format!("{}: {flaw}", trace.path().display())))
        }
        _ => Ok(()),
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
        "timed": trace.header().timed,
        "secs": if trace.header().timed { trace.last_ns() as f64 / 1e9 } else { 0.0 },
        "lanes": trace.lanes(),
        "sample": trace.sample(),
        "lowered": trace.lowered(),
        "ending": ending,
        "dropped": dropped,
    })
}
