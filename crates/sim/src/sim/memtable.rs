//! Memtables: turn writes into sorted lists of sampled keys.

use super::Simulation;
use crate::config::Config;
use crate::options::Engine;
use crate::read::meta_bytes;
use crate::tree::Entry;

/// Overhead of an entry in a memtable: sequence number, two lengths, and a skip list node with 1.33
/// pointers on average, aligned.
const NODE_BYTES: f64 = 8.0 + 3.0 + 8.0 * 1.33 + 4.0;

/// A full memtable.
#[derive(Debug, Clone)]
pub(super) struct Sealed {
    pub(super) entries: Vec<Entry>,
    /// Real entries, including overwritten ones.
    pub(super) writes: f64,
    pub(super) is_flushing: bool,
}

/// An arena block has at most this many bytes, and at most this fraction of the write buffer.
const ARENA_BLOCK_BYTES: u64 = 1 << 20;
const ARENA_BLOCKS: u64 = 8;

/// The share of the last arena block that is still free when RocksDB calls a memtable full.
const ARENA_LEFT: f64 = 0.25;

/// Returns the user bytes that fit into a memtable.
pub(super) fn capacity(config: &Config) -> f64 {
    let write = config.write_bytes();
    let bytes = config.options.write_buffer_size;
    let left = match config.options.engine {
        Engine::Rocksdb => ARENA_LEFT * ARENA_BLOCK_BYTES.min(bytes / ARENA_BLOCKS) as f64,
        Engine::CairnKv => 0.0,
    };
    (bytes as f64 - left) * write / (write + NODE_BYTES)
}

/// Whether merges drop expired entries, as Cairn's do.
pub(super) fn expires(config: &Config) -> bool {
    config.options.engine == Engine::CairnKv && config.options.ttl > 0
}

impl Simulation {
    /// Seals the active memtable.
    pub(super) fn seal(&mut self) {
        let writes = self.filled / self.config.write_bytes();
        self.filled = 0.0;
        // Draws whole sampled writes; the fraction is carried over.
        self.drawn += writes / self.sample as f64;
        let count = self.drawn.floor();
        self.drawn -= count;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a tombstone takes the space of its key but of no value. Method: the capacity for puts,
    /// for deletes, and for half of each, against figures by hand.
    #[test]
    fn tombstones_have_no_value() {
        let mut config = Config::default();
        config.options.write_buffer_size = 64 << 20;
        config.options.engine = Engine::CairnKv;
        let mut writes = |deletes: f64| {
            config.workload.deletes = deletes;
            capacity(&config) / config.write_bytes()
        };
        for (deletes, bytes) in [(0.0, 1016.0), (1.0, 16.0), (0.5, 516.0)] {
            let expected = f64::from(64 << 20) / (bytes + NODE_BYTES);
            let found = writes(deletes);
            assert!((found / expected - 1.0).abs() < 1e-9, "{deletes}: {found} {expected}");
        }
    }
}
