//! Shared values that readers load without a lock and writers replace as a whole.
//!
//! They wrap `arc_swap`, which does not know the scheduler with which tests explore thread
//! schedules. Each operation here is therefore announced as a step of that scheduler, so that other
//! threads may run before it.

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use cairn_vfs::sync::Arc;
use cairn_vfs::thread::step;

/// A shared value that is replaced occasionally.
#[derive(Debug)]
pub(crate) struct Swap<T>(ArcSwap<T>);

impl<T> Swap<T> {
    /// Creates a holder of `value`.
    pub(crate) fn new(value: T) -> Self {
        Swap(ArcSwap::from_pointee(value))
    }

    /// Returns the current value for short use: the guard occupies one of the thread's few slots
    /// for loads that skip the reference count.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        step();
        self.0.load()
    }

    /// Returns the current value for keeping.
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

    /// Replaces the value by the result of `change`, which is called again if another thread
    /// replaces the value meanwhile.
    pub(crate) fn rcu(&self, change: impl FnMut(&Arc<T>) -> T) {
        step();
        self.0.rcu(change);
    }
}

/// A shared value that may be absent. The size of a pointer.
#[derive(Debug)]
pub(crate) struct SwapOption<T>(ArcSwapOption<T>);

const _: () = assert!(size_of::<SwapOption<u8>>() == size_of::<usize>(), "a load reads one word");

impl<T> SwapOption<T> {
    /// Creates an empty holder.
    pub(crate) const fn empty() -> Self {
        SwapOption(ArcSwapOption::const_empty())
    }

    /// Like [`Swap::load`].
    #[inline]
    pub(crate) fn load(&self) -> Guard<Option<Arc<T>>> {
        step();
        self.0.load()
    }

    /// Like [`Swap::load_full`].
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

    /// Replaces the value and returns the old one.
    pub(crate) fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        step();
        self.0.swap(value)
    }
}
