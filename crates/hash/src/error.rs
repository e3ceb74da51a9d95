//! The error type of the constant stores.

use std::path::{Path, PathBuf};

use cairn_vfs::{Bug, ErrorKind};

/// A failed operation on a constant store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file system operation failed.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// The stored bytes are not valid in this format.
    #[error("{} is damaged at offset {offset}: {what}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Offset of the damage in the file, in bytes.
        offset: u64,
        /// The value that was found and the value that was expected.
        what: String,
    },
    /// The file is of another type: it does not begin with the expected magic number.
    #[error("{} is not a {expected}: it {what}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The expected file type, such as `constant store`.
        expected: &'static str,
        /// How the beginning of the file differs from the expected one.
        what: String,
    },
    /// The file is sound but needs a version, size or feature that this build does not support.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The version, size or feature that the file needs, and those that are supported.
        what: String,
    },
    /// An argument, option or record is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and the expected values.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// Two files do not belong together, such as an index and the log of another store.
    #[error("{} does not belong to {}: {what}", file.display(), other.display())]
    Mismatch {
        /// The file that was opened second.
        file: PathBuf,
        /// The file that it was compared with.
        other: PathBuf,
        /// The fields that differ, with both values.
        what: String,
    },
    /// A file that another file refers to does not exist.
    #[error("{} is missing: {what}", file.display())]
    Missing {
        /// The missing file.
        file: PathBuf,
        /// The content that the file should hold, and the file that refers to it.
        what: String,
    },
    /// An earlier write failed and left this writer unusable. Drop it and open the file again.
    #[error("an earlier write to {} failed; reopen it", file.display())]
    Poisoned {
        /// The file being written.
        file: PathBuf,
    },
    /// One part of the operation succeeded and is kept; the rest failed.
    #[error("{error}; {left}")]
    Unfinished {
        /// Why the rest failed.
        #[source]
        error: Box<Error>,
        /// The part that is done, and the part that remains.
        left: String,
    },
}

impl Error {
    /// Makes an [`Error::Corruption`] of `file` at `offset`.
    pub fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    /// Makes an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns the kind of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } | Error::Mismatch { .. } | Error::Missing { .. } => {
                ErrorKind::Corruption
            }
            Error::Unsupported { .. } | Error::Foreign { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Bug(_) => ErrorKind::Bug,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
            Error::Unfinished { error, .. } => error.kind(),
        }
    }
}

/// The result of an operation on a constant store.
pub type Result<T> = std::result::Result<T, Error>;
