//! Arguments of `cairn bench all`.

use std::path::PathBuf;

use clap::Args;

use super::run::RunArgs;
use super::{names, number};

/// What a run is told when it begins, and keeps.
const SETTINGS: [&str; 12] = [
    "quick",
    "full",
    "suites",
    "scale",
    "rounds",
    "data",
    "key",
    "source",
    "seed",
    "no_probes",
    "work_dir",
    "results",
];

/// `cairn bench all`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench all
  cairn bench all --quick --data places.csv --key id
  cairn bench all --full --work-dir /mnt/disk
  cairn bench all --suites hash,kv --scale 0.1
  cairn bench all --resume benchmark-results/all-20260101T000000Z

Suites: hash, kv, pool, sql, index (where PostgreSQL is), sim (the simulator against real stores).
What a suite or a peer needs and is not here is told in a line, and left out.

Each run has a directory of its own below --results: report.html, a stored run of each suite for
compare, record and report, and what each part of it measured. Ctrl-C ends it with what it has; a
second one ends it at once. --resume goes on with the parts that are not over, and measures those
anew in which something failed.

Exit codes: 0 measured, 1 error, or a part or a contender failed (the report has the others), 130
ended by Ctrl-C.")]
pub struct BenchAllArgs {
    /// A quarter of an hour at most: small stores, short turns [default]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Hours: everything that the suites have
    #[arg(long)]
    pub full: bool,
    /// Only these suites; several with commas [default: hash,kv,pool,sql,index,sim]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::suite)]
    pub suites: Vec<String>,
    /// Times the usual numbers of records, rows and operations
    #[arg(long, value_name = "FACTOR", value_parser = number::real_between(0.0001, 100.0))]
    pub scale: Option<f64>,
    /// Turns of everybody in everything [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u32>(1, 1000))]
    pub rounds: Option<u32>,
    /// CSV or TSV file with a header line, for the constant store
    #[arg(long, value_name = "FILE", requires = "key")]
    pub data: Option<PathBuf>,
    /// Column of the data file with the key: its name, or its number counted from 1
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub key: Option<String>,
    /// Where the data comes from and under which licence, for the report
    #[arg(long, value_name = "TEXT", requires = "data")]
    pub source: Option<String>,
    /// Seed of all data, draws and shuffles [default: 12345]
    #[arg(long, value_name = "NUMBER", value_parser = number::whole::<u64>)]
    pub seed: Option<u64>,
    /// Go on with the run in this directory, with its settings
    #[arg(long, value_name = "DIR", conflicts_with_all = SETTINGS)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
}
