//! What can go wrong with a log, and what to do about it.

use std::path::{Path, PathBuf};

use cairn_vfs::ErrorKind;
use cairn_vfs::sync::Arc;

/// A failed operation on a log.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// Stored bytes are not what a writer of this format writes, and not what a crash may leave
    /// either.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// A segment is sound but needs a version that is not here.
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
    /// An earlier write or sync failed, so that the state of the files is unknown. Drop the log and
    /// recover it.
    #[error("the log in {} stopped writing after a failure: {cause}; reopen it", dir.display())]
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

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
        }
    }

    /// True when what is missing may be there later: room on the disk, or files that may be open.
    /// Of a log that is not poisoned, the operation can be tried again.
    pub fn can_be_tried_again(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full() || error.is_out_of_files())
    }

    /// True when the disk is full. Of a log that is not poisoned, the operation can be tried again.
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
