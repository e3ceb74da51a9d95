//! One turn of one store, described so that a separate process can take it, and its outcome.

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

/// The length of all keys and of all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Length of a key in bytes.
    pub key_bytes: usize,
    /// Length of a value in bytes.
    pub value_bytes: usize,
}

impl Shape {
    /// Returns the length of a record as the user sees it, in bytes.
    pub fn record_bytes(self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }
}

/// The work of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvWorkload {
    /// put, get, update and delete by one thread.
    Crud(Crud),
    /// put and get by several threads with separate keys.
    Threads(Threads),
    /// Durable puts by several writers.
    Writers(Writers),
    /// YCSB's workloads, one after another.
    Ycsb(YcsbRun),
    /// db_bench's benchmarks, one after another.
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
    /// The turn's own, empty directory.
    pub dir: PathBuf,
    /// Settings for opening the store.
    pub settings: KvSettings,
    /// Lengths of keys and values.
    pub shape: Shape,
    /// The work to do.
    pub workload: KvWorkload,
    /// Seed of all random draws.
    pub seed: u64,
    /// True for the turn in which the clock is read around each operation. It gives latencies but
    /// no throughput. Workloads that take both in one turn ignore this.
    pub timed: bool,
}

/// A metric of the results, named by a word that travels between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvMetric {
    /// Operations per second over all threads, from the first start to the last end.
    Throughput,
    /// Operations per second, including the time until buffers are written out and background work
    /// is done.
    SettledThroughput,
    /// Operations per second of the slowest thread.
    WorstThread,
    /// Latency of single operations.
    Latency,
    /// Seconds.
    Time,
    /// Rise of resident memory.
    PeakMemory,
    /// Total length of all files, divided by the number of entries.
    BytesPerEntry,
    /// Bytes that the process dirtied for the disk, divided by the bytes that its user wrote.
    WriteAmplification,
    /// Total length of all files, divided by the length of live keys and values.
    SpaceAmplification,
    /// The longest single operation.
    Longest,
    /// Seconds of a run in which the rate was less than a tenth of the run's median.
    StalledSeconds,
    /// The rate in each second of a run.
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

/// The operation behind a value. The rest of its case is the same for a whole group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// `put`, `get`, `readrandom`, …
    pub operation: String,
    /// The mode or workload, which takes the place of the data set: `seq`, `ycsb-a`, `db_bench`.
    pub dataset: String,
    /// `new`, `present`, `mixed`.
    pub keys: String,
    /// `sequential`, `uniform`, `zipfian 0.99`, …
    pub distribution: String,
    /// Entries in the store.
    pub entries: u64,
    /// Number of threads.
    pub threads: u32,
}

/// One metric of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The operation.
    pub done: Done,
    /// The metric.
    pub metric: KvMetric,
    /// The value; more than one only for values over time.
    pub values: Vec<f64>,
    /// The histogram (ns, count) behind a latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

/// The results of a turn that has passed all its checks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct KvOutcome {
    /// The metrics, in the order taken.
    pub figures: Vec<Figure>,
    /// The store's own counters at the end, by the names that the store uses.
    pub counters: Vec<(String, f64)>,
}

impl KvOutcome {
    /// Adds a metric with one value.
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

/// Carries out a turn in this process.
///
/// Errors: the store's own, and [`Error::WrongResult`](crate::Error::WrongResult) for a wrong
/// answer. There are no results then.
pub fn carry_out(job: &KvJob) -> Result<KvOutcome> {
    let store = catalog::store(&job.store)?;
    carry_out_with(&*store, job)
}

/// Like [`carry_out`], with a store of the caller's choice.
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
