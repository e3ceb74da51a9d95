//! Arguments of `cairn bench all`.

use std::path::PathBuf;

use clap::Args;

use super::run::RunArgs;
use super::{names, number};

/// Settings that a run is given when it begins, and keeps.
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

Suites: hash, kv, pool, sql, index (where PostgreSQL is installed), sim (the simulator against real
stores). A suite or peer whose requirements are missing is left out, with a line that says why.

Each run has its own directory under --results, with report.html, a stored run of each suite for
compare, record and report, and the results of each part. Ctrl-C ends the run and keeps the results
so far; a second Ctrl-C ends it at once. --resume continues with the parts that are not finished,
and measures again the parts in which something failed.

Exit codes: 0 measured, 1 error, or a part or a contender failed (the report has the others), 130
ended by Ctrl-C.")]
pub struct BenchAllArgs {
    /// Small stores and short turns, at most a quarter of an hour [default]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// All cases of the suites, which takes hours
    #[arg(long)]
    pub full: bool,
    /// Only these suites; separate several with commas [default: hash,kv,pool,sql,index,sim]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::suite)]
    pub suites: Vec<String>,
    /// Factor on the usual numbers of records, rows and operations
    #[arg(long, value_name = "FACTOR", value_parser = number::real_between(0.0001, 100.0))]
    pub scale: Option<f64>,
    /// Rounds, each of which measures every contender once [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u32>(1, 1000))]
    pub rounds: Option<u32>,
    /// CSV or TSV file with a header line, for the constant store
    #[arg(long, value_name = "FILE", requires = "key")]
    pub data: Option<PathBuf>,
    /// Key column of the data file: its name, or its number counted from 1
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub key: Option<String>,
    /// Source and licence of the data, for the report
    #[arg(long, value_name = "TEXT", requires = "data")]
    pub source: Option<String>,
    /// Seed of all data, draws and shuffles [default: 12345]
    #[arg(long, value_name = "NUMBER", value_parser = number::whole::<u64>)]
    pub seed: Option<u64>,
    /// Continue the run in this directory, with its settings
    #[arg(long, value_name = "DIR", conflicts_with_all = SETTINGS)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
}
