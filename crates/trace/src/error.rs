//! Errors of trace operations, classified by how a caller can react.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::ErrorKind;

/// A failed operation on a trace.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// The file is not a trace: it does not begin with the magic number.
    #[error("{} is not a trace: it does not begin with CAIRNTRC", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// The header, or a block with a valid checksum, has contents that no writer of this format
    /// produces.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The file.
        file: PathBuf,
        /// The byte offset of the damage.
        offset: u64,
        /// The bad content, and the expected content.
        what: String,
    },
    /// The trace is intact, but this build does not support its version.
    #[error("{} cannot be read: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The version that the file has, and the supported versions.
        what: String,
    },
    /// An input file of an import is malformed.
    #[error("{input}{}: {what}", place.as_ref().map(|place| format!(", {place}")).unwrap_or_default())]
    Input {
        /// The file, or `standard input`.
        input: String,
        /// The position, such as `line 7` or `byte 12`.
        place: Option<String>,
        /// The bad content, and the expected content.
        what: String,
    },
    /// An argument or option is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and the expected values.
        what: String,
    },
}

impl Error {
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns the class of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } | Error::Foreign { .. } => ErrorKind::Unsupported,
            Error::Input { .. } | Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    /// Returns true if the disk is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full())
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

/// The result of an operation on a trace.
pub type Result<T> = std::result::Result<T, Error>;
