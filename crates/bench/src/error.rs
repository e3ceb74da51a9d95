//! What can go wrong in the lab.

use std::path::PathBuf;

use crate::digest::{Digest, Outline};
use crate::suite_sql::Answer;

/// A failed step of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// One of Cairn's constant stores failed.
    #[error(transparent)]
    Hash(#[from] cairn_hash::Error),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] cairn_trace::Error),
    /// A store that is compared failed. Its own message follows its name.
    #[error("{engine}: {what}")]
    Engine {
        /// The store.
        engine: String,
        /// Its message, and what was being done.
        what: String,
    },
    /// Another transaction was in the way of one in a store that is compared: it may be tried
    /// again.
    #[error("{engine}: {what}")]
    Conflict {
        /// The store.
        engine: String,
        /// Its message.
        what: String,
    },
    /// A store returned something else than the data holds, so its figures are worth nothing.
    #[error("wrong results from {contender} in {case}: expected {expected}, got {got}")]
    WrongResult {
        /// The contender.
        contender: String,
        /// The case, and where in the read order.
        case: String,
        /// Computed from the data set itself.
        expected: Digest,
        /// Computed from what the store returned.
        got: Digest,
    },
    /// An engine returned other rows than the data holds.
    #[error("wrong answer to {query}: expected {expected}, got {got}")]
    WrongAnswer {
        /// What was asked.
        query: String,
        /// Computed from the data itself.
        expected: Answer,
        /// Computed from what came back.
        got: Answer,
    },
    /// A Java reader returned something else than the data holds.
    #[error("wrong results from {contender}: expected {expected}, got {got}")]
    WrongOutline {
        /// The contender.
        contender: String,
        /// Computed from the data set itself.
        expected: Outline,
        /// Computed from what the reader returned.
        got: Outline,
    },
    /// An option is wrong.
    #[error("{what}")]
    Invalid {
        /// The option, its value and what was expected.
        what: String,
    },
    /// An input file does not hold what it should.
    #[error("{}{}: {what}", file.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Input {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1, where there is one.
        line: Option<u64>,
        /// What was found and what was expected.
        what: String,
    },
    /// A file is no run that the lab has stored.
    #[error("{} is not a stored run: {what}", file.display())]
    NoRun {
        /// The file.
        file: PathBuf,
        /// What was found, and what was expected.
        what: String,
    },
    /// Another process that the lab started failed.
    #[error("{program} {what}")]
    Process {
        /// What was run.
        program: String,
        /// How it ended and the end of what it said.
        what: String,
    },
    /// The run was told to stop, or its time was up.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An [`Error::Engine`] with the message of a peer's own error.
    pub fn engine(engine: &str, what: impl std::fmt::Display) -> Self {
        Error::Engine { engine: engine.to_owned(), what: what.to_string() }
    }

    /// An [`Error::Conflict`] with the message of a peer's own error.
    pub fn conflict(engine: &str, what: impl std::fmt::Display) -> Self {
        Error::Conflict { engine: engine.to_owned(), what: what.to_string() }
    }

    /// [`Error::WrongAnswer`], unless both are the same.
    pub fn expect_answer(query: &str, expected: Answer, got: Answer) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(Error::WrongAnswer { query: query.to_owned(), expected, got })
    }

    /// An [`Error::Invalid`] option.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// True where what was returned is not what the data holds.
    pub fn is_wrong_result(&self) -> bool {
        matches!(self, Error::WrongResult { .. } | Error::WrongOutline { .. } | Error::WrongAnswer { .. })
    }

    /// An [`Error::Process`].
    pub fn process(program: impl std::fmt::Display, what: impl Into<String>) -> Self {
        Error::Process { program: program.to_string(), what: what.into() }
    }
}

/// The result of a step of a run.
pub type Result<T> = std::result::Result<T, Error>;
