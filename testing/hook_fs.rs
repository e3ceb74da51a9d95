//! A file system for tests with a hook before each operation, which can fail it or let other
//! threads run. Crates that need one include this file by its path.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{File, Fs, Metadata, OpenOptions, Operation, Result};

/// A file system that calls a hook before it opens a file, for reading or otherwise, and before it
/// changes something.
pub struct HookFs<F> {
    fs: Arc<dyn Fs>,
    check: F,
}

impl<F> std::fmt::Debug for HookFs<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fs.fmt(f)
    }
}

impl<F: Fn(Operation, &Path) -> Result<()> + Send + Sync + 'static> HookFs<F> {
    /// Wraps `fs` so that `check` is called first. An error of `check` becomes that of the
    /// operation.
    pub fn over(fs: &Arc<dyn Fs>, check: F) -> Arc<dyn Fs> {
        Arc::new(HookFs { fs: Arc::clone(fs), check })
    }
}

impl<F: Fn(Operation, &Path) -> Result<()> + Send + Sync + 'static> Fs for HookFs<F> {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let is_read = options == OpenOptions::read();
        (self.check)(if is_read { Operation::Read } else { Operation::Open }, path)?;
        self.fs.open(path, options)
    }

    fn follow(&self, path: &Path) -> Result<Option<PathBuf>> {
        self.fs.follow(path)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.fs.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        (self.check)(Operation::Rename, from)?;
        self.fs.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        (self.check)(Operation::Link, to)?;
        self.fs.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        (self.check)(Operation::Remove, path)?;
        self.fs.remove(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        (self.check)(Operation::CreateDir, path)?;
        self.fs.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.fs.read_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.fs.sync_dir(path)
    }
}
