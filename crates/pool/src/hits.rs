//! Per-thread data: counts, and hits on their way to the policy.
//!
//! Hits are batched as in BP-Wrapper: Ding, Jiang, Zhang, "BP-Wrapper: A System Framework Making
//! Any Replacement Algorithms (Almost) Lock Contention Free", ICDE 2009.

use cairn_vfs::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::thread;

use crate::page::{Frame, PageId};

/// The number of stripes. With more threads, some share a stripe and may lose some of each other's
/// counts and hits.
const STRIPES: usize = if cfg!(cairn_shuttle) { 2 } else { 256 };

/// Hits that a thread collects before it hands them on.
pub(crate) const BATCH: usize = if cfg!(cairn_shuttle) { 2 } else { 64 };

/// Maximum number of hits skipped for each one collected.
const STRIDE_MAX: u32 = 63;

const _: () = assert!(STRIPES > 0 && BATCH > 0 && BATCH <= u32::MAX as usize);
// Doubling a stride and adding one reaches the maximum exactly.
const _: () = assert!((STRIDE_MAX + 1).is_power_of_two());

/// The data of one thread.
///
/// Counters are incremented by a load and a store. An atomic addition would cost as much as the
/// rest of a hit.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stripe {
    hits: AtomicU64,
    missed: AtomicU64,
    /// Number of hits collected, at most [`BATCH`]; further hits are dropped.
    collected: AtomicU32,
    /// Hits still to be skipped, and the number to skip between two collected hits.
    skip: AtomicU32,
    stride: AtomicU32,
    /// Number of pages admitted to the pool when the last batch was full.
    admitted: AtomicU64,
    /// Each entry holds the frame in the upper half and the page number in the lower.
    batch: Box<[AtomicU64]>,
}

/// The data of all threads.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[Stripe]>);

impl Stripes {
    /// Creates the stripes, with space for hits if the policy uses logged hits.
    pub(crate) fn new(is_logged: bool) -> Self {
        let batch = if is_logged { BATCH } else { 0 };
        let stripe = || Stripe {
            hits: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            collected: AtomicU32::new(0),
            skip: AtomicU32::new(0),
            stride: AtomicU32::new(0),
            admitted: AtomicU64::new(0),
            batch: (0..batch).map(|_| AtomicU64::new(0)).collect(),
        };
        Stripes((0..STRIPES).map(|_| stripe()).collect())
    }

    /// Returns this thread's stripe.
    #[inline]
    pub(crate) fn own(&self) -> &Stripe {
        &self.0[thread::number() % STRIPES]
    }

    /// Returns the misses of all threads.
    pub(crate) fn misses(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.missed.load(Relaxed)).sum()
    }

    /// Returns the hits of all threads.
    pub(crate) fn hits(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.hits.load(Relaxed)).sum()
    }
}

impl Stripe {
    /// Counts a hit.
    #[inline]
    pub(crate) fn count(&self) {
        self.hits.store(self.hits.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a miss. From now on, every hit of this thread is collected.
    pub(crate) fn miss(&self) {
        self.missed.store(self.missed.load(Relaxed) + 1, Relaxed);
        self.collect_all();
    }

    /// Collects a hit. Returns true when the batch is full and should be handed on.
    #[inline]
    pub(crate) fn collect(&self, frame: Frame, page: PageId) -> bool {
        let skip = self.skip.load(Relaxed);
        if skip != 0 {
            self.skip.store(skip - 1, Relaxed);
            return false;
        }
        self.skip.store(self.stride.load(Relaxed), Relaxed);
        let at = self.collected.load(Relaxed) as usize;
        debug_assert!(at <= self.batch.len(), "{at} hits collected in {} places", self.batch.len());
        let Some(slot) = self.batch.get(at) else { return true };
        slot.store(u64::from(frame) << 32 | u64::from(page.page()), Relaxed);
        self.collected.store(at as u32 + 1, Relaxed);
        at + 1 == self.batch.len()
    }

    /// Adjusts the sampling rate when a batch is full. While no pages are admitted, the order of
    /// hits does not matter. So each batch collects half as many hits as the previous one, down to
    /// one in [`STRIDE_MAX`].
    pub(crate) fn pace(&self, admitted: u64) {
        let stride = self.stride.load(Relaxed);
        debug_assert!(stride <= STRIDE_MAX, "a stride of {stride}");
        let is_quiet = self.admitted.swap(admitted, Relaxed) == admitted;
        self.stride.store(if is_quiet { (2 * stride + 1).min(STRIDE_MAX) } else { stride / 2 }, Relaxed);
    }

    fn collect_all(&self) {
        self.stride.store(0, Relaxed);
        self.skip.store(0, Relaxed);
    }

    /// Passes the collected hits to `each`, as frame and page number. Requires the lock of the
    /// policy.
    pub(crate) fn take(&self, mut each: impl FnMut(Frame, u32)) {
        let count = self.collected.load(Relaxed) as usize;
        debug_assert!(count <= self.batch.len(), "{count} hits collected in {} places", self.batch.len());
        for slot in self.batch.iter().take(count) {
            let hit = slot.load(Relaxed);
            each((hit >> 32) as Frame, hit as u32);
        }
        if count != 0 {
            self.collected.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: while no page is admitted, fewer and fewer hits are collected; once one is, all of
    /// them are again.
    #[test]
    fn pace() {
        let stripes = Stripes::new(true);
        let stripe = stripes.own();
        let fill = || {
            let count = (1..).take_while(|_| !stripe.collect(0, PageId::new(0, 0))).count() + 1;
            stripe.take(|_, _| {});
            count
        };
        let full = |misses| {
            let count = fill();
            stripe.pace(misses);
            count
        };
        assert_eq!([full(5), full(5), full(5), full(5)].map(|count| count.div_ceil(BATCH)), [1, 1, 2, 4]);
        (0..9).for_each(|_| _ = full(5));
        assert!(full(5) > BATCH * 60 && full(6) > BATCH * 60 && full(7) < BATCH * 33);
        stripe.collect_all();
        assert_eq!(fill(), BATCH);
    }

    /// Goal: hits are handed on once and in order, and hits beyond the capacity are dropped.
    #[test]
    fn batches() {
        let stripes = Stripes::new(true);
        let stripe = stripes.own();
        for round in 0..3 {
            let full: Vec<bool> =
                (0..BATCH as u32 + 2).map(|at| stripe.collect(at, PageId::new(1, at + round))).collect();
            assert!(full.iter().enumerate().all(|(at, &full)| full == (at + 1 >= BATCH)));
            let mut taken = Vec::new();
            stripe.take(|frame, page| taken.push((frame, page)));
            assert_eq!(taken, (0..BATCH as u32).map(|at| (at, at + round)).collect::<Vec<_>>());
            stripe.take(|_, _| panic!("taken twice"));
        }
        (0..5).for_each(|_| stripe.count());
        assert_eq!(stripes.hits(), 5);
        assert!(Stripes::new(false).own().collect(0, PageId::new(0, 0)));
    }
}
