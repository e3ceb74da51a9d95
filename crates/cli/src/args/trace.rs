//! Arguments of `cairn trace` and `cairn bench replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use cairn_bench::core::workload::DEFAULT_SEED;
use cairn_trace::import::Format;
use cairn_trace::{KeyForm, Sample};
use clap::{Args, Subcommand, ValueEnum};

use super::{MemoryArgs, Promise, RunArgs, file, names, number};

/// Commands on traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Run a program and record the operations on its stores
    #[command(after_help = "Examples:
  cairn trace record -o app.trace -- ./my-program --its-own-arguments
  cairn trace record -o app.trace --sample 10 -- ./my-program
  cairn trace record -o load.trace --keys raw -- cairn kv load users.kv users.csv --create

The program must open its stores through cairn_trace's wrappers (features kv, hash and sql), as
`cairn kv`, `cairn hash` and `cairn sql` do. The wrappers record if the environment names a file:
the program gets CAIRN_TRACE, CAIRN_TRACE_KEYS and CAIRN_TRACE_SAMPLE. A second store that it opens
is recorded to FILE.1.

A key is recorded with all of its operations or with none. By default (auto), all keys are recorded
as long as that is cheap. While a thread's operations take less than 2.9 µs for 50 ms, as operations
in memory do, the share of keys is halved, down to one in 256, and never raised again. A reader of
the trace then gets the remaining sample and its share. --sample 1 records all keys at any cost.

Ctrl-C and a request to end are left to the program, and the command waits for it. Exit codes: 0
recorded and the program succeeded, 130 ended by Ctrl-C, 1 otherwise, also for a trace without an
end.")]
    Record(RecordArgs),
    /// Make a trace from a CSV file, a list of pages, or a RocksDB trace
    #[command(after_help = "Examples:
  cairn trace import requests.csv -o requests.trace
  cairn trace import rocksdb.trace -o rocksdb.cairn-trace --keys hashed
  cairn trace import sprite.txt.gz -o sprite.trace
  zcat cluster.csv.gz | cairn trace import - -o cluster.trace --sample 100

CSV needs a first line that names its columns: key, and any of time (seconds; time_ms, time_us,
time_ns), op (get, put, delete, merge, scan, delete_range, block, and the words of memcached and
YCSB), value_size, key_size (counts with --keys hashed), found, count, end, keyspace. The format is
detected from the start of the input; gzip is unpacked.")]
    Import(ImportArgs),
    /// Describe a workload: mix, sizes, skew, working set, reuse, arrival
    #[command(
        alias = "info",
        after_help = "Examples:
  cairn trace stats app.trace
  cairn trace stats app.trace --html app.html
  cairn trace stats app.trace --json"
    )]
    Stats(StatsArgs),
    /// Write the operations as CSV, which `import` reads
    #[command(after_help = "Examples:
  cairn trace dump app.trace --limit 20
  cairn trace dump app.trace -o app.csv

Keys that are not text, for example with control characters, and hashed keys are in hexadecimal.")]
    Dump(DumpArgs),
}

/// How keys are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// As hashes that cannot be compared with those of another trace
    Hashed,
    /// Unchanged
    Raw,
}

impl From<Keys> for KeyForm {
    fn from(keys: Keys) -> KeyForm {
        match keys {
            Keys::Hashed => KeyForm::Hashed,
            Keys::Raw => KeyForm::Raw,
        }
    }
}

