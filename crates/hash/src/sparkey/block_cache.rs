//! A cache of decompressed blocks without eviction.
//!
//! A lookup in a compressed log costs the decompression of a block, some microseconds; a cached
//! block costs a cache miss. Blocks are only ever added. Readers therefore need no lock, and a
//! value can be borrowed as long as the reader lives. Once the budget is used up, the cache no
//! longer changes: the cached blocks are served fast, and all others are decompressed at each
//! lookup.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_codec::compress::Format;

use super::log_header::{LOG_HEADER_BYTES, LogHeader};

/// A block may be in any of this many neighbouring places, and takes the first free one. With half
/// of the places free, fewer than one block in a thousand finds all of them taken.
const WAYS: usize = 12;

/// Approximate overhead of the allocator for the two boxes of a block.
const OVERHEAD_BYTES: u64 = 32;

/// A decompressed block.
#[derive(Debug)]
pub(super) struct CachedBlock {
    /// Position of the block in the log.
    pub position: u64,
    /// Position of the block after it.
    pub next: u64,
    pub bytes: Box<[u8]>,
    /// Offset of each record. Empty for a block that only continues a record.
    pub offsets: Box<[u32]>,
}

impl CachedBlock {
    fn memory_bytes(&self) -> u64 {
        self.bytes.len() as u64 + 4 * self.offsets.len() as u64 + OVERHEAD_BYTES
    }
}

/// An insert-only concurrent map from position to block.
#[derive(Debug)]
pub(super) struct BlockCache {
    /// Allocated at the first insertion, so that a reader of an uncompressed log never pays for it.
    places: OnceLock<Box<[OnceLock<CachedBlock>]>>,
    place_count: usize,
    budget_bytes: u64,
    used_bytes: AtomicU64,
}

impl BlockCache {
    /// Creates a cache of at most `budget_bytes`, its own tables included, for the log of `header`.
    pub fn new(header: &LogHeader, budget_bytes: u64) -> Self {
        let place_bytes = size_of::<OnceLock<CachedBlock>>() as u64;
        let compressed = header.compression != Format::None;
        // Blocks are nearly full unless records are large. The cache has twice as many places as
        // expected blocks.
        let block_bytes = u64::from(header.block_bytes.max(1));
        let blocks = header.put_bytes.saturating_add(header.delete_bytes) / block_bytes;
        // A damaged header must not cause more places than the file can hold blocks, at two bytes
        // or more each.
        let stored = (header.data_end - LOG_HEADER_BYTES as u64) / 2;
        let affordable = budget_bytes / (block_bytes / 2 + place_bytes);
        let wanted = blocks.saturating_add(1).saturating_mul(2).min(affordable).min(stored);
        let place_count = if compressed { usize::try_from(wanted).unwrap_or(0) } else { 0 };
        debug_assert!(
            place_count as u64 * place_bytes <= budget_bytes,
            "{place_count} places exceed the budget of {budget_bytes} bytes"
        );
        BlockCache {
            places: OnceLock::new(),
            place_count,
            budget_bytes: budget_bytes.saturating_sub(place_count as u64 * place_bytes),
            used_bytes: AtomicU64::new(0),
        }
    }

    /// Returns the block at `position`, if it is cached.
    #[inline]
    pub fn get(&self, position: u64) -> Option<&CachedBlock> {
        let places = self.places.get()?;
        for place in self.ways(position) {
            // A block is never behind a free place.
            let block = places.get(place)?.get()?;
            if block.position == position {
                return Some(block);
            }
        }
        None
    }

    /// Returns true if [`BlockCache::insert`] of a block at `position` may succeed, so that it is
    /// worth building one.
    pub fn has_room(&self, position: u64) -> bool {
        if self.place_count == 0 || self.used_bytes.load(Ordering::Relaxed) >= self.budget_bytes {
            return false;
        }
        let Some(places) = self.places.get() else { return true };
        self.ways(position).any(|place| places.get(place).is_some_and(|place| place.get().is_none()))
    }

