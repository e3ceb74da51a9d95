//! What every suite's run begins with and ends in.

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

/// A run that has begun: when, and on what machine.
#[derive(Debug)]
pub(crate) struct Begun {
    suite: &'static str,
    started: String,
    pub machine: Vec<(String, String)>,
    pub probes: Vec<Probe>,
}

/// What only the suite knows of its run.
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
    /// Makes the work directory, removes what earlier runs of the suite have left in it, describes
    /// the machine and probes it.
    ///
    /// Errors: a work directory that cannot be written.
    pub fn new(suite: &'static str, work_dir: &Path, effort: Option<ProbeEffort>) -> Result<Begun> {
        let started = rfc3339(SystemClock::new().wall());
        StdFs::new().create_dir_all(work_dir)?;
        scratch::sweep(work_dir, suite)?;
        // Before the probes, which are a load themselves.
        let machine = probe::describe(work_dir);
        let probes = match effort {
            Some(effort) => probe::measure(work_dir, effort)?,
            None => Vec::new(),
        };
        Ok(Begun { suite, started, machine, probes })
    }

    /// The run, as it is stored.
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

/// True when a suite was told to stop, which is no error: what it has is kept, and the user told.
pub(crate) fn was_stopped(ended: Result<()>, recorder: &Recorder, progress: &dyn Progress) -> Result<bool> {
    match ended {
        Err(Error::Interrupted) => {
            note_stopped(recorder, progress);
            Ok(true)
        }
        ended => ended.map(|()| false),
    }
}

/// Tells the user that a run that was told to stop keeps what it has. Of a run that has nothing
/// whoever called it says more.
pub(crate) fn note_stopped(recorder: &Recorder, progress: &dyn Progress) {
    if !recorder.is_empty() {
        progress.note("stopped early; the measurements so far are kept");
    }
}
