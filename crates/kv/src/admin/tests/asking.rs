//! Disks on which something happens in between.

use std::collections::VecDeque;
use std::path::Path;

use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{Fs, Operation};

#[path = "../../../../../testing/asking.rs"]
mod asking_fs;

pub(super) use asking_fs::Asking;

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

    /// Calls `hook` once, before the next file with this ending is opened; after those that were
    /// given before, each for a file of its own. It may use the disk itself.
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
