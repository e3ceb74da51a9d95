//! What can go wrong with a constant store, and what to do about it.

use std::path::{Path, PathBuf};

use cairn_vfs::ErrorKind;

/// A failed operation on a constant store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
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
    /// The file is something else than was expected: it does not begin as one of these does.
    #[error("{} is not a {expected}: it {what}", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// What it should have been, such as `constant store`.
        expected: &'static str,
        /// How it begins instead, or does not.
        what: String,
    },
    /// The file is sound but needs a version, size or feature that is not here.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it asks for, and what is supported.
        what: String,
    },
    /// An argument, option or record is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// Two files that do not belong together, such as an index and another log.
    #[error("{} does not belong to {}: {what}", file.display(), other.display())]
    Mismatch {
        /// The file that was opened second.
        file: PathBuf,
        /// The file it was held against.
        other: PathBuf,
        /// Which fields differ, with both values.
        what: String,
    },
    /// A file that another one says is there.
    #[error("{} is missing: {what}", file.display())]
    Missing {
        /// The file that is not there.
        file: PathBuf,
        /// What it should hold, and which file says so.
        what: String,
    },
    /// An earlier write failed and left this writer unusable: drop it and open the file again.
    #[error("an earlier write to {} failed; reopen it", file.display())]
    Poisoned {
        /// The file being written.
        file: PathBuf,
    },
    /// A part of the operation is done, and stays; the rest failed.
    #[error("{error}; {left}")]
    Unfinished {
        /// Why the rest failed.
        #[source]
        error: Box<Error>,
        /// What is there already, and what is left to do.
        left: String,
    },
}

impl Error {
    /// A [`Error::Corruption`] of `file` at `offset`.
    pub fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    /// An [`Error::Invalid`] argument.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } | Error::Mismatch { .. } | Error::Missing { .. } => {
                ErrorKind::Corruption
            }
            Error::Unsupported { .. } | Error::Foreign { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
            Error::Unfinished { error, .. } => error.kind(),
        }
    }
}

/// The result of an operation on a constant store.
pub type Result<T> = std::result::Result<T, Error>;
