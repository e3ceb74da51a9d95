//! The error type of index files.

use std::path::{Path, PathBuf};

use cairn_vfs::{Bug, ErrorKind};

use crate::{Damage, PackError};

/// A failed operation on an index file.
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
        /// Description of the damage.
        what: String,
    },
    /// The file is sound but has another version.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The version that the file needs, and the supported one.
        what: String,
    },
    /// A row that does not fit a page, or that does not match the columns of the index.
    #[error(transparent)]
    Row(#[from] PackError),
    /// An argument is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and the expected values.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
}

impl Error {
    pub(crate) fn corruption(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), offset, what: what.into() }
    }

    pub(crate) fn damage(file: &Path, page_offset: u64, damage: Damage) -> Self {
        Error::corruption(file, page_offset + u64::from(damage.offset), format!("expected {}", damage.what))
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    /// Returns the kind of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Row(_) | Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Bug(_) => ErrorKind::Bug,
        }
    }
}

/// The result of an operation on an index file.
pub type Result<T> = std::result::Result<T, Error>;