    /// Adds a block and returns it, or the equal block that another thread added first. Returns
    /// `None` if the budget or its places are used up.
    pub fn insert(&self, block: CachedBlock) -> Option<&CachedBlock> {
        debug_assert!(block.next > block.position, "{} follows {}", block.next, block.position);
        debug_assert!(
            block.offsets.is_sorted() && block.offsets.iter().all(|at| (*at as usize) < block.bytes.len())
        );
        if self.place_count == 0 {
            return None;
        }
        let bytes = block.memory_bytes();
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.budget_bytes {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let places = self.places.get_or_init(|| (0..self.place_count).map(|_| OnceLock::new()).collect());
        debug_assert_eq!(places.len(), self.place_count);
        let position = block.position;
        let mut block = Some(block);
        for place in self.ways(position) {
            let Some(place) = places.get(place) else { continue };
            if let Some(added) = block.take() {
                block = place.set(added).err();
            }
            let added = block.is_none();
            match place.get() {
                Some(found) if found.position == position => {
                    if !added {
                        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
                    }
                    return Some(found);
                }
                _ => {}
            }
        }
        let before = self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes are given back of {before}");
        None
    }

    /// Returns the memory of the cached blocks.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns the places for a block at `position`, in the order in which they are tried.
    #[inline]
    fn ways(&self, position: u64) -> impl Iterator<Item = usize> + use<> {
        // Fibonacci hashing: positions differ mostly in their low bits, and the high bits of the
        // product choose the place.
        let hash = position.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (count, first) =
            (self.place_count, ((u128::from(hash) * self.place_count as u128) >> 64) as usize);
        debug_assert!(first < count || count == 0, "place {first} of {count}");
        (0..WAYS.min(count))
            .map(move |way| if first + way < count { first + way } else { first + way - count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(block_bytes: u32, put_bytes: u64) -> LogHeader {
        LogHeader { put_bytes, data_end: put_bytes, ..LogHeader::new(1, Format::Snappy, block_bytes) }
    }

    fn block(position: u64) -> CachedBlock {
        let bytes = vec![position as u8; 1000].into();
        CachedBlock { position, next: position + 100, bytes, offsets: Box::new([0]) }
    }

    /// Goal: inserted blocks are found unchanged, the budget is kept, and no other blocks appear.
    /// Method: ten times as many blocks as the budget allows.
    #[test]
    fn cache_stays_within_its_budget() {
        let budget = 100_000;
        let cache = BlockCache::new(&header(1000, 1_000_000), budget);
        let kept: Vec<u64> =
            (0..1000).map(|n| 84 + 100 * n).filter(|&at| cache.insert(block(at)).is_some()).collect();
        assert!((60..100).contains(&kept.len()), "{}", kept.len());
        for at in (0..1000).map(|n| 84 + 100 * n) {
            match cache.get(at) {
                Some(found) => {
                    assert!(kept.contains(&at) && found.position == at && found.bytes[0] == at as u8)
                }
                None => assert!(!kept.contains(&at)),
            }
        }
        let places = cache.place_count * size_of::<OnceLock<CachedBlock>>();
        assert!(cache.used_bytes() + places as u64 <= budget);
        assert_eq!(cache.used_bytes(), kept.len() as u64 * block(0).memory_bytes());
    }

    /// Goal: with a sufficient budget, nearly every block finds a place. Method: as many blocks as
    /// the header implies.
    #[test]
    fn block_cache_has_a_place_for_every_block() {
        let blocks = 20_000;
        let cache = BlockCache::new(&header(1000, blocks * 1000), 64 << 20);
        let kept = (0..blocks).filter(|n| cache.insert(block(84 + 357 * n)).is_some()).count() as u64;
        assert!(kept * 1000 > blocks * 998, "{kept} of {blocks}");
    }

    /// Goal: a second insertion returns the first block and uses no memory.
    #[test]
    fn second_insertion_takes_no_budget() {
        let cache = BlockCache::new(&header(1000, 1_000_000), 100_000);
        let first: *const CachedBlock = cache.insert(block(84)).unwrap();
        let used = cache.used_bytes();
        assert!(std::ptr::eq(first, cache.insert(block(84)).unwrap()));
        assert_eq!(cache.used_bytes(), used);
    }

    /// Goal: without a budget or without compression there is no cache. Method: try to insert.
    #[test]
    fn disabled() {
        let uncompressed = LogHeader { put_bytes: 1_000_000, ..LogHeader::new(1, Format::None, 1000) };
        for (header, budget) in [(header(1000, 1_000_000), 0), (uncompressed, 1 << 20)] {
            let cache = BlockCache::new(&header, budget);
            assert!(!cache.has_room(84));
            assert!(cache.insert(block(84)).is_none());
            assert!(cache.get(84).is_none());
        }
    }
}
