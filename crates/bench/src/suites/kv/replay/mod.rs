//! Replays the operations of a trace, at full speed or at recorded speed, and checks every answer.
//!
//! ```text
//!   trace ─► load: operations on numbered keys with expected results, by thread
//!         ─► play: initial keys loaded and settled ─ operations, one thread for each part, with
//!                  latencies by kind ─ the whole store compared with the model
//! ```
//!
//! At full speed there are turns for throughput and one for latencies. At recorded speed each turn
//! gives both. An operation's latency then counts from the time it was due, so that a stall is
//! charged to the store for every operation that waited (ignoring these waits is called coordinated
//! omission). Operations that were recorded with the same time are due one after another.

mod due;
mod keys;
mod load;
mod play;
mod scans;
mod suite;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

use cairn_trace::{Kind, Trace};
use cairn_vfs::StdFs;
use serde::{Deserialize, Serialize};

use super::outcome::KvOutcome;
use super::turn::Turn;
use crate::core::error::{Error, Result};

pub use load::{Limits, Loaded};
pub use suite::{NAME, run, run_with};

use self::values::Bodies;

/// The trace to replay, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Path of the trace.
    pub trace: PathBuf,
    /// Name of the trace in results: its file name without the extension.
    pub name: String,
    /// Factor on the recorded speed; `None` for full speed.
    pub speed: Option<f64>,
    /// Number of threads.
    pub threads: u32,
    /// Number of operations to skip at the beginning of the trace. The store begins with their
    /// result. Only at full speed.
    #[serde(default)]
    pub passed_over: u64,
    /// Maximum number of operations to take after these; `None` for all.
    pub operations_max: Option<u64>,
    /// Whether to measure a second throughput that includes the time until everything is written
    /// out and merged, and the bytes per entry.
    #[serde(default)]
    pub settled: bool,
}

impl Replay {
    /// Creates a replay of a trace at full speed by one thread.
    pub fn new(trace: &Path) -> Replay {
        let name =
            trace.file_stem().map_or_else(|| "trace".to_owned(), |stem| stem.to_string_lossy().into_owned());
        Replay {
            trace: trace.to_owned(),
            name,
            speed: None,
            threads: 1,
            passed_over: 0,
            operations_max: None,
            settled: false,
        }
    }

    /// Loads the trace.
    ///
    /// Errors: [`Error::Trace`]; [`Error::Invalid`] for a trace that cannot be replayed this way.
    pub fn load(&self) -> Result<Loaded> {
        if !(1..=1024).contains(&self.threads) {
            return Err(Error::invalid(format!("threads {}: expected 1 to 1024", self.threads)));
        }
        if let Some(speed) = self.speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
            return Err(Error::invalid(format!("speed {speed}: expected a factor above 0, or full")));
        }
        let trace = Trace::open(&StdFs::new(), &self.trace)?;
        if self.speed.is_some() && !trace.header().timed {
            let what = "the trace has no times: it can be replayed at full speed only";
            return Err(Error::invalid(format!("{}: {what}", self.trace.display())));
        }
        let limits = Limits {
            threads: self.threads as usize,
            passed_over: self.passed_over,
            operations_max: self.operations_max,
            timed: self.speed.is_some(),
        };
        Loaded::new(&trace, limits)
    }
}

impl Loaded {
    /// Returns the differences between the replay and the trace, in operations and in the results
    /// of scans, in sentences without a full stop.
    pub(crate) fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes().to_vec();
        let expected = scans::expected(self, &Bodies::new(self.value_bytes_max()));
        let (recorded, read) = (self.scan_entries, scans::entries(&expected));
        if read < recorded {
            let least = if self.steps.len() > 1 { " at least" } else { "" };
            notes.push(format!(
                "scans read {read}{least} of the recorded {recorded} entries: the trace does not say what else the store held"
            ));
        }
        notes
    }
}

/// Runs one turn.
pub(super) fn turn(turn: &Turn<'_>, replay: &Replay) -> Result<KvOutcome> {
    let loaded = replay.load()?;
    play::run(turn, replay, &loaded)
}

/// The kinds of operations that are measured separately. Others are only performed.
pub(super) const KINDS: [Kind; 4] = [Kind::Get, Kind::Put, Kind::Delete, Kind::Scan];
