//! The set of sampled keys that are live, which is the base of space amplification.

use crate::tree::Entry;

/// A bitmap of live ids.
#[derive(Debug, Clone)]
pub(super) struct Live {
    bits: Vec<u64>,
    count: u64,
    /// The sequence number of each id's last write; empty if writes do not expire.
    last_seqs: Vec<u64>,
}

impl Live {
    /// Creates an empty set. `expires` says whether writes expire.
    pub(super) fn new(ids: u64, expires: bool) -> Live {
        let last_seqs = if expires { vec![0; ids as usize] } else { Vec::new() };
        Live { bits: vec![0; ids.div_ceil(64) as usize], count: 0, last_seqs }
    }

    /// Records the last write of a key.
    pub(super) fn wrote(&mut self, entry: Entry) {
        self.set(entry.id(), !entry.is_tombstone());
        if let Some(slot) = self.last_seqs.get_mut(entry.id() as usize) {
            *slot = entry.seq();
        }
    }

    /// Records that a write has expired. Its key is dead unless it was written again.
    pub(super) fn expired(&mut self, entry: Entry) {
        if self.last_seqs.get(entry.id() as usize) == Some(&entry.seq()) {
            self.set(entry.id(), false);
        }
    }

    /// Records whether a key is live.
    pub(super) fn set(&mut self, id: u32, is_alive: bool) {
        let Some(word) = self.bits.get_mut(id as usize / 64) else { return };
        let bit = 1u64 << (id % 64);
        let was_alive = *word & bit != 0;
        if is_alive && !was_alive {
            *word |= bit;
            self.count += 1;
        } else if !is_alive && was_alive {
            *word &= !bit;
            self.count -= 1;
        }
        debug_assert!(self.count <= 64 * self.bits.len() as u64, "found {} keys live", self.count);
    }

    /// Returns the number of sampled keys that are live.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    #[cfg(test)]
    pub(super) fn is_alive(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}
