//! The command line.

pub mod advise;
pub mod all;
pub mod bytes;
mod file;
pub mod hash;
pub mod history;
pub mod index;
pub mod kv;
pub mod manual;
pub mod names;
pub mod number;
pub mod pool;
mod promise;
mod run;
#[cfg(feature = "sql")]
pub mod shell;
pub mod sim;
pub mod sql;
pub mod time;
pub mod trace;
#[cfg(feature = "ui")]
pub mod ui;

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

use cairn_bench::core::workload::{DEFAULT_SEED, Distribution};
use cairn_bench::suites::kv::{Benchmark, KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_BYTES_MIN};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use all::BenchAllArgs;
use bytes::{bytes_between, size_between, some_bytes};
use hash::HashCommand;
use history::{CompareArgs, CountsArgs, HistoryArgs, RecordRunArgs};
use index::BenchIndexArgs;
use kv::KvCommand;
use pool::{BenchPoolArgs, RenderArgs};
pub use promise::Promise;
pub use run::{MemoryArgs, RunArgs, WORK_DIR, work_dir};
use sql::BenchSqlArgs;
use trace::{BenchReplayArgs, TraceCommand};

const HELP: &str = "Examples:
  cairn kv put places Iceland Reykjavik --create
  cairn hash build countries.csv -o countries.cairn --key country
  cairn sim run --hardware hdd --workload zipfian
  cairn bench kv --n=100000 --dbs cairn,rocksdb
  cairn help kv scan

Run a command with --help for its options and examples; the book has a tutorial for each engine.
Exit codes: 0 done, found or yes, 1 error, 2 not found or no, 130 ended by Ctrl-C.";

/// Embedded storage engines, and the lab that measures them.
#[derive(Debug, Parser)]
#[command(name = "cairn", version, about, long_about = None, after_help = HELP)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the words of a command line.
    pub fn typed(words: impl IntoIterator<Item = OsString>) -> clap::error::Result<Cli> {
        let mut command = takes_negative(<Cli as CommandFactory>::command());
        let mut matches = command.try_get_matches_from_mut(words)?;
        let mut cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
        if let Some((filter, named)) = cli.command.filters()
            && filter.is_none()
        {
            *filter = named.take();
        }
        Ok(cli)
    }
}

impl Command {
    /// The two ways to choose cases, where a command has both: a word, and the option.
    fn filters(&mut self) -> Option<(&mut Option<String>, &mut Option<String>)> {
        match self {
            Command::Hash { command: HashCommand::Bench(args) }
            | Command::Bench { command: BenchCommand::Hash(args) } => {
                Some((&mut args.filter, &mut args.named_filter))
            }
            Command::Bench { command: BenchCommand::Pool(args) } => {
                Some((&mut args.filter, &mut args.named_filter))
            }
            Command::Bench { command: BenchCommand::Sql(args) } => {
                Some((&mut args.filter, &mut args.named_filter))
            }
            Command::Bench { command: BenchCommand::Counts(args) } => {
                Some((&mut args.filter, &mut args.named_filter))
            }
            _ => None,
        }
    }
}

