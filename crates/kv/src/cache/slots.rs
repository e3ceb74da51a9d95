//! Where a table's blocks hang.

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
    /// Set when the table is gone: what queues still say of it is void.
    dead: AtomicBool,
}

/// 16 bytes, so that four lie in a cache line. All but `block` and `touched` change under the lock
/// of the slot's shard.
pub(super) struct Slot {
    pub(super) block: SwapOption<Block>,
    /// The shard's count of evictions when this block was evicted last; 0 for never.
    pub(super) evicted_at: AtomicU32,
    /// Asked for since it came in, or since the eviction hand passed.
    touched: AtomicBool,
    /// Which queue has it.
    pub(super) queue: AtomicU8,
}

#[cfg(not(cairn_shuttle))] // whose atomics are larger
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

    /// The block of a slot, if it is cached. The guard keeps it from being freed at no cost to
    /// other readers: while it lives, the thread has one of the few places taken that `arc_swap`
    /// has for this, so do not keep it for long.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<Guard<Option<Arc<Block>>>> {
        let slot = self.slots.get(index)?;
        let guard = slot.block.load();
        if guard.is_none() {
            return None;
        }
        // A store only when it changes something: otherwise every reader would take the line from
        // the others.
        if !slot.touched.load(Ordering::Relaxed) {
            slot.touched.store(true, Ordering::Relaxed);
        }
        Some(guard)
    }

    /// True when the block is cached. Does not count as asking for it.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.block.load().is_some())
    }

    /// The block of a slot, without asking for it.
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

    /// The shard of a slot: neighbours lie in different ones, and tables begin at different ones.
    pub(super) fn shard_of(&self, index: usize, shards: usize) -> usize {
        (index + self.id as usize) & (shards - 1)
    }

    /// The indexes whose shard is `shard`.
    pub(super) fn indexes_in(&self, shard: usize, shards: usize) -> impl Iterator<Item = usize> {
        let first = shard.wrapping_sub(self.id as usize) & (shards - 1);
        (first..self.slots.len()).step_by(shards)
    }
}

impl Slot {
    /// Whether it was asked for; forgets it.
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
