//! Robin Hood insertion and deletion as in sparkey-java: the same input in the same order gives the
//! same slots.

use cairn_vfs::{Bug, ensure};

use super::slot::{Ring, Slot};
use super::slot_store::SlotStore;
use crate::Result;

/// A table that is being built.
#[derive(Debug)]
pub(super) struct RobinHood<S> {
    pub store: S,
    pub ring: Ring,
    /// Number of live keys.
    pub entries: u64,
    /// Size of the PUT records that were overwritten or deleted, before compression.
    pub garbage_bytes: u64,
}

/// The statistics of the slots in the header of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Statistics {
    pub displacement_max: u64,
    pub displacement_total: u64,
    pub collisions: u64,
}

impl<S: SlotStore> RobinHood<S> {
    /// Creates a table over empty slots.
    pub fn new(store: S, ring: Ring) -> Self {
        RobinHood { store, ring, entries: 0, garbage_bytes: 0 }
    }

    /// Inserts an entry. `same_key` is called with the address of another entry with an equal hash.
    /// If that entry has the same key, `same_key` returns the size of its record, which becomes
    /// garbage.
    #[inline]
    pub fn insert(&mut self, new: Slot, mut same_key: impl FnMut(u64) -> Result<Option<u64>>) -> Result<()> {
        debug_assert!(!new.is_empty(), "an address is never 0, which stands for an empty slot");
        let mut carried = new;
        let mut slot = self.ring.home(new.hash);
        let mut displacement = 0;
        let mut evicting = false;
        // BOUND: at most one round leads to a free slot, unless there are more keys than slots.
        for _ in 0..self.ring.capacity {
            let found = self.store.get(slot)?;
            if found.is_empty() {
                self.store.set(slot, carried)?;
                self.entries += 1;
                debug_assert!(self.entries <= self.ring.capacity);
                return Ok(());
            }
            if found.hash == carried.hash
                && !evicting
                && let Some(bytes) = same_key(found.address)?
            {
                self.store.set(slot, carried)?;
                self.garbage_bytes += bytes;
                return Ok(());
            }
            let other = self.ring.displacement(slot, found.hash);
            // The entries of one home slot are ordered by address, which makes the table
            // deterministic.
            if other < displacement || (other == displacement && carried.address < found.address) {
                self.store.set(slot, carried)?;
                carried = found;
                displacement = other;
                evicting = true;
            }
            slot = self.ring.next_slot(slot);
            displacement += 1;
        }
        // The number of puts is checked against the header, from which the capacity follows.
        Err(Bug::new(format!("no slot of {} is free for a key", self.ring.capacity)).into())
    }

    /// Removes a key, if it exists, and closes the gap. `same_key` is as in [`RobinHood::insert`].
    #[inline]
    pub fn remove(&mut self, hash: u64, mut same_key: impl FnMut(u64) -> Result<Option<u64>>) -> Result<()> {
        let mut slot = self.ring.home(hash);
        // BOUND: as for insertion.
        for displacement in 0..self.ring.capacity {
            let found = self.store.get(slot)?;
            if found.is_empty() {
                return Ok(());
            }
            if found.hash == hash
                && let Some(bytes) = same_key(found.address)?
            {
                ensure!(self.entries > 0, "a key was found in a table without entries");
                self.entries -= 1;
                self.garbage_bytes += bytes;
                return self.close_gap(slot);
            }
            if self.ring.displacement(slot, found.hash) < displacement {
                return Ok(());
            }
            slot = self.ring.next_slot(slot);
        }
        Ok(())
    }

    /// Moves the entries after `gap` back by one slot, up to a slot that is free or whose entry is
    /// at home.
    fn close_gap(&mut self, mut gap: u64) -> Result<()> {
        for _ in 0..self.ring.capacity {
            let next = self.ring.next_slot(gap);
            let found = self.store.get(next)?;
            if found.is_empty() || self.ring.displacement(next, found.hash) == 0 {
                break;
            }
            self.store.set(gap, found)?;
            gap = next;
        }
        self.store.set(gap, Slot::EMPTY)
    }

    /// Computes the statistics in one pass over all slots.
    pub fn statistics(&mut self) -> Result<Statistics> {
        let mut counter = StatisticsCounter::new(self.ring);
        let mut used = 0;
        for slot in 0..self.ring.capacity {
            let found = self.store.get(slot)?;
            used += u64::from(!found.is_empty());
            counter.add(slot, found);
        }
        ensure!(used == self.entries, "{used} slots are used by {} entries", self.entries);
        let statistics = counter.finish().0;
        ensure!(
            statistics.displacement_max < self.ring.capacity,
            "an entry is {} of {} slots from its home",
            statistics.displacement_max,
            self.ring.capacity
        );
        Ok(statistics)
    }
}

/// Computes [`Statistics`] from all slots in order.
#[derive(Debug)]
pub(super) struct StatisticsCounter {
    ring: Ring,
    statistics: Statistics,
    /// Number of used slots with hash 0 before an empty slot, which the C library counts as
    /// collisions.
    zeros_before_empty: u64,
    /// Hash of the previous slot, if it is used.
    previous: Option<u64>,
    first: Option<u64>,
}

impl StatisticsCounter {
    pub fn new(ring: Ring) -> Self {
        StatisticsCounter {
            ring,
            statistics: Statistics::default(),
            zeros_before_empty: 0,
            previous: None,
            first: None,
        }
    }

    #[inline]
    pub fn add(&mut self, slot: u64, found: Slot) {
        debug_assert!(slot < self.ring.capacity);
        if found.is_empty() {
            self.zeros_before_empty += u64::from(self.previous == Some(0));
            self.previous = None;
            return;
        }
        let displacement = self.ring.displacement(slot, found.hash);
        self.statistics.displacement_max = self.statistics.displacement_max.max(displacement);
        self.statistics.displacement_total += displacement;
        self.statistics.collisions += u64::from(self.previous == Some(found.hash));
        self.previous = Some(found.hash);
        if slot == 0 {
            self.first = Some(found.hash);
        }
    }

    /// Returns the statistics, and the number of collisions as the C library counts them. The first
    /// and the last slot are neighbours too, even if they are the same slot.
    pub fn finish(mut self) -> (Statistics, u64) {
        debug_assert!(self.statistics.displacement_max <= self.statistics.displacement_total);
        self.statistics.collisions += u64::from(self.previous.is_some() && self.previous == self.first);
        (self.statistics, self.statistics.collisions + self.zeros_before_empty)
    }
}
