//! What can go wrong in a command, in the words that the user reads.

use std::io;

/// A failed command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A constant store.
    #[error(transparent)]
    Hash(#[from] cairn_hash::Error),
    /// A key-value store.
    #[error(transparent)]
    Kv(#[from] cairn_kv::Error),
    /// A statement, or the database that it is for.
    #[cfg(feature = "sql")]
    #[error("{0}")]
    Sql(#[from] cairn_sql::Error),
    /// A statement that failed, with its text, and where that stands.
    #[cfg(feature = "sql")]
    #[error("{}", crate::sql::explained(text, error, place.as_deref()))]
    Statement {
        /// The statement.
        text: String,
        /// What is wrong with it.
        error: cairn_sql::Error,
        /// The file and line where it ends.
        place: Option<String>,
    },
    /// The server.
    #[cfg(feature = "sql")]
    #[error(transparent)]
    Server(#[from] cairn_server::Error),
    /// Statements failed, and were told so one by one.
    #[cfg(feature = "sql")]
    #[error("{}", crate::output::counted(*.0, "statement failed", "statements failed"))]
    Statements(u64),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] cairn_trace::Error),
    /// The file system.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// The simulator.
    #[error(transparent)]
    Sim(#[from] cairn_sim::Error),
    /// The lab.
    #[error(transparent)]
    Bench(cairn_bench::Error),
    /// An input is not what it should be.
    #[error("{input}{}: {what}", place.as_ref().map(|place| format!(", {place}")).unwrap_or_default())]
    Input {
        /// The file, or `standard input`.
        input: String,
        /// Such as `line 7` or `row 12`.
        place: Option<String>,
        /// What was found and what was expected.
        what: String,
    },
    /// An argument is wrong in a way that only shows when it is used.
    #[error("{0}")]
    Usage(String),
    /// Something that was checked is not sound; what exactly is on standard output.
    #[error("{0}")]
    Damaged(String),
    /// The user ended it.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Standard output does not take what is written.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// Standard input does not give.
    #[error("cannot read standard input: {0}")]
    Stdin(#[source] io::Error),
}

impl From<cairn_bench::Error> for Error {
    /// What the user has ended is no error of the lab.
    fn from(error: cairn_bench::Error) -> Self {
        match error {
            cairn_bench::Error::Interrupted => Error::Interrupted("there is no result yet".to_owned()),
            error => Error::Bench(error),
        }
    }
}

impl Error {
    /// An [`Error::Usage`].
    pub fn usage(what: impl Into<String>) -> Self {
        Error::Usage(what.into())
    }

    /// The error of a value stream, which may carry one of ours.
    pub fn of_value(error: io::Error) -> Self {
        match error.downcast::<cairn_hash::Error>() {
            Ok(error) => Error::Hash(error),
            Err(error) => Error::usage(format!("a value cannot be read: {error}")),
        }
    }

    /// True when whoever read our output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The result of a command or a part of one.
pub type Result<T, E = Error> = std::result::Result<T, E>;
