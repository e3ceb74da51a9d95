//! What can be typed after `cairn sql`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand, ValueEnum};

use super::Promise;
use super::bytes::bytes_between;
use super::{file, number, time};

/// A shell on a database, or one of the other things to do with one. A DATABASE is a file with its log beside it: NAME, NAME-log and NAME-pages belong together.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  cairn sql my.db                          # a shell; .help says what it knows
  cairn sql my.db -c 'SELECT count(*) FROM t'
  cairn sql my.db -f schema.sql
  cairn sql my.db --json -c 'SELECT * FROM t' | jq '.[].name'
  cairn sql                                # a database in memory
  cairn sql serve my.db                    # then: psql -h 127.0.0.1

A file that is absent is made. Statements are read from standard input when that is no terminal,
and the first error ends them, unless --keep-going is given. Exit codes: 0 done, 1 error, 130
ended by Ctrl-C."
)]
pub struct SqlArgs {
    /// Something else than the shell.
    #[command(subcommand)]
    pub command: Option<SqlCommand>,
    /// The shell.
    #[command(flatten)]
    pub shell: ShellArgs,
}

/// What to do with a database.
#[derive(Debug, Subcommand)]
pub enum SqlCommand {
    /// Serve it to PostgreSQL's clients
    #[command(after_help = "Examples:
  cairn sql serve my.db
  cairn sql serve my.db --socket /tmp      # then: psql -h /tmp
  cairn sql passwd users.txt alice
  cairn sql serve my.db --listen 0.0.0.0:5432 --password-file users.txt \\
      --tls-cert cert.pem --tls-key key.pem

Without a password file everybody on this machine is let in, and nobody else unless
--open-to-everybody is given. Ctrl-C or SIGTERM ends it: clients are told, running statements get
some seconds and are cancelled, everything is written to its place.")]
    Serve(Box<ServeArgs>),
    /// Give a user a password, or take it away
    #[command(after_help = "Examples:
  cairn sql passwd users.txt alice
  echo \"$PASSWORD\" | cairn sql passwd users.txt alice
  cairn sql passwd users.txt alice --remove

The file keeps a SCRAM-SHA-256 verifier, not the password. A server that uses it knows at once.")]
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
    /// Give back space that is free
    #[command(after_help = "Example:\n  cairn sql vacuum my.db")]
    Vacuum(ReportedArgs),
    /// Write a database as statements that make it again
    #[command(after_help = "Examples:
  cairn sql dump my.db -o my.sql
  cairn sql dump my.db | gzip > my.sql.gz

The whole file appears at once.")]
    Dump(DumpArgs),
}

/// How a database is opened.
#[derive(Debug, Clone, Args)]
pub struct OpenArgs {
    /// Memory for pages, of which there are 256 at least
    #[arg(long, alias = "cache", value_parser = bytes_between(0, 1 << 40), value_name = "SIZE", default_value = "128MiB")]
    pub cache_size: u64,
    /// What a commit promises
    #[arg(long, value_enum, default_value = "sync")]
    pub durability: Promise,
    /// Refuse all changes; the database must be there
    #[arg(long)]
    pub read_only: bool,
    /// Threads of a query [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = number::between::<u16>(1, 1024))]
    pub threads: Option<u16>,
    /// Longest time of a statement, such as 30s or 500ms [default: none]
    #[arg(long, value_parser = time::seconds, value_name = "TIME")]
    pub statement_timeout: Option<Duration>,
}

/// `cairn sql`.
#[derive(Debug, Args)]
pub struct ShellArgs {
    /// Database file; without one, a database in memory
    pub database: Option<PathBuf>,
    /// What runs instead of a conversation.
    #[command(flatten)]
    pub scripts: Scripts,
    /// How rows are shown
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
    /// What is shown for NULL
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub null: String,
    /// Go on after an error
    #[arg(long)]
    pub keep_going: bool,
    /// How it is opened.
    #[command(flatten)]
    pub open: OpenArgs,
}

#[derive(Debug, Args)]
struct ScriptArgs {
    /// Run these statements and end; may be given several times, and beside --file: all run in the order in which they stand
    #[arg(short, long, value_name = "SQL")]
    command: Vec<String>,
    /// Run the statements of this file and end; may be given several times
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
}

/// Statements that run instead of a conversation, in the order in which they were typed.
#[derive(Debug, Clone, Default)]
pub struct Scripts(pub Vec<Script>);

/// Where statements come from.
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

/// How rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Columns side by side, for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects
    Json,
    /// An object a line
    Jsonl,
    /// A line for each column
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
    /// Database file; made if absent
    pub database: PathBuf,
    /// Address to listen on; may be given several times [default: 127.0.0.1:5432, unless --socket is given]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = number::address_and_port)]
    pub listen: Vec<SocketAddr>,
    /// Folder of the socket file .s.PGSQL.PORT; may be given several times
    #[arg(long, value_name = "DIR")]
    pub socket: Vec<PathBuf>,
    /// Port in the name of the socket file
    #[arg(long, value_name = "PORT", requires = "socket", default_value_t = 5432, value_parser = number::whole::<u16>)]
    pub socket_port: u16,
    /// Certificates for TLS, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of the first certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Offer TLS with a certificate made at the start, for this name; clients cannot check it
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub tls_self_made: Vec<String>,
    /// Users and verifiers, as `cairn sql passwd` writes them
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Ask for no password on the socket file, which only this user can open then
    #[arg(long, requires = "password_file")]
    pub trust_socket: bool,
    /// Let other machines in without passwords or TLS: whoever reaches the port owns the database
    #[arg(long)]
    pub open_to_everybody: bool,
    /// Sessions at a time
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = number::from::<usize>(1))]
    pub max_connections: usize,
    /// Longest message, and so the largest value; from 1KiB to 1GiB
    #[arg(long, value_parser = bytes_between(1 << 10, 1 << 30), value_name = "SIZE", default_value = "64MiB")]
    pub max_message: u64,
    /// Longest text of a statement; from 1KiB to 1GiB
    #[arg(long, value_parser = bytes_between(1 << 10, 1 << 30), value_name = "SIZE", default_value = "16MiB")]
    pub max_statement: u64,
    /// Longest time to log in
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME", default_value = "60s")]
    pub authentication_timeout: Duration,
    /// Longest time to do nothing within a transaction [default: none]
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME")]
    pub idle_in_transaction_timeout: Option<Duration>,
    /// Longest time to do nothing outside of one [default: none]
    #[arg(long, value_parser = time::some_seconds, value_name = "TIME")]
    pub idle_session_timeout: Option<Duration>,
    /// Time that running statements have when the server ends
    #[arg(long, value_parser = time::seconds, value_name = "TIME", default_value = "5s")]
    pub grace: Duration,
    /// Say on standard error who comes and goes
    #[arg(short, long)]
    pub verbose: bool,
    /// How it is opened.
    #[command(flatten)]
    pub open: OpenArgs,
}

/// `cairn sql passwd`.
#[derive(Debug, Args)]
pub struct PasswdArgs {
    /// Password file; made if absent
    pub file: PathBuf,
    /// User; its password is read from standard input
    pub user: String,
    /// Take the user away
    #[arg(long)]
    pub remove: bool,
}

/// `cairn sql backup`.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Database to copy
    pub database: PathBuf,
    /// Database to write; must be absent. Its -log and -pages appear beside it
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
    /// Say what was written as JSON; with --out
    #[arg(long, requires = "out")]
    pub json: bool,
}

/// A database, and something to say of it.
#[derive(Debug, Args)]
pub struct ReportedArgs {
    /// Database file
    pub database: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
