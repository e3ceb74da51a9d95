//! What can go wrong with an index file, and what to do about it.

use std::path::{Path, PathBuf};

use cairn_vfs::ErrorKind;

use crate::{Damage, PackError};

/// A failed operation on an index file.
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
        /// What was expected.
        what: String,
    },
    /// The file is sound but of another version.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What it asks for, and what is supported.
        what: String,
    },
    /// A row that no page can hold, or that does not have the index's columns.
    #[error(transparent)]
    Row(#[from] PackError),
    /// An argument is wrong.
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

    pub(crate) fn damage(file: &Path, page_offset: u64, damage: Damage) -> Self {
        Error::corruption(file, page_offset + u64::from(damage.offset), format!("expected {}", damage.what))
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
            Error::Row(_) | Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }
}

/// The result of an operation on an index file.
pub type Result<T> = std::result::Result<T, Error>;
