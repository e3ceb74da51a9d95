//! Arguments of all suites.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::bytes::bytes_between;
use super::time;

/// Help of `--work-dir`, the same for every suite.
pub const WORK_DIR: &str = "Directory on the disk to measure, where files are created [default: work in $CAIRN_CACHE, or in ~/.cache/cairn]";

/// The directory that `--work-dir` names, or its default.
pub fn work_dir(named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| cairn_bench::cache_dir().join("work"), Path::to_owned)
}

/// The duration of a run, its directory, and where its results go.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// End after this time, such as 90s or 20min, and keep the results so far; a bare number is
    /// seconds [default: when everything is measured]
    #[arg(long, value_name = "TIME", value_parser = time::some_seconds)]
    pub time_limit: Option<Duration>,
    #[arg(long, value_name = "DIR", help = WORK_DIR)]
    pub work_dir: Option<PathBuf>,
    /// Directory for the result file
    #[arg(long, value_name = "DIR", default_value = cairn_bench::core::run_files::RESULTS_DIR)]
    pub results: PathBuf,
    /// File for the HTML report, - for standard output [default: next to the results]
    #[arg(long, alias = "report", value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Skip the probes of memory and disk, which take a few seconds
    #[arg(long)]
    pub no_probes: bool,
    /// Print the figures as a list for dashboards: name, unit, value
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
