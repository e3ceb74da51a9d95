//! The driver that runs every suite: a suite has the measurements and the contenders, the driver
//! does the rest.
//!
//! ```text
//!   drive ─► work directory, machine, probes
//!         ─► Suite::measure, with a Lab: groups ─► rounds ─► turns of contenders in shuffled order
//!         ─► Suite::contenders, the recorder's measurements ─► Run
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::{Clock, Fs, SeededRng, StdFs, SystemClock};

use crate::core::error::{Error, Result};
use crate::core::probe::{self, ProbeEffort};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::Recorder;
use crate::core::results::{Case, Contender, Probe, Run, SCHEMA_VERSION};
use crate::core::scratch::{self, Scratch};
use crate::core::settings::Settings;
use crate::core::time::rfc3339;
use crate::core::workload::shuffle;

/// The parameters of a run that the driver needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'o> {
    /// The suite's name in stored runs.
    pub suite: &'static str,
    /// Directory of scratch files. Its disk is the one that is measured.
    pub work_dir: &'o Path,
    /// Effort of probing the machine; `None` to skip the probes.
    pub probes: Option<ProbeEffort>,
    /// Seed of shuffles and intervals.
    pub seed: u64,
}

/// The options of a run, as the stored run describes them.
#[derive(Debug)]
pub(crate) struct Description {
    /// The kind of the run.
    pub mode: String,
    /// The data, in a sentence.
    pub data: String,
    /// The settings that influence results and are part of neither `data` nor the cases.
    pub settings: BTreeMap<String, String>,
}

/// A suite with the options of one run.
pub(crate) trait Suite {
    /// Returns the parameters of the run.
    fn setup(&self) -> Setup<'_>;

    /// Returns the contenders that cannot run, with the reasons, which the user is told.
    fn skipped(&self) -> &[Contender] {
        &[]
    }

    /// Measures everything, and records it in [`Lab::recorder`].
    ///
    /// Errors: [`Error::Interrupted`] ends the run early, with the measurements so far; any other
    /// error ends it without a result.
    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()>;

    /// Describes the run.
    fn description(&self) -> Description;

    /// Returns all requested contenders, with all settings. Called after [`Suite::measure`].
    fn contenders(&self, recorder: &Recorder) -> Vec<Contender>;
}

/// Runs a suite.
///
/// When `stop` is reached, the run ends with the results so far.
///
/// Errors: those of [`Suite::measure`], a work directory that cannot be written.
pub(crate) fn drive(suite: &mut dyn Suite, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    let Setup { suite: name, work_dir, probes, seed } = suite.setup();
    let started = rfc3339(SystemClock::new().wall());
    StdFs::new().create_dir_all(work_dir)?;
    scratch::sweep(work_dir, name)?;
    // Described before the probes run, because the probes are a load themselves.
    let machine = probe::describe(work_dir);
    let probes = probes.map_or_else(|| Ok(Vec::new()), |effort| probe::measure(work_dir, effort))?;
    let scratch = Scratch::in_dir(work_dir, name)?;
    let (recorder, rng) = (Recorder::new(seed), SeededRng::new(seed));
    let mut lab = Lab { progress, stop, scratch, machine, probes, recorder, rng };
    suite.skipped().iter().filter_map(Contender::why_left_out).for_each(|line| progress.note(&line));
    let stopped = match suite.measure(&mut lab) {
        Err(Error::Interrupted) => true,
        measured => measured.map(|()| false)?,
    };
    // Without measurements, the caller reports that there are none.
    if stopped && !lab.recorder.is_empty() {
        progress.note("stopped early; the measurements so far are kept");
    }
    let Description { mode, data, settings } = suite.description();
    Ok(Run {
        schema: SCHEMA_VERSION,
        suite: name.to_owned(),
        started,
        mode,
        seed,
        machine: lab.machine,
        probes: lab.probes,
        contenders: suite.contenders(&lab.recorder),
        data,
        settings,
        measurements: lab.recorder.finish(),
        stopped,
    })
}

/// The order of turns in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The order of the round before, shuffled.
    Carried,
    /// The order in which contenders are listed, shuffled.
    Listed,
}

/// The means of a suite to measure: progress, directory, recorder, random draws.
pub(crate) struct Lab<'a> {
    /// Where the user is told of progress and failures.
    pub progress: &'a dyn Progress,
    /// Whether the run has to end early. Checked before each turn.
    pub stop: &'a Stop,
    /// The run's own directory, which is removed at its end.
    pub scratch: Scratch,
    /// The machine, as the run describes it.
    pub machine: Vec<(String, String)>,
    /// The probes of the machine. A suite may append its own.
    pub probes: Vec<Probe>,
    /// The measurements so far.
    pub recorder: Recorder,
    /// The source of random orders, seeded by [`Setup::seed`].
    pub rng: SeededRng,
}

impl Lab<'_> {
    /// Runs `work` on each group. A group that fails as a whole does not end the run: the user is
    /// told, and `failed` gets the reason.
    pub fn groups<G>(
        &mut self,
        groups: &[G],
        name: impl Fn(&G) -> String,
        mut work: impl FnMut(&mut Self, usize, &G) -> Result<()>,
        mut failed: impl FnMut(&mut Self, String),
    ) -> Result<()> {
        for (index, group) in groups.iter().enumerate() {
            let name = name(group);
            self.progress.group(index, groups.len(), &name);
            match work(self, index, group) {
                Ok(()) => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    let reason = format!("{name}: {error}");
                    self.progress.note(&reason);
                    failed(self, reason);
                }
            }
        }
        Ok(())
    }

    /// Runs `rounds` rounds, in each of which every contender has its turn, in shuffled order. A
    /// contender whose turn returns false has no further one.
    pub fn rounds<T: Clone + PartialEq>(
        &mut self,
        mut contenders: Vec<T>,
        (rounds, order): (u32, Order),
        mut turn: impl FnMut(&mut Self, u32, &T) -> Result<bool>,
    ) -> Result<()> {
        for round in 0..rounds {
            let mut turns = contenders.clone();
            shuffle(&mut turns, &mut self.rng);
            if order == Order::Carried {
                contenders.clone_from(&turns);
            }
            for contender in &turns {
                self.stop.check()?;
                if !turn(self, round, contender)? {
                    contenders.retain(|other| other != contender);
                }
            }
        }
        Ok(())
    }

    /// Takes the samples of a contender out of a case, and tells the user. A wrong answer costs the
    /// contender everything on the data of the case, for the reason given.
    ///
    /// Errors: [`Error::Interrupted`] is not a contender's failure, and is returned.
    pub fn refuse(
        &mut self,
        contender: &str,
        in_case: (&str, &Case),
        error: Error,
        reason: String,
    ) -> Result<()> {
        let (name, case) = in_case;
        if matches!(error, Error::Interrupted) {
            return Err(error);
        }
        self.progress.note(&format!("{contender} in {name}: {error}"));
        if error.is_wrong_result() {
            self.recorder.disqualify(contender, case, reason);
        } else {
            self.recorder.discard(contender, case, error.to_string());
        }
        Ok(())
    }
}

/// Returns a contender as the run lists it: with its failures among the settings, and the reason if
/// it has no measurement at all.
pub(crate) fn contender(
    recorder: &Recorder,
    (name, family): (&str, &str),
    (version, ours): (String, bool),
    mut settings: Settings,
) -> Contender {
    let skipped = recorder.explain(name, &mut settings);
    Contender { name: name.to_owned(), family: family.to_owned(), version, ours, settings, skipped }
}
