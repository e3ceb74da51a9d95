//! The lock for readers and writers under a scheduler.

use std::sync::{LockResult, TryLockError, TryLockResult};

use shuttle::sync::{Mutex, PoisonError, RwLockReadGuard, RwLockWriteGuard};

/// As [`std::sync::RwLock`], whose readers may have to wait behind a writer that waits itself.
/// Shuttle's own lets them pass, and would not find the deadlocks that come of it.
#[derive(Debug, Default)]
pub struct RwLock<T> {
    /// Held by who waits.
    turn: Mutex<()>,
    inner: shuttle::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A lock that nobody holds.
    pub const fn new(value: T) -> Self {
        RwLock { turn: Mutex::new(()), inner: shuttle::sync::RwLock::new(value) }
    }

    /// Takes it for reading. Errors: the guard, when a writer has panicked.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.read()
    }

    /// Takes it for writing. Errors: the guard, when a writer has panicked.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.write()
    }

    /// Takes it for reading if nobody writes, or waits to. Errors: as
    /// [`std::sync::RwLock::try_read`].
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let Ok(_turn) = self.turn.try_lock() else { return Err(TryLockError::WouldBlock) };
        self.inner.try_read()
    }

    /// Takes it for writing if nobody has it, or waits for it. Errors: as
    /// [`std::sync::RwLock::try_write`].
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let Ok(_turn) = self.turn.try_lock() else { return Err(TryLockError::WouldBlock) };
        self.inner.try_write()
    }
}
