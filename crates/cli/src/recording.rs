//! Recording what a command does, where `cairn trace record` asks for it.

use cairn_trace::Recorder;

use crate::output::note;

/// A recorder where the environment names a file. A trace that cannot be written is no reason to
/// refuse the work; it is told.
pub fn begin(source: &str) -> Option<Recorder> {
    Recorder::from_env(source).unwrap_or_else(|error| {
        note(&format!("operations are not recorded: {error}"));
        None
    })
}

/// Ends the trace, and tells what it lacks.
pub fn end(recorder: Option<&Recorder>) {
    if let Some(Err(error)) = recorder.map(Recorder::finish) {
        note(&format!("not all operations are recorded: {error}"));
    }
}
