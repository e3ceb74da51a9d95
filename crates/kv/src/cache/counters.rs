//! Lookup counters that threads update without contention.

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::thread;

const STRIPES: usize = 64;

const _: () = assert!(STRIPES.is_power_of_two(), "threads are spread evenly");

/// The counts of some threads, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    data: Lookups,
    meta: Lookups,
    filters_skipping: AtomicU64,
}

#[derive(Debug, Default)]
struct Lookups {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Stripe {
    fn of(&self, is_data: bool) -> &Lookups {
        if is_data { &self.data } else { &self.meta }
    }
}

/// Contents and activity of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Lookups that found their block. Exact as long as at most 64 threads of the process ever use
    /// a store; otherwise slightly low.
    pub hits: u64,
    /// Lookups that did not find their block.
    pub misses: u64,
    /// Hits of data blocks; as exact as `hits`.
    pub data_hits: u64,
    /// Misses of data blocks.
    pub data_misses: u64,
    /// Filters, including pinned ones, that ruled out a key; as exact as `hits`.
    pub filters_skipping: u64,
    /// Blocks inserted.
    pub inserts: u64,
    /// Blocks evicted to make room.
    pub evictions: u64,
    /// Blocks that were too large to insert.
    pub rejected: u64,
    /// Memory of the cached blocks, without pinned ones.
    pub used_bytes: u64,
    /// Memory of pinned data.
    pub pinned_bytes: u64,
    /// Maximum of `used_bytes` and `pinned_bytes` together.
    pub capacity_bytes: u64,
}

/// Number of cache hits and misses.
pub(super) type HitsMisses = (u64, u64);

/// The sums of all stripes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// Lookups of data blocks.
    pub(super) data: HitsMisses,
    /// Lookups of index partitions and filters.
    pub(super) meta: HitsMisses,
    /// Filters that ruled out a key.
    pub(super) filters_skipping: u64,
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

    /// Counts a hit with a load and a store instead of an atomic addition, which would cost five
    /// times as much. Two threads that share a stripe may therefore lose a count.
    #[inline(always)]
    pub(super) fn add_hit(&self, is_data: bool) {
        if let Some(stripe) = self.stripe() {
            add_one(&stripe.of(is_data).hits);
        }
    }

    pub(super) fn add_miss(&self, is_data: bool) {
        if let Some(stripe) = self.stripe() {
            stripe.of(is_data).misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a filter that ruled out a key, as exactly as hits.
    #[inline(always)]
    pub(super) fn add_filter_skipping(&self) {
        if let Some(stripe) = self.stripe() {
            add_one(&stripe.filters_skipping);
        }
    }

    pub(super) fn sum(&self) -> Sums {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut sums = Sums::default();
        for stripe in &self.stripes {
            for (sum, lookups) in [(&mut sums.data, &stripe.data), (&mut sums.meta, &stripe.meta)] {
                sum.0 += get(&lookups.hits);
                sum.1 += get(&lookups.misses);
            }
            sums.filters_skipping += get(&stripe.filters_skipping);
        }
        sums
    }
}

#[inline(always)]
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
