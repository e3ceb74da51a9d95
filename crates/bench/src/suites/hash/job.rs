//! One measurement, described so that another process can take it.

use std::path::PathBuf;

use cairn_vfs::StdFs;
use serde::{Deserialize, Serialize};

use crate::core::error::Result;
use crate::core::histogram::Latencies;
use crate::core::worker::{Failure, Job};
use crate::core::workload::{
    Dataset, Distribution, KeyShape, Lookup, Records, Separator, ValueShape, Workload,
};
use crate::stores::{BuildOutcome, Compression};

/// The source of the records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    /// Generated.
    Synthetic {
        /// Number of records.
        entries: u64,
        /// Shape of the keys.
        keys: KeyShape,
        /// Shape of the values.
        values: ValueShape,
    },
    /// Read from a file with a header line.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Name of the data set in results.
        name: String,
        /// Separator between columns.
        separator: Separator,
        /// The key's column, by name or number.
        column: String,
    },
}

impl DataSource {
    /// Returns the source of a workload's generated records.
    pub fn synthetic(workload: &Workload) -> Self {
        let Workload { entries, ref keys, ref values, .. } = *workload;
        DataSource::Synthetic { entries, keys: keys.clone(), values: values.clone() }
    }

    /// Generates or reads the records. The same source always gives the same data set.
    pub fn load(&self) -> Result<Dataset> {
        Ok(match self {
            DataSource::Synthetic { entries, keys, values } => Dataset::synthetic(*entries, keys, values),
            DataSource::File { path, name, separator, column } => {
                Dataset::real(name, Records::read(&StdFs::new(), path, *separator, column)?)
            }
        })
    }
}

/// How keys are looked up, and how the lookups are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// One at a time, for throughput.
    Get,
    /// In batches, for throughput.
    GetMany,
    /// One at a time with the clock read around each, for latency.
    GetTimed,
}

/// One cell of the lookup matrix, for one store of one data set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// How keys are looked up.
    pub operation: Operation,
    /// Whether the keys are present.
    pub lookup: Lookup,
    /// How the keys are drawn.
    pub distribution: Distribution,
    /// Number of threads.
    pub threads: u32,
}

impl Cell {
    /// Returns the cell that looks up a workload's keys in a constant store.
    pub fn new(operation: Operation, workload: &Workload) -> Self {
        debug_assert!(workload.read_fraction == 1.0, "nothing can be written to a constant store");
        let Workload { lookup, distribution, threads, .. } = *workload;
        Cell { operation, lookup, distribution, threads }
    }
}

/// Where a built store is, and which contender opens it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The store's name.
    pub store: String,
    /// The number of its variant.
    pub variant: usize,
    /// The contender's name, for errors.
    pub contender: String,
    /// The directory that holds its files.
    pub dir: PathBuf,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Keys in a read order.
    pub order_keys: usize,
    /// Longest warm-up after opening. A warm-up never exceeds one pass over the order.
    pub warm_up_seconds: f64,
    /// Length of one repetition.
    pub seconds: f64,
}

/// Builds a store in an empty directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// The records.
    pub data: DataSource,
    /// The store's name.
    pub store: String,
    /// How the store compresses values.
    pub compression: Compression,
    /// The directory to build in.
    pub dir: PathBuf,
}

impl Job for Build {
    const KIND: &'static str = "build";
    type Outcome = BuildOutcome;
}

/// Opens a store and measures each cell once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// The records.
    pub data: DataSource,
    /// The seed of the read orders.
    pub seed: u64,
    /// The store to open.
    pub subject: Subject,
    /// The cells to measure.
    pub cells: Vec<Cell>,
    /// How much to measure.
    pub effort: Effort,
}

impl Job for Read {
    const KIND: &'static str = "read";
    /// For each cell a sample, or the reason that there is none.
    type Outcome = Vec<std::result::Result<Sample, Failure>>;
}

/// One repetition of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Lookups per second over all threads, or the median latency in ns.
    pub value: f64,
    /// Buckets of the latency histogram (ns, count), for timed lookups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

impl Sample {
    /// A throughput sample.
    pub fn rate(per_second: f64) -> Self {
        Sample { value: per_second, buckets: Vec::new() }
    }

    /// A latency sample.
    pub fn latency(latencies: &Latencies) -> Self {
        Sample { value: latencies.quantile(0.5), buckets: latencies.buckets() }
    }
}
