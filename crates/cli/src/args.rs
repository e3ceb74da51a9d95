//! What can be typed.

pub mod advise;
pub mod bytes;
pub mod history;
pub mod index;
pub mod kv;
pub mod pool;
mod run;
#[cfg(feature = "sql")]
pub mod shell;
pub mod sim;
pub mod sql;
pub mod trace;

use std::path::PathBuf;

use cairn_bench::suite_kv::Benchmark;
use cairn_bench::workload::{Distribution, Durability};
use clap::{Args, Parser, Subcommand, ValueEnum};

use bytes::parse_bytes;
use history::{CompareArgs, CountsArgs, HistoryArgs, RecordRunArgs};
use index::BenchIndexArgs;
use kv::KvCommand;
use pool::{BenchPoolArgs, RenderArgs};
pub use run::RunArgs;
use sql::BenchSqlArgs;
use trace::{BenchReplayArgs, TraceCommand};

const EXIT_CODES: &str = "Exit codes: 0 done or found, 1 error, 2 not found.";

/// Embedded storage engines, and the lab that measures them.
#[derive(Debug, Parser)]
#[command(name = "cairn", version, about, long_about = None, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The engines and the lab.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The constant store: built once in bulk, then read at memory speed
    Hash {
        /// What to do with it.
        #[command(subcommand)]
        command: HashCommand,
    },
    /// The ordered key-value store: a log-structured merge tree
    Kv {
        /// What to do with it.
        #[command(subcommand)]
        command: KvCommand,
    },
    /// The relational database: a shell, and a server for PostgreSQL's clients
    #[cfg(feature = "sql")]
    Sql(Box<shell::SqlArgs>),
    /// Predict what RocksDB or Cairn's kv would do with a workload, options and hardware
    Sim {
        /// What to do.
        #[command(subcommand)]
        command: Box<sim::SimCommand>,
    },
    /// Which store for a workload: predicted, then run, on this machine
    Advise(Box<advise::AdviseArgs>),
    /// Traces of workloads: record, import, look at
    Trace {
        /// What to do with them.
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Measure engines against their peers on this machine
    Bench {
        /// What to measure or to make of measurements.
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// One job on standard input, its result on standard output; started by the lab itself
    #[command(hide = true)]
    BenchWorker,
}

/// Commands on constant stores. A STORE is a `.cairn` file with its deltas, or a Sparkey pair by either name.
#[derive(Debug, Subcommand)]
pub enum HashCommand {
    /// Build a store from a file or standard input
    #[command(after_help = "Examples:
  cairn hash build countries.csv -o countries.cairn --key country
  cairn hash build users.jsonl -o users.cairn --key id --value name --compression zstd
  zcat log.tsv.gz | cairn hash build - --format tsv --key 1 -o log.spi

The whole store appears at once: until then, and after an error, the old one serves. Of equal keys the last counts.
A build that is killed leaves an unfinished file beside the store, which the next build removes.")]
    Build(BuildArgs),
    /// Print the value of a key
    #[command(after_help = "Examples:
  cairn hash get countries.cairn Iceland
  cairn hash get users.spi --hex 00ff17 > value.bin

Exit codes: 0 found, 1 error, 2 not found.")]
    Get(GetArgs),
    /// Print the values of many keys
    #[command(after_help = "Examples:
  cairn hash mget countries.cairn Iceland Andorra --json
  cut -f1 ids.tsv | cairn hash mget users.cairn --keys -

Prints a line for each key that is there: key, tab, value. Exit codes: 0 all found, 1 error, 2 some not found.")]
    Mget(MgetArgs),
    /// List the entries, in the order of the file
    #[command(after_help = "Examples:
  cairn hash scan countries.cairn --limit 10
  cairn hash scan users.spi --binary | cairn hash build - --format binary -o copy.cairn

Without --json or --binary keys and values are printed as they are, with a tab between and a line break after.")]
    Scan(ScanArgs),
    /// Say what a store is and how large
    #[command(after_help = "Example:\n  cairn hash info countries.cairn --json")]
    Info(StoreArgs),
    /// Read everything and check it
    #[command(after_help = "Example:
  cairn hash verify countries.cairn

Cairn's own format has checksums: any flipped bit is found. Sparkey's has none: counts, positions and hashes are
checked, but damage within a value cannot be noticed.")]
    Verify(StoreArgs),
    /// Add records to a store
    #[command(after_help = "Example:
  cairn hash append countries.cairn more.csv --key country

A `.cairn` store gets a delta beside it, which `rewrite` merges in. A Sparkey log is appended to and indexed anew.")]
    Append(AppendArgs),
    /// Remove keys from a store
    #[command(after_help = "Example:
  cairn hash delete countries.cairn Atlantis

Exit codes: 0 all were there, 1 error, 2 some were not (the others are removed).")]
    Delete(DeleteArgs),
    /// Drop what is dead, merge deltas, change the compression
    #[command(after_help = "Examples:
  cairn hash rewrite countries.cairn
  cairn hash rewrite users.spi -o small.spi --compression zstd")]
    Rewrite(RewriteArgs),
    /// Write a store in the other format
    #[command(after_help = "Examples:
  cairn hash convert users.spi users.cairn
  cairn hash convert users.cairn users.spl --compression snappy")]
    Convert(ConvertArgs),
    /// Measure it against its peers; the same as `cairn bench hash`
    Bench(BenchHashArgs),
}

/// Where records come from.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// File to read, or - for standard input
    pub input: PathBuf,
    /// What the input is [default: by its extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Column or field with the key: its name, or its number counted from 1 [default: the first column]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// Column or field with the value [default: the whole record]
    #[arg(long, value_name = "COLUMN")]
    pub value: Option<String>,
}

