//! The order in which writes become visible.
//!
//! Writers insert into the memtables in parallel and finish in any order. A reader sees all writes
//! up to one sequence number, the *visible mark*, so the mark may pass a write only when all
//! earlier ones are done.
//!
//! The ring has a cell for each of the next [`CELLS`] sequence numbers. A writer of numbers `s..=e`
//! that is done stores `e` in cell `s`. It then moves the mark from `v` to the end found in cell
//! `v + 1`, as long as that end is at least `v + 1`. Older content of a cell is always a smaller
//! number, so cells never need clearing.

use cairn_vfs::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::sync::{CacheAligned, Condvar, Mutex, lock, wait};
use cairn_vfs::thread;

use crate::kind::Seqno;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;

/// Maximum number of writes in flight in the ring; further writers wait. Small under schedule
/// exploration, so that the ring wraps around.
const CELLS: u64 = if cfg!(cairn_shuttle) { 4 } else { 1 << 12 };

const _: () = assert!(CELLS.is_power_of_two(), "the cell of a number is found with a mask");

/// Number of times that a waiter spins before it yields, and yields before it sleeps. Zero under
/// schedule exploration, because only the sleep can miss a wakeup.
const SPINS: u32 = if cfg!(cairn_shuttle) { 0 } else { 64 };
const YIELDS: u32 = if cfg!(cairn_shuttle) { 0 } else { 64 };

/// The visible mark, and the ring of finished writes beyond it.
#[derive(Debug)]
pub(crate) struct VisibilityOrder {
    visible: CacheAligned<AtomicU64>,
    /// The first sequence number of a failed write. The mark stays below it. `u64::MAX` if no write
    /// has failed.
    failed: AtomicU64,
    cells: Box<[AtomicU64]>,
    sleepers: AtomicU32,
    sleep_lock: Mutex<()>,
    wake: Condvar,
}

