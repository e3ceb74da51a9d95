//! Arguments of `cairn sql`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};

use super::Promise;
use super::bytes::bytes_between;
use super::{file, number, time};

/// A shell on a database, or another command on one. A DATABASE is a file with its log next to it:
/// NAME, NAME-log and NAME-pages belong together.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  cairn sql my.db                          # a shell; .help lists its commands
  cairn sql my.db -c 'SELECT count(*) FROM t'
  cairn sql my.db -f schema.sql
  cairn sql my.db --json -c 'SELECT * FROM t' | jq '.[].name'
  cairn sql                                # a database in memory
  cairn sql serve my.db                    # then: psql -h 127.0.0.1

A missing file is created. Statements are read from standard input when it is not a terminal; the
first error stops them, unless --keep-going is given. Exit codes: 0 done, 1 error, 130 ended by
Ctrl-C."
)]
pub struct SqlArgs {
    /// Another command than the shell.
    #[command(subcommand)]
    pub command: Option<SqlCommand>,
    /// The shell.
    #[command(flatten)]
    pub shell: ShellArgs,
}

/// Commands on databases.
#[derive(Debug, Subcommand)]
pub enum SqlCommand {
    /// Serve a database to PostgreSQL clients
    #[command(after_help = "Examples:
  cairn sql serve my.db
  cairn sql serve my.db --socket /tmp      # then: psql -h /tmp
  cairn sql passwd users.txt alice
  cairn sql serve my.db --listen 0.0.0.0:5432 --password-file users.txt \\
      --tls-cert cert.pem --tls-key key.pem

Without a password file, every user on this machine is let in, and no other machine unless
--open-to-everybody is given. Ctrl-C or SIGTERM ends the server: clients are told, running
statements get a few seconds and are then cancelled, and everything is written to the database.")]
    Serve(Box<ServeArgs>),
    /// Set the password of a user, or remove the user
    #[command(after_help = "Examples:
  cairn sql passwd users.txt alice
  echo \"$PASSWORD\" | cairn sql passwd users.txt alice
  cairn sql passwd users.txt alice --remove

The file keeps a SCRAM-SHA-256 verifier, not the password. A server that uses the file sees the
change at once.")]
    Passwd(PasswdArgs),
    /// Copy a database that no other process has open
    #[command(after_help = "Example:\n  cairn sql backup my.db copy.db")]
    Backup(BackupArgs),
    /// Read everything and check it
    #[command(
        alias = "check",
        after_help = "Example:
  cairn sql verify my.db

Exit codes: 0 sound, 1 damaged or error."
    )]
    Verify(ReportedArgs),
    /// Return free space to the file system
    #[command(after_help = "Example:\n  cairn sql vacuum my.db")]
    Vacuum(ReportedArgs),
    /// Write a database as SQL statements that recreate it
    #[command(after_help = "Examples:
  cairn sql dump my.db -o my.sql
  cairn sql dump my.db | gzip > my.sql.gz

The whole file appears at once.")]
    Dump(DumpArgs),
}

/// Options for opening a database.
#[derive(Debug, Clone, Args)]
pub struct OpenArgs {
    /// Memory for pages, at least 256 of them
    #[arg(long, alias = "cache", value_parser = bytes_between(0, 1 << 40), value_name = "SIZE", default_value = "128MiB")]
    pub cache_size: u64,
    /// Durability of a commit
    #[arg(long, value_enum, default_value = "sync")]
    pub durability: Promise,
    /// Refuse all changes; the database must exist
    #[arg(long)]
    pub read_only: bool,
    /// Threads per query [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u16>(1, 1024))]
    pub threads: Option<u16>,
    /// Time limit of a statement, such as 30s or 500ms [default: none]
    #[arg(long, value_parser = time::seconds, value_name = "TIME")]
    pub statement_timeout: Option<Duration>,
}

/// `cairn sql`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Database file; without one, a database in memory
    pub database: Option<PathBuf>,
    /// Statements that run instead of an interactive session.
    #[command(flatten)]
    pub scripts: Scripts,
    /// Format of rows
    #[arg(short, long, value_enum, default_value = "table")]
    pub mode: Mode,
    /// Rows as JSON; the same as --mode json
    #[arg(long, conflicts_with = "mode")]
    pub json: bool,
    /// Rows as CSV; the same as --mode csv
    #[arg(long, conflicts_with_all = ["mode", "json"])]
    pub csv: bool,
    /// Leave out column names and counts of rows
    #[arg(short = 't', long)]
    pub tuples_only: bool,
    /// Text shown for NULL
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub null: String,
    /// Continue after an error
    #[arg(long)]
    pub keep_going: bool,
    /// How it is opened.
    #[command(flatten)]
    pub open: OpenArgs,
}

