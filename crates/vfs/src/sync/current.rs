//! A value that many read and somebody replaces now and then.

use arc_swap::{ArcSwap, Guard};

use super::atomic::{AtomicPtr, Ordering};
use super::{Arc, Mutex, lock};
use crate::thread::step;

/// A value that is replaced whole: read without a lock, and with a cheap answer to whether what one
/// has is still it.
///
/// Taking the value costs three atomic changes of memory, and giving it back another one; each is
/// some twenty cycles even where no other processor has the line. Who comes again and again keeps
/// what it took, and asks with [`Current::is`]: a load.
#[derive(Debug)]
pub struct Current<T> {
    value: ArcSwap<T>,
    /// Where the value is; only to be compared with.
    address: AtomicPtr<T>,
    /// So that of two who replace it the same one comes last in both.
    replacing: Mutex<()>,
}

impl<T> Current<T> {
    /// Has `value` at first.
    pub fn new(value: Arc<T>) -> Current<T> {
        let address = AtomicPtr::new(Arc::as_ptr(&value).cast_mut());
        Current { value: ArcSwap::new(value), address, replacing: Mutex::new(()) }
    }

    /// Whether it is `held`. While somebody replaces it both answers are right.
    #[inline]
    pub fn is(&self, held: &Arc<T>) -> bool {
        // What is held is not freed, so nothing else can have its address.
        self.address.load(Ordering::Acquire).cast_const() == Arc::as_ptr(held)
    }

    /// The value of now, for a moment: the thread has one of the few places taken that loads
    /// without a count need.
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        step();
        self.value.load()
    }

    /// The value of now, to keep.
    #[inline]
    pub fn load_full(&self) -> Arc<T> {
        step();
        self.value.load_full()
    }

    /// Replaces it.
    pub fn store(&self, value: Arc<T>) {
        let _alone = lock(&self.replacing);
        let address = Arc::as_ptr(&value).cast_mut();
        self.value.store(value);
        // ORDER: behind the value. Who sees the new address finds the new value; who sees the old
        // one is as if it had come before.
        self.address.store(address, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: `is` says of what was current that it is no more, whatever its contents, and of the
    /// new value that it is. Method: equal values one after the other.
    #[test]
    fn knows_what_is_current() {
        let (first, second) = (Arc::new(7), Arc::new(7));
        let current = Current::new(Arc::clone(&first));
        assert!(current.is(&first) && current.is(&current.load_full()) && !current.is(&second));
        current.store(Arc::clone(&second));
        assert!(!current.is(&first) && current.is(&second) && current.is(&current.load()));
    }
}
