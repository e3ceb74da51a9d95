//! Arguments of `cairn bench pool`.

use std::path::PathBuf;

use cairn_bench::core::workload::DEFAULT_SEED;
use clap::Args;

use super::bytes::page_size;
use super::run::RunArgs;
use super::{names, number};

/// `cairn bench pool`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench pool 50 12
  cairn bench pool 50 12 'Random (K=10,'
  cairn bench pool 100 12 pin:t8 --policies all --peers textbook,moka
  cairn bench pool 50 12 --json > dashboard.json
  cairn bench pool --trace sprite.txt.gz multi1.txt --sizes 1%,5%,1000
  cairn bench pool 100 12 --collect --platform linux && cairn bench render --platforms linux

FILTER is part of the name of a case: 'Pin/Unpin (hit)', 'Cold Pin (miss)', 'Dirty Eviction',
'Sequential Scan (', 'Seq Scan MT x4', 'Repeated Access', 'Random (K=50,', 'Random MT x4 (K=50,',
'Zipfian (80/20)', 'Pool Size (', 'Memory Pressure (', 'Hit Rate (', 'Buffer Starvation'. Tokens
of phase 5: pin:t8, pin:t8:optimistic, hotset:t8_k4, hotset:t8_k4:optimistic; pin:t2 does not select
pin:t256. Ctrl-C ends the run and keeps the results so far; a second Ctrl-C ends it at once.")]
pub struct BenchPoolArgs {
    /// Samples per case
    #[arg(default_value_t = 50, value_parser = number::between::<u32>(1, 1_000_000))]
    pub iterations: u32,
    /// Pages in memory, except in cases that set their own number
    #[arg(default_value_t = 12, value_parser = number::between::<usize>(4, 1 << 24))]
    pub buffers: usize,
    /// Only cases whose name contains this text, see below. Ignored with --json
    pub filter: Option<String>,
    /// The same as FILTER
    #[arg(long = "filter", id = "named_filter", value_name = "WORD", conflicts_with = "filter")]
    pub named_filter: Option<String>,
    /// Policies of Cairn's pool: adaptive, lru, clock, sieve, 2q, lru-2, s3-fifo, arc, lirs,
    /// w-tinylfu; all or none [default: adaptive,lru,clock,sieve; all with --trace and --collect]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::policy)]
    pub policies: Vec<String>,
    /// Peers to measure: textbook, quick_cache, moka, rocksdb, sqlite; all or none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all", value_parser = names::pool_peer)]
    pub peers: Vec<String>,
    /// Page size, from 4KiB to 64KiB
    #[arg(long, value_parser = page_size, value_name = "SIZE", default_value = "4KiB")]
    pub page_size: u64,
    /// Rounds, each of which measures every contender once in every case; the samples are divided
    /// among the rounds
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::between::<u32>(1, 1000))]
    pub rounds: u32,
    /// Seed of all draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    /// Open files with direct I/O, which bypasses the kernel's page cache
    #[arg(long)]
    pub direct: bool,
    /// Threads of the multi-threaded cases; separate several numbers with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "2,4,8,16,32,64,128,256", value_parser = number::between::<u32>(2, 1024))]
    pub threads: Vec<u32>,
    /// Replay recorded requests instead of measuring: one page number per line, plain or gzip, or a
    /// trace of `cairn trace`; separate several files with spaces
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["iterations", "buffers", "filter", "named_filter", "peers", "rounds", "direct", "threads", "collect", "time_limit", "seed", "page_size"])]
    pub trace: Vec<PathBuf>,
    /// Sizes of the pool to replay with: shares of the trace's pages, or pages [default:
    /// 1%,2%,5%,10%,20%,50%]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', requires = "trace")]
    pub sizes: Vec<String>,
    /// Keep the run and its output as a platform's raw results, for `cairn bench render`
    #[arg(long, requires = "platform", conflicts_with_all = ["filter", "named_filter", "json"])]
    pub collect: bool,
    /// Name of the platform in the raw results, such as linux
    #[arg(long, value_name = "NAME", requires = "collect")]
    pub platform: Option<String>,
    /// Directory of the documentation, for --collect
    #[arg(long, value_name = "DIR", default_value = "docs/src", requires = "collect")]
    pub docs: PathBuf,
    #[command(flatten)]
    pub run: RunArgs,
}

/// `cairn bench render`.
#[derive(Debug, Args)]
pub struct RenderArgs {
    /// Platforms to render [default: all that have raw results]
    #[arg(long, value_name = "NAMES", num_args = 1.., value_delimiter = ',')]
    pub platforms: Vec<String>,
    /// Directory of the documentation
    #[arg(long, value_name = "DIR", default_value = "docs/src")]
    pub docs: PathBuf,
}
