//! Arguments of `cairn hash`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::BenchHashArgs;
use super::bytes::{bytes_between, some_bytes};
use super::{file, number};

/// Commands on constant stores. A STORE is a `.cairn` file with its deltas, or either file of a
/// Sparkey pair.
#[derive(Debug, Subcommand)]
pub enum HashCommand {
    /// Build a store from a file or standard input
    #[command(after_help = "Examples:
  cairn hash build countries.csv -o countries.cairn --key country
  cairn hash build users.jsonl -o users.cairn --key id --value name --compression zstd
  zcat log.tsv.gz | cairn hash build - --format tsv --key 1 -o log.spi

The whole store appears at once: until then, and after an error, the old store stays in place. Of
equal keys, the last one counts. A build that is killed leaves an unfinished file next to the store,
which the next build removes.")]
    Build(BuildArgs),
    /// Print the value of a key
    #[command(after_help = "Examples:
  cairn hash get countries.cairn Iceland
  cairn hash get users.spi --hex 00ff17 > value.bin

Exit codes: 0 found, 1 error, 2 not found.")]
    Get(GetArgs),
    /// Print the values of many keys
    #[command(
        override_usage = "cairn hash mget [OPTIONS] <STORE> <KEY... | --keys <FILE>>",
        after_help = "Examples:
  cairn hash mget countries.cairn Iceland Andorra --json
  cut -f1 ids.tsv | cairn hash mget users.cairn --keys -

Prints a line for each key that is found: key, tab, value. Exit codes: 0 all found, 1 error, 2
some not found."
    )]
    Mget(MgetArgs),
    /// List the entries, in the order of the file
    #[command(after_help = "Examples:
  cairn hash scan countries.cairn --limit 10
  cairn hash scan users.spi --binary | cairn hash build - --format binary -o copy.cairn

Without --json or --binary, keys and values are printed unchanged, with a tab between them and a
line break after each entry.")]
    Scan(ScanArgs),
    /// Show the format, counts and size of a store
    #[command(alias = "stats", after_help = "Example:\n  cairn hash info countries.cairn --json")]
    Info(StoreArgs),
    /// Read everything and check it
    #[command(after_help = "Example:
  cairn hash verify countries.cairn

Cairn's own format has checksums: any flipped bit is found. Sparkey's has none: counts, positions
and hashes are checked, but damage within a value cannot be detected.")]
    Verify(StoreArgs),
    /// Add records to a store
    #[command(after_help = "Example:
  cairn hash append countries.cairn more.csv --key country

A `.cairn` store gets a delta file next to it, which `rewrite` merges in. A Sparkey log is appended
to and indexed again.")]
    Append(AppendArgs),
    /// Remove keys from a store
    #[command(after_help = "Example:
  cairn hash delete countries.cairn Atlantis

Exit codes: 0 all found, 1 error, 2 some not found (the others are removed).")]
    Delete(DeleteArgs),
    /// Rebuild the index of a Sparkey log
    #[command(after_help = "Example:
  cairn hash index users.spl

Use it for a log that has no index, has the index of another log, or has records that its index does
not cover. Until the new index is complete, and after an error, the old one stays in place. The
index of a `.cairn` store is in its file.")]
    Index(IndexArgs),
    /// Drop deleted and overwritten records, merge deltas, change the compression
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

/// Source of records.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// File to read, or - for standard input
    pub input: PathBuf,
    /// Format of the input [default: by its extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Column or field with the key: its name, or its number counted from 1 [default: the first
    /// column]
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
    /// Compression of values [default: that of the store; none in a new store]
    #[arg(long, value_enum)]
    pub compression: Option<Codec>,
    /// Level of zstd [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = number::between::<i32>(1, 22))]
    pub level: Option<i32>,
    /// Sparkey only: size of the blocks that are compressed as a unit [default: that of the log;
    /// 4KiB in a new log]
    #[arg(long, value_parser = bytes_between(16, 1 << 30), value_name = "SIZE")]
    pub block_bytes: Option<u64>,
    /// Memory for records waiting to be sorted; the rest goes to a temporary file
    #[arg(long, value_parser = some_bytes, value_name = "SIZE", default_value = "1GiB")]
    pub memory: u64,
    /// Cairn's own format only: threads that sort and compress [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u16>(1, 1024))]
    pub threads: Option<u16>,
}

impl WriteArgs {
    /// The defaults.
    pub fn unchanged() -> Self {
        WriteArgs { compression: None, level: None, block_bytes: None, memory: 1 << 30, threads: None }
    }
}

/// Compressions of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// No compression
    None,
    /// Fast; in Cairn's own format, each value separately
    Snappy,
    /// Small; in Cairn's own format, each value separately, with a trained dictionary
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
    #[arg(short, long, value_name = "STORE", value_parser = file::to_make())]
    pub out: PathBuf,
    /// Format of the store [default: by the extension, .cairn, or .spi or .spl]
    #[arg(long, value_enum)]
    pub to: Option<Kind>,
    /// How.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Print a summary as JSON
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
    /// File with one key per line, or - for standard input
    #[arg(long = "keys", id = "keys", value_name = "FILE")]
    pub keys_file: Option<PathBuf>,
    /// Keys are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print a JSON object per key; an absent key has the value null
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash scan`.
#[derive(Debug, Args)]
pub struct ScanArgs {
    /// Store to read
    pub store: PathBuf,
    /// Stop after this many entries
    #[arg(long, value_name = "COUNT", value_parser = number::whole::<u64>)]
    pub limit: Option<u64>,
    /// Print a JSON object per entry
    #[arg(long, conflicts_with = "binary")]
    pub json: bool,
    /// Print the format that `--format binary` reads
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
    /// How. Compression and block size default to those of the store.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Print a summary as JSON
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
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash index`.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Store whose log is indexed
    pub store: PathBuf,
    /// Memory for the index; a larger index is sorted in a temporary file
    #[arg(long, value_parser = some_bytes, value_name = "SIZE", default_value = "1GiB")]
    pub memory: u64,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash rewrite`.
#[derive(Debug, Args)]
pub struct RewriteArgs {
    /// Store to read
    pub store: PathBuf,
    /// Store to write [default: in place]
    #[arg(short, long, value_name = "STORE", value_parser = file::to_make())]
    pub out: Option<PathBuf>,
    /// How. Compression and block size default to those of the store.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn hash convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Store to read
    pub from: PathBuf,
    /// Store to write
    #[arg(value_parser = file::to_make())]
    pub to: PathBuf,
    /// How.
    #[command(flatten)]
    pub write: WriteArgs,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
}
