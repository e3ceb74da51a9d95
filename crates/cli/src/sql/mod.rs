//! The relational database: a shell, a server, maintenance.
//!
//! ```text
//! shell     runs statements and commands in order            command   .commands and \commands
//! source    input lines: text, file, terminal                lexer     finds ends of statements
//! editor    line editing at a terminal                       complete  names for completion
//! print     rows: table, CSV, JSON, ...                      grid      aligned columns
//! describe  \d and its variants                              schema    tables as statements
//! import    files into tables                                dump      the database as statements
//! serve     the server, its passwords                        upkeep    verify, backup, vacuum
//! ```

mod catalog;
mod command;
mod complete;
mod describe;
mod dump;
mod editor;
mod grid;
mod import;
mod keywords;
mod lexer;
mod literal;
mod open;
mod print;
mod schema;
mod serve;
mod shell;
mod sink;
mod source;
mod upkeep;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use cairn_vfs::Fs;

use crate::args::shell::{Mode, Script, ShellArgs, SqlArgs, SqlCommand};
use crate::error::{Error, Result};
use crate::interrupt::StatementInterrupt;
use crate::output::Outcome;
use crate::recording;

pub use upkeep::damaged_file;

use print::Look;
use shell::Shell;
use source::Source;

/// Runs one of the commands.
pub fn run(fs: &Arc<dyn Fs>, args: SqlArgs) -> Result<Outcome> {
    match args.command {
        None => shell(fs, &args.shell),
        Some(SqlCommand::Serve(args)) => serve::serve(fs, &args),
        Some(SqlCommand::Passwd(args)) => serve::passwd(fs, &args),
        Some(SqlCommand::Backup(args)) => upkeep::backup(fs, &args),
        Some(SqlCommand::Verify(args)) => upkeep::verify(fs, &args),
        Some(SqlCommand::Vacuum(args)) => upkeep::vacuum(fs, &args),
        Some(SqlCommand::Dump(args)) => upkeep::dump(fs, &args),
    }
}

fn shell(fs: &Arc<dyn Fs>, args: &ShellArgs) -> Result<Outcome> {
    let database = open::open(fs, args.database.as_deref(), &args.open)?;
    let connection = database.connect();
    let recorder = recording::begin("cairn sql");
    let canceller = connection.canceller();
    let asked = StatementInterrupt::catch(move || canceller.cancel())?;
    let path = args.database.as_ref().map(|path| path.display().to_string());
    let name = path.unwrap_or_else(|| "memory".to_owned());
    let look = Look {
        mode: if args.json {
            Mode::Json
        } else if args.csv {
            Mode::Csv
        } else {
            args.mode
        },
        has_headers: !args.tuples_only,
        null: args.null.clone(),
        table: "t".to_owned(),
        is_expanded: false,
    };
    let mut shell = Shell::new(Arc::clone(fs), connection, name, look, asked);
    shell.keeps_going = args.keep_going;
    shell.recorder = recorder;
    let ran = run_all(&mut shell, args);
    recording::end(shell.recorder.as_ref());
    // Flush the output that preceded an error.
    let finished = shell.finish(ran.is_ok());
    ran.and(finished)?;
    match shell.failures {
        0 => Ok(Outcome::Done),
        count => Err(Error::Statements(count)),
    }
}

fn run_all(shell: &mut Shell, args: &ShellArgs) -> Result<()> {
    if !args.scripts.0.is_empty() {
        for script in &args.scripts.0 {
            match script {
                Script::Command(text) => shell.run(&mut source::Text::new(text))?,
                Script::File(path) => shell.read(path)?,
            }
        }
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return shell.run(&mut source::stdin());
    }
    shell.is_interactive = true;
    shell.asked.set_interactive();
    let where_to = match &args.database {
        Some(path) => path.display().to_string(),
        None => "a database in memory, which is discarded at the end".to_owned(),
    };
    // Nothing can be done if standard output is closed.
    let _ = writeln!(io::stdout(), "Cairn {}: {where_to}\nType .help for help.\n", env!("CARGO_PKG_VERSION"));
    let prompt = args.database.as_ref().and_then(|path| path.file_stem()).and_then(|name| name.to_str());
    let names = std::rc::Rc::clone(&shell.names);
    let mut terminal = editor::Terminal::new(prompt.unwrap_or("memory").to_owned(), names)?;
    let ran = shell.run(&mut terminal as &mut dyn Source);
    let _ = writeln!(io::stdout());
    ran
}
