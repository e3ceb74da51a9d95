//! The order in which writes become visible.
//!
//! Writers insert into the memtables in parallel and finish in any order. A reader sees everything
//! up to one number, the *visible mark*, so the mark may only pass a write when all before it are
//! done.
//!
//! The ring has a cell for each of the next [`CELLS`] sequence numbers. A writer of numbers `s..=e`
//! that is done puts `e` into cell `s`. Whoever does so moves the mark from `v` to the end found in
//! cell `v + 1`, as long as that cell speaks of `v + 1`: a cell's older content is always a smaller
//! number, so nothing ever has to be cleared.

use cairn_vfs::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::sync::{Condvar, Line, Mutex, lock, wait};
use cairn_vfs::thread;

use crate::kind::Seqno;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;

/// Writes in flight that the ring has room for. More wait. Few where schedules are explored: the
/// ring is to go round.
const CELLS: u64 = if cfg!(cairn_shuttle) { 4 } else { 1 << 12 };

/// Turns of the processor before a waiter gives it up, and of the scheduler before it sleeps. None
/// where schedules are explored: it is the sleep that somebody could miss the end of.
const SPINS: u32 = if cfg!(cairn_shuttle) { 0 } else { 64 };
const YIELDS: u32 = if cfg!(cairn_shuttle) { 0 } else { 64 };

/// The visible mark and the ring of finished writes beyond it.
#[derive(Debug)]
pub(crate) struct Order {
    visible: Line<AtomicU64>,
    /// The first number that is never to be seen, since its write has failed: the mark stays below
    /// it. `u64::MAX` before.
    failed: AtomicU64,
    cells: Box<[AtomicU64]>,
    sleepers: AtomicU32,
    bed: Mutex<()>,
    wake: Condvar,
}

impl Order {
    /// Everything up to `visible` can be seen.
    pub(crate) fn new(visible: Seqno) -> Self {
        Order {
            visible: Line(AtomicU64::new(visible)),
            failed: AtomicU64::new(u64::MAX),
            cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect(),
            sleepers: AtomicU32::new(0),
            bed: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Everything up to `visible` can be seen, without anybody having said so: after a replay, when
    /// nobody else writes.
    pub(crate) fn restart(&self, visible: Seqno) {
        self.visible.store(visible, SeqCst);
    }

    /// The newest number that may be read.
    #[inline]
    pub(crate) fn visible(&self) -> Seqno {
        self.visible.load(Acquire)
    }

    /// Says that the writes `first..=last` are done, and returns when they can be seen. False when
    /// they never will, since one before them has failed.
    #[inline]
    pub(crate) fn publish(&self, first: Seqno, last: Seqno) -> bool {
        // The writer of `first - CELLS` must be through with the cell.
        self.wait_for(first.saturating_sub(CELLS));
        // Alone, the mark stands right before: no cell needed.
        if self.visible.compare_exchange(first - 1, last, SeqCst, Relaxed).is_ok() {
            self.advance();
            return true;
        }
        // The wait for the cell may have ended by a failure, and then it belongs to another.
        if self.has_failed(first) {
            return false;
        }
        self.cells[(first % CELLS) as usize].store(last, SeqCst);
        self.advance();
        self.wait_for(last);
        self.visible() >= last
    }

    /// Says that the write whose first number is `first` has failed: neither it nor anything after
    /// it is ever seen. Lets go those who wait for any of that.
    #[cold]
    pub(crate) fn fail(&self, first: Seqno) {
        // ORDER: its cell is never filled, so the mark cannot have passed it, and cannot pass it
        // from now on.
        self.failed.fetch_min(first, SeqCst);
        drop(lock(&self.bed));
        self.wake.notify_all();
    }

    /// True when `seqno` is never to be seen.
    fn has_failed(&self, seqno: Seqno) -> bool {
        self.failed.load(SeqCst) <= seqno
    }

    /// Moves the mark over what is finished, and wakes who waits for it.
    #[inline]
    fn advance(&self) {
        self.sweep();
        if self.sleepers.load(SeqCst) > 0 {
            // Who is about to sleep has looked at the mark under this lock.
            drop(lock(&self.bed));
            self.wake.notify_all();
        }
    }

    /// Moves the mark over what is finished; says whether it moved here.
    #[inline]
    fn sweep(&self) -> bool {
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
                Err(newer) => newer,
            };
        }
    }

    /// How many wait for a number and have given up their processor.
    #[cfg(test)]
    pub(crate) fn sleepers(&self) -> u32 {
        self.sleepers.load(SeqCst)
    }

    /// Returns when everything up to `seqno` can be seen, or never will: a write up to it has
    /// failed, which the store says.
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
            // Of two writers that finish at once, each may have missed the other's cell.
            self.advance();
        }
        self.sleepers.fetch_add(1, SeqCst);
        let mut bed = lock(&self.bed);
        loop {
            if self.sweep() {
                self.wake.notify_all();
            }
            if self.visible.load(SeqCst) >= seqno || self.has_failed(seqno) {
                break;
            }
            bed = wait(&self.wake, bed);
        }
        drop(bed);
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::sync::Arc;
    use cairn_vfs::{Rng, SeededRng};

    use super::*;

    /// Goal: the mark passes a write only when all before it are done. Method: publish from other
    /// threads in an order that leaves a gap, look, close the gap.
    #[test]
    fn a_gap_holds_the_mark() {
        let order = Arc::new(Order::new(0));
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

    /// Goal: behind a failed write nothing becomes visible, and nobody waits for it; what was
    /// before it does. Method: writers before and behind it from other threads, one of them more
    /// cells behind than there are, and a waiter.
    #[test]
    fn a_failure_ends_all_waits() {
        let order = Arc::new(Order::new(0));
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

    /// Goal: numbers of any spread, more than the ring has cells, from many threads, end with all
    /// of them visible, and each writer sees its own. Method: eight threads draw ranges of random
    /// length under a lock, as writers do.
    #[test]
    fn many_writers() {
        let order = Arc::new(Order::new(0));
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
