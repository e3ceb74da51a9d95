//! Locks, atomics and condition variables. The engines take them only from here.
//!
//! Built with `--cfg cairn_shuttle`, they are those of `shuttle`, which runs all threads of a test
//! on one thread. At each of these calls, a seed decides which of them continues.

mod current;
mod futex;
#[cfg(cairn_shuttle)]
mod rw_lock;

pub use current::Current;
pub use futex::Futex;
#[cfg(cairn_shuttle)]
pub use rw_lock::RwLock;
#[cfg(cairn_shuttle)]
pub use shuttle::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError, Weak,
    atomic,
};
#[cfg(not(cairn_shuttle))]
pub use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    Weak, atomic,
};

/// The type of the standard library in either build. Its initialiser must not let other threads
/// run.
pub use std::sync::OnceLock;

/// A value on cache lines of its own (two, since processors prefetch pairs). For data that threads
/// change at every step, next to data that others only read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CacheAligned<T>(pub T);

const _: () = assert!(align_of::<CacheAligned<u8>>() == 128 && size_of::<CacheAligned<u8>>() == 128);

impl<T> std::ops::Deref for CacheAligned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Locks `mutex`, even if a thread panicked while holding it.
///
/// For state whose changes are completed before anything can panic. State that a panic can leave
/// half changed must record that itself: the engines store their first error and do not rely on the
/// mutex's poison flag.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on `condvar` with `guard` released, like [`Condvar::wait`], ignoring a panic of another
/// holder as [`lock`] does.
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Takes `lock` for reading, ignoring a panic of another holder as [`lock()`] does.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Takes `lock` for writing, ignoring a panic of another holder as [`lock()`] does.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a panic under a lock does not make the lock unusable. Method: panic while holding each
    /// kind.
    #[test]
    fn locks_outlive_a_panic() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        let panicked = std::panic::catch_unwind(|| {
            let (_mutex, _shared) = (lock(&mutex), write(&shared));
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err() && mutex.is_poisoned() && shared.is_poisoned());
        *lock(&mutex) += 1;
        *write(&shared) += 1;
        assert_eq!((*lock(&mutex), *read(&shared)), (2, 2));
    }

    /// Goal: a waiter sees a change made under the lock. Method: one thread sets a flag for
    /// another.
    #[test]
    fn wait_sees_the_change() {
        let state = Arc::new((Mutex::new(false), Condvar::new()));
        let other = Arc::clone(&state);
        let thread = crate::thread::spawn("vfs-sync", move || {
            *lock(&other.0) = true;
            other.1.notify_all();
        });
        let mut done = lock(&state.0);
        while !*done {
            done = wait(&state.1, done);
        }
        drop(done);
        thread.unwrap().join().unwrap();
    }
}
