//! Results of a run: totals, levels, stalls, and a series over virtual time.

use std::collections::BTreeMap;

use cairn_workload::Percentiles;
use serde::Serialize;

use crate::compact::Reason;
use crate::read::ReadCosts;
use crate::resource::Resource;
use crate::stall::{Cause, Stall};

/// The state of a run, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run is not over.
    #[default]
    Running,
    /// The run reached its time or its number of writes.
    Done,
    /// Writers fell so far behind their traffic that the client's memory is full.
    OutOfMemory,
    /// Writers are stopped, and no event can let them go on.
    Stuck,
    /// The run exceeded the limit of events.
    TooManyEvents,
}

/// The bottleneck at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "what")]
pub enum Bottleneck {
    /// Nothing: the store accepts all offered writes.
    Nothing,
    /// A resource is full.
    Resource(Resource),
    /// The write controller holds writers back.
    Stall(Cause),
    /// The writers themselves: their own processor time or the log's latency.
    Writers,
}

/// A point of the series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Virtual seconds; 0 in paced mode.
    pub secs: f64,
    /// Real writes so far, the x axis of a paced run's series.
    pub writes: f64,
    /// MB (10^6 bytes) accepted from users, for each second since the last point; in paced mode, in
    /// total since then.
    pub user_mb: f64,
    /// MB written by flushes, likewise.
    pub flush_mb: f64,
    /// MB written by compactions, likewise.
    pub compact_mb: f64,
    /// MB read by compactions, likewise.
    pub compact_read_mb: f64,
    /// (flushed + compacted) / flushed, since the start.
    pub write_amp: f64,
    /// Bytes of files / bytes of live data.
    pub space_amp: f64,
    /// Sorted runs that a lookup of an absent key has to check.
    pub read_runs: usize,
    /// Bytes of each level.
    pub levels: Vec<u64>,
    /// Number of files of each level.
    pub files: Vec<usize>,
    /// Pending compaction bytes.
    pub debt_bytes: u64,
    /// Memtables that wait for their flush or are being flushed.
    pub sealed: usize,
    /// The stall at this moment.
    pub stall: Stall,
    /// The share of time since the last point for which writers were stopped or slept.
    pub stalled: f64,
    /// Utilization of the cores since the last point, 0 to 1.
    pub cpu: f64,
    /// Utilization of the disk's read bandwidth, likewise.
    pub disk_read: f64,
    /// Utilization of the disk's write bandwidth, likewise.
    pub disk_write: f64,
    /// Running jobs at this moment.
    pub jobs: usize,
    /// The bottleneck that was binding longest since the last point.
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
    /// Bytes written by compactions into it.
    pub written_bytes: u64,
}

/// Counters of a run, after the preload.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Real writes accepted.
    pub writes: f64,
    /// Bytes of keys and values of those writes.
    pub user_bytes: f64,
    /// Bytes written to the log.
    pub wal_bytes: f64,
    /// Number of flushes.
    pub flushes: u64,
    /// Bytes written by flushes.
    pub flush_bytes: u64,
    /// Number of merges.
    pub compactions: u64,
    /// Number of moves, which write nothing.
    pub moves: u64,
    /// Number of compactions that only removed files.
    pub drops: u64,
    /// Bytes read by merges.
    pub compact_read_bytes: u64,
    /// Bytes written by merges.
    pub compact_write_bytes: u64,
    /// Real entries that merges dropped.
    pub dropped_entries: f64,
    /// Merges that need more disk time than processor time.
    pub io_bound_jobs: u64,
    /// Merges that need more processor time than disk time.
    pub cpu_bound_jobs: u64,
    /// Number of merges, moves and drops, by reason.
    pub reasons: BTreeMap<Reason, u64>,
}

/// All results of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// The configuration's name.
    pub name: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Virtual seconds; 0 in paced mode.
    pub secs: f64,
    /// Real keys for each sampled one.
    pub sample: u64,
    /// Number of events.
    pub events: u64,
    /// (flushed + compacted) / flushed, as in RocksDB's statistics; 0 if nothing was flushed.
    #[serde(rename = "write_amp")]
    pub write_amplification: f64,
    /// (log + flushed + compacted) / user bytes.
    #[serde(rename = "write_amp_user")]
    pub write_amplification_user: f64,
    /// Bytes of files / bytes of keys and values of live data.
    #[serde(rename = "space_amp")]
    pub space_amplification: f64,
    /// Costs of a lookup: the mean over the run if it had reads, otherwise those at the end, which
    /// depend on how full the upper levels happen to be.
    pub reads: Option<ReadCosts>,
    /// MB a second accepted from users.
    pub user_mb_per_sec: f64,
    /// MB that the traffic demanded and writers could not deliver.
    pub backlog_mb: f64,
    /// The share of time for which writers were stopped.
    pub stopped: f64,
    /// The share of time for which delayed writers slept, as the engines count it: between sleeps
    /// they write.
    pub delayed: f64,
    /// Seconds for which writers were stopped or slept, by cause.
    pub stall_secs: BTreeMap<Cause, f64>,
    /// The stall at the end.
    pub stall_at_end: Stall,
    /// Pending compaction bytes at the end.
    pub debt_bytes: u64,
    /// The share of time for which each bottleneck was binding, largest first.
    pub bottlenecks: Vec<(Bottleneck, f64)>,
    /// Whether the background work is bound by cores rather than by the disk.
    pub is_cpu_bound: bool,
    /// Mean utilization of the cores.
    pub cpu: f64,
    /// Mean utilization of the disk's read bandwidth.
    pub disk_read: f64,
    /// Mean utilization of the disk's write bandwidth.
    pub disk_write: f64,
    /// Latency of writes.
    pub put: Percentiles,
    /// Latency of lookups.
    pub get: Percentiles,
    /// Latency of scans.
    pub scan: Percentiles,
    /// Bytes of memory for memtables, cache, filters and indexes at the end.
    pub memory_bytes: u64,
    /// Bytes of all files.
    pub tree_bytes: u64,
    /// Number of real live keys.
    pub live_keys: u64,
    /// Levels at the end.
    pub levels: Vec<LevelResult>,
    /// Totals of the run.
    pub counters: Counters,
    /// Totals of the preload.
    pub preload: Counters,
    /// The series over virtual time.
    pub series: Vec<Point>,
}

impl Counters {
    /// Returns (flushed + compacted) / flushed, or 0 before the first flush, when it is undefined.
    pub fn write_amplification(&self) -> f64 {
        if self.flush_bytes == 0 {
            return 0.0;
        }
        (self.flush_bytes + self.compact_write_bytes) as f64 / self.flush_bytes as f64
    }
}
