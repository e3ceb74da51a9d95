//! The suite of constant stores: Cairn's readers and writers against their peers, over the matrix
//! of Sparkey's own benchmark guide and a real data set.
//!
//! ```text
//!   options ─► plan: groups, one for each data set and compression
//!                 └─► group: build ─ size ─ open ─ lookups ─ cold lookups
//!                        └─► recorder: samples ─► medians and intervals ─► Run
//! ```

mod build;
mod chosen;
mod contenders;
mod group;
mod java;
mod lookups;
mod openings;
mod options;
mod plan;
pub(crate) mod recorder;

pub use chosen::chooses_anything;
pub use options::{DataFile, JavaEffort, Matrix, Mode, Options};
pub use plan::{Group, plan};
pub use recorder::case_name;

pub use crate::progress::{Progress, Silent};

use self::contenders::Contenders;
use self::group::GroupRun;
use self::recorder::Recorder;
use crate::catalog::{self, Catalog};
use crate::error::{Error, Result};
use crate::peers::sparkey_java::{self, SparkeyJava};
use crate::process::Stop;
use crate::results::{Contender, Run};
use crate::runner::begun::{Begun, Ended, note_stopped};

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
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    let java = match SparkeyJava::find(stop) {
        Ok(java) => Ok(java),
        Err(error) => Err(Contender::left_out(sparkey_java::FAMILY, sparkey_java::FAMILY, &error)),
    };
    run_with(options, catalog::all(), java.as_ref(), progress, stop)
}

/// Like [`run`], with stores of the caller's choice. `java` is Sparkey's library, or the reason
/// that it is skipped.
pub fn run_with(
    options: &Options,
    catalog: Catalog,
    java: std::result::Result<&SparkeyJava, &crate::results::Contender>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    let mut begun = Begun::new(NAME, &options.work_dir, options.probes)?;
    if let Some(note) = in_memory(&begun.machine) {
        progress.note(&note);
    }
    let mut contenders = Contenders::new(catalog, java, options);
    contenders.note_skipped(progress);
    let groups = plan(options);
    let mut recorder = Recorder::new(options.seed);
    let mut stopped = false;
    // Groups that failed as a whole. All contenders lack their measurements.
    let mut broken: Vec<String> = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        progress.group(index, groups.len(), &group.name());
        let mut run = match GroupRun::new(options, group, &mut contenders, &mut recorder, progress, stop) {
            // A data file that cannot be read invalidates the whole run, so the run fails now
            // rather than after an hour.
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                progress.note(&format!("{}: {error}", group.name()));
                broken.push(format!("{}: {error}", group.name()));
                continue;
            }
            Ok(run) => run,
        };
        // The data file is in the first group, and again in later ones.
        if index == 0
            && let Some(left_out) = run.bench.data().left_out()
        {
            progress.note(&format!("{}: {left_out}", run.bench.data().name()));
        }
        match run.measure() {
            Ok(()) => {}
            Err(Error::Interrupted) => {
                stopped = true;
                break;
            }
            Err(error) => {
                progress.note(&format!("{}: {error}", group.name()));
                broken.push(format!("{}: {error}", group.name()));
            }
        }
        if let Some(baseline) = run.baseline() {
            begun.probes.push(baseline);
        }
    }
    for name in contenders.names() {
        broken.iter().for_each(|reason| recorder.problem(&name, reason.clone()));
    }
    if stopped {
        note_stopped(&recorder, progress);
    }
    let ended = Ended {
        mode: options.mode.to_string(),
        seed: options.seed,
        data: options.data_sentence(),
        settings: options.settings(),
        contenders: contenders.finish(&recorder),
        stopped,
    };
    Ok(begun.into_run(ended, recorder))
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
