//! Bounded memory for the blocks of all tables.
//!
//! ```text
//!  table ──► Slots: one slot a block ──► Arc<Block>      a hit: load the slot, no lock, no hash
//!               ▲
//!  shards: small queue, main queue of (slots, index)     an insertion: one shard's lock, evicts by S3-FIFO
//! ```
//!
//! A block hangs under a slot of its own table, found by the block's number, as pages hang under
//! swips in LeanStore (Leis et al., ICDE 2018). The cache proper only knows in which order to take
//! blocks away again. That order is S3-FIFO (Yang et al., *FIFO queues are all you need for cache
//! eviction*, SOSP 2023) with one bit for "asked for again": what comes in goes through a small
//! queue of a tenth of the room, so that a scan, which asks for nothing twice, pushes out only its
//! own kind. What was evicted from there lately and comes back goes to the main queue at once.
//! Where the paper keeps a queue of ghosts, a slot here remembers when it was evicted.
//!
//! Bytes are counted under the lock of a shard, before a block is put in: no insertion exceeds the
//! capacity, not even for a moment. Evicted blocks that a reader still holds are the reader's
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
use counters::Counters;
use shard::Shard;

/// A shard should hold hundreds of blocks, or unlucky ones push each other out.
const SHARD_BYTES_MIN: u64 = 8 << 20;
const SHARDS_MAX: u64 = 16;

/// The cache. Shared by all tables of a store, or of several.
pub(crate) struct Cache {
    capacity: AtomicU64,
    /// Bytes that stay, whatever the capacity: top indexes, and partitions of tables that pin them.
    pinned: AtomicU64,
    shards: Box<[Shard]>,
    counters: Counters,
    next_id: AtomicU64,
}

/// What a cache has done and holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Lookups that found the block. Exact as long as the process never has more than 64 threads
    /// that use a store; else a little low.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Of the hits, those of data blocks; as exact.
    pub data_hits: u64,
    /// Of the misses, those of data blocks.
    pub data_misses: u64,
    /// Filters that said that a key is not in their table, pinned ones counted; as exact as `hits`.
    pub filters_skipping: u64,
    /// Blocks put in.
    pub inserts: u64,
    /// Blocks taken out to make room.
    pub evictions: u64,
    /// Blocks that were too large to put in.
    pub rejected: u64,
    /// Memory of the blocks in it, pinned ones not counted.
    pub used_bytes: u64,
    /// Memory of what is pinned.
    pub pinned_bytes: u64,
    /// The most that `used_bytes` and `pinned_bytes` may be together.
    pub capacity_bytes: u64,
}

impl Cache {
    /// A cache of so many bytes; with 0 it keeps nothing.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // A power of two, so that the shard of a slot is a mask.
        let shards = 1 << shards.ilog2();
        Cache {
            capacity: AtomicU64::new(capacity_bytes),
            pinned: AtomicU64::new(0),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            counters: Counters::new(),
            next_id: AtomicU64::new(0),
        }
    }

    /// Slots for a table of so many blocks. 16 bytes each, not counted against the capacity.
    pub(crate) fn slots(&self, count: usize) -> Arc<Slots> {
        Arc::new(Slots::new(self.next_id.fetch_add(1, Ordering::Relaxed), count))
    }

    /// Counts a lookup that found its block: one of data, or of an index partition or filter.
    #[inline(always)]
    pub(crate) fn count_hit(&self, is_data: bool) {
        self.counters.add_hit(is_data);
    }

    /// Counts a lookup that did not.
    pub(crate) fn count_miss(&self, is_data: bool) {
        self.counters.add_miss(is_data);
    }

    /// Counts a filter that said no.
    #[inline(always)]
    pub(crate) fn count_filter_skipping(&self) {
        self.counters.add_filter_skipping();
    }

    /// Puts a block in, and returns the one that is there now: another thread's, if that was
    /// faster. A block larger than a shard's room is only returned.
    pub(crate) fn insert(&self, slots: &Arc<Slots>, index: usize, block: Arc<Block>) -> Arc<Block> {
        match self.shards.get(slots.shard_of(index, self.shards.len())) {
            Some(shard) => shard.insert(slots, index, block, || self.shard_limit()),
            None => block,
        }
    }

    /// Takes out all blocks of a table that nobody will ask again.
    pub(crate) fn remove(&self, slots: &Slots) {
        slots.kill();
        for (at, shard) in self.shards.iter().enumerate() {
            shard.remove(slots, slots.indexes_in(at, self.shards.len()));
        }
    }

    /// Counts bytes as pinned, and evicts what then is too much. They are counted in any case;
    /// false when even without other blocks they do not fit.
    pub(crate) fn pin(&self, bytes: u64) -> bool {
        let pinned = self.pinned.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.shrink();
        pinned <= self.capacity.load(Ordering::Relaxed)
    }

    /// Whether so many bytes can be pinned without taking more than half of the room.
    pub(crate) fn can_pin(&self, bytes: u64) -> bool {
        let pinned = self.pinned.load(Ordering::Relaxed);
        pinned.saturating_add(bytes) <= self.capacity.load(Ordering::Relaxed) / 2
    }

    /// Takes back `pin`.
    pub(crate) fn unpin(&self, bytes: u64) {
        self.pinned.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Changes the capacity, at once. The number of shards stays that of the first one.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.capacity.store(bytes, Ordering::Relaxed);
        self.shrink();
    }

    /// What it has done and holds.
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
