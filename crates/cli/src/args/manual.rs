//! Arguments of `cairn completions` and `cairn man`, and the texts of man pages that are not in the
//! table of options.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// The meaning of exit codes.
pub const EXIT_CODES: [(u8, &str); 6] = [
    (0, "done, found, or the answer is yes"),
    (1, "error: invalid arguments, damage, or any other failure"),
    (2, "no error, but not found, or the answer is no"),
    (129, "ended by SIGHUP because its terminal was closed; otherwise like 130"),
    (
        130,
        "ended by Ctrl-C before it was done; a run of the lab keeps the results so far. A command that serves until Ctrl-C exits with 0",
    ),
    (143, "ended by SIGTERM; otherwise like 130"),
];

/// Environment variables of the command and the lab.
pub const ENVIRONMENT: [(&str, &str); 12] = [
    (
        "CAIRN_CACHE",
        "the directory of the lab's files, unless --work-dir names another, and of the files that setup has fetched; ~/.cache/cairn",
    ),
    ("CAIRN_DUCKDB_LIB", "DuckDB's shared library"),
    ("CAIRN_HISTORY", "the file with the history of the SQL shell; ~/.cairn_history"),
    ("CAIRN_LEVELDB_LIB", "LevelDB's shared library"),
    ("CAIRN_LIBPQ_LIB", "libpq, the library of PostgreSQL clients"),
    ("CAIRN_POSTGRES_BIN", "the directory of PostgreSQL's programs"),
    ("CAIRN_ROCKSDB_LIB", "RocksDB's shared library"),
    ("CAIRN_SPARKEY_JAR", "Sparkey's Java library"),
    ("CAIRN_TRACE", "the trace that a program records to; cairn trace record sets it"),
    ("CAIRN_TRACE_KEYS", "how keys are kept in it: hashed or raw"),
    ("CAIRN_TRACE_SAMPLE", "record the operations of one key in this many, or auto"),
    ("NO_COLOR", "no colours, if it is not empty"),
];

/// `cairn completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn completions bash > ~/.local/share/bash-completion/completions/cairn
  cairn completions zsh > ~/.zfunc/_cairn
  cairn completions fish > ~/.config/fish/completions/cairn.fish

Prints the script. `make install` installs the scripts for bash, zsh and fish.")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `cairn man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn man | man -l -
  cairn man ~/.local/share/man/man1 && man cairn-kv-get

With a directory, the command writes a page for every command into it; without one, it prints the
page of `cairn` itself. `make install` installs the pages.")]
pub struct ManArgs {
    /// Directory for the pages; created if missing
    pub dir: Option<PathBuf>,
}
