//! The lock that a log's writer holds, for those that put another log in its place.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{ErrorKind, File, Fs, OpenOptions, Operation};

use super::paths::log_path;
use crate::Result;

/// The writer's lock of a log that is to be replaced. While it is held nobody appends to that log:
/// what a writer appended to a log that has lost its name would be acknowledged, and gone.
///
/// Dropping gives it up; do that when the new log and its index are in their places.
#[derive(Debug)]
pub struct LogLock {
    pub(super) file: Arc<dyn File>,
}

impl LogLock {
    /// Takes the lock of the log at `path` (either file's name); `None` when there is no log.
    ///
    /// Errors: `Busy` while somebody writes it.
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
    // Between the open and the lock the log may have been replaced; the lock would then be on a
    // file without a name.
    check_name(fs, &*file, "the log was replaced while it was opened")?;
    Ok(file)
}

/// Errors: `Busy`, saying what was `replaced`, when the name of `file` means another one by now.
pub(super) fn check_name(fs: &Arc<dyn Fs>, file: &dyn File, replaced: &str) -> Result<()> {
    if fs.metadata(file.path())?.id == file.id() {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::WouldBlock, replaced);
    Err(cairn_vfs::Error::new(Operation::Lock, file.path(), source).into())
}
