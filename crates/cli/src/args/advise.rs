//! Arguments of `cairn advise`.

use std::path::PathBuf;
use std::time::Duration;

use cairn_bench::core::workload::Distribution;
use clap::{Args, ValueEnum};

use super::bytes::{bytes_between, size_between, some_bytes};
use super::{Promise, WORK_DIR, names, number, time};

/// `cairn advise`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn advise --records 1000000 --read 95 --update 5 --value-size 100
  cairn advise --read 1 --distribution uniform --threads 4 --memory 256MiB
  cairn advise --update 1 --durability sync --threads 8 --p99 2ms --dbs cairn,rocksdb,sqlite
  cairn advise --trace app.trace --durability sync --memory 512MiB
  cairn advise workload.json --json > advice.json
  cairn advise --write-workload workload.json --read 80 --scan 20

A workload file is JSON: {\"workload\": {...}, \"constraints\": {...}}; --write-workload writes
one. Options override the file. Without a file or options, the command asks on a terminal. Defaults:
a million records, keys of 16 bytes, values of 100, 95 reads to 5 updates, zipfian 0.99, scans of up
to 100 entries, one thread, buffered.

The command measures the cost of operations on small stores on this machine, predicts every store
and setting for the workload, leaves out those that break a constraint, and runs the best few on the
workload itself, or on the trace. Every recommendation has been measured. --effort quick takes about
a minute, usual a few minutes, full a quarter of an hour.

Exit codes: 0 found, 1 error, 2 no store meets the constraints.")]
pub struct AdviseArgs {
    /// Workload file
    pub workload: Option<PathBuf>,
    /// Trace of the workload, from which its mix, sizes, keys, threads and arrival are taken; the
    /// stores that are run replay it
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "workload", "records", "key_size", "value_size", "read", "update", "insert", "scan", "read_modify_write", "scan_records", "distribution"
        ]
    )]
    pub trace: Option<PathBuf>,
    /// Entries in the store
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u64>(100, u64::from(u32::MAX)))]
    pub records: Option<u64>,
    /// Bytes per key
    #[arg(long, value_parser = size_between(12, 1024), value_name = "SIZE")]
    pub key_size: Option<usize>,
    /// Bytes per value
    #[arg(long, value_parser = bytes_between(8, 1 << 24), value_name = "SIZE")]
    pub value_size: Option<u64>,
    /// Share of lookups; shares need not add up to 100
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub read: Option<f64>,
    /// Share of writes of existing keys
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub update: Option<f64>,
    /// Share of writes of new keys
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub insert: Option<f64>,
    /// Share of scans
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub scan: Option<f64>,
    /// Share of lookups followed by a write of the same key
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub read_modify_write: Option<f64>,
    /// The longest scan, in entries
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u64>(1, 1_000_000))]
    pub scan_records: Option<u64>,
    /// Distribution of keys: uniform, sequential, 'zipfian [THETA]', 'latest [THETA]', 'hot set
    /// [FRACTION] [PROBABILITY]'
    #[arg(long, value_name = "NAME")]
    pub distribution: Option<Distribution>,
    /// Threads of the program
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u32>(1, 256))]
    pub threads: Option<u32>,
    /// Durability of a write when its call returns
    #[arg(long, value_enum)]
    pub durability: Option<Promise>,
    /// Maximum memory of the store
    #[arg(long, value_parser = some_bytes, value_name = "SIZE", help_heading = "Constraints")]
    pub memory: Option<u64>,
    /// Maximum disk space of its files
    #[arg(long, value_parser = some_bytes, value_name = "SIZE", help_heading = "Constraints")]
    pub disk: Option<u64>,
    /// Maximum time for 99 of 100 operations, such as 500us or 2ms; a bare number is microseconds
    #[arg(long, value_name = "TIME", help_heading = "Constraints", value_parser = time::some_micros)]
    pub p99: Option<Duration>,
    /// Choose from these stores only
    #[arg(long, alias = "stores", value_name = "NAMES", value_delimiter = ',', value_parser = names::store, help_heading = "Constraints")]
    pub dbs: Vec<String>,
    /// How much to run
    #[arg(long, value_enum, value_name = "EFFORT", default_value = "usual")]
    pub effort: EffortArg,
    /// Seed of all draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = cairn_bench::core::workload::DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    #[arg(long, value_name = "DIR", help = WORK_DIR)]
    pub work_dir: Option<PathBuf>,
    /// Print the answer and everything it rests on as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the workload and constraints to a new workload file, or with - to standard output, and
    /// exit
    #[arg(long, value_name = "FILE")]
    pub write_workload: Option<PathBuf>,
    /// Check how good the advice is: answer fourteen workloads, then run every store on them [about
    /// an hour]
    #[arg(
        long,
        conflicts_with_all = [
            "workload", "trace", "records", "key_size", "value_size", "read", "update", "insert", "scan", "read_modify_write", "scan_records",
            "distribution", "threads", "durability", "memory", "disk", "p99", "dbs"
        ]
    )]
    pub check: bool,
    /// With --check: only workloads whose name contains this text
    #[arg(long, requires = "check", value_name = "WORD")]
    pub filter: Option<String>,
}

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EffortArg {
    /// Three stores, five short rounds
    Quick,
    /// Four stores, five rounds
    Usual,
    /// Six stores, nine long rounds
    Full,
}
