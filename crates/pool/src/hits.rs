//! What threads keep of their own: counts, and hits on their way to the policy.
//!
//! Batching hits is BP-Wrapper: Ding, Jiang, Zhang, "BP-Wrapper: A System Framework Making Any
//! Replacement Algorithms (Almost) Lock Contention Free", ICDE 2009.

use cairn_vfs::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::thread;

use crate::page::{Frame, PageId};

/// Threads beyond these share with others, and may lose some of each other's counts and hits.
const STRIPES: usize = if cfg!(cairn_shuttle) { 2 } else { 256 };

/// Hits that a thread collects before they are handed on.
pub(crate) const BATCH: usize = if cfg!(cairn_shuttle) { 2 } else { 64 };

/// Hits that are passed over for each one that is collected, at most.
const STRIDE_MAX: u32 = 63;

/// One thread's.
///
/// Counts go up by a load and a store, not by a locked addition, which would cost as much as the
/// rest of a hit.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stripe {
    hits: AtomicU64,
    missed: AtomicU64,
    /// Hits collected; those beyond [`BATCH`] were not.
    collected: AtomicU32,
    /// Hits that are still to be passed over, and how many are between two that are collected.
    skip: AtomicU32,
    stride: AtomicU32,
    /// Pages that had come into the pool when a batch was full last.
    admitted: AtomicU64,
    /// Frame in the upper half, number of the page in its file in the lower.
    batch: Box<[AtomicU64]>,
}

/// All threads'.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[Stripe]>);

impl Stripes {
    /// With room for hits, if the policy wants to have them.
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

    /// This thread's.
    #[inline]
    pub(crate) fn own(&self) -> &Stripe {
        &self.0[thread::number() % STRIPES]
    }

    /// Misses of all threads together.
    pub(crate) fn misses(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.missed.load(Relaxed)).sum()
    }

    /// Hits of all threads together.
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

    /// Counts a miss; from here on every hit of this thread is collected.
    pub(crate) fn miss(&self) {
        self.missed.store(self.missed.load(Relaxed) + 1, Relaxed);
        self.collect_all();
    }

    /// Collects a hit. True when the batch is full and should be handed on.
    #[inline]
    pub(crate) fn collect(&self, frame: Frame, page: PageId) -> bool {
        let skip = self.skip.load(Relaxed);
        if skip != 0 {
            self.skip.store(skip - 1, Relaxed);
            return false;
        }
        self.skip.store(self.stride.load(Relaxed), Relaxed);
        let at = self.collected.load(Relaxed) as usize;
        let Some(slot) = self.batch.get(at) else { return true };
        slot.store(u64::from(frame) << 32 | u64::from(page.page()), Relaxed);
        self.collected.store(at as u32 + 1, Relaxed);
        at + 1 == self.batch.len()
    }

    /// The batch is full, and so many pages have come into the pool. While none come nobody needs
    /// to know the order of hits: of each batch half as many are collected as of the one before,
    /// down to one in [`STRIDE_MAX`].
    pub(crate) fn pace(&self, admitted: u64) {
        let stride = self.stride.load(Relaxed);
        let is_quiet = self.admitted.swap(admitted, Relaxed) == admitted;
        self.stride.store(if is_quiet { (2 * stride + 1).min(STRIDE_MAX) } else { stride / 2 }, Relaxed);
    }

    fn collect_all(&self) {
        self.stride.store(0, Relaxed);
        self.skip.store(0, Relaxed);
    }

    /// Hands on what was collected: frame, and page in its file. Only with the policy locked.
    pub(crate) fn take(&self, mut each: impl FnMut(Frame, u32)) {
        let count = self.collected.load(Relaxed) as usize;
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

    /// Goal: while no page comes fewer and fewer hits are collected, and all of them again when one
    /// does.
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

    /// Goal: hits are handed on in their order, once, and those that found no room are left out.
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
