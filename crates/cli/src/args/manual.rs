//! Arguments of `cairn completions` and `cairn man`, and what the man pages say beside the table of options.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// What a command that ends says by its exit code.
pub const EXIT_CODES: [(u8, &str); 6] = [
    (0, "done, found, or the answer is yes"),
    (1, "error: wrong arguments, damage, whatever else could not be done"),
    (2, "no error, but not found, or the answer is no"),
    (129, "ended by SIGHUP, as its terminal was closed: as 130"),
    (
        130,
        "ended by Ctrl-C before it was done; a run of the lab has kept what it had measured by then. What serves until Ctrl-C ends with 0",
    ),
    (143, "ended by SIGTERM: as 130"),
];

/// What the command and the lab take from the environment.
pub const ENVIRONMENT: [(&str, &str); 12] = [
    (
        "CAIRN_CACHE",
        "where the lab makes its files unless --work-dir says otherwise, and finds what setup has fetched; ~/.cache/cairn",
    ),
    ("CAIRN_DUCKDB_LIB", "DuckDB's shared library"),
    ("CAIRN_HISTORY", "the file with the lines of the SQL shell; ~/.cairn_history"),
    ("CAIRN_LEVELDB_LIB", "LevelDB's shared library"),
    ("CAIRN_LIBPQ_LIB", "the library of PostgreSQL's clients"),
    ("CAIRN_POSTGRES_BIN", "the folder of PostgreSQL's programs"),
    ("CAIRN_ROCKSDB_LIB", "RocksDB's shared library"),
    ("CAIRN_SPARKEY_JAR", "Sparkey's Java library"),
    ("CAIRN_TRACE", "the trace that a program records to; cairn trace record sets it"),
    ("CAIRN_TRACE_KEYS", "how keys are kept in it: hashed or raw"),
    ("CAIRN_TRACE_SAMPLE", "the operations of one key in so many are recorded, or auto"),
    ("NO_COLOR", "no colours, if it is not empty"),
];

/// `cairn completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn completions bash > ~/.local/share/bash-completion/completions/cairn
  cairn completions zsh > ~/.zfunc/_cairn
  cairn completions fish > ~/.config/fish/completions/cairn.fish

The script is printed. `make install` puts those of bash, zsh and fish into their places.")]
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

With a directory it writes a page for every command there; without one it prints the page of
`cairn` itself. `make install` puts them into their place.")]
pub struct ManArgs {
    /// Directory for the pages; made when it is missing
    pub dir: Option<PathBuf>,
}
