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
    #[error("{} is damaged at offset {offset}: {detail}", file.display())]
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Offset of the damage in the file, in bytes.
        offset: u64,
        /// The value that was found and the value that was expected.
        detail: String,
    },
    /// The file is of another type: it does not begin with the expected magic number.
    #[error("{} is not a {expected}: it {detail}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// The expected file type, such as `constant store`.
        expected: &'static str,
        /// How the beginning of the file differs from the expected one.
        detail: String,
    },
    /// The file is sound but needs a version, size or feature that this build does not support.
    #[error("{} cannot be used: {detail}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The version, size or feature that the file needs, and those that are supported.
        detail: String,
    },
    /// An argument, option or record is invalid.
    #[error("{detail}")]
    Invalid {
        /// The argument, its value and the expected values.
        detail: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// Two files do not belong together, such as an index and the log of another store.
    #[error("{} does not belong to {}: {detail}", file.display(), other.display())]
    Mismatch {
        /// The file that was opened second.
        file: PathBuf,
        /// The file that it was compared with.
        other: PathBuf,
        /// The fields that differ, with both values.
        detail: String,
    },
    /// A file that another file refers to does not exist.
    #[error("{} is missing: {detail}", file.display())]
    Missing {
        /// The missing file.
        file: PathBuf,
        /// The content that the file should hold, and the file that refers to it.
        detail: String,
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
    pub fn corruption(file: &Path, offset: u64, detail: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, detail: detail.into() }
    }

    /// Makes an [`Error::Invalid`].
    pub fn invalid(detail: impl Into<String>) -> Self {
        Error::Invalid { detail: detail.into() }
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
