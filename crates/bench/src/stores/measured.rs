//! A store that is compared with the simulator: written one operation after another, with its own
//! counters and the levels of its tree.

use std::path::Path;

use cairn_sim::Config;

use crate::core::error::Result;

/// A level of a real store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// Number of files.
    pub files: usize,
    /// Total bytes of the files.
    pub bytes: u64,
}

/// A store's own counters since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Bytes written by flushes.
    pub flush_bytes: f64,
    /// Bytes read by compactions.
    pub compact_read_bytes: f64,
    /// Bytes written by compactions.
    pub compact_write_bytes: f64,
    /// Filters that reported a key as absent.
    pub filters_skipping: f64,
    /// Data blocks found in the cache.
    pub block_hits: f64,
    /// Data blocks read into the cache.
    pub block_misses: f64,
    /// Seconds that writers waited.
    pub stall_secs: f64,
}

impl Totals {
    /// Returns the difference from `before`.
    pub(crate) fn since(self, before: Totals) -> Totals {
        Totals {
            flush_bytes: self.flush_bytes - before.flush_bytes,
            compact_read_bytes: self.compact_read_bytes - before.compact_read_bytes,
            compact_write_bytes: self.compact_write_bytes - before.compact_write_bytes,
            filters_skipping: self.filters_skipping - before.filters_skipping,
            block_hits: self.block_hits - before.block_hits,
            block_misses: self.block_misses - before.block_misses,
            stall_secs: self.stall_secs - before.stall_secs,
        }
    }
}

/// A real store.
pub trait MeasuredStore {
    /// Returns name and version.
    fn version(&self) -> String;
    /// Writes an entry.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key.
    fn delete(&mut self, key: &[u8]) -> Result<()>;
    /// Returns whether a key exists.
    fn get(&mut self, key: &[u8]) -> Result<bool>;
    /// Flushes the memtable and waits for it.
    fn flush(&mut self) -> Result<()>;
    /// Waits until no background work is left.
    fn settle(&mut self) -> Result<()>;
    /// Returns the counters.
    fn totals(&self) -> Totals;
    /// Returns the current levels.
    fn levels(&self) -> Vec<Level>;
}

/// A library of such stores.
pub trait MeasuredLibrary {
    /// Creates a store with the options of `config`. If `fills`, memtables are flushed when they
    /// are full, else only on request. If `logs`, the write-ahead log is written.
    fn open(&self, dir: &Path, config: &Config, fills: bool, logs: bool) -> Result<Box<dyn MeasuredStore>>;
}
