//! One command over Cairn's storage engines and the lab that measures them.
//!
//! ```text
//! args       the arguments, as typed
//! hash/      the constant store: build, look up, list, check, change, convert
//! kv/        the ordered key-value store: read, write, import, export, maintain
//! sql/       the relational database: shell, server, maintenance
//! input/     records from CSV, TSV, JSON Lines, Parquet and length-prefixed binary
//! sim/       the simulator: runs, sweeps, optimizing, validation, calibration, the page
//! advise     which store for a workload
//! trace/     traces of workloads: recording, import, statistics
//! bench/     runs of the lab, and outputs from stored runs
//! manual     man pages and completions
//! ui/        one local page over all of it
//! web/       the part of the page's server that the simulator's page shares
//! output     standard output, as text or JSON
//! progress   progress bars on a terminal
//! error      errors and their messages
//! interrupt  Ctrl-C and other signals
//! place      checks of the paths that a user gives
//! target     the destinations of exports
//! damage     reports of commands that verify a whole store
//! deleted    reports of commands that delete keys
//! recording  traces of a command's own operations
//! ```
//! Exit codes: 0 done, found or yes, 1 error (usage included), 2 not found or no, 130 ended by
//! Ctrl-C, 143 by SIGTERM, 129 by a closed terminal. A reader that goes away, as `head` does, ends
//! the command quietly.
#![forbid(unsafe_code)]

mod advise;
mod args;
mod bench;
mod damage;
mod deleted;
mod error;
mod hash;
#[cfg(test)]
#[path = "../../../testing/hook_fs.rs"]
mod hook_fs;
mod input;
mod interrupt;
mod kv;
mod manual;
mod output;
mod place;
mod progress;
mod recording;
mod sim;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sql")]
mod statement_error;
mod target;
mod trace;
#[cfg(feature = "ui")]
mod ui;
#[cfg(feature = "ui")]
mod web;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use cairn_vfs::{Fs, StdFs};

use args::{BenchCommand, Cli, Command};
use error::{Error, Result};
use output::Outcome;

fn main() -> ExitCode {
    cairn_rows::parquet::quiet_panics();
    // Stores and servers need a descriptor for each file and each client. Raising the limit is safe
    // because nothing here uses `select`.
    cairn_vfs::raise_open_files_limit();
    let cli = match Cli::typed(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors and go to standard output. A failed write is ignored:
            // nobody reads it.
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match run(cli.command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::NotFound) => ExitCode::from(2),
        Err(error) if error.is_closed_pipe() && !interrupt::is_ending() => ExitCode::SUCCESS,
        Err(error) => {
            // A command that is told to end while it waits fails with some other error; label that
            // one too.
            let ended = interrupt::is_ending() && !matches!(error, Error::Interrupted(_));
            let ended = if ended { "interrupted: " } else { "" };
            let _ = writeln!(io::stderr(), "{} {ended}{error}", output::error_label());
            match error {
                Error::Interrupted(_) => ExitCode::from(interrupt::exit_code()),
                _ if interrupt::is_ending() => ExitCode::from(interrupt::exit_code()),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn run(command: Command) -> Result<Outcome> {
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    match command {
        Command::Hash { command } => hash::run(&fs, command),
        Command::Kv { command } => kv::run(&fs, command),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(&fs, *args),
        Command::Advise(args) => advise::run(&fs, &args),
        Command::Sim { command } => sim::run(&fs, *command),
        Command::Trace { command } => trace::run(&fs, command),
        Command::Bench { command } => match command {
            BenchCommand::All(args) => bench::all::run(&fs, &args),
            BenchCommand::Hash(args) => bench::run::run(&fs, &args),
            BenchCommand::Kv(args) => bench::kv::run(&fs, &args),
            BenchCommand::Pool(args) => bench::pool::run(&fs, &args),
            BenchCommand::Compare(args) => bench::history::compare(&fs, &args),
            BenchCommand::Counts(args) => bench::history::counts(&fs, &args),
            BenchCommand::History(args) => bench::history::history(&fs, &args),
            BenchCommand::Record(args) => bench::history::record(&fs, &args),
            BenchCommand::Readme(args) => bench::stored::readme(&fs, &args),
            BenchCommand::Render(args) => bench::pool::render(&fs, &args),
            BenchCommand::Index(args) => bench::index::run(&fs, &args),
            BenchCommand::Replay(args) => bench::replay::run(&fs, &args),
            BenchCommand::Sql(args) => bench::sql::run(&fs, &args),
            BenchCommand::Report(args) => bench::stored::report(&fs, &args),
        },
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&fs, &args),
        #[cfg(feature = "ui")]
        Command::Ui(args) => ui::run(&fs, &args),
        Command::BenchWorker => bench::worker(),
    }
}
