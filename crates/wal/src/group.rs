//! Group commit: threads that want a sync at the same time share one.
//!
//! One thread leads: it syncs while the others sleep. The sync covers everything committed when it
//! began. So there are two groups at any time, the threads that the current sync serves and those
//! that arrived later, and each group sleeps on its own futex. When the sync ends, the leader wakes
//! its whole group, which takes no lock on the way out, and invites one thread of the other group
//! to lead.
//!
//! ```text
//!   sync 1  |------------|              its end wakes all that came before it began, and
//!   sync 2                |---------|   one of those that came meanwhile, to lead this one
//! ```
//!
//! For every sleeper, there is a current leader, or an invitation is on its way to a thread that
//! sleeps on the same futex.

use cairn_vfs::sync::Futex;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use cairn_vfs::thread;

use crate::Lsn;

/// The threads that wait for a sync, and the leadership among them.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// True while a thread leads.
    has_leader: AtomicBool,
    /// Number of syncs begun.
    begun: AtomicU64,
    /// Number of syncs ended: equal to `begun` or one less.
    ended: AtomicU64,
    /// The last sync that began covers at least this position.
    covered: AtomicU64,
    /// Threads that wait for sync `n` sleep on entry `n % 2`. Both are bumped at the end of each
    /// sync.
    futexes: [Futex; 2],
    /// Number of threads inside [`Group::enter`].
    waiting: AtomicU64,
    /// Number of calls to [`Group::enter`] so far.
    arrivals: AtomicU64,
    /// The number of these calls that completed syncs have served. Written by leaders.
    served: AtomicU64,
    /// The number of threads that the last sync served or that arrived during it. Written by
    /// leaders.
    last_group: AtomicU64,
}

/// The right to sync, held by one thread at a time and passed on when dropped.
#[derive(Debug)]
pub(crate) struct Leader<'a> {
    group: &'a Group,
}

impl Group {
    /// Returns the number of threads inside [`Group::enter`].
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Acquire)
    }

    /// Waits until `is_done` returns true, which means that `lsn` is durable or never will be. If
    /// it becomes this thread's turn to sync first, calls `sync`.
    pub(crate) fn enter<E>(
        &self,
        lsn: Lsn,
        is_done: impl Fn() -> bool,
        sync: impl FnOnce(&Leader<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting.fetch_add(1, AcqRel);
        self.arrivals.fetch_add(1, SeqCst);
        debug_assert!(lsn != Lsn::ZERO, "nothing needs to be synced up to the beginning");
        let result = match self.wait(lsn, &is_done) {
            // Another leader may have made it durable between the two checks.
            Some(leader) if !is_done() => sync(&leader),
            _ => Ok(()),
        };
        let before = self.waiting.fetch_sub(1, AcqRel);
        debug_assert!(before != 0, "more threads leave the group than have entered it");
        result
    }

    fn wait(&self, lsn: Lsn, is_done: &impl Fn() -> bool) -> Option<Leader<'_>> {
        let mut slept_for = None;
        loop {
            // ORDER: the futexes are read before any condition is checked. A thread that changes a
            // condition bumps them afterwards.
            let seen = [self.futexes[0].load(), self.futexes[1].load()];
            if is_done() {
                if let Some(sync) = slept_for
                    && self.ended.load(SeqCst) < sync
                    && !self.has_leader.load(SeqCst)
                {
                    // This thread was invited to lead but is already served by the previous sync,
                    // so it passes the invitation on.
                    self.futexes[futex_index(sync)].wake_one();
                }
                return None;
            }
            if !self.has_leader.swap(true, SeqCst) {
                return Some(Leader { group: self });
            }
            let begun = self.begun.load(SeqCst);
            let sync = if lsn.get() <= self.covered.load(SeqCst) { begun } else { begun + 1 };
            slept_for = Some(sync);
            self.futexes[futex_index(sync)].wait(seen[futex_index(sync)]);
        }
    }
}

/// Returns the index of the futex for threads that wait for this sync.
fn futex_index(sync: u64) -> usize {
    (sync % 2) as usize
}

impl Leader<'_> {
    /// Waits for the threads that the last sync released to come back.
    ///
    /// They have been woken and are on their way. A sync begun right now would serve only the
    /// threads that arrived in the meantime. That would split the writers into two groups of half
    /// the size that take turns at the device.
    pub(crate) fn gather(&self) {
        let (served, expected) = (self.group.served.load(Relaxed), self.group.last_group.load(Relaxed));
        // BOUND: a few turns for each expected thread, whether it comes or not.
        for _ in 8..8 * expected {
            if self.group.arrivals.load(Acquire) - served >= expected {
                break;
            }
            thread::yield_now();
        }
    }

    /// Marks the beginning of a sync. Returns the number of arrivals so far, for [`Leader::serve`].
    pub(crate) fn begin(&self) -> u64 {
        // A thread commits its records before it arrives.
        let arrivals = self.group.arrivals.load(SeqCst);
        let begun = self.group.begun.fetch_add(1, SeqCst);
        debug_assert!(self.group.has_leader.load(SeqCst), "a sync begins without a leader");
        debug_assert!(self.group.ended.load(SeqCst) == begun, "sync {begun} has not ended");
        debug_assert!(arrivals > 0, "a sync for nobody");
        arrivals
    }

    /// Records that the sync about to begin covers everything up to `lsn`.
    pub(crate) fn covers(&self, lsn: Lsn) {
        let before = self.group.covered.swap(lsn.get(), SeqCst);
        debug_assert!(before <= lsn.get(), "a later sync covers less: {lsn} after {}", Lsn::from(before));
    }

    /// Records that the sync has served the first `arrivals` threads.
    pub(crate) fn serve(&self, arrivals: u64) {
        let before = self.group.served.swap(arrivals, Relaxed);
        debug_assert!(before <= arrivals, "{arrivals} threads were served, {before} before");
        self.group.last_group.store(self.group.arrivals.load(SeqCst) - before, Relaxed);
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let group = self.group;
        let begun = group.begun.load(SeqCst);
        let ended = group.ended.swap(begun, SeqCst);
        debug_assert!(ended <= begun && begun - ended <= 1, "{begun} syncs have begun, {ended} have ended");
        // ORDER: the leadership is released before the futexes are bumped, so that a thread that
        // sees the new words also sees that no thread leads.
        let has_led = group.has_leader.swap(false, SeqCst);
        debug_assert!(has_led, "two threads led at once");
        group.futexes.iter().for_each(Futex::bump);
        // Wake the next leader first, since the device is idle until it starts.
        group.futexes[futex_index(begun + 1)].wake_one();
        group.futexes[futex_index(begun)].wake_all();
    }
}
