//! Where a transaction that writes stands.

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Condvar, Mutex, PoisonError, lock};

/// Of a transaction that has not ended.
pub(crate) const ACTIVE: u64 = u64::MAX;
/// Of one whose changes were undone.
pub(crate) const ABORTED: u64 = u64::MAX - 1;

/// A transaction as others see it, from its first change or lock until nobody remembers it.
#[derive(Debug)]
pub(crate) struct State {
    /// Its number: of its own in the whole log that is kept.
    pub(crate) id: u64,
    /// Its place in the order of commits, or [`ACTIVE`] or [`ABORTED`].
    commit: AtomicU64,
    /// Nothing is locked by it any more.
    has_let_go: AtomicBool,
    ended: Mutex<End>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct End {
    is_here: bool,
    /// Most ends nobody waits for, and waking nobody costs a system call.
    waiters: usize,
}

impl State {
    pub(crate) fn new(id: u64) -> Self {
        State {
            id,
            commit: AtomicU64::new(ACTIVE),
            has_let_go: AtomicBool::new(false),
            ended: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether those see its changes who see the first `csn` commits.
    #[inline]
    pub(crate) fn is_visible_at(&self, csn: u64) -> bool {
        self.commit.load(Ordering::Acquire) <= csn
    }

    /// Its place in the order of commits, or [`ACTIVE`] or [`ABORTED`].
    pub(crate) fn commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    /// Says how it ended, before anybody who waits is woken.
    pub(crate) fn set(&self, commit: u64) {
        self.commit.store(commit, Ordering::Release);
    }

    /// Lets others have the rows that it has locked. ORDER: after its end can be seen by every
    /// snapshot that is taken from now on. Whoever locks a row takes a snapshot afterwards and
    /// reads the row again; that snapshot must have what the last owner did to it.
    pub(crate) fn let_go(&self) {
        self.has_let_go.store(true, Ordering::Release);
    }

    /// Whether others may have its rows: then every snapshot that is taken afterwards sees its end.
    #[inline]
    pub(crate) fn has_let_go(&self) -> bool {
        self.has_let_go.load(Ordering::Acquire)
    }

    /// Wakes who waits for its end.
    pub(crate) fn end(&self) {
        let mut ended = lock(&self.ended);
        ended.is_here = true;
        let waiters = ended.waiters;
        drop(ended);
        if waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// Wakes who waits, to look at something else than the end.
    pub(crate) fn nudge(&self) {
        // The lock keeps a waiter from missing it between its look and its sleep.
        let _guard = lock(&self.ended);
        self.changed.notify_all();
    }

    /// Waits until it is over, or `give_up` says so; it is asked after each wake-up, and the wait
    /// is no longer than `at_most` at once.
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
            ended.waiters -= 1;
        }
        true
    }
}