/// Takes a number with a minus sign as the value of the option before it, whose error names the
/// values it expects. No command has an option of that name.
fn takes_negative(command: clap::Command) -> clap::Command {
    let takes_one = |arg: &Arg| {
        let kind = arg.get_value_parser().type_id();
        let is_number =
            kind == TypeId::of::<u32>() || kind == TypeId::of::<u64>() || kind == TypeId::of::<usize>();
        arg.get_action().takes_values() && (is_number || !arg.is_positional())
    };
    let command =
        command.mut_args(|arg| if takes_one(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(takes_negative)
}

/// The engines and the lab.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The constant store: built once in bulk, then read at memory speed
    #[command(after_help = "Examples:
  cairn hash build countries.csv -o countries.cairn --key country
  cairn hash get countries.cairn Iceland

A STORE is a `.cairn` file with its deltas, or either file of a Sparkey pair.")]
    Hash {
        /// The command.
        #[command(subcommand)]
        command: HashCommand,
    },
    /// The ordered key-value store: a log-structured merge tree
    #[command(after_help = "Example:
  cairn kv put places Iceland Reykjavik --create && cairn kv scan places --prefix Ice

A STORE is a directory.")]
    Kv {
        /// The command.
        #[command(subcommand)]
        command: KvCommand,
    },
    /// The relational database: a shell, and a server for PostgreSQL clients
    #[cfg(feature = "sql")]
    Sql(Box<shell::SqlArgs>),
    /// Predict how RocksDB or Cairn's kv would perform with a workload, options and hardware
    #[command(after_help = "Examples:
  cairn sim profiles
  cairn sim run --hardware nvme --workload zipfian --rate 50")]
    Sim {
        /// The command.
        #[command(subcommand)]
        command: Box<sim::SimCommand>,
    },
    /// Recommend a store for a workload: predict, then measure on this machine
    Advise(Box<advise::AdviseArgs>),
    /// Record, import and analyze traces of workloads
    #[command(after_help = "Example:
  cairn trace record -o app.trace -- ./my-program && cairn trace stats app.trace")]
    Trace {
        /// The command.
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Measure engines against their peers on this machine
    #[command(after_help = "Examples:
  cairn bench hash --quick --data places.csv --key id
  cairn bench kv --n=100000 --dbs cairn,rocksdb
  cairn bench report")]
    Bench {
        /// The command.
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Print the completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print the man page, or write the man pages of all commands to a directory
    Man(manual::ManArgs),
    /// Serve a local page with runs, reports, history, the contents of stores and the simulator
    #[cfg(feature = "ui")]
    Ui(Box<ui::UiArgs>),
    /// Run one job from standard input and print its result; started by the lab itself
    #[command(hide = true)]
    BenchWorker,
}

/// The lab.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure every suite in one run, with one report
    All(Box<BenchAllArgs>),
    /// Measure the constant store against its peers
    Hash(BenchHashArgs),
    /// Measure the ordered key-value store against its peers
    Kv(BenchKvArgs),
    /// Measure the buffer pool: replacement policies, a textbook pool, caches
    Pool(BenchPoolArgs),
    /// Measure compressed indexes in PostgreSQL against btree, BRIN and hash: sizes, builds, cold
    /// and warm queries
    Index(BenchIndexArgs),
    /// Measure SQL engines: single statements, transactions, queries, bulk loads, TPC-H, pgbench
    Sql(BenchSqlArgs),
    /// Replay a recorded trace on every store
    Replay(BenchReplayArgs),
    /// Compare a stored run with an earlier one
    #[command(after_help = "Examples:
  cairn bench compare before.json after.json
  cairn bench compare before.json after.json --fail --tolerance 10
  cairn bench compare after.json --fail

A ratio over 1 favours the second run; ~ marks a difference that cannot be told from noise. A
directory stands for the last run of each suite in it. Given one run, the command takes the earlier
one from the history. A count has regressed when it is worse by more than its limit; a time, when it
is worse by more than its limit, its interval and three times the usual variation of its series.
Compare counted instructions first, in a separate step: a busy machine does not change them.
Exit codes: 0 compared, 1 error, 2 with --fail: something got worse, a figure is missing, or nothing
could be judged, for example because there were fewer than three rounds.")]
    Compare(CompareArgs),
    /// Count instructions per operation with callgrind; a busy machine does not change the figures
    Counts(CountsArgs),
    /// Add stored runs to the history
    #[command(after_help = "Examples:
  cairn bench record benchmark-results/*.json
  cairn bench record benchmark-results/all-20260101T000000Z

The history is a `cairn kv` store. A run that it already has stays unchanged.")]
    Record(RecordRunArgs),
    /// Show figures over time
    #[command(after_help = "Examples:
  cairn bench history
  cairn bench history replay throughput cairn --last 20 --html trend.html
  cairn bench history --runs

With --runs, each WORD is a suite. Exit codes: 0 found, 1 error, 2 nothing found.")]
    History(HistoryArgs),
    /// Write the results tables of a page, such as a README, from stored runs
    #[command(after_help = "Example:
  cairn bench readme --run benchmark-results/stored/hash-20260101T000000Z.json

Replaces the text between <!-- results:SUITE:begin --> and <!-- results:SUITE:end -->, where SUITE
is the suite of the run: hash, kv or sql.")]
    Readme(ReadmeArgs),
    /// Write the documentation's tables of replacement policies from stored raw results
    #[command(after_help = "Example:
  cairn bench pool 100 12 --collect --platform linux
  cairn bench render --platforms linux

Rewrites benchmarks/replacement_policies/PLATFORM_buffer_pool.md and, in
engines/pool-benchmark.md, the text between <!-- results:pool-PLATFORM:begin --> and <!--
results:pool-PLATFORM:end -->.")]
    Render(RenderArgs),
    /// Write the HTML report of a stored run
    #[command(after_help = "Examples:
  cairn bench report
  cairn bench report run.json -o run.html --baseline earlier.json
  cairn bench report benchmark-results/all-20260101T000000Z")]
    Report(ReportArgs),
}

/// `cairn bench hash`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench hash --quick --data places.csv --key id
  cairn bench hash --full
  cairn bench hash 'cairn mmap' --entries 100000
  cairn bench hash --quick --json > dashboard.json

Ctrl-C ends the run, keeps the results so far and exits with 130; a second Ctrl-C ends it at once.
With --json, a run that --time-limit ended exits with 1: a dashboard would take its gaps for figures
that have disappeared.")]
pub struct BenchHashArgs {
    /// Only measurements whose case or contender has this text in its name. Ignored with --json
    pub filter: Option<String>,
    /// The same as FILTER
    #[arg(long = "filter", id = "named_filter", value_name = "WORD", conflicts_with = "filter")]
    pub named_filter: Option<String>,
    /// The main cases only, which takes a few minutes [default]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// The whole matrix, each repetition in a new process, which takes hours
    #[arg(long)]
    pub full: bool,
    /// CSV or TSV file with a header line, as a data set in addition to the synthetic ones
    #[arg(long, value_name = "FILE", requires = "key")]
    pub data: Option<PathBuf>,
    /// Key column of the data file: its name, or its number counted from 1
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub key: Option<String>,
    /// Source and licence of the data, for the report
    #[arg(long, value_name = "TEXT", requires = "data")]
    pub source: Option<String>,
    /// Entries of the synthetic stores, instead of the usual numbers; separate several with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = number::between::<u64>(1, u64::from(u32::MAX)))]
    pub entries: Vec<u64>,
    /// Distribution of keys: uniform, sequential, 'zipfian [THETA]', 'latest [THETA]', 'hot set
    /// [FRACTION] [PROBABILITY]'
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub distribution: Distribution,
    /// Rounds, each of which measures every contender once [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = number::from::<u32>(1))]
    pub rounds: Option<u32>,
    /// Seed of keys, orders and shuffles [default: 12345]
    #[arg(long, value_name = "NUMBER", value_parser = number::whole::<u64>)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// `cairn bench kv`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench kv --n=1000000 --batch=50000 --threads=8 --ops-per-thread=200000 --sync-n=10000
  cairn bench kv --modes ycsb --dbs cairn,rocksdb
  cairn bench kv --ycsb-file workloada -p recordcount=1000000
  cairn bench kv --benchmarks fillrandom,readrandom,readwhilewriting --threads 2
  cairn bench kv --modes overwrite-long,larger-than-cache --dbs cairn,rocksdb,leveldb

Modes: seq, rand, batch, mt, sync-seq, sync-rand (together: dkv); sync-writers; ycsb-a to ycsb-f
(together: ycsb); db_bench; value-sizes; larger-than-cache; overwrite-long; all of them: all.
Ctrl-C ends the run and keeps the results so far; a second Ctrl-C ends it at once.")]
pub struct BenchKvArgs {
    /// Operations per phase; records for YCSB and db_bench
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = number::between::<u64>(1, u64::from(u32::MAX)))]
    pub n: u64,
    /// Writes per batch
    #[arg(long, value_name = "COUNT", default_value_t = 50_000, value_parser = number::between::<u64>(1, u64::from(u32::MAX)))]
    pub batch: u64,
    /// Threads for mt [default: 8], for YCSB and for db_bench's readers [default: 1]; separate
    /// several numbers with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', value_parser = number::between::<u32>(1, 1024))]
    pub threads: Vec<u32>,
    /// Operations per thread in mt
    #[arg(long, alias = "ops-per-threads", value_name = "COUNT", default_value_t = 200_000, value_parser = number::between::<u64>(1, u64::from(u32::MAX)))]
    pub ops_per_thread: u64,
    /// Maximum operations per phase in the sync modes
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = number::between::<u64>(1, u64::from(u32::MAX)))]
    pub sync_n: u64,
    /// Seed of all draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    /// Stores to measure
    #[arg(long, help = names::stores_help(), value_name = "NAMES", value_delimiter = ',', value_parser = names::store)]
    pub dbs: Vec<String>,
    /// Modes to measure, see below [default: dkv]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::mode)]
    pub modes: Vec<String>,
    /// db_bench's benchmarks, in this order: fillseq, fillrandom, overwrite, readrandom, readseq,
    /// seekrandom, readwhilewriting, multireadrandom, deleterandom [default in the mode db_bench:
    /// all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::benchmark)]
    pub benchmarks: Vec<Benchmark>,
    /// YCSB property file, which defines a workload; may be given several times
    #[arg(long, value_name = "FILE")]
    pub ycsb_file: Vec<PathBuf>,
    /// YCSB property, which overrides the property files
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub property: Vec<String>,
    /// Bytes per key: `key` and a number padded with zeros
    #[arg(long, value_parser = size_between(4, KEY_BYTES_MAX), value_name = "SIZE", default_value = "16")]
    pub key_size: usize,
    /// Bytes per value; in YCSB, of all fields together [default: 8; 100 in db_bench and
    /// sync-writers, 1000 in YCSB, 1KiB in the long modes]
    #[arg(long, value_parser = bytes_between(VALUE_BYTES_MIN as u64, VALUE_BYTES_MAX as u64), value_name = "SIZE")]
    pub value_size: Option<u64>,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Durability of writes, except in the sync modes
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Promise,
    /// Initial data of overwrite-long [default: 1GiB]
    #[arg(long, value_parser = some_bytes, value_name = "SIZE")]
    pub data_size: Option<u64>,
    /// Data that overwrite-long then overwrites [default: 5GiB]
    #[arg(long, value_parser = some_bytes, value_name = "SIZE")]
    pub overwrite_size: Option<u64>,
    /// Rounds, each of which measures every store once in every mode
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::from::<u32>(1))]
    pub rounds: u32,
    /// Skip the additional turn that times single operations
    #[arg(long)]
    pub no_latencies: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// `cairn bench readme`.
#[derive(Debug, Args)]
pub struct ReadmeArgs {
    /// Stored run, or directory of runs [default: the newest in benchmark-results/stored]
    #[arg(long, value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Page to change
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    pub readme: PathBuf,
    /// Also write an SVG picture of the same runs: every operation's ratio to each peer
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

/// `cairn bench report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Stored run, or directory of a run over all suites [default: the newest of either in
    /// benchmark-results]
    pub run: Option<PathBuf>,
    /// File to write, - for standard output [default: next to the run]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// An earlier run to compare with
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
