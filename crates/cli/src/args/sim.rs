//! Arguments of `cairn sim`.

use std::path::PathBuf;

use cairn_bench::suites::sim::Share;
use clap::{Args, Subcommand, ValueEnum};

use super::bytes::parse_bytes;
use super::{WORK_DIR, number};

/// Configurations of a sweep: more would be a mistake in typing. Said in the help of --samples.
pub const CONFIGS_MAX: usize = 1_000_000;

/// Lookups that are replayed: some seconds. Said in the help of --replay-cache.
const REPLAYED_MAX: u64 = 100_000_000;

/// Commands of the simulator.
#[derive(Debug, Subcommand)]
pub enum SimCommand {
    /// Predict one configuration
    #[command(after_help = "Examples:
  cairn sim run
  cairn sim run --options /var/lib/db/OPTIONS-000007 --hardware nvme --workload uniform --rate 50
  cairn sim run --set options.compaction_style=universal --seconds 7200
  cairn sim run config.json --json > result.json
  cairn sim run --trace app.trace --kv-options kv.json

Settings are taken in this order, later ones overriding earlier ones: the defaults, CONFIG,
--options, --kv-options, --hardware, --workload or --trace, the other flags, --set. `cairn sim run
--show-config` prints them all. Exit codes: 0 done, 1 error, 2 the run ended early: out of memory,
or writers stopped for good.")]
    Run(RunArgs),
    /// Predict many configurations: a grid or a Latin hypercube over settings
    #[command(after_help = "Examples:
  cairn sim sweep --vary options.write_buffer_size=16MiB,64MiB,256MiB -o sweep.csv
  cairn sim sweep --vary workload.traffic.mb_per_sec=10..200 \\
      --vary options.max_bytes_for_level_multiplier=4..12 --samples 200 -o sweep.parquet

`A,B,C` are values of a grid; `LOW..HIGH` is a range, which needs --samples. The same seed gives
the same file.")]
    Sweep(SweepArgs),
    /// Search for the best settings: the Pareto front over objectives
    #[command(after_help = "Examples:
  cairn sim optimize --options OPTIONS-000007 --objective write_amp,space_amp \\
      --at-most stall_secs=0 --export best.OPTIONS
  cairn sim optimize --objective stall_secs,memory \\
      --vary options.write_buffer_size=8MiB..256MiB --samples 300

Objectives: write_amp, space_amp, read_p99, stall_secs, memory, cost. Exit codes: 0 found, 1
error, 2 no configuration is within the limits.")]
    Optimize(OptimizeArgs),
    /// Compare predictions with real stores, on this machine
    #[command(after_help = "Examples:
  cairn sim validate --quick
  cairn sim validate --timed --page docs/src/benchmarks/simulator.md
  cairn sim validate --filter zipfian --json
  cairn sim validate --held-out --quick
  cairn sim validate --part 2/6 --json > part-2.json
  cairn sim validate --merge part-1.json part-2.json --page simulator.md

RocksDB is Debian's librocksdb, or the library that CAIRN_ROCKSDB_LIB or --library names.
Exit codes: 0 all predictions are within their limits, 1 error, 2 some are not.")]
    Validate(ValidateArgs),
    /// Make a hardware profile: of this machine, or from db_bench's output and a RocksDB LOG
    #[command(after_help = "Examples:
  cairn sim calibrate -o this-machine.json
  cairn sim calibrate --db-bench fillrandom.txt --log LOG -o server.json
  cairn sim run --hardware ./this-machine.json")]
    Calibrate(CalibrateArgs),
    /// Serve the live page
    #[cfg(feature = "ui")]
    #[command(after_help = "Examples:
  cairn sim ui
  cairn sim ui config.json --port 8090

The page is at http://127.0.0.1:8087 until Ctrl-C; metrics for Prometheus are at /metrics. The
server listens on this machine only.")]
    Ui(UiArgs),
    /// List built-in profiles of hardware and workloads
    #[command(after_help = "Example:\n  cairn sim profiles --json")]
    Profiles {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Source of a configuration.
#[derive(Debug, Args, Clone, Default)]
pub struct ConfigArgs {
    /// A configuration as JSON, or - for standard input
    pub config: Option<PathBuf>,
    /// A RocksDB OPTIONS file
    #[arg(long, value_name = "FILE", conflicts_with = "kv_options")]
    pub options: Option<PathBuf>,
    /// The column family of the OPTIONS file
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        requires = "options",
        conflicts_with = "kv_options"
    )]
    pub family: String,
    /// Options of cairn kv as JSON
    #[arg(long, value_name = "FILE")]
    pub kv_options: Option<PathBuf>,
    /// A hardware profile: a name from `cairn sim profiles`, or a file [default: CONFIG's, else 8
    /// cores and an NVMe drive]
    #[arg(long, value_name = "PROFILE")]
    pub hardware: Option<String>,
    /// A workload profile: a name, or a file [default: CONFIG's, else writes of 1000 bytes to keys
    /// drawn uniformly]
    #[arg(long, value_name = "PROFILE")]
    pub workload: Option<String>,
    /// A recorded trace as the workload: see `cairn trace`
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub trace: Option<PathBuf>,
    /// Writes in MB (10^6 bytes) a second; `max` for as fast as the store takes them [default: the
    /// workload's, else 20]
    #[arg(long, value_name = "MB")]
    pub rate: Option<String>,
    /// Number of distinct keys [default: the workload's, else 10000000]
    #[arg(long, value_name = "COUNT", value_parser = number::from::<u64>(1))]
    pub keys: Option<u64>,
    /// Duration in virtual seconds [default: CONFIG's, else 3600]
    #[arg(long, value_name = "SECONDS", value_parser = number::real_over(0.0, 1e8))]
    pub seconds: Option<f64>,
    /// Size of the block cache, such as 512MiB [default: the options', else 8MiB]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub cache_size: Option<u64>,
    /// Seed of all draws [default: CONFIG's, else 1]
    #[arg(long, value_name = "NUMBER", value_parser = number::whole::<u64>)]
    pub seed: Option<u64>,
    /// Any setting by its path, such as options.ttl=3600; may be given several times
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

/// `cairn sim run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub from: ConfigArgs,
    /// Print the whole configuration and do not run it
    #[arg(long, conflicts_with = "replay_cache")]
    pub show_config: bool,
    /// Write the options of the run to a file, or with - to standard output: as an OPTIONS file for
    /// RocksDB, as JSON for kv
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Check the cache's hit rate at the end by requesting this many blocks, at most 100,000,000,
    /// from a real cache of the engine's kind: RocksDB's LRU with a midpoint, or kv's S3-FIFO
    #[arg(long, value_name = "COUNT", value_parser = number::between::<usize>(1, REPLAYED_MAX))]
    pub replay_cache: Option<usize>,
    /// Print the results as JSON, with the series over virtual time
    #[arg(long)]
    pub json: bool,
}

