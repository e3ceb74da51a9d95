//! A file system that calls hooks between operations.

use std::collections::VecDeque;
use std::path::Path;

use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{Fs, Operation};

#[path = "../../../../../testing/hook_fs.rs"]
mod shared;

pub(super) use shared::HookFs;

/// A hook, and the ending of the file name before whose opening it is called.
type Hook = (&'static str, Box<dyn FnOnce() + Send>);

/// Hooks that are called before certain files are opened, in the given order.
#[derive(Clone, Default)]
pub(super) struct Hooks(Arc<Mutex<VecDeque<Hook>>>);

impl Hooks {
    /// Returns a file system over `fs` that calls the hooks.
    pub(super) fn over(&self, fs: &Arc<dyn Fs>) -> Arc<dyn Fs> {
        let hooks = self.clone();
        HookFs::over(fs, move |operation, path| {
            if matches!(operation, Operation::Open | Operation::Read)
                && let Some((_, hook)) = hooks.next(path)
            {
                hook();
            }
            Ok(())
        })
    }

    /// Registers `hook` to be called once, before the next file with this ending is opened. Hooks
    /// are called in the order of registration, each for a file of its own. A hook may use the file
    /// system itself.
    pub(super) fn before_open(&self, ending: &'static str, hook: impl FnOnce() + Send + 'static) {
        lock(&self.0).push_back((ending, Box::new(hook)));
    }

    /// Returns the number of hooks that were not called yet.
    pub(super) fn left(&self) -> usize {
        lock(&self.0).len()
    }

    /// Removes and returns the first hook in line, if this file's name has its ending.
    fn next(&self, path: &Path) -> Option<Hook> {
        let mut hooks = lock(&self.0);
        let (ending, _) = hooks.front()?;
        if path.to_string_lossy().ends_with(ending) { hooks.pop_front() } else { None }
    }
}
