//! The suite of constant stores: Cairn's readers and writers against their peers, over the matrix
//! of Sparkey's own benchmark guide and a real data set.
//!
//! ```text
//!   options ─► plan: groups, one for each data set and compression
//!                 └─► group: build ─ size ─ open ─ lookups ─ cold lookups
//!                        └─► recorder: samples ─► medians and intervals ─► Run
//! ```

pub mod bench;
mod build;
mod chosen;
mod contenders;
mod group;
mod java;
pub mod job;
mod lookups;
mod openings;
mod options;
mod plan;
pub mod reading;

pub use chosen::chooses_anything;
pub use options::{DataFile, JavaEffort, Matrix, Mode, Options};
pub use plan::{Group, plan};

use self::contenders::Contenders;
use self::group::GroupRun;
use super::driver::{self, Description, Lab, Setup, Suite};
use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::Recorder;
use crate::core::results::{Contender, Run, SPARKEY_JAVA};
use crate::stores::ConstantStore;
use crate::stores::catalog::{Catalog, Selection};
use crate::stores::java::JavaLibrary;

/// The suite's name in stored runs.
pub const NAME: &str = "hash";

/// Runs the suite with every installed store.
///
/// Failures on the way, such as a failing contender, a missing library or a full disk, are recorded
/// in the result and do not end the run. When `stop` is reached, the run ends with the results so
/// far.
///
/// Errors: invalid options, a data file that cannot be read, a work directory that cannot be
/// written.
pub fn run(options: &Options, catalog: &Catalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    let java = (catalog.java)(stop).map_err(|error| Contender::left_out(SPARKEY_JAVA, SPARKEY_JAVA, &error));
    run_with(options, catalog.constant.all(), java.as_deref(), progress, stop)
}

/// Like [`run`], with stores of the caller's choice. `java` is Sparkey's library, or the reason
/// that it is skipped.
pub fn run_with(
    options: &Options,
    stores: Selection<dyn ConstantStore>,
    java: std::result::Result<&dyn JavaLibrary, &Contender>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    let contenders = Contenders::new(stores, java, options);
    driver::drive(&mut HashSuite { options, contenders }, progress, stop)
}

struct HashSuite<'a, 'java> {
    options: &'a Options,
    contenders: Contenders<'java>,
}

impl Suite for HashSuite<'_, '_> {
    fn setup(&self) -> Setup<'_> {
        let Options { ref work_dir, probes, seed, .. } = *self.options;
        Setup { suite: NAME, work_dir, probes, seed }
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        if let Some(note) = in_memory(&lab.machine) {
            lab.progress.note(&note);
        }
        self.contenders.note_skipped(lab.progress);
        let (options, contenders) = (self.options, &mut self.contenders);
        // Groups that failed as a whole. All contenders lack their measurements.
        let mut broken: Vec<String> = Vec::new();
        let mut unreadable = None;
        let measured = lab.groups(
            &plan(options),
            Group::name,
            |lab, index, group| {
                let mut run = match GroupRun::new(options, group, contenders, lab) {
                    // A data file that cannot be read invalidates the whole run, so the run fails
                    // now rather than after an hour.
                    Err(error) if index == 0 => {
                        unreadable = Some(error);
                        return Err(Error::Interrupted);
                    }
                    run => run?,
                };
                // The data file is in the first group, and again in later ones.
                if index == 0
                    && let Some(left_out) = run.bench.data().left_out()
                {
                    run.lab.progress.note(&format!("{}: {left_out}", run.bench.data().name()));
                }
                let measured = run.measure();
                let baseline = run.baseline();
                lab.probes.extend(baseline);
                measured
            },
            |_, reason| broken.push(reason),
        );
        if let Some(error) = unreadable {
            return Err(error);
        }
        for name in self.contenders.names() {
            broken.iter().for_each(|reason| lab.recorder.problem(&name, reason.clone()));
        }
        measured
    }

    fn description(&self) -> Description {
        let options = self.options;
        Description {
            mode: options.mode.to_string(),
            data: options.data_sentence(),
            settings: options.settings(),
        }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        self.contenders.finish(recorder)
    }
}

/// Returns a note for the user if stores are built in memory, where nothing is ever cold and a sync
/// costs nothing.
fn in_memory(machine: &[(String, String)]) -> Option<String> {
    let (_, file_system) = machine.iter().find(|(name, _)| name == "file system")?;
    let in_memory = ["tmpfs", "ramfs"].iter().any(|kind| file_system.starts_with(kind));
    in_memory.then(|| {
        format!("the work directory is in memory ({file_system}): disk figures need another directory")
    })
}

#[cfg(test)]
mod tests;
