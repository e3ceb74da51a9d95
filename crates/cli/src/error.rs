//! Errors of commands, with the messages that the user reads.

use std::io;

/// A failed command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From a constant store.
    #[error(transparent)]
    Hash(#[from] cairn_hash::Error),
    /// From a key-value store.
    #[error(transparent)]
    Kv(#[from] cairn_kv::Error),
    /// From a statement or its database.
    #[cfg(feature = "sql")]
    #[error("{0}")]
    Sql(#[from] cairn_sql::Error),
    /// A failed statement with its text and place.
    #[cfg(feature = "sql")]
    #[error("{}", crate::statement_error::explained(text, error, place.as_deref()))]
    Statement {
        /// The statement.
        text: String,
        /// The cause.
        error: cairn_sql::Error,
        /// The file and line where the statement ends.
        place: Option<String>,
    },
    /// From the server.
    #[cfg(feature = "sql")]
    #[error(transparent)]
    Server(#[from] cairn_server::Error),
    /// Statements failed, each of which was already reported.
    #[cfg(feature = "sql")]
    #[error("{}", crate::output::counted(*.0, "statement failed", "statements failed"))]
    Statements(u64),
    /// From a trace.
    #[error(transparent)]
    Trace(#[from] cairn_trace::Error),
    /// From the file system.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// From the simulator.
    #[error(transparent)]
    Sim(#[from] cairn_sim::Error),
    /// From the lab.
    #[error(transparent)]
    Bench(cairn_bench::Error),
    /// An input is malformed.
    #[error("{input}{}: {what}", place.as_ref().map(|place| format!(", {place}")).unwrap_or_default())]
    Input {
        /// The file, or `standard input`.
        input: String,
        /// The position, such as `line 7` or `row 12`.
        place: Option<String>,
        /// The bad content, and the expected content.
        what: String,
    },
    /// An invalid argument that is only detected when it is used.
    #[error("{0}")]
    Usage(String),
    /// A verified store or trace is damaged; details are on standard output.
    #[error("{0}")]
    Damaged(String),
    /// The user ended the command.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// Reading standard input failed.
    #[error("cannot read standard input: {0}")]
    Stdin(#[source] io::Error),
}

impl From<cairn_bench::Error> for Error {
    /// Maps a run that the user has ended to [`Error::Interrupted`].
    fn from(error: cairn_bench::Error) -> Self {
        match error {
            cairn_bench::Error::Interrupted => Error::Interrupted("there is no result yet".to_owned()),
            error => Error::Bench(error),
        }
    }
}

impl Error {
    /// Creates an [`Error::Usage`].
    pub fn usage(what: impl Into<String>) -> Self {
        Error::Usage(what.into())
    }

    /// Converts the error of a value stream, which may wrap an error of the store.
    pub fn of_value(error: io::Error) -> Self {
        match error.downcast::<cairn_hash::Error>() {
            Ok(error) => Error::Hash(error),
            Err(error) => Error::usage(format!("a value cannot be read: {error}")),
        }
    }

    /// Returns true if the reader of standard output has closed the pipe.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The result of a command or a part of one.
pub type Result<T, E = Error> = std::result::Result<T, E>;
