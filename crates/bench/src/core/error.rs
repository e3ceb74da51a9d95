//! Errors of the lab.

use std::path::PathBuf;

use crate::core::answer::Answer;
use crate::core::digest::{Digest, Outline};

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
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] cairn_trace::Error),
    /// A store under comparison failed. The message begins with its name.
    #[error("{engine}: {what}")]
    Engine {
        /// Name of the store.
        engine: String,
        /// Its message, and the operation that failed.
        what: String,
    },
    /// A transaction in a store under comparison conflicts with another one. It can be retried.
    #[error("{engine}: {what}")]
    Conflict {
        /// Name of the store.
        engine: String,
        /// Its message.
        what: String,
    },
    /// A store returned data that differs from the data set, so its figures are invalid.
    #[error("wrong results from {contender} in {case}: expected {expected}, got {got}")]
    WrongResult {
        /// Name of the contender.
        contender: String,
        /// The case, and the place in the read order.
        case: String,
        /// Computed from the data set itself.
        expected: Digest,
        /// Computed from the store's answers.
        got: Digest,
    },
    /// An engine returned rows that differ from the data set.
    #[error("wrong answer to {query}: expected {expected}, got {got}")]
    WrongAnswer {
        /// The query.
        query: String,
        /// Computed from the data set itself.
        expected: Answer,
        /// Computed from the returned rows.
        got: Answer,
    },
    /// A Java reader returned data that differs from the data set.
    #[error("wrong results from {contender}: expected {expected}, got {got}")]
    WrongOutline {
        /// Name of the contender.
        contender: String,
        /// Computed from the data set itself.
        expected: Outline,
        /// Computed from the reader's answers.
        got: Outline,
    },
    /// An option is invalid.
    #[error("{what}")]
    Invalid {
        /// The option, its value and the expected values.
        what: String,
    },
    /// An input file has invalid content.
    #[error("{}{}: {what}", file.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Input {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1, if there is one.
        line: Option<u64>,
        /// The content found and the content expected.
        what: String,
    },
    /// A file is not a stored run.
    #[error("{} is not a stored run: {what}", file.display())]
    NoRun {
        /// The file.
        file: PathBuf,
        /// The content found and the content expected.
        what: String,
    },
    /// Another process that the lab started failed.
    #[error("{program} {what}")]
    Process {
        /// The program.
        program: String,
        /// Its exit status and the end of its output.
        what: String,
    },
    /// The run was told to stop, or its time was up.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Creates an [`Error::Engine`] with the message of a peer's own error.
    pub fn engine(engine: &str, what: impl std::fmt::Display) -> Self {
        Error::Engine { engine: engine.to_owned(), what: what.to_string() }
    }

    /// Creates an [`Error::Conflict`] with the message of a peer's own error.
    pub fn conflict(engine: &str, what: impl std::fmt::Display) -> Self {
        Error::Conflict { engine: engine.to_owned(), what: what.to_string() }
    }

    /// Returns [`Error::WrongAnswer`] if the two answers differ.
    pub fn expect_answer(query: &str, expected: Answer, got: Answer) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(Error::WrongAnswer { query: query.to_owned(), expected, got })
    }

    /// Creates an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns true if the error is about answers that differ from the data set.
    pub fn is_wrong_result(&self) -> bool {
        matches!(self, Error::WrongResult { .. } | Error::WrongOutline { .. } | Error::WrongAnswer { .. })
    }

    /// Creates an [`Error::Process`].
    pub fn process(program: impl std::fmt::Display, what: impl Into<String>) -> Self {
        Error::Process { program: program.to_string(), what: what.into() }
    }
}

/// The result of a step of a run.
pub type Result<T> = std::result::Result<T, Error>;
