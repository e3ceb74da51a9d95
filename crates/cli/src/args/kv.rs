//! Arguments of `cairn kv`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::hash::Format;
use super::{BenchKvArgs, Promise, number, time};

/// Commands on key-value stores. A STORE is a directory.
#[derive(Debug, Subcommand)]
pub enum KvCommand {
    /// Print the value of a key
    #[command(after_help = "Examples:
  cairn kv get places Iceland
  cairn kv get places --hex 00ff17 --keyspace raw

Works while another program has the store open. Exit codes: 0 found, 1 error, 2 not found.")]
    Get(GetArgs),
    /// Set a key to a value
    #[command(
        override_usage = "cairn kv put [OPTIONS] <STORE> <KEY> <VALUE | --value-file <FILE>>",
        after_help = "Examples:
  cairn kv put places Iceland Reykjavik --create
  cairn kv put images logo --value-file logo.png --durability sync"
    )]
    Put(PutArgs),
    /// Remove keys
    #[command(after_help = "Example:
  cairn kv delete places Atlantis Lemuria

The keys are removed together: after a crash, all or none are gone. Exit codes: 0 all found, 1
error, 2 some not found.")]
    Delete(DeleteArgs),
    /// List entries in key order
    #[command(after_help = "Examples:
  cairn kv scan places --prefix Ice
  cairn kv scan places --from a --to b --reverse --limit 10 --keys-only
  cairn kv scan events --json | jq -r .key

Shows the store at one moment, whatever is written meanwhile. Without --json, keys and values are
printed unchanged, with a tab between them and a line break after each entry; with --hex the
separators are unambiguous whatever keys and values contain.")]
    Scan(ScanArgs),
    /// Apply many writes together or not at all
    #[command(after_help = "Examples:
  printf 'put Iceland Reykjavik\\ndelete Atlantis\\n' | cairn kv batch places
  cairn kv batch places changes.jsonl --durability sync

One write per line; blank lines and lines that begin with # are skipped:
  put KEY VALUE    delete KEY    merge KEY OPERAND    delete-range FROM TO
A key ends at the first blank and a value at the end of the line; if a tab follows the first word,
tabs separate the fields instead. A line that begins with { is a JSON object; its keyspace defaults
to --keyspace:
  {\"op\": \"put\", \"key\": \"Iceland\", \"value\": \"Reykjavik\", \"keyspace\": \"capitals\"}
  {\"op\": \"delete-range\", \"from\": \"a\", \"to_hex\": \"62ff\"}
One invalid line fails the whole batch, which is held in memory until its last line.")]
    Batch(BatchArgs),
    /// Import records
    #[command(after_help = "Examples:
  cairn kv load places countries.csv --key country --value capital --create
  zcat log.jsonl.gz | cairn kv load logs - --format jsonl --key id --create
  cairn kv load copy dump.parquet --create

Without --key and --value, the command reads the output of `dump`: columns or fields called key and
value; in JSON Lines also key_hex and value_hex, for bytes that are not text. With --key alone, the
value is the whole record. Records are written in batches. Batches written before an error or Ctrl-C
stay. When the command succeeds, everything is on stable storage, whatever the durability.")]
    Load(LoadArgs),
    /// Export entries
    #[command(after_help = "Examples:
  cairn kv dump places -o places.parquet
  cairn kv dump places --format jsonl --prefix Ice | gzip > ice.jsonl.gz
  cairn kv dump places --format binary | cairn kv load copy - --format binary --create

Exports the store at one moment, whatever is written meanwhile. `load` reads all four formats back,
including any bytes in keys and values. The whole file appears at once.")]
    Dump(DumpArgs),
    /// Show the contents and layout of a store
    #[command(
        alias = "info",
        after_help = "Examples:
  cairn kv stats places
  cairn kv stats places --json | jq '.keyspaces[].levels'

Works while another program has the store open."
    )]
    Stats(StatsArgs),
    /// Merge table files as far down as possible
    #[command(after_help = "Examples:
  cairn kv compact places
  cairn kv compact events --from 2025 --to 2026

Removes deleted, overwritten and expired entries in the range.")]
    Compact(CompactArgs),
    /// Make a copy that opens as an independent store, mostly of hard links
    #[command(after_help = "Example:
  cairn kv checkpoint places places-monday

The copy appears at once and is durable.")]
    Checkpoint(CheckpointArgs),
    /// Manage backups: each is complete, and unchanged files are stored once
    #[command(after_help = "Example:
  cairn kv backup create places backups && cairn kv backup list backups")]
    Backup {
        /// The command.
        #[command(subcommand)]
        command: BackupCommand,
    },
    /// Restore a store from a backup; the same as `cairn kv backup restore`
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreArgs),
    /// Read everything and check it
    #[command(after_help = "Example:
  cairn kv verify places

