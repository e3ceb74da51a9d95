//! The errors of a store and how a caller can react to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Bug, ErrorKind};

/// A failed operation on a key-value store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// Stored bytes do not conform to the file format.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// The byte offset of the damage.
        offset: u64,
        /// The bytes or value found, and the expected ones.
        what: String,
    },
    /// The file is intact but requires a version or feature that this build does not support.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The required version or feature, and the supported ones.
        what: String,
    },
    /// An argument or option is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and the expected values.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake. The operation was refused
    /// before it could corrupt data. Please report this error.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// An entry consists of merge operands, but the keyspace was opened without a merge operator.
    /// See `KeyspaceOptions::merge_operator`.
    #[error("{}: key {key} cannot be merged: the keyspace was opened without its merge_operator", path.display())]
    NoMergeOperator {
        /// The store's directory.
        path: PathBuf,
        /// The key, as text or escaped.
        key: String,
    },
    /// User code of the keyspace, its merge operator or compaction filter, panicked at a key.
    ///
    /// Stored data stays unchanged. Reads of the key fail with this error. A compaction that meets
    /// the key is abandoned and retried after later flushes. All other operations continue.
    #[error("keyspace {keyspace:?}, key {key}: {what} panicked: {message}")]
    Panicked {
        /// The keyspace's name.
        keyspace: String,
        /// The key, as text or escaped.
        key: String,
        /// The code that panicked.
        what: &'static str,
        /// The message of the panic.
        message: String,
    },
    /// A named object does not exist.
    #[error("{what}")]
    NotFound {
        /// The name, and the place where it was searched for.
        what: String,
    },
    /// The store is open in another process, or the key is locked by another transaction.
    #[error("{what}")]
    Busy {
        /// The store or key, and its holder if known.
        what: String,
    },
    /// Another transaction wrote data on which this one depends. Run the transaction again.
    #[error("{what}")]
    Conflict {
        /// The key, its keyspace, and the conflicting write.
        what: String,
    },
    /// An earlier write or sync failed, so the state of the files is unknown. Reads continue. To
    /// write again, drop the store and reopen it.
    #[error("the store at {} refuses writes after a failure: {cause}; reopen it", path.display())]
    Poisoned {
        /// The store's directory.
        path: PathBuf,
        /// The first failure.
        cause: Arc<Error>,
    },
}

impl Error {
    /// Creates an [`Error::Corruption`] of `file` at `offset`.
    pub fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    /// Creates an [`Error::Unsupported`] for `file`.
    pub fn unsupported(file: &Path, what: impl Into<String>) -> Self {
        Error::Unsupported { file: file.to_owned(), what: what.into() }
    }

    /// Creates an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns true if a transaction conflicted with another one and should be run again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }

    /// Returns true if the disk is full. The operation can be retried once there is space.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full())
    }

    /// Returns true if the process or the system has reached its limit of open files. The operation
    /// can be retried once some are closed.
    pub fn is_out_of_files(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_out_of_files())
    }

    /// Returns true if the operation had no effect because the disk was full or the limit of open
    /// files was reached. Both conditions may pass.
    pub(crate) fn is_retryable(&self) -> bool {
        self.is_full() || self.is_out_of_files()
    }

    /// Returns the class of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } | Error::NoMergeOperator { .. } | Error::Panicked { .. } => {
                ErrorKind::Invalid
            }
            Error::Bug(_) => ErrorKind::Bug,
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::Busy { .. } => ErrorKind::Busy,
            Error::Conflict { .. } => ErrorKind::Conflict,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
        }
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

impl From<cairn_lsm_policy::InvalidOption> for Error {
    fn from(option: cairn_lsm_policy::InvalidOption) -> Self {
        Error::invalid(option.to_string())
    }
}

impl From<cairn_wal::Error> for Error {
    fn from(error: cairn_wal::Error) -> Self {
        use cairn_wal::Error as Wal;
        match error {
            Wal::Vfs(error) => Error::Vfs(error),
            Wal::Corruption { file, offset, what } => Error::Corruption { file, offset, what },
            Wal::Unsupported { file, what } => Error::Unsupported { file, what },
            Wal::Invalid { what } => Error::Invalid { what },
            Wal::Bug(bug) => Error::Bug(bug),
            Wal::Poisoned { dir, cause } => {
                Error::Poisoned { path: dir, cause: Arc::new(Error::from(Wal::clone(&cause))) }
            }
            other => Error::Invalid { what: other.to_string() },
        }
    }
}

/// The result of an operation on a key-value store.
pub type Result<T> = std::result::Result<T, Error>;
