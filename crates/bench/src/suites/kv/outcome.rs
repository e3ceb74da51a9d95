//! A turn apart from its workload, and its outcome. Both travel between processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::histogram::Latencies;
use crate::core::recorder::Metric;
use crate::core::results::OVER_TIME;
use crate::stores::kv::KvSettings;

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

/// One turn, whatever its workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnSetup {
    /// The store's name.
    pub store: String,
    /// The turn's own, empty directory.
    pub dir: PathBuf,
    /// Settings for opening the store.
    pub settings: KvSettings,
    /// Lengths of keys and values.
    pub shape: Shape,
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
            KvMetric::PeakMemory => metric(crate::core::results::PEAK_MEMORY, "B", false),
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
pub struct OperationCase {
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
    pub done: OperationCase,
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
    pub(super) fn add(&mut self, done: &OperationCase, metric: KvMetric, value: f64) {
        self.figures.push(Figure { done: done.clone(), metric, values: vec![value], buckets: Vec::new() });
    }

    /// Adds latencies, unless there are none.
    pub(super) fn add_latencies(&mut self, done: &OperationCase, latencies: &Latencies) {
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