Lists all damage on standard output. Use --read-only for a store that another program has open; a
file that looks missing or damaged there may be one that the program has just replaced: run the
command again. Exit codes: 0 sound, 1 damaged or error.")]
    Verify(VerifyArgs),
    /// Repair a damaged store so that it opens again, with everything that can be read
    #[command(after_help = "Example:
  cp -a places places.broken && cairn kv repair places

Damaged files are moved to STORE/lost. Copy the directory first.")]
    Repair(RepairArgs),
    /// Measure it against its peers; the same as `cairn bench kv`
    Bench(Box<BenchKvArgs>),
}

/// Commands on directories of backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Back up the current state of a store
    #[command(after_help = "Example:\n  cairn kv backup create places backups

Copies only files that no earlier backup has.")]
    Create(BackupCreateArgs),
    /// List the backups, oldest first
    #[command(after_help = "Example:\n  cairn kv backup list backups --json")]
    List(BackupsArgs),
    /// Read all files of all backups and check them
    #[command(after_help = "Example:\n  cairn kv backup verify backups

Lists all damage on standard output. Exit codes: 0 sound, 1 damaged or error.")]
    Verify(BackupsArgs),
    /// Remove all backups but the newest
    #[command(after_help = "Example:\n  cairn kv backup purge backups --keep 7")]
    Purge(BackupPurgeArgs),
    /// Restore a store from a backup
    #[command(after_help = RESTORE_HELP)]
    Restore(RestoreArgs),
}

const RESTORE_HELP: &str = "Examples:
  cairn kv restore backups places-again
  cairn kv backup restore backups places-monday --id 3

The directory of the store must be absent or empty. The store appears at once, and checksums are
verified while files are copied.";

/// A keyspace of a store.
#[derive(Debug, Clone, Args)]
pub struct KeyspaceArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Keyspace
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = NonEmptyStringValueParser::new())]
    pub keyspace: String,
    /// Merge operator; stored with the keyspace by the first writing command that names one
    /// [default: the stored one]
    #[arg(long, value_enum, value_name = "NAME")]
    pub merge_operator: Option<Operator>,
}

/// Merge operators that come with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operator {
    /// Adds 64-bit numbers, 8 bytes, little-endian
    AddU64,
    /// Appends bytes
    Append,
}

/// How keys and values are typed and shown.
#[derive(Debug, Clone, Args)]
pub struct FormArgs {
    /// Keys and values are in hexadecimal, in arguments and in output
    #[arg(long)]
    pub hex: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How keys are typed where no values are printed.
#[derive(Debug, Clone, Args)]
pub struct KeyFormArgs {
    /// Keys are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A range of keys.
#[derive(Debug, Clone, Default, Args)]
pub struct RangeArgs {
    /// First key
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// Key to end before; it is not included
    #[arg(long, value_name = "KEY")]
    pub to: Option<String>,
    /// Only keys that begin with this text
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    pub prefix: Option<String>,
}

/// Reading commands change nothing in any case, so the option is accepted and has no effect.
#[derive(Debug, Clone, Args)]
pub struct ReadArgs {
    /// Change nothing and lock nothing; reading commands never do
    #[arg(long, hide = true)]
    pub read_only: bool,
}

/// How a writing command opens a store.
#[derive(Debug, Clone, Args)]
pub struct WriteArgs {
    /// Durability of writes; with memory, the command writes table files instead of a log before it
    /// ends
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Promise,
    /// Create the store and the keyspace if they are missing
    #[arg(long)]
    pub create: bool,
    /// Lifetime of the entries of a new keyspace, such as 24h; a bare number is seconds. An error
    /// if the keyspace exists with another lifetime
    #[arg(long, value_name = "TIME", requires = "create", value_parser = time::whole_seconds)]
    pub ttl: Option<Duration>,
}

/// `cairn kv get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// Key, as text
    pub key: String,
    /// How.
    #[command(flatten)]
    pub form: FormArgs,
    /// As every reading command.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// `cairn kv put`.
#[derive(Debug, Args)]
pub struct PutArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// Key, as text
    pub key: String,
    /// Value, as text
    #[arg(required_unless_present = "value_file", conflicts_with = "value_file")]
    pub value: Option<String>,
    /// File whose bytes are the value, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub value_file: Option<PathBuf>,
    /// Key and value are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// How it is written.
    #[command(flatten)]
    pub write: WriteArgs,
}

/// `cairn kv delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// Keys, as text
    #[arg(required = true)]
    pub key: Vec<String>,
    /// How.
    #[command(flatten)]
    pub form: KeyFormArgs,
    /// Durability of the removal
    #[arg(long, value_enum, default_value = "buffered")]
    pub durability: Promise,
}

