//! Errors of a buffer pool, and how to handle them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::{Bug, ErrorKind};

use crate::write_ahead::Lsn;

/// A failed operation of a pool.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// A page's bytes differ from the bytes that were written.
    #[error("page {page} of {} (offset {offset}) is damaged: {what}", file.display())]
    Corruption {
        /// The file.
        file: PathBuf,
        /// The page number.
        page: u32,
        /// The offset of the page in bytes.
        offset: u64,
        /// The damage: found and expected values.
        what: String,
    },
    /// The file ends before the page does.
    #[error("page {page} of {} was requested, but the file ends at {len} bytes, before the end of the page", file.display())]
    BeyondEnd {
        /// The file.
        file: PathBuf,
        /// The page number.
        page: u32,
        /// The file's length in bytes.
        len: u64,
    },
    /// All frames stayed pinned for the whole wait limit.
    #[error(
        "all {frames} frames of the pool were in use for {waited:?}; give the pool more frames, or hold fewer guards at a time"
    )]
    Exhausted {
        /// The number of frames.
        frames: usize,
        /// How long the thread waited.
        waited: Duration,
    },
    /// Other threads held a page's latch for the whole wait limit.
    #[error("page {page} of {} was held by others for {waited:?}: a deadlock, or a guard that was kept", file.display())]
    Timeout {
        /// The file.
        file: PathBuf,
        /// The page number.
        page: u32,
        /// How long the thread waited.
        waited: Duration,
    },
    /// The log could not be made durable, so the pages it covers cannot be written.
    #[error("the log cannot be made durable up to {lsn}: {cause}")]
    Log {
        /// The required position.
        lsn: Lsn,
        /// The error of the log.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An earlier sync of the file failed, so its content on disk is unknown.
    #[error("{} is no longer read or written since a sync failed: {cause}; open it again and recover", file.display())]
    Poisoned {
        /// The file.
        file: PathBuf,
        /// The failed sync.
        cause: Arc<Error>,
    },
    /// A file is sound but needs a version that is not supported.
    #[error("{} cannot be used: {what}", file.display())]
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The required version, and the supported ones.
        what: String,
    },
    /// An argument or option is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// The system cannot provide the memory, or cannot start another thread.
    #[error("no memory for {what}: {cause}")]
    Memory {
        /// The purpose of the memory.
        what: String,
        /// The error of the operating system.
        cause: Arc<std::io::Error>,
    },
}

impl Error {
    /// Creates an [`Error::Invalid`].
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    pub(crate) fn memory(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Error::Memory { what: what.into(), cause: Arc::new(cause) }
    }

    pub(crate) fn corruption(file: &Path, page: u32, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), page, offset, what: what.into() }
    }

    /// Returns the kind of the error: the action a caller can take.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::BeyondEnd { .. } => ErrorKind::NotFound,
            Error::Exhausted { .. } | Error::Timeout { .. } => ErrorKind::Busy,
            Error::Log { .. } => ErrorKind::Io,
            Error::Memory { .. } => ErrorKind::Io,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Invalid { .. } => ErrorKind::Invalid,
            Error::Bug(_) => ErrorKind::Bug,
        }
    }

    /// Returns true when the disk is full. The operation can be retried when there is space.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Vfs(error) if error.is_full())
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

/// The result of an operation of a pool.
pub type Result<T, E = Error> = std::result::Result<T, E>;
