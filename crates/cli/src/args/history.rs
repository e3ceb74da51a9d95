//! Arguments of the lab's commands on runs over time.

use std::path::PathBuf;

use cairn_bench::history::HISTORY_DIR;
use clap::Args;

use super::number;
use super::run::RunArgs;

/// Place of the history.
#[derive(Debug, Args)]
pub struct HistoryAt {
    /// Store with the history
    #[arg(long, value_name = "DIR", default_value = HISTORY_DIR)]
    pub history: PathBuf,
}

/// `cairn bench record`.
#[derive(Debug, Args)]
pub struct RecordRunArgs {
    /// Stored runs, or directories of them
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    #[command(flatten)]
    pub at: HistoryAt,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn bench history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Show series whose names contain all of these words; with --runs, the suites whose runs are
    /// listed
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub at: HistoryAt,
    /// List the runs instead
    #[arg(long, conflicts_with_all = ["html", "last"])]
    pub runs: bool,
    /// Show only this many of the latest points of each series
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = number::from::<usize>(1))]
    pub last: usize,
    /// Write a page with charts to this file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn bench compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The earlier run; without B, the run to compare with the one before it in the history
    pub a: PathBuf,
    /// The later run
    pub b: Option<PathBuf>,
    /// Exit with 2 if something got worse beyond tolerance and noise, a figure is missing, or
    /// nothing can be judged
    #[arg(long)]
    pub fail: bool,
    /// How much worse a time or a rate may get, in percent
    #[arg(long, alias = "limit", value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub tolerance: f64,
    /// How much worse a count may get, in percent: instructions, bytes of constant stores, pages,
    /// hit rates
    #[arg(long, alias = "limit-counts", value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    pub tolerance_counts: f64,
    /// Also show unchanged figures
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub at: HistoryAt,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn percent(word: &str) -> Result<f64, String> {
    let number = word.trim_end_matches('%').trim().parse::<f64>().ok();
    number
        .filter(|number| (0.0..=1000.0).contains(number))
        .ok_or_else(|| "expected percent from 0 to 1000".to_owned())
}

/// `cairn bench counts`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench counts
  cairn bench counts 'kv ' --n 50000 --json

Needs valgrind. Instruction counts are the same on a busy machine as on a quiet one: compare them
with earlier counts first, with `cairn bench compare --fail`, and times in a separate step.")]
pub struct CountsArgs {
    /// Only cases whose name contains this text: kv put, kv get, kv scan, hash build, hash get,
    /// trace record
    pub filter: Option<String>,
    /// The same as FILTER
    #[arg(long = "filter", id = "named_filter", value_name = "WORD", conflicts_with = "filter")]
    pub named_filter: Option<String>,
    /// Operations of the shorter of the two processes that a case runs
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = number::between::<u64>(1_000, 100_000_000))]
    pub n: u64,
    #[command(flatten)]
    pub run: RunArgs,
}
