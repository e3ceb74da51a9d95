//! Errors of a log, and how to handle them.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Bug, ErrorKind};

/// A failed operation on a log.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// Stored bytes are neither the output of a writer of this format nor a state that a crash can
    /// leave.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// The offset of the damage in bytes.
        offset: u64,
        /// The damage: found and expected values.
        what: String,
    },
    /// A segment is sound but needs a version that is not supported.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The required version, and the supported ones.
        what: String,
    },
    /// An argument or option is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// An earlier write or sync failed, so that the state of the files is unknown. Drop the log and
    /// recover it.
    #[error("the log in {} refuses writes after a failure: {cause}; reopen it", dir.display())]
    Poisoned {
        /// The log's directory.
        dir: PathBuf,
        /// The first failure.
        cause: Arc<Error>,
    },
}

impl Error {
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns the kind of the error: the action a caller can take.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Bug(_) => ErrorKind::Bug,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
        }
    }

    /// Returns true when the missing resource may become available later: disk space, or open
    /// files. Unless the log is poisoned, the operation can be retried.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full() || error.is_out_of_files())
    }

    /// Returns true when the disk is full. Unless the log is poisoned, the operation can be
    /// retried.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full())
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

/// The result of an operation on a log.
pub type Result<T> = std::result::Result<T, Error>;
