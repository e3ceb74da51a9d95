//! Fresh processes: the lab starts its own program again, hands it one [`Job`] and receives one
//! [`JobResult`].
//!
//! A new process has a heap, a page table and branch predictors that no earlier contender has
//! touched, and its peak memory belongs to one job alone.

use std::path::PathBuf;
use std::process::Command;

use super::bench::Bench;
use super::job::{Effort, Failure, Job, JobResult};
use crate::catalog;
use crate::error::{Error, Result};
use crate::process::{self, Stop};
use crate::{suite_counts, suite_kv};

/// How to start a worker: a program that, given these arguments, calls [`serve`] on its standard
/// input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    /// The program, normally the running one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Worker {
    /// Returns the running program with the argument `bench-worker`.
    ///
    /// Errors: [`Error::Process`] when the system does not report the program's path.
    pub fn this_program() -> Result<Worker> {
        let program =
            std::env::current_exe().map_err(|error| Error::process("this program", error.to_string()))?;
        Ok(Worker { program, arguments: vec!["bench-worker".to_owned()] })
    }

    /// Runs `job` in a new process.
    ///
    /// Errors: those of [`process::run`], an answer that is not a [`JobResult`], and the job's own
    /// failure.
    pub fn run(&self, job: &Job, stop: &Stop) -> Result<JobResult> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let program = self.program.display();
        let input = serde_json::to_vec(job)
            .map_err(|error| Error::process(program.to_string(), error.to_string()))?;
        let output = process::run(command, &input, stop)?;
        match serde_json::from_str(&output) {
            Ok(JobResult::Failed(what)) => Err(Error::process("a worker", format!("failed: {what}"))),
            Ok(result) => Ok(result),
            Err(error) => Err(Error::process(program, format!("gave no valid answer: {error}"))),
        }
    }
}

/// Does a worker's work: parses a [`Job`] from JSON, carries it out, and returns a [`JobResult`] as
/// JSON. Never fails: errors are part of the answer.
pub fn serve(input: &str) -> String {
    let result = serde_json::from_str(input)
        .map_err(|error| Error::invalid(format!("the job cannot be read: {error}")))
        .and_then(|job| carry_out(&job));
    let result = result.unwrap_or_else(|error| JobResult::Failed(error.to_string()));
    serde_json::to_string(&result).unwrap_or_else(|error| format!("{{\"failed\":\"{error}\"}}"))
}

fn carry_out(job: &Job) -> Result<JobResult> {
    match job {
        Job::Build { data, store, compression, dir } => {
            let store = catalog::store(store)?;
            let effort = Effort { order_keys: 1, warm_up_seconds: 0.0, seconds: 0.0 };
            let bench = Bench::new(data, 0, effort)?;
            Ok(JobResult::Built(bench.build(&*store, dir, *compression)?))
        }
        Job::Read { data, seed, subject, cells, effort } => {
            let store = catalog::store(&subject.store)?;
            let mut bench = Bench::new(data, *seed, *effort)?;
            Ok(JobResult::Read(bench.read_cells(&*store, subject, cells)?))
        }
        Job::Count(job) => suite_counts::carry_out(job).map(|()| JobResult::Counted),
        Job::Kv(job) => Ok(JobResult::Kv(suite_kv::job::carry_out(job).map_err(Failure::from))),
    }
}