impl VisibilityOrder {
    /// Creates an order in which everything up to `visible` is visible.
    pub(crate) fn new(visible: Seqno) -> Self {
        VisibilityOrder {
            visible: CacheAligned(AtomicU64::new(visible)),
            failed: AtomicU64::new(u64::MAX),
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
            sleepers: AtomicU32::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Sets the visible mark directly. For use after a replay, when nobody else writes.
    pub(crate) fn restart(&self, visible: Seqno) {
        debug_assert!(self.visible() <= visible, "the mark goes back from {} to {visible}", self.visible());
        debug_assert_eq!(self.failed.load(SeqCst), u64::MAX, "a write has failed before");
        self.visible.store(visible, SeqCst);
    }

    /// Returns the newest sequence number that may be read.
    #[inline]
    pub(crate) fn visible(&self) -> Seqno {
        self.visible.load(Acquire)
    }

    /// Marks the writes `first..=last` as done, and returns once they are visible. Returns false if
    /// they never will be, because an earlier write has failed.
    #[inline]
    pub(crate) fn publish(&self, first: Seqno, last: Seqno) -> bool {
        debug_assert!((1..=last).contains(&first), "the writes {first} to {last}");
        // The cell may still hold the end of the write `first - CELLS`, until the mark has passed
        // it.
        self.wait_for(first.saturating_sub(CELLS));
        // Fast path: the mark is right before `first`, so no cell is needed.
        if self.visible.compare_exchange(first - 1, last, SeqCst, Relaxed).is_ok() {
            self.advance();
            return true;
        }
        // If the wait above ended because of a failure, the cell still belongs to another write.
        if self.has_failed(first) {
            return false;
        }
        debug_assert!(
            self.cells[(first % CELLS) as usize].load(Relaxed) < first,
            "the cell of write {first} still belongs to another one"
        );
        self.cells[(first % CELLS) as usize].store(last, SeqCst);
        self.advance();
        self.wait_for(last);
        let is_visible = self.visible() >= last;
        debug_assert!(is_visible || self.has_failed(last), "the wait for write {last} ended without a cause");
        is_visible
    }

    /// Marks the write that starts at `first` as failed: neither it nor any later write ever
    /// becomes visible. Releases all threads that wait for one of them.
    #[cold]
    pub(crate) fn fail(&self, first: Seqno) {
        debug_assert!(self.visible() < first, "write {first} failed, but is visible");
        // ORDER: the cell of `first` is never filled, so the mark has not passed it and never will.
        self.failed.fetch_min(first, SeqCst);
        drop(lock(&self.sleep_lock));
        self.wake.notify_all();
    }

    /// Returns true if `seqno` will never become visible.
    fn has_failed(&self, seqno: Seqno) -> bool {
        self.failed.load(SeqCst) <= seqno
    }

    /// Moves the mark over finished writes, and wakes the threads that wait for it.
    #[inline]
    fn advance(&self) {
        self.advance_mark();
        if self.sleepers.load(SeqCst) > 0 {
            // A thread that is about to sleep checks the mark under this lock.
            drop(lock(&self.sleep_lock));
            self.wake.notify_all();
        }
    }

    /// Moves the mark over finished writes. Returns true if this call moved it.
    #[inline]
    fn advance_mark(&self) -> bool {
        let mut visible = self.visible.load(SeqCst);
        let mut moved = false;
        loop {
            let next = visible + 1;
            let last = self.cells[(next % CELLS) as usize].load(SeqCst);
            if last < next {
                return moved;
            }
            visible = match self.visible.compare_exchange(visible, last, SeqCst, SeqCst) {
                Ok(_) => {
                    moved = true;
                    last
                }
                Err(newer) => {
                    debug_assert!(newer > visible, "the mark goes back from {visible} to {newer}");
                    newer
                }
            };
        }
    }

    /// Returns the number of threads that sleep until a number becomes visible.
    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> u32 {
        self.sleepers.load(SeqCst)
    }

    /// Returns once everything up to `seqno` is visible, or never will be because a write up to it
    /// has failed. In that case the store reports the failure.
    #[inline]
    pub(crate) fn wait_for(&self, seqno: Seqno) {
        if self.visible() < seqno {
            self.wait_slow(seqno);
        }
    }

    #[cold]
    fn wait_slow(&self, seqno: Seqno) {
        for turn in 0..SPINS + YIELDS {
            if self.visible() >= seqno || self.has_failed(seqno) {
                return;
            }
            if turn < SPINS {
                thread::spin_loop()
            } else {
                thread::yield_now()
            }
            // If two writers finish at once, each may have missed the other's cell.
            self.advance();
        }
        self.sleepers.fetch_add(1, SeqCst);
        let mut sleep_lock = lock(&self.sleep_lock);
        loop {
            if self.advance_mark() {
                self.wake.notify_all();
            }
            if self.visible.load(SeqCst) >= seqno || self.has_failed(seqno) {
                break;
            }
            sleep_lock = wait(&self.wake, sleep_lock);
        }
        drop(sleep_lock);
        let sleepers = self.sleepers.fetch_sub(1, SeqCst);
        debug_assert!(sleepers > 0, "a thread that woke up was not counted");
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::sync::Arc;
    use cairn_vfs::{Rng, SeededRng};

    use super::*;

    /// Goal: the mark passes a write only when all earlier ones are done. Method: other threads
    /// publish in an order that leaves a gap; check the mark, then close the gap.
    #[test]
    fn a_gap_holds_the_mark() {
        let order = Arc::new(VisibilityOrder::new(0));
        let others: Vec<_> = [(2, 4), (5, 5), (6, 9)]
            .into_iter()
            .map(|(first, last)| {
                let order = Arc::clone(&order);
                thread::spawn("publish", move || order.publish(first, last)).unwrap()
            })
            .collect();
        assert_eq!(order.visible(), 0);
        order.publish(1, 1);
        assert!(others.into_iter().all(|other| other.join().unwrap()));
        assert_eq!(order.visible(), 9);
    }

    /// Goal: nothing after a failed write becomes visible and no thread waits for it, while writes
    /// before it do become visible. Method: other threads write before and after the failed write,
    /// one of them farther ahead than the ring has cells, and one thread waits.
    #[test]
    fn a_failure_ends_all_waits() {
        let order = Arc::new(VisibilityOrder::new(0));
        let publish = |first, last| {
            let order = Arc::clone(&order);
            thread::spawn("publish", move || order.publish(first, last)).unwrap()
        };
        let (before, behind) = (publish(2, 3), [publish(6, 6), publish(6 + CELLS, 6 + CELLS)]);
        let waiting = Arc::clone(&order);
        let waiter = thread::spawn("wait", move || waiting.wait_for(7)).unwrap();
        order.fail(4);
        assert!(behind.into_iter().all(|behind| !behind.join().unwrap()));
        waiter.join().unwrap();
        assert!(order.publish(1, 1) && before.join().unwrap());
        assert_eq!(order.visible(), 3);
        assert!(!order.publish(7, 9));
        assert_eq!(order.visible(), 3);
    }

    /// Goal: with ranges of any length, some longer than the ring, from many threads, all numbers
    /// become visible in the end, and each writer sees its own. Method: eight threads draw ranges
    /// of random length under a lock, as writers do.
    #[test]
    fn many_writers() {
        let order = Arc::new(VisibilityOrder::new(0));
        let next = Arc::new(Mutex::new((1u64, SeededRng::new(7))));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (order, next) = (Arc::clone(&order), Arc::clone(&next));
                let work = move || {
                    for _ in 0..5_000 {
                        let (first, last) = {
                            let mut next = lock(&next);
                            let first = next.0;
                            let len =
                                if next.1.next_u64() % 100 == 0 { 6_000 } else { 1 + next.1.next_u64() % 3 };
                            next.0 += len;
                            (first, next.0 - 1)
                        };
                        order.publish(first, last);
                        assert!(order.visible() >= last);
                    }
                };
                thread::spawn("writer", work).unwrap()
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(order.visible() + 1, lock(&next).0);
    }
}