/// Settings that vary.
#[derive(Debug, Args)]
pub struct VaryArgs {
    /// A setting and its values: PATH=A,B,C or PATH=LOW..HIGH; may be given several times
    #[arg(long, value_name = "PATH=VALUES")]
    pub vary: Vec<String>,
    /// Points of a Latin hypercube over the settings, instead of the whole grid; at most 1,000,000
    #[arg(long, value_name = "COUNT", value_parser = number::between::<usize>(1, CONFIGS_MAX as u64))]
    pub samples: Option<usize>,
    /// Threads, at most 1024 [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<usize>(1, 1024))]
    pub threads: Option<usize>,
}

/// `cairn sim sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub from: ConfigArgs,
    #[command(flatten)]
    pub vary: VaryArgs,
    /// A .csv or .parquet file, or - for CSV to standard output [default: -]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON, one line per configuration
    #[arg(long)]
    pub json: bool,
}

/// A quantity to minimize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Objective {
    /// Bytes written for each byte flushed
    WriteAmp,
    /// Bytes of files over bytes of live data
    SpaceAmp,
    /// Microseconds that 99 of 100 lookups do not exceed
    ReadP99,
    /// Seconds that writers wait
    StallSecs,
    /// Bytes of memtables, cache, filters and indexes
    Memory,
    /// Dollars for the virtual time, by the hardware profile
    Cost,
}

/// `cairn sim optimize`.
#[derive(Debug, Args)]
pub struct OptimizeArgs {
    #[command(flatten)]
    pub from: ConfigArgs,
    #[command(flatten)]
    pub vary: VaryArgs,
    /// Quantities to minimize, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "write_amp,space_amp")]
    pub objective: Vec<Objective>,
    /// Upper limit of an objective, such as space_amp=1.3; may be given several times
    #[arg(long, alias = "limit", value_name = "OBJECTIVE=MOST")]
    pub at_most: Vec<String>,
    /// Write the changes of the first configuration of the front to a file, or with - to standard
    /// output, as an OPTIONS file or as kv options
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn sim validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Smaller stores: a few minutes instead of half an hour
    #[arg(long)]
    pub quick: bool,
    /// Instead of the usual cases, run over a hundred that no rule of the model was derived from
    #[arg(long, conflicts_with = "timed")]
    pub held_out: bool,
    /// Include timed runs, which need a quiet machine
    #[arg(long)]
    pub timed: bool,
    /// Only cases whose name contains this text
    #[arg(long, alias = "only", value_name = "WORD")]
    pub filter: Option<String>,
    /// Only the Kth of N parts; a part has every Nth case
    #[arg(long, value_name = "K/N")]
    pub part: Option<Share>,
    /// Run nothing: merge the --json output of several parts
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["quick", "held_out", "timed", "filter", "part", "library", "work_dir"])]
    pub merge: Vec<PathBuf>,
    /// The shared library of RocksDB [default: $CAIRN_ROCKSDB_LIB, else the system's]
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,
    #[arg(long, value_name = "DIR", help = WORK_DIR)]
    pub work_dir: Option<PathBuf>,
    /// Write a page with tables and a chart to this file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn sim calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Output of db_bench, instead of measuring
    #[arg(long, value_name = "FILE")]
    pub db_bench: Option<PathBuf>,
    /// A RocksDB LOG with statistics of compactions
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Profile for everything that is not measured [default: 8 cores and an NVMe drive]
    #[arg(long, value_name = "PROFILE")]
    pub base: Option<String>,
    /// The profile's name [default: this machine, if it is measured; else the name of --base]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[arg(long, alias = "dir", value_name = "DIR", help = WORK_DIR, conflicts_with_all = ["db_bench", "log"])]
    pub work_dir: Option<PathBuf>,
    /// File for the profile, - for standard output [default: -]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `cairn sim ui`.
#[cfg(feature = "ui")]
#[derive(Debug, Args)]
pub struct UiArgs {
    #[command(flatten)]
    pub from: ConfigArgs,
    /// The port on 127.0.0.1; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 8087, value_parser = number::whole::<u16>)]
    pub port: u16,
}
