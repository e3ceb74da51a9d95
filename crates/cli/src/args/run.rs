//! What all suites' commands take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::bytes::bytes_between;
use super::time;

/// What `--work-dir` is, whatever is measured.
pub const WORK_DIR: &str = "Directory on the disk to measure; files are made there [default: work in $CAIRN_CACHE, or in ~/.cache/cairn]";

/// The directory that `--work-dir` names, or its default.
pub fn work_dir(named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| cairn_bench::cache_dir().join("work"), Path::to_owned)
}

/// How long a run may be, where it is made, and where it goes.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// End after this time with what there is, such as 90s or 20min; a bare number is seconds [default: when all is measured]
    #[arg(long, value_name = "TIME", value_parser = time::some_seconds)]
    pub time_limit: Option<Duration>,
    #[arg(long, value_name = "DIR", help = WORK_DIR)]
    pub work_dir: Option<PathBuf>,
    /// Directory for the result file
    #[arg(long, value_name = "DIR", default_value = cairn_bench::store::RESULTS_DIR)]
    pub results: PathBuf,
    /// File for the HTML report, - for standard output [default: beside the results]
    #[arg(long, alias = "report", value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Leave out the probes of memory and disk, which take some seconds
    #[arg(long)]
    pub no_probes: bool,
    /// Print the figures as the list that dashboards take: name, unit, value
    #[arg(long)]
    pub json: bool,
}

/// Memory that stores of `cairn bench kv` and `cairn bench replay` may take.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Cache of every store that has one [default: 256MiB]
    #[arg(long, value_parser = bytes_between(1 << 20, 1 << 40), value_name = "SIZE")]
    pub cache_size: Option<u64>,
    /// Write buffer of every store that has one [default: 64MiB]
    #[arg(long, value_parser = bytes_between(1 << 20, 1 << 40), value_name = "SIZE")]
    pub write_buffer_size: Option<u64>,
}
