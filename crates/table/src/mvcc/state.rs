//! The state of a transaction that writes.

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Condvar, Mutex, PoisonError, lock};

/// The transaction has not ended.
pub(crate) const ACTIVE: u64 = u64::MAX;
/// The transaction was aborted and its changes were undone.
pub(crate) const ABORTED: u64 = u64::MAX - 1;
/// No snapshot sees the changes of a transaction in either state: both are above every commit.
const _: () = assert!(ABORTED < ACTIVE && ABORTED == u64::MAX - 1);

/// A transaction as others see it, from its first change or lock until nothing refers to it.
#[derive(Debug)]
pub(crate) struct State {
    /// Its number, unique in the retained log.
    pub(crate) id: u64,
    /// Its place in the commit order, or [`ACTIVE`] or [`ABORTED`].
    commit: AtomicU64,
    /// Whether it has released all its locks.
    has_released_locks: AtomicBool,
    ended: Mutex<End>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct End {
    is_here: bool,
    /// Kept because most ends have no waiters, and a wake-up costs a system call even then.
    waiters: usize,
}

impl State {
    pub(crate) fn new(id: u64) -> Self {
        debug_assert!(id != 0, "a transaction has number 0, which stands for none");
        State {
            id,
            commit: AtomicU64::new(ACTIVE),
            has_released_locks: AtomicBool::new(false),
            ended: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns whether its changes are visible to snapshots of the first `csn` commits.
    #[inline]
    pub(crate) fn is_visible_at(&self, csn: u64) -> bool {
        debug_assert!(csn < ABORTED, "a snapshot of {csn} commits sees what was aborted");
        self.commit.load(Ordering::Acquire) <= csn
    }

    /// Returns its place in the commit order, or [`ACTIVE`] or [`ABORTED`].
    pub(crate) fn commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    /// Records how it ended, before waiters are woken.
    pub(crate) fn set(&self, commit: u64) {
        assert!(commit != ACTIVE && commit != 0, "transaction {} ends as {commit}", self.id);
        let before = self.commit();
        assert!(before == ACTIVE, "transaction {} has ended as {before}, and again as {commit}", self.id);
        self.commit.store(commit, Ordering::Release);
    }

    /// Releases the rows that it has locked. ORDER: after every new snapshot sees its end. A
    /// transaction that locks a row then takes a snapshot and reads the row again; that snapshot
    /// must include the last owner's changes.
    pub(crate) fn release_locks(&self) {
        debug_assert!(self.commit() != ACTIVE, "transaction {} releases locks before its end", self.id);
        debug_assert!(!self.has_released_locks(), "transaction {} releases its locks twice", self.id);
        self.has_released_locks.store(true, Ordering::Release);
    }

    /// Returns whether its rows are released. Every snapshot taken afterwards then sees its end.
    #[inline]
    pub(crate) fn has_released_locks(&self) -> bool {
        self.has_released_locks.load(Ordering::Acquire)
    }

    /// Wakes the transactions that wait for its end.
    pub(crate) fn wake_all(&self) {
        let mut ended = lock(&self.ended);
        ended.is_here = true;
        let waiters = ended.waiters;
        drop(ended);
        if waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// Wakes the waiters to check for something other than the end.
    pub(crate) fn wake_waiters(&self) {
        // The lock prevents a waiter from missing the wake-up between its check and its sleep.
        let _guard = lock(&self.ended);
        self.changed.notify_all();
    }

    /// Waits until the transaction has ended, or until `give_up` returns true. `give_up` is called
    /// after each wake-up, and each sleep takes at most `at_most`.
    pub(crate) fn wait(
        &self,
        at_most: Option<std::time::Duration>,
        mut give_up: impl FnMut() -> bool,
    ) -> bool {
        let mut ended = lock(&self.ended);
        while !ended.is_here {
            if give_up() {
                return false;
            }
            ended.waiters += 1;
            ended = match at_most {
                None => cairn_vfs::sync::wait(&self.changed, ended),
                Some(time) => {
                    self.changed.wait_timeout(ended, time).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            debug_assert!(ended.waiters > 0, "a waiter of transaction {} was not counted", self.id);
            ended.waiters -= 1;
        }
        true
    }
}