/// Formats of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated, with a header line; fields may be quoted
    Csv,
    /// Tab-separated, with a header line; quotes are ordinary characters
    Tsv,
    /// One JSON object a line
    Jsonl,
    /// Apache Parquet with flat columns; a file, not standard input
    Parquet,
    /// u32le key length, u32le value length, key, value
    Binary,
}

/// How a store is written.
#[derive(Debug, Clone, Args)]
pub struct WriteArgs {
    /// How values are compressed
    #[arg(long, value_enum)]
    pub compression: Option<Codec>,
    /// Level of zstd
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=22))]
    pub level: i32,
    /// Sparkey only: records of this size are compressed together [default: as the log has it, 4KiB in a new one]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub block_bytes: Option<u64>,
    /// Memory for records waiting to be sorted; what is over goes to a temporary file
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE", default_value = "1GiB")]
    pub memory: u64,
    /// Threads that sort and compress [default: all processors]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl WriteArgs {
    /// The defaults.
    pub fn unchanged() -> Self {
        WriteArgs { compression: None, level: 3, block_bytes: None, memory: 1 << 30, threads: None }
    }
}

/// Compressions of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// As they are
    None,
    /// Fast; in Cairn's own format each value by itself
    Snappy,
    /// Small; in Cairn's own format each value by itself, with a trained dictionary
    Zstd,
}

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Cairn's own single file
    Cairn,
    /// Sparkey's pair of log and index
    Sparkey,
}

/// `cairn hash build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The records.
    #[command(flatten)]
    pub input: InputArgs,
    /// Store to write
    #[arg(short, long, value_name = "STORE")]
    pub out: PathBuf,
    /// Format of the store [default: by the extension, .cairn, or .spi or .spl]
    #[arg(long, value_enum)]
    pub to: Option<Kind>,
    /// How.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Say what was built as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Store to read
    pub store: PathBuf,
    /// Key, as text
    pub key: String,
    /// The key is in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print key and value as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash mget`.
