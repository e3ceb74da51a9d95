//! Instructions per operation, counted by valgrind's callgrind. The counts are the same on a busy
//! and on an idle machine, so a build can fail because of them.
//!
//! Each case runs twice, in a process of its own, with `n` operations and with twice as many. The
//! difference divided by `n` excludes all other work of the process. Files are in memory, seeds are
//! fixed, and nothing runs in the background.

mod cases;

use std::collections::BTreeMap;
use std::process::Command;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use serde::{Deserialize, Serialize};

pub use cases::CountCase;

use super::driver::{self, Description, Lab, Setup, Suite};
use crate::core::error::{Error, Result};
use crate::core::process::{self, Stop};
use crate::core::progress::Progress;
use crate::core::recorder::{Metric, Recorder};
use crate::core::results::{Case, Contender, Run};
use crate::core::scratch::Scratch;
use crate::core::settings::settings;
use crate::core::worker::{self, Job, Worker};

/// The suite's name in stored runs.
pub const NAME: &str = "counts";
const CONTENDER: &str = "cairn";
const METRIC: Metric = Metric { name: "instructions", unit: "instructions", higher_is_better: false };
const VALGRIND: &str = "valgrind";

/// The options of the suite.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of operations of the shorter of the two processes.
    pub operations: u64,
    /// Only cases whose name contains this.
    pub filter: Option<String>,
    /// Directory of scratch files.
    pub work_dir: std::path::PathBuf,
    /// The program that is run under callgrind.
    pub worker: Worker,
}

/// The job of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountJob {
    /// The loop.
    pub case: CountCase,
    /// Number of operations.
    pub operations: u64,
}

/// Returns the cases that the filter selects.
pub fn plan(options: &Options) -> Vec<CountCase> {
    let wanted =
        |case: &CountCase| options.filter.as_ref().is_none_or(|filter| case.name().contains(filter.as_str()));
    CountCase::ALL.into_iter().filter(wanted).collect()
}

/// Counts every case. Failures are recorded and do not end the run. When `stop` is reached, the run
/// ends with the results so far.
///
/// Errors: invalid options, or valgrind is missing.
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    if !(1_000..=100_000_000).contains(&options.operations) {
        return Err(Error::invalid(format!("n {}: expected 1000 to 100000000", options.operations)));
    }
    driver::drive(&mut CountSuite { options, version: version()? }, progress, stop)
}

struct CountSuite<'a> {
    options: &'a Options,
    /// Valgrind's.
    version: String,
}

impl Suite for CountSuite<'_> {
    fn setup(&self) -> Setup<'_> {
        Setup { suite: NAME, work_dir: &self.options.work_dir, probes: None, seed: 1 }
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        let operations = self.options.operations;
        lab.groups(
            &plan(self.options),
            |case| case.name().to_owned(),
            |lab, _, case| {
                lab.stop.check()?;
                let count = |factor: u64| {
                    lab.progress.step(factor as usize - 1, 2, case.name());
                    count(self.options, *case, factor * operations, lab.stop)
                };
                let (once, twice) = (count(1)?, count(2)?);
                let per_operation = twice.saturating_sub(once) as f64 / operations as f64;
                lab.recorder.add(CONTENDER, &case_of(*case, operations), METRIC, per_operation);
                Ok(())
            },
            |lab, reason| lab.recorder.problem(CONTENDER, reason),
        )
    }

    fn description(&self) -> Description {
        let operations = self.options.operations;
        let data = format!(
            "Instructions an operation: the difference between {operations} and {} operations, each in a process of its own under callgrind.",
            2 * operations
        );
        Description { mode: "custom".to_owned(), data, settings: BTreeMap::new() }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        let mut all = settings([("files", "in memory"), ("background", "none"), ("seed", "1")]);
        all.insert("counted by".to_owned(), self.version.clone());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        vec![driver::contender(recorder, (CONTENDER, CONTENDER), (version, true), all)]
    }
}

fn case_of(case: CountCase, operations: u64) -> Case {
    let case = Case::new(case.name(), "synthetic", operations);
    Case { value_bytes: cases::VALUE_BYTES as u32, threads: 1, ..case }
}

/// Returns the number of instructions of one process.
fn count(options: &Options, case: CountCase, operations: u64, stop: &Stop) -> Result<u64> {
    let scratch = Scratch::in_dir(&options.work_dir, NAME)?;
    let (log, out) = (scratch.path().join("log"), scratch.path().join("out"));
    let mut command = Command::new(VALGRIND);
    command.arg("--tool=callgrind");
    command.arg(format!("--log-file={}", log.display()));
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(&options.worker.program).args(&options.worker.arguments);
    let input = worker::request(&CountJob { case, operations })
        .map_err(|error| Error::process(VALGRIND, error.to_string()))?;
    let output = process::run(command, &input, stop)?;
    worker::reply::<CountJob>(&output)
        .unwrap_or_else(|_| Err(Error::process(VALGRIND, "ended without an answer from the program")))?;
    let file = StdFs::new().open(&log, OpenOptions::read())?;
    let mut text = vec![0; file.len()? as usize];
    file.read_exact_at(&mut text, 0)?;
    collected(&String::from_utf8_lossy(&text))
        .ok_or_else(|| Error::process(VALGRIND, "reported no number of instructions"))
}

/// Parses the line `==123== Collected : 4567`.
fn collected(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn version() -> Result<String> {
    let missing = |error: &dyn std::fmt::Display| {
        Error::invalid(format!("valgrind, whose callgrind counts instructions, cannot be run: {error}"))
    };
    let output = Command::new(VALGRIND).arg("--version").output().map_err(|error| missing(&error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Job for CountJob {
    const KIND: &'static str = "count";
    type Outcome = ();
}

impl CountJob {
    /// Runs the loop, in the process that is counted.
    ///
    /// Errors: the engine's own, and a wrong answer.
    pub fn carry_out(&self) -> Result<()> {
        cases::carry_out(self.case, self.operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every case does its work and finds the entries that it stored. Method: each case with
    /// a few hundred operations.
    #[test]
    fn cases_work() {
        for case in CountCase::ALL {
            CountJob { case, operations: 300 }.carry_out().unwrap();
        }
    }

    /// Goal: callgrind's count is found, and nothing else is taken for it.
    #[test]
    fn logs_are_read() {
        let log = "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(log), Some(123_456));
        assert_eq!(collected("==7== Events : Ir"), None);
    }
}
