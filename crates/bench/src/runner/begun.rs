//! The beginning and the end that the runs of all suites share.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::{Clock, Fs, StdFs, SystemClock};

use crate::error::{Error, Result};
use crate::probe::{self, ProbeEffort};
use crate::results::{Contender, Probe, Run, SCHEMA_VERSION};
use crate::scratch;
use crate::suite_hash::Progress;
use crate::suite_hash::recorder::Recorder;
use crate::time::rfc3339;

/// A run that has begun: its suite, its start time and the machine it runs on.
#[derive(Debug)]
pub(crate) struct Begun {
    suite: &'static str,
    started: String,
    pub machine: Vec<(String, String)>,
    pub probes: Vec<Probe>,
}

/// The parts of a stored run that only the suite knows.
#[derive(Debug)]
pub(crate) struct Ended {
    pub mode: String,
    pub seed: u64,
    pub data: String,
    pub settings: BTreeMap<String, String>,
    pub contenders: Vec<Contender>,
    pub stopped: bool,
}

impl Begun {
    /// Creates the work directory, removes leftovers of the suite's earlier runs from it, describes
    /// the machine and probes it.
    ///
    /// Errors: a work directory that cannot be written.
    pub fn new(suite: &'static str, work_dir: &Path, effort: Option<ProbeEffort>) -> Result<Begun> {
        let started = rfc3339(SystemClock::new().wall());
        StdFs::new().create_dir_all(work_dir)?;
        scratch::sweep(work_dir, suite)?;
        // Described before the probes run, because the probes are a load themselves.
        let machine = probe::describe(work_dir);
        let probes = match effort {
            Some(effort) => probe::measure(work_dir, effort)?,
            None => Vec::new(),
        };
        Ok(Begun { suite, started, machine, probes })
    }

    /// Returns the run in the form in which it is stored.
    pub fn into_run(self, ended: Ended, recorder: Recorder) -> Run {
        let Ended { mode, seed, data, settings, contenders, stopped } = ended;
        Run {
            schema: SCHEMA_VERSION,
            suite: self.suite.to_owned(),
            started: self.started,
            mode,
            seed,
            machine: self.machine,
            probes: self.probes,
            contenders,
            data,
            settings,
            measurements: recorder.finish(),
            stopped,
        }
    }
}

/// Returns true when the suite was interrupted. An interruption is not an error: the measurements
/// so far are kept, and the user is told so.
pub(crate) fn was_stopped(ended: Result<()>, recorder: &Recorder, progress: &dyn Progress) -> Result<bool> {
    match ended {
        Err(Error::Interrupted) => {
            note_stopped(recorder, progress);
            Ok(true)
        }
        ended => ended.map(|()| false),
    }
}

/// Tells the user that an interrupted run keeps its measurements so far. Says nothing when there
/// are none, since the caller then reports that itself.
pub(crate) fn note_stopped(recorder: &Recorder, progress: &dyn Progress) {
    if !recorder.is_empty() {
        progress.note("stopped early; the measurements so far are kept");
    }
}
