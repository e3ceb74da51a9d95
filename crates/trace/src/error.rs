//! What can go wrong with a trace, and what to do about it.

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
    /// The file is something else: it does not begin as a trace does.
    #[error("{} is not a trace: it does not begin with CAIRNTRC", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// The header of a trace, or its sound blocks, do not hold what a writer of this format writes.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The file.
        file: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// The trace is sound but needs a version that is not here.
    #[error("{} cannot be read: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it asks for, and what is supported.
        what: String,
    },
    /// A file to be imported is not what it should be.
    #[error("{input}{}: {what}", place.as_ref().map(|place| format!(", {place}")).unwrap_or_default())]
    Input {
        /// The file, or `standard input`.
        input: String,
        /// Such as `line 7` or `byte 12`.
        place: Option<String>,
        /// What was found and what was expected.
        what: String,
    },
    /// An argument or option is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
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

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } | Error::Foreign { .. } => ErrorKind::Unsupported,
            Error::Input { .. } | Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    /// True when the disk is full.
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
