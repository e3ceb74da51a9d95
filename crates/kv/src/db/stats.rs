//! Statistics of a store: its contents and its activity.

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

/// Statistics of one level of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelStats {
    /// Number of sorted runs.
    pub runs: usize,
    /// Number of tables.
    pub tables: usize,
    /// Total size of the tables in bytes.
    pub bytes: u64,
    /// Number of entries, including tombstones.
    pub entries: u64,
}

/// Statistics of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyspaceStats {
    /// The name of the keyspace.
    pub name: String,
    /// Bytes in the active and sealed memtables.
    pub memtable_bytes: u64,
    /// Number of sealed memtables waiting for their flush.
    pub sealed_memtables: usize,
    /// The levels, starting with level 0.
    pub levels: Vec<LevelStats>,
    /// Total size of the blob files in bytes.
    pub blob_bytes: u64,
    /// Bytes of the blob files to which no table refers.
    pub blob_garbage_bytes: u64,
    /// Bytes that compactions still have to write, as the strategy estimates.
    pub pending_compaction_bytes: u64,
}

/// Statistics of a store at one moment. `Display` formats them as a table for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// The sequence number of the last write.
    pub last_seqno: Seqno,
    /// The keyspaces in order of their ids.
    pub keyspaces: Vec<KeyspaceStats>,
    /// Number of live snapshots.
    pub snapshots: usize,
    /// Block cache: capacity and used bytes.
    pub cache_bytes: (u64, u64),
    /// Block cache: hits and misses.
    pub cache_hits_misses: (u64, u64),
    /// Hits and misses of data blocks only. The others are index partitions and filters.
    pub data_hits_misses: (u64, u64),
    /// Number of times that a filter excluded a table from a point lookup, so that nothing of the
    /// table was read.
    pub filters_skipping: u64,
    /// Number of flushes, and the bytes they wrote.
    pub flushes: (u64, u64),
    /// Number of compactions that merged, and of trivial moves.
    pub compactions: (u64, u64),
    /// Bytes read and written by compactions.
    pub compaction_bytes: (u64, u64),
    /// Entries dropped by flushes and compactions.
    pub dropped: Dropped,
    /// Write stalls.
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
    /// Returns the bytes written to tables per flushed byte: 1 without compactions. The log is not
    /// counted.
    pub fn write_amplification(&self) -> f64 {
        let (flushed, compacted) = (self.flushes.1, self.compaction_bytes.1);
        if flushed == 0 { 0.0 } else { (flushed + compacted) as f64 / flushed as f64 }
    }
}

/// Formats a number of bytes for people.
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