#[derive(Debug, Args)]
pub struct MgetArgs {
    /// Store to read
    pub store: PathBuf,
    /// Keys, as text
    #[arg(required_unless_present = "keys", conflicts_with = "keys")]
    pub key: Vec<String>,
    /// File with one key a line, or - for standard input
    #[arg(long = "keys", id = "keys", value_name = "FILE")]
    pub keys_file: Option<PathBuf>,
    /// Keys are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print a JSON object a key; the value of one that is absent is null
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash scan`.
#[derive(Debug, Args)]
pub struct ScanArgs {
    /// Store to read
    pub store: PathBuf,
    /// Stop after this many entries
    #[arg(long, value_name = "COUNT")]
    pub limit: Option<u64>,
    /// Print a JSON object an entry
    #[arg(long, conflicts_with = "binary")]
    pub json: bool,
    /// Print what `--format binary` reads
    #[arg(long)]
    pub binary: bool,
}

/// A store and nothing else.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Store to read
    pub store: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash append`.
#[derive(Debug, Args)]
pub struct AppendArgs {
    /// Store to add to
    pub store: PathBuf,
    /// The records.
    #[command(flatten)]
    pub input: InputArgs,
    /// How. A compression and a size of blocks that are not said stay as the store has them.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Say what was added as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Store to remove from
    pub store: PathBuf,
    /// Keys, as text
    #[arg(required = true)]
    pub key: Vec<String>,
    /// Keys are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Say what was removed as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash rewrite`.
#[derive(Debug, Args)]
pub struct RewriteArgs {
    /// Store to read
    pub store: PathBuf,
    /// Store to write [default: in place]
    #[arg(short, long, value_name = "STORE")]
    pub out: Option<PathBuf>,
    /// How. A compression and a size of blocks that are not said stay as the store has them.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Say what was written as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Store to read
    pub from: PathBuf,
    /// Store to write
    pub to: PathBuf,
    /// How.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Say what was written as JSON
    #[arg(long)]
    pub json: bool,
}

/// The lab.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The constant store against its peers
    Hash(BenchHashArgs),
    /// The ordered key-value store against its peers
    Kv(BenchKvArgs),
    /// The buffer pool: replacement policies, textbook pool, caches
    Pool(BenchPoolArgs),
    /// Compressed indexes in PostgreSQL: sizes, builds, queries, cold and warm, beside btree, BRIN and hash
    Index(BenchIndexArgs),
    /// SQL engines: single statements, transactions, queries, bulk loads, TPC-H, pgbench
    Sql(BenchSqlArgs),
    /// Do again on every store what a trace recorded
    Replay(BenchReplayArgs),
    /// Hold a stored run against an earlier one
    #[command(after_help = "Examples:
  cairn bench compare before.json after.json
  cairn bench compare before.json after.json --fail --limit 10
  cairn bench compare after.json --fail

Over 1 is in favour of the second run; ~ marks what cannot be told from noise. With one run the history has the earlier one.
A regression: a count beyond its limit; a time beyond its limit, its interval and three times what the series does by itself, unless the
instructions of the same case are known and have not grown.
Exit codes: 0 compared, 1 error, 2 with --fail: something got worse.")]
    Compare(CompareArgs),
    /// Count instructions an operation with callgrind: figures that do not depend on how busy a machine is
    Counts(CountsArgs),
    /// Add stored runs to the history
    #[command(after_help = "Example:
  cairn bench record benchmark-results/*.json

The history is a store of `cairn kv`. A run that is there already is left as it is.")]
    Record(RecordRunArgs),
    /// Show figures over time
    #[command(after_help = "Examples:
  cairn bench history
  cairn bench history replay throughput cairn --last 20 --html trend.html
  cairn bench history --runs

With --runs a word is a suite. Exit codes: 0 found, 1 error, 2 nothing found.")]
    History(HistoryArgs),
    /// Write the README's results table from a stored run
    #[command(after_help = "Example:
  cairn bench readme --run benchmark-results/stored/hash-20260101T000000Z.json

Replaces what stands between <!-- results:SUITE:begin --> and <!-- results:SUITE:end -->,
where SUITE is that of the run: hash or kv.")]
    Readme(ReadmeArgs),
    /// Write the tables of replacement policies in the documentation from stored raw results
    #[command(after_help = "Example:
  cairn bench pool 100 12 --collect --platform linux
  cairn bench render --platforms linux

Rewrites benchmarks/replacement_policies/PLATFORM_buffer_pool.md and, in engines/pool-benchmark.md, what stands between
<!-- results:pool-PLATFORM:begin --> and <!-- results:pool-PLATFORM:end -->.")]
    Render(RenderArgs),
    /// Write the HTML report of a stored run
    #[command(after_help = "Examples:
  cairn bench report
  cairn bench report run.json -o run.html --baseline earlier.json")]
    Report(ReportArgs),
}

/// `cairn bench hash`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench hash --quick --data places.csv --key id
  cairn bench hash --full
  cairn bench hash 'cairn mmap' --entries 100000
  cairn bench hash --quick --json > dashboard.json

Ctrl-C ends the run with what it has; a second one ends it at once. With --json a run that was ended early exits
with 1: a dashboard would take its gaps for figures that are gone.")]
pub struct BenchHashArgs {
    /// Only what contains this: a part of a case's or a contender's name. Ignored with --json
    pub filter: Option<String>,
    /// Some minutes: the main cases [default]
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Hours: the whole matrix, each repetition in a fresh process
    #[arg(long)]
    pub full: bool,
    /// CSV or TSV file with a header line, as a data set beside the synthetic ones
    #[arg(long, value_name = "FILE", requires = "key")]
    pub data: Option<PathBuf>,
    /// Column of the data file with the key: its name, or its number counted from 1
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub key: Option<String>,
    /// Where the data comes from and under which licence, for the report
    #[arg(long, value_name = "TEXT", requires = "data")]
    pub source: Option<String>,
    /// Sizes of the synthetic stores, instead of the usual ones; several with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub entries: Vec<u64>,
    /// How keys are drawn: uniform, sequential, 'zipfian [THETA]', 'latest [THETA]', 'hot set [FRACTION] [PROBABILITY]'
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub distribution: Distribution,
    /// Repetitions of everything [default: 5]
    #[arg(long, value_name = "COUNT")]
    pub rounds: Option<u32>,
    /// Seed of keys, orders and shuffles [default: 1]
    #[arg(long, value_name = "NUMBER")]
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

Modes: seq, rand, batch, mt, sync-seq, sync-rand (together: dkv); sync-writers; ycsb-a to ycsb-f (together: ycsb);
db_bench; value-sizes; larger-than-cache; overwrite-long; all of them: all.
Ctrl-C ends the run with what it has; a second one ends it at once.")]
pub struct BenchKvArgs {
    /// Operations of each phase, records of YCSB and db_bench
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub n: u64,
    /// Writes in a batch
    #[arg(long, value_name = "COUNT", default_value_t = 50_000)]
    pub batch: u64,
    /// Threads of mt [default: 8], of YCSB and of db_bench's readers [default: 1]; several numbers with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Operations of each thread in mt
    #[arg(long, alias = "ops-per-threads", value_name = "COUNT", default_value_t = 200_000)]
    pub ops_per_thread: u64,
    /// Most operations of a phase in the sync modes
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub sync_n: u64,
    /// Seed of all draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = 12_345)]
    pub seed: u64,
    /// Stores to measure [default: cairn,rocksdb,leveldb,sqlite,lmdb,redb,fjall,sled]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub dbs: Vec<String>,
    /// What to measure, see below [default: dkv]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// db_bench's benchmarks, in this order: fillseq, fillrandom, overwrite, readrandom, readseq, seekrandom,
    /// readwhilewriting, multireadrandom, deleterandom [default with the mode db_bench: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub benchmarks: Vec<Benchmark>,
    /// YCSB property file: a workload of your own; may be given several times
    #[arg(long, value_name = "FILE")]
    pub ycsb_file: Vec<PathBuf>,
    /// YCSB property; those given here count over those of the files
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub property: Vec<String>,
    /// Bytes of a key: `key` and a number padded with zeros
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    pub key_size: usize,
    /// Bytes of a value [default: 8; 100 in db_bench and sync-writers, 1000 in YCSB, 1KiB in the long modes]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub value_size: Option<u64>,
    /// Cache of every store that has one [default: 256MiB]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub cache_size: Option<u64>,
    /// Write buffer of every store that has one [default: 64MiB]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub write_buffer_size: Option<u64>,
    /// What a write promises outside of the sync modes
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Promise,
    /// Data that overwrite-long begins with [default: 1GiB]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub data_size: Option<u64>,
    /// Data that it then overwrites [default: 5GiB]
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub overwrite_size: Option<u64>,
    /// Turns of every store in every mode
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub rounds: u32,
    /// Leave out the additional turn that times single operations
    #[arg(long)]
    pub no_latencies: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// What a write promises when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Promise {
    /// Nothing: it may be lost with the process
    Memory,
    /// It is with the kernel: it survives the process, not the power
    Buffered,
    /// It is on stable storage
    Sync,
}

impl From<Promise> for Durability {
    fn from(promise: Promise) -> Durability {
        match promise {
            Promise::Memory => Durability::Memory,
            Promise::Buffered => Durability::Buffered,
            Promise::Sync => Durability::Sync,
        }
    }
}

/// `cairn bench readme`.
#[derive(Debug, Args)]
pub struct ReadmeArgs {
    /// Stored run [default: the newest in benchmark-results/stored]
    #[arg(long, value_name = "FILE")]
    pub run: Option<PathBuf>,
    /// Page to change
    #[arg(long, value_name = "FILE", default_value = "README.md")]
    pub readme: PathBuf,
}

/// `cairn bench report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Stored run [default: the newest in benchmark-results]
    pub run: Option<PathBuf>,
    /// File to write [default: beside the run]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// An earlier run to compare with
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Goal: clap's own checks find no contradiction among the arguments.
    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
