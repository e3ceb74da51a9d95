//! What can go wrong with a store, and what to do about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::ErrorKind;

/// A failed operation on a key-value store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// Stored bytes are not what a writer of this format writes.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// The file is sound but needs a version or feature that is not here.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it asks for, and what is supported.
        what: String,
    },
    /// An argument or option is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// An entry is made of operands, and the keyspace was opened without what combines them: see
    /// `KeyspaceOptions::merge_operator`.
    #[error("{}: key {key} cannot be merged: the keyspace was opened without its merge_operator", path.display())]
    NoMergeOperator {
        /// The store's directory.
        path: PathBuf,
        /// The key, as text or escaped.
        key: String,
    },
    /// The store was about to do what would have made its data wrong. It has done nothing, and has
    /// a bug: please report this.
    #[error("internal error of the store at {}, which has changed nothing: {what}; please report it", path.display())]
    Internal {
        /// The store's directory.
        path: PathBuf,
        /// What was about to happen.
        what: String,
    },
    /// Code that the keyspace was opened with, its merge operator or compaction filter, panicked at
    /// a key.
    ///
    /// What is stored stays as it was written. Reads of the key fail with this, a compaction that
    /// meets the key is given up and tried again after later flushes, and everything else goes on.
    #[error("keyspace {keyspace:?}, key {key}: {what} panicked: {message}")]
    Panicked {
        /// The keyspace's name.
        keyspace: String,
        /// The key, as text or escaped.
        key: String,
        /// Which code it was.
        what: &'static str,
        /// What the panic said.
        message: String,
    },
    /// What was asked for by name is not there.
    #[error("{what}")]
    NotFound {
        /// The name, and where it was looked for.
        what: String,
    },
    /// Somebody else holds it: another process has the store open, or another transaction the key.
    #[error("{what}")]
    Busy {
        /// What is held, and by whom as far as known.
        what: String,
    },
    /// Another transaction wrote what this one depends on. Run it again.
    #[error("{what}")]
    Conflict {
        /// The key and the keyspace, and what happened to it.
        what: String,
    },
    /// An earlier write or sync failed, so that the state of the files is unknown. Reads go on; to
    /// write, drop the store and open it again.
    #[error("the store at {} stopped writing after a failure: {cause}; reopen it", path.display())]
    Poisoned {
        /// The store's directory.
        path: PathBuf,
        /// The first failure.
        cause: Arc<Error>,
    },
}

impl Error {
    /// A [`Error::Corruption`] of `file` at `offset`.
    pub fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    /// An [`Error::Unsupported`] file.
    pub fn unsupported(file: &Path, what: impl Into<String>) -> Self {
        Error::Unsupported { file: file.to_owned(), what: what.into() }
    }

    /// An [`Error::Invalid`] argument.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// True when a transaction lost against another one: run it again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }

    /// True when the disk is full: what failed can be tried again when there is room.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full())
    }

    /// True when the process, or the system, may have no more files open: what failed can be tried
    /// again when some are closed.
    pub fn is_out_of_files(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_out_of_files())
    }

    /// True when nothing was done for want of room on the disk or of files that may be open. Both
    /// may be there later.
    pub(crate) fn can_be_tried_again(&self) -> bool {
        self.is_full() || self.is_out_of_files()
    }

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. }
            | Error::NoMergeOperator { .. }
            | Error::Panicked { .. }
            | Error::Internal { .. } => ErrorKind::Invalid,
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

impl From<cairn_wal::Error> for Error {
    fn from(error: cairn_wal::Error) -> Self {
        use cairn_wal::Error as Wal;
        match error {
            Wal::Vfs(error) => Error::Vfs(error),
            Wal::Corruption { file, offset, what } => Error::Corruption { file, offset, what },
            Wal::Unsupported { file, what } => Error::Unsupported { file, what },
            Wal::Invalid { what } => Error::Invalid { what },
            Wal::Poisoned { dir, cause } => {
                Error::Poisoned { path: dir, cause: Arc::new(Error::from(Wal::clone(&cause))) }
            }
            other => Error::Invalid { what: other.to_string() },
        }
    }
}

/// The result of an operation on a key-value store.
pub type Result<T> = std::result::Result<T, Error>;
