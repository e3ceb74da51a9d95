//! Fresh processes: the lab starts its own program again, hands it one [`Job`] and receives the
//! job's outcome.
//!
//! A new process has a heap, a page table and branch predictors that no earlier contender has
//! touched, and its peak memory belongs to one job alone.
//!
//! ```text
//!   suite ─► Worker::run(&job) ─► JSON ─► serve ─► the catalogue, which knows every kind of job
//!                 ▲                                     │
//!                 └──────────── JSON, outcome ◄─────────┘
//! ```

use std::path::PathBuf;
use std::process::Command;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::error::{Error, Result};
use super::process::{self, Stop};

/// The description of some work, which another process can do.
pub trait Job: Serialize + DeserializeOwned {
    /// The name of this kind of job, different from those of all others.
    const KIND: &'static str;

    /// The result of the work.
    type Outcome: Serialize + DeserializeOwned;
}

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
    /// Errors: those of [`process::run`], an answer that is not the job's outcome, and the job's
    /// own failure.
    pub fn run<J: Job>(&self, job: &J, stop: &Stop) -> Result<J::Outcome> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        let program = self.program.display();
        let input = request(job).map_err(|error| Error::process(program.to_string(), error.to_string()))?;
        let output = process::run(command, &input, stop)?;
        reply::<J>(&output)
            .unwrap_or_else(|error| Err(Error::process(program, format!("gave no valid answer: {error}"))))
    }
}

/// A job as it travels.
#[derive(Serialize)]
struct Envelope<'a, J> {
    kind: &'static str,
    job: &'a J,
}

/// An answer as it travels.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply<T> {
    Done(T),
    Failed(String),
}

/// Returns the standard input of a worker that is to do `job`.
pub(crate) fn request<J: Job>(job: &J) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Envelope { kind: J::KIND, job })
}

/// Parses the standard output of a worker: the outcome of its job, or the job's failure.
pub(crate) fn reply<J: Job>(output: &str) -> serde_json::Result<Result<J::Outcome>> {
    Ok(match serde_json::from_str(output)? {
        Reply::Done(outcome) => Ok(outcome),
        Reply::Failed(what) => Err(Error::process("a worker", format!("failed: {what}"))),
    })
}

/// A job that a worker has received.
#[derive(Debug, Deserialize)]
pub struct Received {
    kind: String,
    job: serde_json::Value,
}

impl Received {
    /// Returns the kind of the job, to be compared with [`Job::KIND`].
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Does a job of kind `J` by `work`.
    ///
    /// Errors: the job is not of this kind; the error of `work`.
    pub fn carry_out<J: Job>(&self, work: impl FnOnce(J) -> Result<J::Outcome>) -> Result<serde_json::Value> {
        let job = J::deserialize(&self.job).map_err(|error| unreadable(&error))?;
        let outcome = work(job)?;
        serde_json::to_value(outcome)
            .map_err(|error| Error::invalid(format!("the outcome cannot be written: {error}")))
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Error {
    Error::invalid(format!("the job cannot be read: {error}"))
}

/// Does a worker's work: parses a job from JSON, has `carry_out` do it, and returns the reply as
/// JSON. Never fails: errors are part of the reply.
pub fn serve(input: &str, carry_out: impl FnOnce(&Received) -> Result<serde_json::Value>) -> String {
    let received = serde_json::from_str(input).map_err(|error| unreadable(&error));
    let reply = match received.and_then(|received| carry_out(&received)) {
        Ok(outcome) => Reply::Done(outcome),
        Err(error) => Reply::Failed(error.to_string()),
    };
    serde_json::to_string(&reply).unwrap_or_else(|error| format!("{{\"failed\":\"{error}\"}}"))
}

/// Why a worker has no sample. A wrong answer costs a store all its measurements, so it stays
/// distinguishable from other errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// [`Error::WrongResult`].
    WrongResult {
        /// The contender.
        contender: String,
        /// The case, and the position in the read order.
        case: String,
        /// Computed from the data set itself.
        expected: Digest,
        /// Computed from the values that the store returned.
        got: Digest,
    },
    /// Any other error, as text.
    Other(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::WrongResult { contender, case, expected, got } => {
                Failure::WrongResult { contender, case, expected, got }
            }
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::WrongResult { contender, case, expected, got } => {
                Error::WrongResult { contender, case, expected, got }
            }
            Failure::Other(what) => Error::process("a worker", format!("said: {what}")),
        }
    }
}
