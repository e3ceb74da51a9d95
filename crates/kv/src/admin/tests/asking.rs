//! Disks on which something happens in between.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{File, Fs, Metadata, OpenOptions, Operation, Result};

/// A file system that asks before it opens something, to be read or otherwise, and before it changes something.
pub(super) struct Asking<F> {
    fs: Arc<dyn Fs>,
    check: F,
}

impl<F> std::fmt::Debug for Asking<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fs.fmt(f)
    }
}

impl<F: Fn(Operation, &Path) -> Result<()> + Send + Sync + 'static> Asking<F> {
    pub(super) fn over(fs: &Arc<dyn Fs>, check: F) -> Arc<dyn Fs> {
        Arc::new(Asking { fs: Arc::clone(fs), check })
    }
}

impl<F: Fn(Operation, &Path) -> Result<()> + Send + Sync + 'static> Fs for Asking<F> {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        let is_read = options == OpenOptions::read();
        (self.check)(if is_read { Operation::Read } else { Operation::Open }, path)?;
        self.fs.open(path, options)
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

/// What happens before a file is opened whose name ends so.
type Hook = (&'static str, Box<dyn FnOnce() + Send>);

/// What others do before certain files are opened, in turn.
#[derive(Clone, Default)]
pub(super) struct Hooks(Arc<Mutex<VecDeque<Hook>>>);

impl Hooks {
    /// A disk on which they do it.
    pub(super) fn over(&self, fs: &Arc<dyn Fs>) -> Arc<dyn Fs> {
        let hooks = self.clone();
        Asking::over(fs, move |operation, path| {
            if matches!(operation, Operation::Open | Operation::Read)
                && let Some((_, hook)) = hooks.next(path)
            {
                hook();
            }
            Ok(())
        })
    }

    /// Calls `hook` once, before the next file with this ending is opened; after those that were given before, each for a file
    /// of its own. It may use the disk itself.
    pub(super) fn before_open(&self, ending: &'static str, hook: impl FnOnce() + Send + 'static) {
        lock(&self.0).push_back((ending, Box::new(hook)));
    }

    /// How many hooks were not called yet.
    pub(super) fn left(&self) -> usize {
        lock(&self.0).len()
    }

    /// The hook whose turn it is, if it is one for this file.
    fn next(&self, path: &Path) -> Option<Hook> {
        let mut hooks = lock(&self.0);
        let (ending, _) = hooks.front()?;
        if path.to_string_lossy().ends_with(ending) { hooks.pop_front() } else { None }
    }
}
