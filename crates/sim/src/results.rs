//! What a run says: totals, levels, stalls, and a series over virtual time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compact::Reason;
use crate::histogram::Percentiles;
use crate::read::ReadCosts;
use crate::resource::Resource;
use crate::stall::{Cause, Stall};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is not over.
    #[default]
    Running,
    /// Its time or its writes are over.
    Done,
    /// Writers fell so far behind their traffic that the client's memory is full.
    OutOfMemory,
    /// Writers are stopped and nothing is left that could let them go on.
    Stuck,
    /// More events than a run may have.
    TooManyEvents,
}

/// What is binding at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "what")]
pub enum Bottleneck {
    /// Nothing: the store takes all that is offered.
    Nothing,
    /// A resource is full.
    Resource(Resource),
    /// The write controller holds writers back.
    Stall(Cause),
    /// The writers themselves: their own processor time or the log's latency.
    Writers,
}

/// A moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Virtual seconds; 0 in paced mode.
    pub secs: f64,
    /// Real writes so far: what a series of a paced run goes by.
    pub writes: f64,
    /// MB (10^6 bytes) a second since the last point, in paced mode MB since then: accepted from
    /// users.
    pub user_mb: f64,
    /// Written by flushes.
    pub flush_mb: f64,
    /// Written by compactions.
    pub compact_mb: f64,
    /// Read by compactions.
    pub compact_read_mb: f64,
    /// (flushed + compacted) / flushed, since the start.
    pub write_amp: f64,
    /// Bytes of files over bytes of live data.
    pub space_amp: f64,
    /// Files and levels that a lookup of an absent key has to ask.
    pub read_runs: usize,
    /// Bytes of levels.
    pub levels: Vec<u64>,
    /// Files of levels.
    pub files: Vec<usize>,
    /// What compactions have yet to do.
    pub debt_bytes: u64,
    /// Memtables that wait.
    pub sealed: usize,
    /// What writers may do at this moment.
    pub stall: Stall,
    /// The share of the time since the last point that writers were stopped or slept.
    pub stalled: f64,
    /// Use of cores, disk reads and disk writes since the last point, 0 to 1.
    pub cpu: f64,
    /// See `cpu`.
    pub disk_read: f64,
    /// See `cpu`.
    pub disk_write: f64,
    /// Running jobs at this moment.
    pub jobs: usize,
    /// What was binding for most of the time since the last point.
    pub bottleneck: Bottleneck,
    /// Latency of writes since the last point, microseconds: p50, p99.
    pub put_us: (f64, f64),
    /// Latency of lookups at this moment, microseconds: p50, p99; 0 without reads.
    pub get_us: (f64, f64),
}

/// A level at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelResult {
    /// Its number.
    pub level: usize,
    /// Its sorted runs.
    pub runs: usize,
    /// Its files.
    pub files: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Its bytes, averaged over the run: per event in paced mode, over time in timed mode.
    pub mean_bytes: f64,
    /// Its target; absent without one.
    pub target_bytes: Option<u64>,
    /// What compactions into it have written.
    pub written_bytes: u64,
}

/// Counters of a run, after the preload.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Real writes accepted.
    pub writes: f64,
    /// Bytes of their keys and values.
    pub user_bytes: f64,
    /// Bytes of the log.
    pub wal_bytes: f64,
    /// Flushes.
    pub flushes: u64,
    /// What they wrote.
    pub flush_bytes: u64,
    /// Merges.
    pub compactions: u64,
    /// Moves, which write nothing.
    pub moves: u64,
    /// Compactions that only removed files.
    pub drops: u64,
    /// What merges read.
    pub compact_read_bytes: u64,
    /// What merges wrote.
    pub compact_write_bytes: u64,
    /// Real entries that merges left out.
    pub dropped_entries: f64,
    /// Merges for which the disk alone takes longer than the processor alone.
    pub io_bound_jobs: u64,
    /// Merges for which it is the other way round.
    pub cpu_bound_jobs: u64,
    /// Merges, moves and drops by reason.
    pub reasons: BTreeMap<Reason, u64>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// The configuration's name.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Virtual seconds; 0 in paced mode.
    pub secs: f64,
    /// Real keys that a followed one stands for.
    pub sample: u64,
    /// Events.
    pub events: u64,
    /// (flushed + compacted) / flushed, as RocksDB's statistics have it; 0 where nothing was
    /// flushed.
    #[serde(rename = "write_amp")]
    pub write_amplification: f64,
    /// (log + flushed + compacted) / user bytes.
    #[serde(rename = "write_amp_user")]
    pub write_amplification_user: f64,
    /// Bytes of files / bytes of keys and values of live data.
    #[serde(rename = "space_amp")]
    pub space_amplification: f64,
    /// Data blocks and filters of a lookup, the mean over the run when it had reads, else at the
    /// end: upper levels are saw-teeth.
    pub reads: Option<ReadCosts>,
    /// Accepted MB a second.
    pub user_mb_per_sec: f64,
    /// MB that the traffic wanted and writers could not deliver.
    pub backlog_mb: f64,
    /// The share of the time that writers were stopped.
    pub stopped: f64,
    /// The share of the time that delayed writers slept, which is what the engines count: between
    /// sleeps they write.
    pub delayed: f64,
    /// Seconds stopped or slept, by cause.
    pub stall_secs: BTreeMap<Cause, f64>,
    /// Whether writers wait at the end.
    pub stall_at_end: Stall,
    /// What compactions have yet to do at the end.
    pub debt_bytes: u64,
    /// The share of the time that each bottleneck was binding, largest first.
    pub bottlenecks: Vec<(Bottleneck, f64)>,
    /// True when the background work is bound by cores rather than by the disk.
    pub is_cpu_bound: bool,
    /// Mean use of the cores.
    pub cpu: f64,
    /// Mean use of the disk's read bandwidth.
    pub disk_read: f64,
    /// Mean use of the disk's write bandwidth.
    pub disk_write: f64,
    /// Latency of writes.
    pub put: Percentiles,
    /// Latency of lookups.
    pub get: Percentiles,
    /// Latency of scans.
    pub scan: Percentiles,
    /// Memory of memtables, cache, filters and indexes at the end, bytes.
    pub memory_bytes: u64,
    /// Bytes of all files.
    pub tree_bytes: u64,
    /// Real live keys.
    pub live_keys: u64,
    /// Levels at the end.
    pub levels: Vec<LevelResult>,
    /// Totals.
    pub counters: Counters,
    /// Of the preload.
    pub preload: Counters,
    /// Over virtual time.
    pub series: Vec<Point>,
}

impl Counters {
    /// (flushed + compacted) / flushed; 0 before the first flush, which says nothing.
    pub fn write_amplification(&self) -> f64 {
        if self.flush_bytes == 0 {
            return 0.0;
        }
        (self.flush_bytes + self.compact_write_bytes) as f64 / self.flush_bytes as f64
    }
}
