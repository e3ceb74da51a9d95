//! The slots that hold the cached blocks of a table.

use std::fmt;

use arc_swap::Guard;
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use crate::swap::SwapOption;
use crate::table::Block;

/// One slot for each block of a table.
pub(crate) struct Slots {
    slots: Box<[Slot]>,
    id: u64,
    /// Set when the table is removed. Queue entries of it are then void.
    dead: AtomicBool,
}

/// The slot of a block: 16 bytes, so that four fit into a cache line. All fields but `block` and
/// `touched` change only under the lock of the slot's shard.
pub(super) struct Slot {
    pub(super) block: SwapOption<Block>,
    /// The shard's eviction count when this block was evicted from the small queue. 0 if it never
    /// was, or if it was evicted from the main queue last.
    pub(super) evicted_at: AtomicU32,
    /// Set if the block was accessed since it was inserted, or since the eviction hand passed it.
    touched: AtomicBool,
    /// The queue that contains the block.
    pub(super) queue: AtomicU8,
}

#[cfg(not(cairn_shuttle))] // shuttle's atomics are larger
const _: () = assert!(size_of::<Slot>() == 16);

impl Slots {
    pub(super) fn new(id: u64, count: usize) -> Self {
        let slot = || Slot {
            block: SwapOption::empty(),
            evicted_at: AtomicU32::new(0),
            touched: AtomicBool::new(false),
            queue: AtomicU8::new(0),
        };
        Slots { slots: (0..count).map(|_| slot()).collect(), id, dead: AtomicBool::new(false) }
    }

    /// Returns the block of a slot if it is cached. The guard prevents its deallocation without
    /// affecting other readers. It occupies one of the thread's few `arc_swap` slots, so it must
    /// not be held for long.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<Guard<Option<Arc<Block>>>> {
        let slot = self.slots.get(index)?;
        let guard = slot.block.load();
        if guard.is_none() {
            return None;
        }
        // Stores only if that changes the value. Otherwise every reader would take the cache line
        // from the others.
        if !slot.touched.load(Ordering::Relaxed) {
            slot.touched.store(true, Ordering::Relaxed);
        }
        Some(guard)
    }

    /// Returns true if the block is cached. Does not count as an access.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.block.load().is_some())
    }

    /// Returns the block of a slot without counting as an access.
    #[cfg(test)]
    pub(super) fn peek(&self, index: usize) -> Option<Arc<Block>> {
        self.slots.get(index).and_then(|slot| slot.block.load_full())
    }

    pub(super) fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    pub(super) fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Returns the shard of a slot. Neighbouring slots are in different shards, and tables start at
    /// different ones.
    pub(super) fn shard_of(&self, index: usize, shards: usize) -> usize {
        debug_assert!(shards.is_power_of_two(), "{shards} shards");
        index.wrapping_add(self.id as usize) & (shards - 1)
    }

    /// Returns the indexes of the slots in `shard`.
    pub(super) fn indexes_in(&self, shard: usize, shards: usize) -> impl Iterator<Item = usize> {
        debug_assert!(shards.is_power_of_two() && shard < shards, "shard {shard} of {shards}");
        let first = shard.wrapping_sub(self.id as usize) & (shards - 1);
        debug_assert_eq!(self.shard_of(first, shards), shard, "the first slot is in another shard");
        (first..self.slots.len()).step_by(shards)
    }
}

impl Slot {
    /// Returns whether the block was accessed, and clears the mark.
    pub(super) fn take_touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed) && {
            self.touched.store(false, Ordering::Relaxed);
            true
        }
    }

    pub(super) fn forget_touched(&self) {
        self.touched.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("id", &self.id)
            .field("count", &self.slots.len())
            .finish_non_exhaustive()
    }
}
