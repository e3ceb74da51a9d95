//! A part of the cache with its own lock, capacity and eviction order.

use std::collections::VecDeque;

use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::counters::CacheStats;
use super::slots::Slots;
use crate::table::Block;

const SMALL: u8 = 1;
const MAIN: u8 = 2;
/// The small queue gets one part in this many of the capacity.
const SMALL_SHARE: u64 = 10;

const _: () = assert!(SMALL != MAIN && SMALL != 0 && MAIN != 0, "0 is a slot that was never filled");

#[derive(Debug, Default)]
pub(super) struct Shard {
    state: Mutex<State>,
}

/// The queue entry of a block.
#[derive(Debug)]
struct Entry {
    slots: Arc<Slots>,
    index: u32,
    weight: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks that were not accessed since their insertion.
    small: VecDeque<Entry>,
    main: VecDeque<Entry>,
    small_bytes: u64,
    used_bytes: u64,
    /// Number of entries of removed tables.
    dead: usize,
    /// Counts evictions, starting from 1, to measure how long ago a block was evicted.
    clock: u32,
    inserts: u64,
    evictions: u64,
    rejected: u64,
}

impl Shard {
    /// Inserts a block. `limit` is called under the lock, so it includes all bytes pinned before.
    pub(super) fn insert(
        &self,
        slots: &Arc<Slots>,
        index: usize,
        block: Arc<Block>,
        limit: impl FnOnce() -> u64,
    ) -> Arc<Block> {
        let (Some(slot), Ok(short)) = (slots.slot(index), u32::try_from(index)) else { return block };
        let mut state = lock(&self.state);
        let (weight, limit) = (block.weight(), limit());
        if let Some(present) = slot.block.load_full() {
            return present;
        }
        let Some(weight) = u32::try_from(weight).ok().filter(|weight| u64::from(*weight) <= limit) else {
            state.rejected += 1;
            return block;
        };
        let evicted_at = slot.evicted_at.load(Ordering::Relaxed);
        // The number of ghosts equals the number of blocks in the main queue.
        let returns =
            evicted_at != 0 && state.clock.wrapping_sub(evicted_at) as usize <= state.main.len() + 16;
        state.make_room(u64::from(weight), limit);
        if state.used_bytes + u64::from(weight) > limit {
            state.rejected += 1;
            return block;
        }
        let entry = Entry { slots: Arc::clone(slots), index: short, weight };
        state.used_bytes += u64::from(weight);
        state.inserts += 1;
        if returns {
            slot.queue.store(MAIN, Ordering::Relaxed);
            state.main.push_back(entry);
        } else {
            slot.queue.store(SMALL, Ordering::Relaxed);
            state.small_bytes += u64::from(weight);
            state.small.push_back(entry);
        }
        slot.forget_touched();
        debug_assert!(state.used_bytes <= limit, "{} bytes of {limit} are in use", state.used_bytes);
        state.assert_sound();
        slot.block.store(Some(Arc::clone(&block)));
        block
    }

    pub(super) fn remove(&self, slots: &Slots, indexes: impl Iterator<Item = usize>) {
        let mut state = lock(&self.state);
        for slot in indexes.filter_map(|index| slots.slot(index)) {
            if let Some(block) = slot.block.swap(None) {
                let weight = block.weight() as u64;
                debug_assert!(weight <= state.used_bytes, "a block of {weight} bytes was not counted");
                state.used_bytes -= weight;
                if slot.queue.load(Ordering::Relaxed) == SMALL {
                    debug_assert!(weight <= state.small_bytes, "{weight} of {} bytes", state.small_bytes);
                    state.small_bytes -= weight;
                }
                state.dead += 1;
            }
        }
        // Each pass over the queues removes at least half of the entries, so removed tables pay for
        // it.
        if state.dead > 64 && state.dead * 2 > state.small.len() + state.main.len() {
            state.small.retain(|entry| !entry.slots.is_dead());
            state.main.retain(|entry| !entry.slots.is_dead());
            state.dead = 0;
        }
        state.assert_sound();
    }

    pub(super) fn shrink(&self, limit: u64) {
        lock(&self.state).make_room(0, limit);
    }

    /// Returns the number of entries in both queues, including those of removed tables.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        let state = lock(&self.state);
        state.small.len() + state.main.len()
    }

    pub(super) fn add_to(&self, stats: &mut CacheStats) {
        let state = lock(&self.state);
        stats.inserts += state.inserts;
        stats.evictions += state.evictions;
        stats.rejected += state.rejected;
        stats.used_bytes += state.used_bytes;
    }
}

impl State {
    /// Asserts that the charges of the queues fit each other. For debug builds.
    fn assert_sound(&self) {
        debug_assert!(
            self.small_bytes <= self.used_bytes,
            "{} of {} bytes",
            self.small_bytes,
            self.used_bytes
        );
    }

    /// Evicts blocks until `needed` more bytes fit into `limit`.
    fn make_room(&mut self, needed: u64, limit: u64) {
        // BOUND: the number of blocks that get a second chance is limited. After that, blocks are
        // evicted even if they were accessed meanwhile.
        let mut mercy = self.main.len() + self.small.len();
        while self.used_bytes + needed > limit {
            let from_small = self.small_bytes * SMALL_SHARE > limit || self.main.is_empty();
            let entry = if from_small { self.small.pop_front() } else { self.main.pop_front() };
            let Some(entry) = entry.or_else(|| self.main.pop_front()) else { return };
            self.pass(entry, &mut mercy);
        }
        self.assert_sound();
    }

    /// Evicts the block at the head of a queue, or moves it to the main queue if it was accessed.
    fn pass(&mut self, entry: Entry, mercy: &mut usize) {
        let Some(slot) = entry.slots.slot(entry.index as usize) else { return };
        if entry.slots.is_dead() && slot.block.load().is_none() {
            self.dead = self.dead.saturating_sub(1);
            return; // `remove` has already removed the block
        }
        let weight = u64::from(entry.weight);
        debug_assert!(weight <= self.used_bytes, "a block of {weight} bytes was not counted");
        let was_small = slot.queue.load(Ordering::Relaxed) == SMALL;
        if was_small {
            debug_assert!(weight <= self.small_bytes, "{weight} of {} bytes", self.small_bytes);
            self.small_bytes -= weight;
        }
        if slot.take_touched() && *mercy > 0 {
            *mercy -= 1;
            slot.queue.store(MAIN, Ordering::Relaxed);
            self.main.push_back(entry);
            return;
        }
        slot.block.store(None);
        self.used_bytes -= weight;
        self.evictions += 1;
        self.clock = self.clock.wrapping_add(1).max(1);
        debug_assert!(self.clock > 0, "0 stands for a block that was never evicted");
        slot.evicted_at.store(if was_small { self.clock } else { 0 }, Ordering::Relaxed);
    }
}
