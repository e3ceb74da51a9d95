//! Counting lookups without making their threads meet.

use std::cell::Cell;

use cairn_vfs::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

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

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn choose_stripe() -> usize {
    let stripe = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) % STRIPES;
    STRIPE.set(stripe);
    stripe
}

impl Counters {
    pub(super) fn new() -> Self {
        Counters { stripes: (0..STRIPES).map(|_| Stripe::default()).collect() }
    }

    #[inline]
    fn stripe(&self) -> Option<&Stripe> {
        let mut stripe = STRIPE.get();
        if stripe == usize::MAX {
            stripe = choose_stripe();
        }
        self.stripes.get(stripe)
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
