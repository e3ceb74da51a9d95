//! A shared value that is read often and replaced rarely.

use arc_swap::{ArcSwap, Guard};

use super::atomic::{AtomicPtr, Ordering};
use super::{Arc, Mutex, lock};
use crate::thread::step;

/// A shared value that is replaced as a whole. It is read without a lock, and a reader can check
/// cheaply whether its copy is still current.
///
/// Taking the value costs three atomic updates and releasing it another one, each about twenty
/// cycles even when the cache line is uncontended. Frequent readers keep their copy and validate it
/// with [`Current::is`], which costs one load.
#[derive(Debug)]
pub struct Current<T> {
    value: ArcSwap<T>,
    /// The address of the value, used only for comparison.
    address: AtomicPtr<T>,
    /// Serialises replacements, so that `value` and `address` end up with the same winner.
    replacing: Mutex<()>,
}

impl<T> Current<T> {
    /// Creates a shared value that starts as `value`.
    pub fn new(value: Arc<T>) -> Current<T> {
        let address = AtomicPtr::new(Arc::as_ptr(&value).cast_mut());
        Current { value: ArcSwap::new(value), address, replacing: Mutex::new(()) }
    }

    /// Returns true when `held` is the current value. While the value is being replaced, either
    /// answer is correct.
    #[inline]
    pub fn is(&self, held: &Arc<T>) -> bool {
        // A held value is not freed, so no other value can have its address.
        self.address.load(Ordering::Acquire).cast_const() == Arc::as_ptr(held)
    }

    /// Returns the current value for short use: the guard occupies one of the thread's few slots
    /// for loads that take no reference count.
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        step();
        self.value.load()
    }

    /// Returns the current value, to keep.
    #[inline]
    pub fn load_full(&self) -> Arc<T> {
        step();
        self.value.load_full()
    }

    /// Replaces the value.
    pub fn store(&self, value: Arc<T>) {
        let _alone = lock(&self.replacing);
        let address = Arc::as_ptr(&value).cast_mut();
        // Between two replacements, the address is that of the value.
        debug_assert!(self.is(&self.value.load_full()), "the address is that of another value");
        self.value.store(value);
        // ORDER: the address is stored after the value. A thread that sees the new address also
        // finds the new value. A thread that sees the old address is ordered before the
        // replacement.
        self.address.store(address, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: `is` returns false for a replaced value, whatever its content, and true for its
    /// successor. Method: replace a value by an equal one.
    #[test]
    fn knows_what_is_current() {
        let (first, second) = (Arc::new(7), Arc::new(7));
        let current = Current::new(Arc::clone(&first));
        assert!(current.is(&first) && current.is(&current.load_full()) && !current.is(&second));
        current.store(Arc::clone(&second));
        assert!(!current.is(&first) && current.is(&second) && current.is(&current.load()));
    }
}
