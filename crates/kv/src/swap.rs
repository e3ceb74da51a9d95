//! Shared values that readers load without a lock and writers replace whole.
//!
//! They are `arc_swap`'s, which knows nothing of the scheduler that tests explore schedules with:
//! here each operation is a step of it, so that others may go on before.

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use cairn_vfs::sync::Arc;
use cairn_vfs::thread::step;

/// A value that is replaced now and then.
#[derive(Debug)]
pub(crate) struct Swap<T>(ArcSwap<T>);

impl<T> Swap<T> {
    /// Holds `value`.
    pub(crate) fn new(value: T) -> Self {
        Swap(ArcSwap::from_pointee(value))
    }

    /// The value of now, for a moment: the thread has one of the few places taken that loads
    /// without a count need.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        step();
        self.0.load()
    }

    /// The value of now, to keep.
    #[inline]
    pub(crate) fn load_full(&self) -> Arc<T> {
        step();
        self.0.load_full()
    }

    /// Replaces the value.
    pub(crate) fn store(&self, value: Arc<T>) {
        step();
        self.0.store(value);
    }

    /// Replaces the value by what `change` makes of it, which may be asked again when others
    /// replace it meanwhile.
    pub(crate) fn rcu(&self, change: impl FnMut(&Arc<T>) -> T) {
        step();
        self.0.rcu(change);
    }
}

/// A value that may be missing. As large as a pointer.
#[derive(Debug)]
pub(crate) struct SwapOption<T>(ArcSwapOption<T>);

impl<T> SwapOption<T> {
    /// Holds nothing.
    pub(crate) const fn empty() -> Self {
        SwapOption(ArcSwapOption::const_empty())
    }

    /// As [`Swap::load`].
    #[inline]
    pub(crate) fn load(&self) -> Guard<Option<Arc<T>>> {
        step();
        self.0.load()
    }

    /// As [`Swap::load_full`].
    #[inline]
    pub(crate) fn load_full(&self) -> Option<Arc<T>> {
        step();
        self.0.load_full()
    }

    /// Replaces the value.
    pub(crate) fn store(&self, value: Option<Arc<T>>) {
        step();
        self.0.store(value);
    }

    /// Replaces the value, and gives the old one back.
    pub(crate) fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        step();
        self.0.swap(value)
    }
}
