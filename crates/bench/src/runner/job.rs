//! One measurement, described so that another process can take it.

use std::path::PathBuf;

use cairn_vfs::StdFs;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::engine::{Built, Compression};
use crate::error::{Error, Result};
use crate::histogram::Latencies;
use crate::suite_counts::CountJob;
use crate::suite_kv::job::{KvJob, KvOutcome};
use crate::workload::{Dataset, Distribution, KeyShape, Lookup, Records, Separator, ValueShape, Workload};

/// Where the records come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    /// Made up.
    Synthetic {
        /// How many.
        entries: u64,
        /// What keys look like.
        keys: KeyShape,
        /// What values look like.
        values: ValueShape,
    },
    /// Read from a file with a header line.
    File {
        /// The file.
        path: PathBuf,
        /// What the data set is called in results.
        name: String,
        /// What stands between columns.
        separator: Separator,
        /// The key's column, by name or number.
        column: String,
    },
}

impl DataSource {
    /// The made-up records of a workload.
    pub fn synthetic(workload: &Workload) -> Self {
        let Workload { entries, ref keys, ref values, .. } = *workload;
        DataSource::Synthetic { entries, keys: keys.clone(), values: values.clone() }
    }

    /// Makes or reads the records. The same source always gives the same data set.
    pub fn load(&self) -> Result<Dataset> {
        Ok(match self {
            DataSource::Synthetic { entries, keys, values } => Dataset::synthetic(*entries, keys, values),
            DataSource::File { path, name, separator, column } => {
                Dataset::real(name, Records::read(&StdFs::new(), path, *separator, column)?)
            }
        })
    }
}

/// How keys are looked up, and how that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// One by one, for throughput.
    Get,
    /// In batches, for throughput.
    GetMany,
    /// One by one, the clock read around each, for latency.
    GetTimed,
}

/// One cell of the matrix of lookups, for one store of one data set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// How keys are looked up.
    pub operation: Operation,
    /// Whether they are there.
    pub lookup: Lookup,
    /// How they are drawn.
    pub distribution: Distribution,
    /// By how many threads.
    pub threads: u32,
}

impl Cell {
    /// The lookups of a workload on a constant store.
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
    /// The directory with its files.
    pub dir: PathBuf,
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Keys in a read order.
    pub order_keys: usize,
    /// At most this long a warm-up after opening, and not more than one pass over the order.
    pub warm_up_seconds: f64,
    /// Length of one repetition.
    pub seconds: f64,
}

/// Something for a worker to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Build a store in an empty directory.
    Build {
        /// The records.
        data: DataSource,
        /// The store's name.
        store: String,
        /// How it keeps values.
        compression: Compression,
        /// The directory.
        dir: PathBuf,
    },
    /// Open a store and measure each cell once.
    Read {
        /// The records.
        data: DataSource,
        /// The seed of the read orders.
        seed: u64,
        /// What to open.
        subject: Subject,
        /// What to measure.
        cells: Vec<Cell>,
        /// How long.
        effort: Effort,
    },
    /// One turn of a key-value store.
    Kv(Box<KvJob>),
    /// A loop whose instructions are counted.
    Count(CountJob),
}

/// What a build took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BuildOutcome {
    /// From the first record handed over to all files on stable storage.
    pub seconds: f64,
    /// Length of all files.
    pub disk_bytes: u64,
    /// Part of it that serves finding records, where the format tells it apart.
    pub index_bytes: Option<u64>,
    /// Rise of resident memory over what the records take, where it could be measured: in a process
    /// of its own.
    pub peak_memory_bytes: Option<u64>,
}

impl BuildOutcome {
    /// From the parts.
    pub fn new(seconds: f64, disk_bytes: u64, built: Built, peak_memory_bytes: Option<u64>) -> Self {
        BuildOutcome { seconds, disk_bytes, index_bytes: built.index_bytes, peak_memory_bytes }
    }
}

/// One repetition of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Lookups a second by all threads together, or the median latency in ns.
    pub value: f64,
    /// The latency histogram's buckets (ns, count), for timed lookups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

impl Sample {
    /// Of throughput.
    pub fn rate(per_second: f64) -> Self {
        Sample { value: per_second, buckets: Vec::new() }
    }

    /// Of latency.
    pub fn latency(latencies: &Latencies) -> Self {
        Sample { value: latencies.quantile(0.5), buckets: latencies.buckets() }
    }
}

/// Why a worker has no sample. A wrong answer costs a store all its figures, so it stays told apart
/// from the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// [`Error::WrongResult`].
    WrongResult {
        /// The contender.
        contender: String,
        /// The case, and where in the read order.
        case: String,
        /// Computed from the data set itself.
        expected: Digest,
        /// Computed from what the store returned.
        got: Digest,
    },
    /// Any other error, in words.
    Other(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::WrongResult { contender, case, expected, got } => {
                Failure::WrongResult { contender, case, expected, got }
            }
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::WrongResult { contender, case, expected, got } => {
                Error::WrongResult { contender, case, expected, got }
            }
            Failure::Other(what) => Error::process("a worker", format!("said: {what}")),
        }
    }
}

/// What a worker found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobResult {
    /// Of a build.
    Built(BuildOutcome),
    /// Of a reading: for each cell a sample, or why there is none.
    Read(Vec<std::result::Result<Sample, Failure>>),
    /// Of a key-value store's turn, or why it has none.
    Kv(std::result::Result<KvOutcome, Failure>),
    /// A loop is done.
    Counted,
    /// The job could not be done at all.
    Failed(String),
}
