//! Recording of a command's operations when it runs under `cairn trace record`.

use cairn_trace::Recorder;

use crate::output::note;

/// Creates a recorder if the environment names a file. A trace that cannot be written does not stop
/// the command; a note reports it.
pub fn begin(source: &str) -> Option<Recorder> {
    Recorder::from_env(source).unwrap_or_else(|error| {
        note(&format!("operations are not recorded: {error}"));
        None
    })
}

/// Ends the trace, and reports an incomplete one.
pub fn end(recorder: Option<&Recorder>) {
    if let Some(Err(error)) = recorder.map(Recorder::finish) {
        note(&format!("not all operations are recorded: {error}"));
    }
}
