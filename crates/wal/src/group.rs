//! Group commit: many threads that want a sync share one.
//!
//! One of them leads: it syncs, while the others sleep. The sync covers what was committed when it
//! began, so there are two groups at a time, those whom it is for and those who came later, and
//! each sleeps on a word of its own. At its end the leader wakes all of its group, who take no lock
//! on their way out, and invites one of the other to lead.
//!
//! ```text
//!   sync 1  |------------|              woken at its end: those who came before it began, and
//!   sync 2                |---------|   one of those who came meanwhile, who leads this one
//! ```
//!
//! Whoever sleeps has a leader before it, or an invitation is on its way to one of those who sleep
//! in the same place.

use cairn_vfs::sync::Futex;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use cairn_vfs::thread;

use crate::Lsn;

/// Who waits for a sync, and whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Somebody leads.
    led: AtomicBool,
    /// Syncs that have begun.
    begun: AtomicU64,
    /// And those that have ended: as many, or one less.
    ended: AtomicU64,
    /// What the last one that began covers at least.
    covered: AtomicU64,
    /// Where those sleep who wait for sync `n`: at `n % 2`. Both are bumped at the end of each.
    beds: [Futex; 2],
    /// Threads inside.
    waiting: AtomicU64,
    /// Threads that ever came in.
    came: AtomicU64,
    /// Of those, so many were served by syncs that have ended. Leaders change it.
    served: AtomicU64,
    /// How many the last sync found or left waiting: those whom it was for, and those who came
    /// meanwhile. Leaders change it.
    last_seen: AtomicU64,
}

/// The right to sync, which one thread has at a time. Passes on when it is dropped.
#[derive(Debug)]
pub(crate) struct Lead<'a> {
    group: &'a Group,
}

impl Group {
    /// How many threads are inside [`Group::enter`].
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Acquire)
    }

    /// Waits until `is_done`, which says whether `lsn` is durable or never will be; or until it is
    /// this thread's turn to sync, for which it calls `sync`.
    pub(crate) fn enter<E>(
        &self,
        lsn: Lsn,
        is_done: impl Fn() -> bool,
        sync: impl FnOnce(&Lead<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.waiting.fetch_add(1, AcqRel);
        self.came.fetch_add(1, SeqCst);
        let result = match self.wait(lsn, &is_done) {
            // Somebody else may have made it durable between two looks.
            Some(lead) if !is_done() => sync(&lead),
            _ => Ok(()),
        };
        self.waiting.fetch_sub(1, AcqRel);
        result
    }

    fn wait(&self, lsn: Lsn, is_done: &impl Fn() -> bool) -> Option<Lead<'_>> {
        let mut slept_for = None;
        loop {
            // ORDER: before all that is looked at. Who changes it bumps these afterwards.
            let seen = [self.beds[0].load(), self.beds[1].load()];
            if is_done() {
                if let Some(sync) = slept_for
                    && self.ended.load(SeqCst) < sync
                    && !self.led.load(SeqCst)
                {
                    // Invited, and without a need of its own: durable by the sync before already.
                    self.beds[seat(sync)].wake_one();
                }
                return None;
            }
            if !self.led.swap(true, SeqCst) {
                return Some(Lead { group: self });
            }
            let begun = self.begun.load(SeqCst);
            let sync = if lsn.get() <= self.covered.load(SeqCst) { begun } else { begun + 1 };
            slept_for = Some(sync);
            self.beds[seat(sync)].wait(seen[seat(sync)]);
        }
    }
}

/// Where those sleep who wait for this sync.
fn seat(sync: u64) -> usize {
    (sync % 2) as usize
}

impl Lead<'_> {
    /// Waits until those have come back whom the last sync has let go.
    ///
    /// They have been woken and are on their way: a sync begun right now would be for those alone
    /// who came meanwhile, and there would be two groups that take turns at the device, each with
    /// half of the writers.
    pub(crate) fn gather(&self) {
        let (served, expected) = (self.group.served.load(Relaxed), self.group.last_seen.load(Relaxed));
        // BOUND: a few turns for each thread, whether it comes or not.
        for _ in 8..8 * expected {
            if self.group.came.load(Acquire) - served >= expected {
                break;
            }
            thread::yield_now();
        }
    }

    /// A sync is about to begin. Says who has come by now, for [`Lead::ended`].
    pub(crate) fn begin(&self) -> u64 {
        // Whoever has come has committed its records before.
        let came = self.group.came.load(SeqCst);
        self.group.begun.fetch_add(1, SeqCst);
        came
    }

    /// The sync that is about to begin covers everything up to `lsn`.
    pub(crate) fn covers(&self, lsn: Lsn) {
        self.group.covered.store(lsn.get(), SeqCst);
    }

    /// The sync has served the first `came` who ever came.
    pub(crate) fn serve(&self, came: u64) {
        let before = self.group.served.swap(came, Relaxed);
        self.group.last_seen.store(self.group.came.load(SeqCst) - before, Relaxed);
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let group = self.group;
        let begun = group.begun.load(SeqCst);
        group.ended.store(begun, SeqCst);
        // ORDER: who has seen the words as they are after this sees that nobody leads.
        group.led.store(false, SeqCst);
        group.beds.iter().for_each(Futex::bump);
        // The next leader first: the device waits for it.
        group.beds[seat(begun + 1)].wake_one();
        group.beds[seat(begun)].wake_all();
    }
}
