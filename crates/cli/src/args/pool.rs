//! Arguments of `cairn bench pool`.

use std::path::PathBuf;

use clap::Args;

use super::bytes::parse_bytes;

/// `cairn bench pool`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench pool 50 12
  cairn bench pool 50 12 'Random (K=10,'
  cairn bench pool 100 12 pin:t8 --policies all --peers textbook,moka
  cairn bench pool 50 12 --json > dashboard.json

Names of cases hold the filter's words: 'Pin/Unpin (hit)', 'Cold Pin (miss)', 'Dirty Eviction', 'Sequential Scan (', 'Seq Scan MT x4',
'Repeated Access', 'Random (K=50,', 'Random MT x4 (K=50,', 'Zipfian (80/20)', 'Pool Size (', 'Memory Pressure (', 'Hit Rate (', 'Buffer
Starvation'. Tokens of phase 5: pin:t8, pin:t8:optimistic, hotset:t8_k4, hotset:t8_k4:optimistic; pin:t2 is not pin:t256.
Ctrl-C ends the run with what it has; a second one ends it at once.")]
pub struct BenchPoolArgs {
    /// Samples of each case
    #[arg(default_value_t = 50)]
    pub iterations: u32,
    /// Pages in memory, outside of the cases that say otherwise
    #[arg(default_value_t = 12)]
    pub buffers: usize,
    /// Only cases with this in their name, see below. Ignored with --json
    pub filter: Option<String>,
    /// Policies of Cairn's pool: lru, clock, sieve, 2q, lru-2, s3-fifo, arc, lirs, w-tinylfu, or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "lru,clock,sieve")]
    pub policies: Vec<String>,
    /// Who is measured beside it: textbook, quick_cache, moka, rocksdb, sqlite; all or none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all")]
    pub peers: Vec<String>,
    /// Bytes of a page, from 4KiB to 64KiB
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE", default_value = "4KiB")]
    pub page_size: u64,
    /// Turns of everybody in every case; the samples are shared among them
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub rounds: u32,
    /// Seed of all draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = 12_345)]
    pub seed: u64,
    /// Open files past the kernel's page cache
    #[arg(long)]
    pub direct: bool,
    /// Threads of the cases with many; several numbers with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "2,4,8,16,32,64,128,256")]
    pub threads: Vec<u32>,
    /// End after this many seconds with what there is
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<u64>,
    /// Directory on the disk to measure; files are made there [default: work in $CAIRN_CACHE, or in ~/.cache/cairn]
    #[arg(long, value_name = "DIR")]
    pub work_dir: Option<PathBuf>,
    /// Directory for the result file
    #[arg(long, value_name = "DIR", default_value = cairn_bench::store::RESULTS_DIR)]
    pub results: PathBuf,
    /// File for the HTML report [default: beside the result file]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print the figures as the list that dashboards take: name, unit, value
    #[arg(long)]
    pub json: bool,
}