/// `cairn kv scan`.
#[derive(Debug, Args)]
pub struct ScanArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// Which.
    #[command(flatten)]
    pub range: RangeArgs,
    /// List from the last key to the first
    #[arg(long)]
    pub reverse: bool,
    /// Stop after this many entries
    #[arg(long, value_name = "COUNT", value_parser = number::whole::<u64>)]
    pub limit: Option<u64>,
    /// Print keys without values
    #[arg(long)]
    pub keys_only: bool,
    /// How.
    #[command(flatten)]
    pub form: FormArgs,
    /// As every reading command.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// `cairn kv batch`.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// File with the writes, or - for standard input
    #[arg(default_value = "-")]
    pub input: PathBuf,
    /// Keys and values of lines that are not JSON are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    /// How it is written.
    #[command(flatten)]
    pub write: WriteArgs,
}

/// `cairn kv load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// File to read, or - for standard input
    pub input: PathBuf,
    /// Format of the input [default: by its extension]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Column or field with the key: its name, or its number counted from 1 [default: key]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// Column or field with the value [default: value; with --key the whole record]
    #[arg(long, value_name = "COLUMN", requires = "key")]
    pub value: Option<String>,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    /// How it is written.
    #[command(flatten)]
    pub write: WriteArgs,
}

/// `cairn kv dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// File to write, or - for standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Format of the output [default: by its extension]
    #[arg(long, value_enum)]
    pub format: Option<DumpFormat>,
    /// Which.
    #[command(flatten)]
    pub range: RangeArgs,
    /// The keys of the range are in hexadecimal
    #[arg(long)]
    pub hex: bool,
    /// Print a summary as JSON; with --out
    #[arg(long, requires = "out")]
    pub json: bool,
    /// As every reading command.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    /// Comma-separated, with the header line key,value; fields are quoted where needed
    Csv,
    /// One JSON object per line; bytes that are not text in hexadecimal, as key_hex and value_hex
    Jsonl,
    /// Apache Parquet with two columns of byte arrays
    Parquet,
    /// u32le key length, u32le value length, key, value
    Binary,
}

/// `cairn kv stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// As every reading command.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// `cairn kv compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Where.
    #[command(flatten)]
    pub at: KeyspaceArgs,
    /// Which.
    #[command(flatten)]
    pub range: RangeArgs,
    /// How.
    #[command(flatten)]
    pub form: KeyFormArgs,
}

/// `cairn kv checkpoint`.
#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Directory for the copy, new or empty
    pub copy: PathBuf,
    /// Copy a store that another program has open
    #[arg(long)]
    pub read_only: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn kv backup create`.
#[derive(Debug, Args)]
pub struct BackupCreateArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Directory of the backups; created if missing
    pub backups: PathBuf,
    /// Back up a store that another program has open
    #[arg(long)]
    pub read_only: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Backups and nothing else.
#[derive(Debug, Args)]
pub struct BackupsArgs {
    /// Directory of the backups
    pub backups: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn kv backup purge`.
#[derive(Debug, Args)]
pub struct BackupPurgeArgs {
    /// Directory of the backups
    pub backups: PathBuf,
    /// How many to keep, at least one
    #[arg(long, value_name = "COUNT", value_parser = number::from::<usize>(1))]
    pub keep: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn kv restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Directory of the backups
    pub backups: PathBuf,
    /// Directory for the store, new or empty
    pub store: PathBuf,
    /// Backup to restore [default: the newest]
    #[arg(long, value_name = "NUMBER", value_parser = number::whole::<u64>)]
    pub id: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn kv verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Verify a store that another program has open
    #[arg(long)]
    pub read_only: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `cairn kv repair`.
#[derive(Debug, Args)]
pub struct RepairArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Keyspace that --merge-operator and --ttl apply to; needed only when the manifest is lost
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = NonEmptyStringValueParser::new())]
    pub keyspace: String,
    /// The merge operator of the keyspace
    #[arg(long, value_enum, value_name = "NAME")]
    pub merge_operator: Option<Operator>,
    /// Lifetime of the entries of the keyspace, such as 24h; a bare number is seconds
    #[arg(long, value_name = "TIME", value_parser = time::whole_seconds)]
    pub ttl: Option<Duration>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
