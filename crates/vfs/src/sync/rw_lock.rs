//! A readers-writer lock for builds under a scheduler.

use std::sync::{LockResult, TryLockError, TryLockResult};

use shuttle::sync::{Mutex, PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// Like [`std::sync::RwLock`], where readers may queue behind a waiting writer. Shuttle's own lock
/// lets such readers pass, and would not find the resulting deadlocks.
#[derive(Debug, Default)]
pub struct RwLock<T> {
    /// Held by the thread that waits for the lock.
    turn: Mutex<()>,
    inner: shuttle::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        RwLock { turn: Mutex::new(()), inner: shuttle::sync::RwLock::new(value) }
    }

    /// Locks for reading. Errors: the guard, when a writer has panicked.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.read()
    }

    /// Locks for writing. Errors: the guard, when a writer has panicked.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.write()
    }

    /// Locks for reading if no writer holds the lock or waits for it. Errors: those of
    /// [`std::sync::RwLock::try_read`].
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let Ok(_turn) = self.turn.try_lock() else { return Err(TryLockError::WouldBlock) };
        self.inner.try_read()
    }

    /// Locks for writing if no thread holds the lock or waits for it. Errors: those of
    /// [`std::sync::RwLock::try_write`].
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let Ok(_turn) = self.turn.try_lock() else { return Err(TryLockError::WouldBlock) };
        self.inner.try_write()
    }
}
