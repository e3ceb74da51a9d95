//! What a store has done and holds, in numbers.

use std::fmt;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*};
use cairn_vfs::sync::{Mutex, lock};

use crate::compaction::stream::Dropped;

use crate::db::controller::Stalls;
use crate::kind::Seqno;

/// Counters of the background work.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub flushes: AtomicU64,
    pub flush_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub trivial_moves: AtomicU64,
    pub compaction_read_bytes: AtomicU64,
    pub compaction_write_bytes: AtomicU64,
    pub dropped: Mutex<Dropped>,
}

/// One level of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelStats {
    /// Sorted runs.
    pub runs: usize,
    /// Tables.
    pub tables: usize,
    /// Bytes of all tables.
    pub bytes: u64,
    /// Entries, tombstones counted.
    pub entries: u64,
}

/// A keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Bytes in the active and the sealed memtables.
    pub memtable_bytes: u64,
    /// Sealed memtables that wait for their flush.
    pub sealed_memtables: usize,
    /// Its levels, from level 0.
    pub levels: Vec<LevelStats>,
    /// Bytes of its blob files.
    pub blob_bytes: u64,
    /// Of these, bytes that no table points at.
    pub blob_garbage_bytes: u64,
    /// Bytes that compactions have yet to write before the strategy is content, by its estimate.
    pub pending_compaction_bytes: u64,
}

/// A store at one moment. `Display` shows it as a table for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// The number of the last write.
    pub last_seqno: Seqno,
    /// Keyspaces, by id.
    pub keyspaces: Vec<KeyspaceStats>,
    /// Live snapshots.
    pub snapshots: usize,
    /// Block cache: capacity and bytes in use.
    pub cache_bytes: (u64, u64),
    /// Block cache: lookups that found their block, and that did not.
    pub cache_hits_misses: (u64, u64),
    /// Of these, lookups of data blocks; the others are of index partitions and filters.
    pub data_hits_misses: (u64, u64),
    /// Filters that point lookups asked and that said no, so that nothing of their tables was read.
    pub filters_skipping: u64,
    /// Flushes and the bytes they wrote.
    pub flushes: (u64, u64),
    /// Compactions that merged, and trivial moves.
    pub compactions: (u64, u64),
    /// Bytes that compactions read and wrote.
    pub compaction_bytes: (u64, u64),
    /// Entries that flushes and compactions have left out.
    pub dropped: Dropped,
    /// What writers waited.
    pub stalls: Stalls,
}

impl Counters {
    /// Copies the counters into `stats`.
    pub(crate) fn fill(&self, stats: &mut Stats) {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        stats.flushes = (get(&self.flushes), get(&self.flush_bytes));
        stats.compactions = (get(&self.compactions), get(&self.trivial_moves));
        stats.dropped = *lock(&self.dropped);
        stats.compaction_bytes = (get(&self.compaction_read_bytes), get(&self.compaction_write_bytes));
    }
}

impl Stats {
    /// Bytes written to tables for each byte that was flushed: 1 without compactions. The log is
    /// not counted.
    pub fn write_amplification(&self) -> f64 {
        let (flushed, compacted) = (self.flushes.1, self.compaction_bytes.1);
        if flushed == 0 { 0.0 } else { (flushed + compacted) as f64 / flushed as f64 }
    }
}

/// Bytes for people.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for keyspace in &self.keyspaces {
            writeln!(f, "keyspace {}", keyspace.name)?;
            let (bytes, sealed) = (human(keyspace.memtable_bytes), keyspace.sealed_memtables);
            writeln!(f, "  memtables    {bytes} ({sealed} sealed)")?;
            for (at, level) in keyspace.levels.iter().enumerate().filter(|(_, level)| level.tables > 0) {
                let LevelStats { runs, tables, bytes, entries } = *level;
                let bytes = human(bytes);
                writeln!(
                    f,
                    "  level {at:<2}     {bytes}, {tables} tables in {runs} runs, {entries} entries"
                )?;
            }
            if keyspace.blob_bytes > 0 {
                let (bytes, garbage) = (human(keyspace.blob_bytes), human(keyspace.blob_garbage_bytes));
                writeln!(f, "  blob files   {bytes}, {garbage} of it garbage")?;
            }
            writeln!(f, "  to compact   {}", human(keyspace.pending_compaction_bytes))?;
        }
        let (capacity, used) = self.cache_bytes;
        let (hits, misses) = self.cache_hits_misses;
        writeln!(f, "block cache    {} of {}, {hits} hits, {misses} misses", human(used), human(capacity))?;
        writeln!(
            f,
            "  data blocks  {} hits, {} misses; {} tables skipped by their filters",
            self.data_hits_misses.0, self.data_hits_misses.1, self.filters_skipping
        )?;
        writeln!(f, "flushes        {}, {}", self.flushes.0, human(self.flushes.1))?;
        let (read, written) = self.compaction_bytes;
        let (merges, moves) = self.compactions;
        writeln!(
            f,
            "compactions    {merges} and {moves} moves, {} read, {} written, write amplification {:.2}",
            human(read),
            human(written),
            self.write_amplification()
        )?;
        let Dropped { shadowed, covered, tombstones, filtered } = self.dropped;
        writeln!(
            f,
            "left out       {shadowed} overwritten, {covered} in deleted ranges, {tombstones} tombstones, {filtered} filtered or expired"
        )?;
        let stalls = &self.stalls;
        writeln!(
            f,
            "stalls         {} delays, {} stops; {:.1?} for memtables, {:.1?} for level 0, {:.1?} for compactions",
            stalls.delays, stalls.stops, stalls.memtables, stalls.level_zero, stalls.pending_compaction
        )?;
        write!(f, "last write     {} ({} snapshots)", self.last_seqno, self.snapshots)
    }
}
