//! The lock of a log's writer, for operations that replace the log.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{ErrorKind, File, Fs, OpenOptions, Operation};

use super::paths::log_path;
use crate::Result;

/// The writer's lock of a log that is to be replaced. While it is held, no writer can append to the
/// log. Records appended to a log that has lost its name would be acknowledged and then lost.
///
/// Dropping it releases the lock. Drop it only after the new log and its index are in place.
#[derive(Debug)]
pub struct LogLock {
    pub(super) file: Arc<dyn File>,
}

impl LogLock {
    /// Takes the lock of the log at `path` (the name of either file); `None` if there is no log.
    ///
    /// Errors: `Busy` if a writer has the log open.
    pub fn take(fs: &Arc<dyn Fs>, path: impl AsRef<Path>) -> Result<Option<LogLock>> {
        match open_locked(fs, &log_path(path)) {
            Ok(file) => Ok(Some(LogLock { file })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Opens a log for writing and takes its lock.
pub(super) fn open_locked(fs: &Arc<dyn Fs>, path: &Path) -> Result<Arc<dyn File>> {
    lock(fs, Arc::from(fs.open(path, OpenOptions::write())?))
}

/// Takes the lock of an open log.
pub(super) fn lock(fs: &Arc<dyn Fs>, file: Arc<dyn File>) -> Result<Arc<dyn File>> {
    file.try_lock()?;
    // The log may have been replaced between the open and the lock; the lock would then be on a
    // file without a name.
    check_name(fs, &*file, "the log was replaced while it was opened")?;
    Ok(file)
}

/// Checks that the name of `file` still refers to it. Errors: `Busy` with the message `replaced` if
/// it refers to another file.
pub(super) fn check_name(fs: &Arc<dyn Fs>, file: &dyn File, replaced: &str) -> Result<()> {
    if fs.metadata(file.path())?.id == file.id() {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::WouldBlock, replaced);
    Err(cairn_vfs::Error::new(Operation::Lock, file.path(), source).into())
}
