//! Shadow databases: opened read-only, with all writes kept in memory.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{File, Fs, MemFs, OpenOptions};

use crate::storage::{log_dir, pages_path, real_path};
use crate::{Database, Options, Result};

impl Database {
    /// Opens a database without writing to its files. Recovery after a crash, and all later
    /// changes, happen in memory and are lost when it is closed. Needs no disk space and no write
    /// permission. Excludes other processes while it is open, because their changes would be seen
    /// partially.
    ///
    /// Cost: as [`Database::open`], and memory for the pages and the log that recovery writes.
    /// Errors: as [`Database::open`]; files that cannot be mapped.
    pub fn open_shadow(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<Database> {
        let path = &*real_path(fs, path)?;
        let file = fs.open(path, OpenOptions::read())?;
        file.try_lock()?;
        let memory = MemFs::new();
        if let Some(parent) = path.parent() {
            memory.create_dir_all(parent)?;
        }
        shadow(&memory, path, &*file)?;
        let (mut beside, log) = (vec![pages_path(path)], log_dir(path));
        if fs.exists(&log)? {
            memory.create_dir_all(&log)?;
            beside.extend(fs.read_dir(&log)?);
        }
        for part in beside {
            if fs.exists(&part)? {
                shadow(&memory, &part, &*fs.open(&part, OpenOptions::read())?)?;
            }
        }
        let memory: Arc<dyn Fs> = Arc::new(memory);
        let mut database = Database::open(&memory, path, options)?;
        // This is the only handle so far.
        if let Some(inner) = Arc::get_mut(&mut database.inner) {
            inner.shadowed = Some(file);
        }
        Ok(database)
    }

    /// Returns whether it was opened by [`Database::open_shadow`].
    pub fn is_shadow(&self) -> bool {
        self.inner.shadowed.is_some()
    }
}

/// Adds a file. An empty one cannot be mapped.
fn shadow(memory: &MemFs, path: &Path, file: &dyn File) -> Result<()> {
    if file.len()? == 0 {
        memory.open(path, OpenOptions::create_new())?;
        return Ok(());
    }
    Ok(memory.add_shadow(path, file)?)
}
