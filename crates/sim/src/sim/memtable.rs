//! Memtables: turn writes into sorted lists of sampled keys.

use super::Simulation;
use crate::config::Config;
use crate::options::Engine;
use crate::read::meta_bytes;
use crate::tree::Entry;

/// A full memtable.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) entries: Vec<Entry>,
    /// Real entries, including overwritten ones.
    pub(super) writes: f64,
    pub(super) is_flushing: bool,
}

/// Whether merges drop expired entries, as Cairn's do.
pub(super) fn expires(config: &Config) -> bool {
    config.options.engine == Engine::CairnKv && config.options.ttl > 0
}

impl Simulation {
    /// Seals the active memtable.
    pub(super) fn seal(&mut self) {
        debug_assert!(self.filled >= 0.0, "found a memtable of {} bytes", self.filled);
        let writes = self.filled / self.config.write_bytes();
        self.filled = 0.0;
        // Draws whole sampled writes; the fraction is carried over.
        self.drawn += writes / self.sample as f64;
        let count = self.drawn.floor();
        self.drawn -= count;
        debug_assert!((0.0..1.0).contains(&self.drawn), "found {} of a write carried over", self.drawn);
        let entries = self.draw(count as usize);
        if expires(&self.config) {
            self.births.push_back((self.last_seq, self.now));
        }
        if !entries.is_empty() {
            self.sealed.push_back(Sealed { entries, writes, is_flushing: false });
        }
    }

    /// Draws writes of sampled keys, and keeps the last one of each key.
    pub(super) fn draw(&mut self, count: usize) -> Vec<Entry> {
        let mut order: Vec<u64> = Vec::with_capacity(count);
        for at in 0..count {
            let (id, is_delete) = self.writes.next_write();
            order.push(u64::from(id) << 32 | (at as u64) << 1 | u64::from(is_delete));
        }
        order.sort_unstable();
        let entries = self.newest(&order);
        debug_assert!(entries.is_sorted_by(|a, b| a.id() < b.id()), "found a key twice in a memtable");
        debug_assert!(entries.len() <= count, "found {} entries of {count} writes", entries.len());
        self.last_seq += count as u64;
        entries
    }

    /// Keeps the last of each id among sorted draws.
    fn newest(&mut self, order: &[u64]) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(order.len().min(self.writes.keys().ids() as usize));
        for (at, draw) in order.iter().enumerate() {
            let id = (draw >> 32) as u32;
            if order.get(at + 1).is_some_and(|next| (next >> 32) as u32 == id) {
                continue;
            }
            let seq = self.last_seq + 1 + (draw >> 1 & 0x7fff_ffff);
            let entry = Entry::new(id, seq, draw & 1 == 1);
            self.live.wrote(entry);
            entries.push(entry);
        }
        entries
    }

    /// Tells the builder which writes have expired by now.
    pub(super) fn expire(&mut self) {
        let limit = self.now - self.config.options.ttl as f64;
        while let Some((seq, _)) = self.births.front().filter(|(_, secs)| *secs < limit) {
            self.builder.expire_before(seq + 1);
            self.births.pop_front();
        }
    }

    /// Returns the number of memtables that wait for their flush or are being flushed.
    pub(super) fn sealed_count(&self) -> usize {
        self.sealed.len()
    }

    /// Returns the number of real keys that are live.
    pub(super) fn live_keys(&self) -> u64 {
        self.live.count() * self.sample
    }

    /// Returns the bytes of all memtables.
    pub(super) fn memtable_memory(&self) -> f64 {
        let share = self.filled / self.memtable_bytes;
        (self.sealed.len() as f64 + share) * self.config.options.write_buffer_size as f64
    }

    /// Returns the bytes of filters and indexes of all files, which stay in memory.
    pub(super) fn meta_memory(&self) -> f64 {
        meta_bytes(&self.config, &self.tree, self.sample)
    }
}
