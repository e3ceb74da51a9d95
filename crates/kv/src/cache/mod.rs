//! The block cache: bounded memory for the blocks of all tables.
//!
//! ```text
//!  table ──► Slots: one slot per block ──► Arc<Block>   a hit: load the slot; no lock, no hash
//!               ▲
//!  shards: small queue, main queue of (slots, index)    an insertion: the lock of one shard,
//!                                                       evicts by S3-FIFO
//! ```
//!
//! Each table has an array of slots, one per block, and a cached block is found under the slot of
//! its number, as pages hang under swips in LeanStore (Leis et al., ICDE 2018). The cache proper
//! only knows the order of eviction. That order is S3-FIFO (Yang et al., *FIFO queues are all you
//! need for cache eviction*, SOSP 2023) with a single bit for repeated access. A new block enters a
//! small queue of a tenth of the capacity, so a scan, which accesses nothing twice, evicts only its
//! own blocks. A block that returns soon after its eviction from there enters the main queue
//! directly. Instead of the paper's ghost queue, each slot remembers when its block was evicted.
//!
//! Bytes are counted under the lock of a shard before a block is inserted, so no insertion exceeds
//! the capacity even momentarily. An evicted block that a reader still holds counts as the reader's
//! memory, not the cache's.

mod counters;
mod shard;
#[cfg(all(test, cairn_shuttle))]
mod shuttle;
mod slots;
#[cfg(test)]
mod tests;

use std::fmt;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

pub(crate) use slots::Slots;

use crate::table::Block;
pub(crate) use counters::CacheStats;
use counters::Counters;
use shard::Shard;

/// A shard should hold hundreds of blocks. In smaller shards, blocks that happen to share a shard
/// would evict one another.
const SHARD_BYTES_MIN: u64 = 8 << 20;
const SHARDS_MAX: u64 = 16;

const _: () = assert!(SHARDS_MAX.is_power_of_two());

/// The block cache, shared by all tables of a store or of several stores.
pub(crate) struct Cache {
    capacity: AtomicU64,
    /// Bytes that stay regardless of the capacity: top indexes, and partitions of tables that pin
    /// them.
    pinned: AtomicU64,
    shards: Box<[Shard]>,
    counters: Counters,
    next_id: AtomicU64,
}

impl Cache {
    /// Creates a cache of the given capacity. With 0 it keeps nothing.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // A power of two, so that the shard of a slot is found with a mask.
        let shards: u64 = 1 << shards.ilog2();
        debug_assert!((1..=SHARDS_MAX).contains(&shards), "{shards} shards");
        Cache {
            capacity: AtomicU64::new(capacity_bytes),
            pinned: AtomicU64::new(0),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            counters: Counters::new(),
            next_id: AtomicU64::new(0),
        }
    }

    /// Creates the slots for a table of `count` blocks: 16 bytes each, not counted in the capacity.
    pub(crate) fn slots(&self, count: usize) -> Arc<Slots> {
        Arc::new(Slots::new(self.next_id.fetch_add(1, Ordering::Relaxed), count))
    }

    /// Counts a lookup that found its block. `is_data` distinguishes data blocks from index
    /// partitions and filters.
    #[inline(always)]
    pub(crate) fn count_hit(&self, is_data: bool) {
        self.counters.add_hit(is_data);
    }

    /// Counts a lookup that did not find its block.
    pub(crate) fn count_miss(&self, is_data: bool) {
        self.counters.add_miss(is_data);
    }

    /// Counts a filter that ruled out a key.
    #[inline(always)]
    pub(crate) fn count_filter_skipping(&self) {
        self.counters.add_filter_skipping();
    }

    /// Inserts a block and returns the one that is then cached, which is another thread's if that
    /// was faster. A block larger than the capacity of a shard is returned without being cached.
    pub(crate) fn insert(&self, slots: &Arc<Slots>, index: usize, block: Arc<Block>) -> Arc<Block> {
        match self.shards.get(slots.shard_of(index, self.shards.len())) {
            Some(shard) => shard.insert(slots, index, block, || self.shard_limit()),
            None => block,
        }
    }

    /// Removes all blocks of a table that will not be read any more.
    pub(crate) fn remove(&self, slots: &Slots) {
        slots.kill();
        for (at, shard) in self.shards.iter().enumerate() {
            shard.remove(slots, slots.indexes_in(at, self.shards.len()));
        }
    }

    /// Counts `bytes` as pinned and evicts blocks to make room for them. Returns false if they do
    /// not fit even into an otherwise empty cache; they are counted in that case too.
    pub(crate) fn pin(&self, bytes: u64) -> bool {
        let pinned = self.pinned.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shrink();
        pinned <= self.capacity.load(Ordering::Relaxed)
    }

    /// Returns true if `bytes` more can be pinned without pinning more than half of the capacity.
    pub(crate) fn can_pin(&self, bytes: u64) -> bool {
        let pinned = self.pinned.load(Ordering::Relaxed);
        pinned.saturating_add(bytes) <= self.capacity.load(Ordering::Relaxed) / 2
    }

    /// Reverts `pin`.
    pub(crate) fn unpin(&self, bytes: u64) {
        let pinned = self.pinned.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(pinned >= bytes, "{bytes} bytes are unpinned, but {pinned} are pinned");
    }

    /// Changes the capacity immediately. The number of shards stays as created.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
        self.shrink();
    }

    /// Returns the statistics of the cache.
    pub(crate) fn stats(&self) -> CacheStats {
        let sums = self.counters.sum();
        let mut stats = CacheStats {
            hits: sums.data.0 + sums.meta.0,
            misses: sums.data.1 + sums.meta.1,
            data_hits: sums.data.0,
            data_misses: sums.data.1,
            filters_skipping: sums.filters_skipping,
            pinned_bytes: self.pinned.load(Ordering::Relaxed),
            capacity_bytes: self.capacity.load(Ordering::Relaxed),
            ..CacheStats::default()
        };
        self.shards.iter().for_each(|shard| shard.add_to(&mut stats));
        stats
    }

    fn shrink(&self) {
        let limit = self.shard_limit();
        self.shards.iter().for_each(|shard| shard.shrink(limit));
    }

    fn shard_limit(&self) -> u64 {
        let capacity = self.capacity.load(Ordering::Relaxed);
        capacity.saturating_sub(self.pinned.load(Ordering::Relaxed)) / self.shards.len() as u64
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
