//! What can go wrong with a database, and what to do about it.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_vfs::ErrorKind;

/// A failed operation on a database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A page could not be had, or not be written.
    #[error(transparent)]
    Pool(#[from] cairn_pool::Error),
    /// Pages are not what a writer of this format writes.
    #[error("page {page} of {} is damaged: {what}", file.display())]
    Corruption {
        /// The database file.
        file: PathBuf,
        /// The page.
        page: u32,
        /// What was found and what was expected.
        what: String,
    },
    /// The log refused a record.
    #[error("the log cannot be written: {cause}")]
    Log {
        /// What it said.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// A log that cannot be read.
    #[error(transparent)]
    Recovery(#[from] Arc<cairn_wal::Error>),
    /// An argument or setting is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// A key or value is longer than a page has room for.
    #[error("a record of {key} + {value} bytes is too long: the most is {most} together")]
    TooLong {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the value.
        value: usize,
        /// The most that both may have.
        most: usize,
    },
    /// The file has as many pages as it can.
    #[error("the database has no page left: 2^32 is the most")]
    NoPages,
}

impl Error {
    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Pool(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Log { .. } => ErrorKind::Io,
            Error::Vfs(error) => error.kind(),
            Error::Recovery(error) => error.kind(),
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::TooLong { .. } | Error::NoPages => ErrorKind::Invalid,
        }
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

impl From<cairn_wal::Error> for Error {
    fn from(error: cairn_wal::Error) -> Self {
        Error::Recovery(Arc::new(error))
    }
}

/// The result of an operation on a database.
pub type Result<T, E = Error> = std::result::Result<T, E>;
