//! Counting lookups without making their threads meet.

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::thread;

const STRIPES: usize = 64;

/// Hits and misses of some threads, on a cache line of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Counters {
    stripes: Box<[Stripe]>,
}

impl Counters {
    pub(super) fn new() -> Self {
        Counters { stripes: (0..STRIPES).map(|_| Stripe::default()).collect() }
    }

    #[inline]
    fn stripe(&self) -> Option<&Stripe> {
        self.stripes.get(thread::number() % STRIPES)
    }

    /// A load and a store, not one atomic step, which would cost five times as much: two threads of one stripe may
    /// lose a count.
    #[inline]
    pub(super) fn add_hits(&self, hits: u64) {
        if let Some(stripe) = self.stripe() {
            stripe.hits.store(stripe.hits.load(Ordering::Relaxed).wrapping_add(hits), Ordering::Relaxed);
        }
    }

    pub(super) fn add_miss(&self) {
        if let Some(stripe) = self.stripe() {
            stripe.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn sum(&self) -> (u64, u64) {
        self.stripes.iter().fold((0, 0), |(hits, misses), stripe| {
            (hits + stripe.hits.load(Ordering::Relaxed), misses + stripe.misses.load(Ordering::Relaxed))
        })
    }
}