/// `cairn trace record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Trace to write; it must not exist
    #[arg(short, long, value_name = "FILE", value_parser = file::to_make())]
    pub out: PathBuf,
    /// How keys are kept
    #[arg(long, value_enum, default_value = "hashed")]
    pub keys: Keys,
    /// Record the operations of one key in this many, 1 for all; auto starts with all keys and
    /// halves their share where recording would cost a thread more than 1.1 %
    #[arg(long, value_name = "COUNT", default_value_t = Sample::Auto)]
    pub sample: Sample,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// `cairn trace import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File to read, or - for standard input
    pub input: PathBuf,
    /// Trace to write; it must not exist
    #[arg(short, long, value_name = "FILE", value_parser = file::to_make())]
    pub out: PathBuf,
    /// Format of the input: csv, pages, rocksdb, rocksdb-block-cache, rocksdb-block-cache-text
    /// [default: detected]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,
    /// How keys are kept
    #[arg(long, value_enum, default_value = "raw")]
    pub keys: Keys,
    /// Take the operations of one key in this many
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number::from::<u32>(1))]
    pub sample: u32,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

fn format(word: &str) -> Result<Format, String> {
    let known = Format::ALL.into_iter().find(|format| format.name() == word);
    known.ok_or_else(|| format!("expected {}", Format::ALL.map(Format::name).join(", ")))
}

/// `cairn trace stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Trace to read
    pub trace: PathBuf,
    /// Write a page with charts to this file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Number of parts that the time is divided into
    #[arg(long, value_name = "COUNT", default_value_t = 60, value_parser = number::between::<u16>(1, 10_000))]
    pub windows: u16,
    /// Maximum number of keys to track individually; of more keys, a sample of this size is
    /// tracked
    #[arg(long, value_name = "COUNT", default_value_t = 1 << 20, value_parser = number::from::<usize>(1))]
    pub keys_max: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn trace dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Trace to read
    pub trace: PathBuf,
    /// Stop after this many operations
    #[arg(long, value_name = "COUNT", value_parser = number::whole::<u64>)]
    pub limit: Option<u64>,
    /// File to write, or - for standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print a summary as JSON; with --out
    #[arg(long, requires = "out")]
    pub json: bool,
}

/// `cairn bench replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench replay app.trace
  cairn bench replay app.trace --dbs cairn,rocksdb,lmdb --threads 2
  cairn bench replay app.trace --speed recorded --dbs cairn
  cairn bench replay app.trace --durability sync --limit 1000000 --json

Every store starts with the same contents. Answers are checked, as is the whole store at the end.
At recorded speed, latencies count from the time an operation was due. `cairn-hash` is the constant
store, which takes traces without writes. Ctrl-C ends the run and keeps the results so far; a second
Ctrl-C ends it at once.")]
pub struct BenchReplayArgs {
    /// The trace: see `cairn trace`
    pub trace: PathBuf,
    /// Stores to measure
    #[arg(long, alias = "engines", help = names::stores_help(), value_name = "NAMES", value_delimiter = ',', value_parser = names::store)]
    pub dbs: Vec<String>,
    /// full, recorded, or a multiple of the recorded speed
    #[arg(long, value_name = "SPEED", default_value = "full", value_parser = speed)]
    pub speed: Speed,
    /// Threads that share the keys
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number::between::<u32>(1, 1024))]
    pub threads: u32,
    /// Replay only this many operations, from the first on
    #[arg(long, value_name = "COUNT", value_parser = number::from::<u64>(1))]
    pub limit: Option<u64>,
    /// Rounds, each of which measures every store once; with fewer than five, intervals cover less
    /// than they claim
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::from::<u32>(1))]
    pub rounds: u32,
    /// Skip the additional turn that times single operations
    #[arg(long)]
    pub no_latencies: bool,
    /// Seed of the order in which stores take turns
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Durability of writes
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Promise,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(pub Option<f64>);

fn speed(word: &str) -> Result<Speed, String> {
    match word {
        "full" => Ok(Speed(None)),
        "recorded" => Ok(Speed(Some(1.0))),
        factor => match factor.trim_end_matches('x').parse::<f64>() {
            Ok(factor) if factor > 0.0 && factor.is_finite() => Ok(Speed(Some(factor))),
            _ => Err("expected full, recorded, or a factor such as 2".to_owned()),
        },
    }
}