#[derive(Debug, Args)]
struct ScriptArgs {
    /// Run these statements and exit; may be given several times, also with --file: all run in the
    /// order of the arguments
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,
    /// Run the statements of this file and exit; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
}

/// Statements that run instead of an interactive session, in the order in which they were typed.
#[derive(Debug, Clone, Default)]
pub struct Scripts(pub Vec<Script>);

/// Source of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// They were typed.
    Command(String),
    /// They are in a file.
    File(PathBuf),
}

impl Args for Scripts {
    fn augment_args(command: clap::Command) -> clap::Command {
        ScriptArgs::augment_args(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        ScriptArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for Scripts {
    fn from_arg_matches(matches: &ArgMatches) -> clap::error::Result<Self> {
        let places = |id| matches.indices_of(id).into_iter().flatten();
        let commands = matches.get_many::<String>("command").into_iter().flatten();
        let files = matches.get_many::<PathBuf>("file").into_iter().flatten();
        let commands = places("command").zip(commands.cloned().map(Script::Command));
        let mut all: Vec<_> = commands.chain(places("file").zip(files.cloned().map(Script::File))).collect();
        all.sort_by_key(|(place, _)| *place);
        Ok(Scripts(all.into_iter().map(|(_, script)| script).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> clap::error::Result<()> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Columns side by side, for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// One object per line
    Jsonl,
    /// One line per column
    Line,
    /// A table in Markdown
    Markdown,
    /// INSERT statements
    Insert,
    /// Tab-separated values with a header
    Tabs,
}

/// `cairn sql serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Database file; created if missing
    pub database: PathBuf,
    /// Address to listen on; may be given several times [default: 127.0.0.1:5432, unless --socket
    /// is given]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = number::address_and_port)]
    pub listen: Vec<SocketAddr>,
    /// Directory of the socket file .s.PGSQL.PORT; may be given several times
    #[arg(long, value_name = "DIR")]
    pub socket: Vec<PathBuf>,
    /// Port in the name of the socket file
    #[arg(long, value_name = "PORT", requires = "socket", default_value_t = 5432, value_parser = number::whole::<u16>)]
    pub socket_port: u16,
    /// Certificates for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the first certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Offer TLS with a certificate for this name that is made at the start; clients cannot verify
    /// it
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub tls_self_made: Vec<String>,
    /// Users and verifiers, as `cairn sql passwd` writes them
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Do not ask for passwords on the socket file, which then only this user can open
    #[arg(long, requires = "password_file")]
    pub trust_socket: bool,
    /// Let other machines in without passwords or TLS: anyone who reaches the port controls the
    /// database
    #[arg(long)]
    pub open_to_everybody: bool,
    /// Maximum number of concurrent sessions
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = number::from::<usize>(1))]
    pub max_connections: usize,
    /// Maximum length of a message, and so of a value; from 1KiB to 1GiB
    #[arg(long, value_parser = bytes_between(1 << 10, 1 << 30), value_name = "SIZE", default_value = "64MiB")]
    pub max_message: u64,
    /// Maximum length of a statement; from 1KiB to 1GiB
    #[arg(long, value_parser = bytes_between(1 << 10, 1 << 30), value_name = "SIZE", default_value = "16MiB")]
    pub max_statement: u64,
    /// Time limit for logging in
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME", default_value = "60s")]
    pub authentication_timeout: Duration,
    /// Time limit for a session that is idle in a transaction [default: none]
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME")]
    pub idle_in_transaction_timeout: Option<Duration>,
    /// Time limit for a session that is idle outside a transaction [default: none]
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME")]
    pub idle_session_timeout: Option<Duration>,
    /// Time for running statements to finish when the server ends
    #[arg(long, value_parser = time::seconds, value_name = "TIME", default_value = "5s")]
    pub grace: Duration,
    /// Log on standard error which clients connect and disconnect
    #[arg(short, long)]
    pub verbose: bool,
    /// How it is opened.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `cairn sql passwd`.
#[derive(Debug, Args)]
pub struct PasswdArgs {
    /// Password file; created if missing
    pub file: PathBuf,
    /// User; its password is read from standard input
    pub user: String,
    /// Remove the user
    #[arg(long)]
    pub remove: bool,
}

/// `cairn sql backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Database to copy
    pub database: PathBuf,
    /// Database to write; must not exist. Its -log and -pages appear next to it
    #[arg(value_parser = file::to_make())]
    pub to: PathBuf,
}

/// `cairn sql dump`.
#[derive(Debug, Args)]
pub struct DumpArgs {
    /// Database file
    pub database: PathBuf,
    /// File to write, or - for standard output [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print a summary as JSON; with --out
    #[arg(long, requires = "out")]
    pub json: bool,
}

/// A database to report on.
#[derive(Debug, Args)]
pub struct ReportedArgs {
    /// Database file
    pub database: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
