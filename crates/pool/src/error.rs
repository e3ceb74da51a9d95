//! What can go wrong with a page, and what to do about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::ErrorKind;

use crate::write_ahead::Lsn;

/// A failed operation of a pool.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// A page's bytes are not what was written there.
    #[error("page {page} of {} (offset {offset}) is damaged: {what}", file.display())]
    Corruption {
        /// The file.
        file: PathBuf,
        /// The page.
        page: u32,
        /// Where it begins, in bytes.
        offset: u64,
        /// What was found and what was expected.
        what: String,
    },
    /// The file ends before the page does.
    #[error("page {page} of {} was requested, but the file ends at {len} bytes, before the end of the page", file.display())]
    NotThere {
        /// The file.
        file: PathBuf,
        /// The page.
        page: u32,
        /// The file's length in bytes.
        len: u64,
    },
    /// Every frame was pinned, for as long as a thread waits for one.
    #[error(
        "all {frames} frames of the pool were in use for {waited:?}; give the pool more frames, or hold fewer guards at a time"
    )]
    Exhausted {
        /// How many there are.
        frames: usize,
        /// How long it waited.
        waited: Duration,
    },
    /// A page's latch was held by others, for as long as a thread waits for one.
    #[error("page {page} of {} was held by others for {waited:?}: a deadlock, or a guard that was kept", file.display())]
    Timeout {
        /// The file.
        file: PathBuf,
        /// The page.
        page: u32,
        /// How long it waited.
        waited: Duration,
    },
    /// The log could not be made durable, so that the pages it describes cannot be written.
    #[error("the log cannot be made durable up to {lsn}: {cause}")]
    Log {
        /// How far it had to be.
        lsn: Lsn,
        /// What it said.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An earlier sync of the file failed, so that what is on the disk is unknown.
    #[error("{} is no longer read or written since a sync failed: {cause}; open it again and recover", file.display())]
    Poisoned {
        /// The file.
        file: PathBuf,
        /// The failure.
        cause: Arc<Error>,
    },
    /// An argument or option is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// There is no memory for it.
    #[error("no memory for {what}: {cause}")]
    Memory {
        /// What it was for.
        what: String,
        /// What the operating system said.
        cause: Arc<std::io::Error>,
    },
}

impl Error {
    /// An [`Error::Invalid`] argument.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::Invalid { what: what.into() }
    }

    pub(crate) fn memory(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |cause| Error::Memory { what: what.into(), cause: Arc::new(cause) }
    }

    pub(crate) fn corruption(file: &Path, page: u32, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.to_owned(), page, offset, what: what.into() }
    }

    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Vfs(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::NotThere { .. } => ErrorKind::NotFound,
            Error::Exhausted { .. } | Error::Timeout { .. } => ErrorKind::Busy,
            Error::Log { .. } => ErrorKind::Io,
            Error::Memory { .. } => ErrorKind::Io,
            Error::Poisoned { .. } => ErrorKind::Poisoned,
            Error::Invalid { .. } => ErrorKind::Invalid,
        }
    }

    /// True when the disk is full: what failed can be tried again when there is room.
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
