//! One turn of one store, described so that a process of its own can take it, and what comes back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::crud::Crud;
use super::db_bench::DbBench;
use super::large::Large;
use super::overwrite::Overwrite;
use super::replay::Replay;
use super::store::KvSettings;
use super::threads::Threads;
use super::writers::Writers;
use super::ycsb::YcsbRun;
use super::{catalog, crud, db_bench, large, overwrite, replay, threads, writers, ycsb};
use crate::error::Result;
use crate::histogram::Latencies;
use crate::results::OVER_TIME;
use crate::suite_hash::recorder::Metric;

/// Lengths of all keys and of all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl Shape {
    /// Bytes of one record as its user sees it.
    pub fn record_bytes(self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }
}

/// What is done in one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvWorkload {
    /// put, get, update, delete by one thread.
    Crud(Crud),
    /// put and get by several threads, each with keys of its own.
    Threads(Threads),
    /// Durable puts by several writers.
    Writers(Writers),
    /// YCSB's workloads one after the other.
    Ycsb(YcsbRun),
    /// db_bench's benchmarks one after the other.
    DbBench(DbBench),
    /// Reads of more data than the cache holds.
    Large(Large),
    /// A long overwrite.
    Overwrite(Overwrite),
    /// The operations of a trace.
    Replay(Replay),
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvJob {
    /// The store's name.
    pub store: String,
    /// An empty directory of its own.
    pub dir: PathBuf,
    /// What the store is opened with.
    pub settings: KvSettings,
    /// Lengths of keys and values.
    pub shape: Shape,
    /// What is done.
    pub workload: KvWorkload,
    /// Seed of all draws.
    pub seed: u64,
    /// True for the turn in which the clock is read around each operation. It gives latencies and
    /// no throughput; workloads that take both in one turn ignore this.
    pub timed: bool,
}

/// Which figure it is: a metric of the results, by a word that travels between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvMetric {
    /// Operations a second, all threads together, from the first start to the last end.
    Throughput,
    /// Operations a second until buffers are written out and the background is quiet.
    SettledThroughput,
    /// Operations a second of the thread that took longest.
    WorstThread,
    /// Of single operations.
    Latency,
    /// Seconds.
    Time,
    /// Rise of resident memory.
    PeakMemory,
    /// Length of all files over the number of entries.
    BytesPerEntry,
    /// Bytes that the process dirtied for the disk over bytes that its user wrote.
    WriteAmplification,
    /// Length of all files over the length of live keys and values.
    SpaceAmplification,
    /// The longest single operation.
    Longest,
    /// Seconds of a run in which less than a tenth of its median rate was done.
    StalledSeconds,
    /// One figure for each second of a run.
    ThroughputOverTime,
}

impl KvMetric {
    pub(super) fn metric(self) -> Metric {
        let metric = |name, unit, higher_is_better| Metric { name, unit, higher_is_better };
        match self {
            KvMetric::Throughput => metric("throughput", "ops/s", true),
            KvMetric::SettledThroughput => metric("throughput until settled", "ops/s", true),
            KvMetric::WorstThread => metric("throughput of the slowest thread", "ops/s", true),
            KvMetric::Latency => metric("latency", "ns", false),
            KvMetric::Time => metric("time", "s", false),
            KvMetric::PeakMemory => metric(crate::results::PEAK_MEMORY, "B", false),
            KvMetric::BytesPerEntry => metric("bytes per entry", "B", false),
            KvMetric::WriteAmplification => metric("write amplification", "", false),
            KvMetric::SpaceAmplification => metric("space amplification", "", false),
            KvMetric::Longest => metric("longest operation", "ns", false),
            KvMetric::StalledSeconds => metric("stalled", "s", false),
            KvMetric::ThroughputOverTime => metric(OVER_TIME, "ops/s", true),
        }
    }
}

/// What was done for a figure; the rest of its case is the same for a whole group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// `put`, `get`, `readrandom`, …
    pub operation: String,
    /// The mode or workload, which stands for the data set: `seq`, `ycsb-a`, `db_bench`.
    pub dataset: String,
    /// `new`, `present`, `mixed`.
    pub keys: String,
    /// `sequential`, `uniform`, `zipfian 0.99`, …
    pub distribution: String,
    /// Entries in the store.
    pub entries: u64,
    /// By how many threads.
    pub threads: u32,
}

/// One figure of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was done.
    pub done: Done,
    /// Which figure.
    pub metric: KvMetric,
    /// Its value; several only where they are points in time.
    pub values: Vec<f64>,
    /// The histogram (ns, count) behind a latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

/// Everything that a turn found, after all its checks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct KvOutcome {
    /// In the order taken.
    pub figures: Vec<Figure>,
    /// The store's own counters at the end, by the names that it gives them.
    pub counters: Vec<(String, f64)>,
}

impl KvOutcome {
    /// Adds a figure of one value.
    pub(super) fn add(&mut self, done: &Done, metric: KvMetric, value: f64) {
        self.figures.push(Figure { done: done.clone(), metric, values: vec![value], buckets: Vec::new() });
    }

    /// Adds latencies, unless there are none.
    pub(super) fn add_latencies(&mut self, done: &Done, latencies: &Latencies) {
        if latencies.count() > 0 {
            self.figures.push(Figure {
                done: done.clone(),
                metric: KvMetric::Latency,
                values: vec![latencies.quantile(0.5)],
                buckets: latencies.buckets(),
            });
        }
    }
}

/// Carries out a turn in this process. Errors: the store's own, and
/// [`Error::WrongResult`](crate::Error::WrongResult) where it answered wrong; then there are no
/// figures.
pub fn carry_out(job: &KvJob) -> Result<KvOutcome> {
    let store = catalog::store(&job.store)?;
    carry_out_with(&*store, job)
}

/// As [`carry_out`], with a store of the caller's.
pub(super) fn carry_out_with(store: &dyn super::KvStore, job: &KvJob) -> Result<KvOutcome> {
    let turn = super::turn::Turn::new(store, job);
    match &job.workload {
        KvWorkload::Crud(crud) => crud::run(&turn, crud),
        KvWorkload::Threads(threads) => threads::run(&turn, threads),
        KvWorkload::Writers(writers) => writers::run(&turn, writers),
        KvWorkload::Ycsb(run) => ycsb::run(&turn, run),
        KvWorkload::DbBench(bench) => db_bench::run(&turn, bench),
        KvWorkload::Large(large) => large::run(&turn, large),
        KvWorkload::Overwrite(overwrite) => overwrite::run(&turn, overwrite),
        KvWorkload::Replay(replay) => replay::turn(&turn, replay),
    }
}
