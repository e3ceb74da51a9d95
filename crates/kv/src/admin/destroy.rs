//! Removing a store.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, StdFs};

use crate::db::open::take_lock;
use crate::db::reserve::LOCK_NAME;
use crate::version::FileName;
use crate::{Error, Result};

/// Removes the files of the store in `path` and nothing else: manifest, tables, blob files, log,
/// lock. The directory stays, and so do foreign files and files that a repair has set aside.
///
/// A crash in the middle leaves a directory that does not open as a store; a second call finishes
/// the removal.
///
/// Errors: [`Error::Busy`] when a process has the store open; [`Error::NotFound`] when there is no
/// store; those of the file system.
///
/// ```no_run
/// cairn_kv::destroy("/var/lib/old")?;
/// # Ok::<(), cairn_kv::Error>(())
/// ```
pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
    destroy_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path)
}

/// Destroys a store on any file system, as [`destroy`] does.
pub fn destroy_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let is_of_log = |path: &Path| cairn_wal::is_log_file(path) || cairn_wal::is_log_leftover(path);
    let is_ours = |path: &Path| FileName::parse(path).is_some() || is_of_log(path);
    if !fs.exists(path)? || !fs.read_dir(path)?.iter().any(|path| is_ours(path)) {
        return Err(Error::NotFound { what: format!("there is no store in {}", path.display()) });
    }
    let lock = take_lock(fs, path)?;
    let current = FileName::Current.path(path);
    if fs.exists(&current)? {
        // ORDER: without `CURRENT` there is no store, so nothing ever finds a store with half of
        // its files.
        fs.remove(&current)?;
        fs.sync_dir(path)?;
    }
    for file in fs.read_dir(path)?.iter().filter(|path| is_ours(path)) {
        fs.remove(file)?;
    }
    fs.remove(&path.join(LOCK_NAME))?;
    fs.sync_dir(path)?;
    drop(lock);
    Ok(())
}
