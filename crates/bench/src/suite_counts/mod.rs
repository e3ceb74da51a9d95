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

use crate::engine::settings;
use crate::error::{Error, Result};
use crate::process::{self, Stop};
use crate::results::{Case, Contender, Run};
use crate::runner::begun::{Begun, Ended, was_stopped};
use crate::runner::job::{Job, JobResult};
use crate::runner::worker::Worker;
use crate::scratch::Scratch;
use crate::suite_hash::Progress;
use crate::suite_hash::recorder::{Metric, Recorder};

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
    let version = version()?;
    let cases = plan(options);
    let begun = Begun::new(NAME, &options.work_dir, None)?;
    let mut recorder = Recorder::new(1);
    let stopped =
        was_stopped(count_all(options, &cases, &mut recorder, progress, stop), &recorder, progress)?;
    let mut all = settings([("files", "in memory"), ("background", "none"), ("seed", "1")]);
    all.insert("counted by".to_owned(), version);
    let skipped = recorder.explain(CONTENDER, &mut all);
    let contender = Contender {
        name: CONTENDER.to_owned(),
        family: CONTENDER.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ours: true,
        settings: all,
        skipped,
    };
    let data = format!(
        "Instructions an operation: the difference between {} and {} operations, each in a process of its own under callgrind.",
        options.operations,
        2 * options.operations
    );
    let ended = Ended {
        mode: "custom".to_owned(),
        seed: 1,
        data,
        settings: BTreeMap::new(),
        contenders: vec![contender],
        stopped,
    };
    Ok(begun.into_run(ended, recorder))
}

fn count_all(
    options: &Options,
    cases: &[CountCase],
    recorder: &mut Recorder,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<()> {
    for (at, case) in cases.iter().enumerate() {
        stop.check()?;
        progress.group(at, cases.len(), case.name());
        let count = |factor: u64| {
            progress.step(factor as usize - 1, 2, case.name());
            count(options, *case, factor * options.operations, stop)
        };
        let counted = count(1).and_then(|once| Ok((once, count(2)?)));
        match counted {
            Ok((once, twice)) => {
                let per_operation = twice.saturating_sub(once) as f64 / options.operations as f64;
                recorder.add(CONTENDER, &case_of(*case, options.operations), METRIC, per_operation);
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                progress.note(&format!("{}: {error}", case.name()));
                recorder.problem(CONTENDER, format!("{}: {error}", case.name()));
            }
        }
    }
    Ok(())
}

fn case_of(case: CountCase, operations: u64) -> Case {
    Case {
        operation: case.name().to_owned(),
        dataset: "synthetic".to_owned(),
        entries: operations,
        value_bytes: cases::VALUE_BYTES as u32,
        compression: "none".to_owned(),
        keys: String::new(),
        distribution: String::new(),
        threads: 1,
    }
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
    let job = Job::Count(CountJob { case, operations });
    let input = serde_json::to_vec(&job).map_err(|error| Error::process(VALGRIND, error.to_string()))?;
    let output = process::run(command, &input, stop)?;
    match serde_json::from_str(&output) {
        Ok(JobResult::Counted) => {}
        Ok(JobResult::Failed(what)) => return Err(Error::process("a worker", format!("failed: {what}"))),
        _ => return Err(Error::process(VALGRIND, "ended without an answer from the program")),
    }
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

/// Runs a job's loop, in the process that is counted.
///
/// Errors: the engine's own, and a wrong answer.
pub fn carry_out(job: &CountJob) -> Result<()> {
    cases::carry_out(job.case, job.operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every case does its work and finds the entries that it stored. Method: each case with
    /// a few hundred operations.
    #[test]
    fn cases_work() {
        for case in CountCase::ALL {
            carry_out(&CountJob { case, operations: 300 }).unwrap();
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
