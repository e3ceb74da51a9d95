//! A disk on which others are at work in between.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{File, Fs, Metadata, OpenOptions, Result};

/// What happens before a file is opened whose name ends so.
type Hook = (&'static str, Box<dyn FnOnce() + Send>);

/// Does something before it opens certain files.
pub(super) struct Hooked {
    fs: Arc<dyn Fs>,
    hooks: Mutex<VecDeque<Hook>>,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooked").finish_non_exhaustive()
    }
}

impl Hooked {
    pub(super) fn new(fs: &Arc<dyn Fs>) -> Hooked {
        Hooked { fs: Arc::clone(fs), hooks: Mutex::default() }
    }

    /// Calls `hook` once, before the next file with this ending is opened; after those that were given before, each for a file
    /// of its own. It may use the disk itself.
    pub(super) fn before_open(&self, ending: &'static str, hook: impl FnOnce() + Send + 'static) {
        lock(&self.hooks).push_back((ending, Box::new(hook)));
    }

    /// How many hooks were not called yet.
    pub(super) fn left(&self) -> usize {
        lock(&self.hooks).len()
    }

    /// The hook whose turn it is, if it is one for this file.
    fn next(&self, path: &Path) -> Option<Hook> {
        let mut hooks = lock(&self.hooks);
        let (ending, _) = hooks.front()?;
        if path.to_string_lossy().ends_with(ending) { hooks.pop_front() } else { None }
    }
}

impl Fs for Hooked {
    fn open(&self, path: &Path, options: OpenOptions) -> Result<Box<dyn File>> {
        if let Some((_, hook)) = self.next(path) {
            hook();
        }
        self.fs.open(path, options)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.fs.metadata(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.fs.create_dir_all(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.fs.read_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.fs.sync_dir(path)
    }
}
