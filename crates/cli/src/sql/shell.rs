//! The shell, which runs statements and commands of any source in order.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_sql::{Connection, Outcome, Statement, StatementKind, TransactionStatus};
use cairn_trace::Recorder;
use cairn_vfs::{Clock, Fs, SystemClock};

use crate::error::{Error, Result};
use crate::interrupt::StatementInterrupt;
use crate::output::error_label;

use super::command::{self, Command};
use super::editor::Names;
use super::grid::Grid;
use super::lexer::Splitter;
use super::print::{Look, Printer};
use super::sink::Sink;
use super::source::{self, Source};
use super::{complete, describe, dump, import, upkeep};

/// The maximum nesting of files that read files.
const DEPTH_MAX: usize = 16;

/// A database session with its output settings.
#[derive(Debug)]
pub struct Shell {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// The session.
    pub connection: Connection,
    /// The database file, or a name in its place.
    pub name: String,
    /// The output format of rows.
    pub look: Look,
    /// The destination of results.
    pub out: Sink,
    /// The recorder of statements.
    pub recorder: Option<Recorder>,
    /// The Ctrl-C flag.
    pub asked: StatementInterrupt,
    /// True if the shell continues after an error.
    pub keeps_going: bool,
    /// True if a user is typing.
    pub is_interactive: bool,
    /// Names for completion.
    pub names: Names,
    /// The number of failed statements.
    pub failures: u64,
    is_timed: bool,
    depth: usize,
    clock: SystemClock,
}

/// Whether the shell continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Goes,
    Ends,
}

impl Shell {
    /// Creates a shell that has not run anything yet.
    pub fn new(
        fs: Arc<dyn Fs>,
        connection: Connection,
        name: String,
        look: Look,
        asked: StatementInterrupt,
    ) -> Self {
        Shell {
            fs,
            connection,
            name,
            look,
            out: Sink::stdout(),
            recorder: None,
            asked,
            keeps_going: false,
            is_interactive: false,
            names: Names::default(),
            failures: 0,
            is_timed: false,
            depth: 0,
            clock: SystemClock::new(),
        }
    }

    /// Runs everything from a source.
    ///
    /// Errors: the first one, unless `keeps_going`.
    pub fn run(&mut self, source: &mut dyn Source) -> Result<()> {
        let mut splitter = Splitter::new();
        loop {
            if self.is_interactive && splitter.is_empty() {
                complete::refresh(&self.names, &mut self.connection);
            }
            let mark = match self.connection.status() {
                TransactionStatus::Idle => splitter.mark(),
                _ if splitter.mark() == '=' => '*',
                _ => splitter.mark(),
            };
            let asked = (!self.is_interactive).then_some(&self.asked);
            let line = match next_line(source, if self.is_interactive { mark } else { '=' }, asked) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(Error::Interrupted(_)) if self.is_interactive => {
                    splitter.clear();
                    continue;
                }
                Err(error) => return Err(error),
            };
            if splitter.is_empty() && line.trim_start().starts_with(['.', '\\']) {
                splitter.clear();
                let done = self.command(&line);
                if self.settle(done.map(|flow| flow == Flow::Ends), source)? == Some(true) {
                    return Ok(());
                }
                continue;
            }
            splitter.push(&line);
            splitter.push("\n");
            while let Some(statement) = splitter.next() {
                let done = self.statement(&statement, source);
                self.settle(done, source)?;
            }
        }
        // At the end of a script only the semicolon is missing, so run the statement. A user who
        // leaves in the middle of one does not want to run it.
        if let Some(rest) = splitter.rest().filter(|_| !self.is_interactive) {
            let done = self.statement(&rest, source);
            self.settle(done, source)?;
        }
        Ok(())
    }

    /// Handles the result of a statement or command. An error, including one of writing the output,
    /// is reported, and then either ends everything or nothing.
    fn settle<T>(&mut self, done: Result<T>, source: &dyn Source) -> Result<Option<T>> {
        let flushed = self.out.flush();
        // Ctrl-C ends a script, whatever the result of the statement during which it was pressed.
        if !self.is_interactive {
            let done = done.as_ref().err().filter(|error| matches!(error, Error::Interrupted(_)));
            let what = done.map_or_else(|| "the rest is not run".to_owned(), ToString::to_string);
            self.asked.check(|| what)?;
        }
        self.asked.forget();
        match done.and_then(|value| flushed.map(|()| value)) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_closed_pipe() => Err(error),
            Err(error) if self.is_interactive || self.keeps_going => {
                self.failures += u64::from(!self.is_interactive);
                tell(&error, source.place());
                Ok(None)
            }
            Err(error) => Err(error),
        }
        .map_err(|error| match (error, source.place()) {
            (Error::Statement { text, error, place: None }, place) => Error::Statement { text, error, place },
            (error, _) => error,
        })
    }

    /// Runs a statement and prints its result.
    fn statement(&mut self, text: &str, source: &mut dyn Source) -> Result<()> {
        self.asked.forget();
        let start = self.clock.now();
        let done = self.run_statement(text, source);
        let done = done.map_err(|error| match error {
            Error::Sql(_) if self.asked.is_set() && !self.is_interactive => {
                Error::Interrupted("the statement is rolled back".to_owned())
            }
            Error::Sql(error) => Error::Statement { text: text.to_owned(), error, place: None },
            other => other,
        });
        for notice in self.connection.take_notices() {
            // Nothing can be done if standard error is closed.
            let _ = writeln!(io::stderr(), "{}: {}", notice.severity, notice.message);
        }
        if self.is_timed && done.is_ok() {
            let time = self.clock.now().saturating_sub(start);
            self.out.line(format_args!("Time: {:.3} ms", time.as_secs_f64() * 1e3))?;
        }
        done
    }

    fn run_statement(&mut self, text: &str, source: &mut dyn Source) -> Result<()> {
        let statement = self.connection.prepare(text)?;
        let asked = (!self.is_interactive).then_some(&self.asked);
        if statement.kind() == StatementKind::Empty {
            return Ok(());
        }
        let recorder = self.recorder.as_ref();
        let record = |rows: Option<u64>| {
            if let Some(recorder) = recorder {
                recorder.statement(statement.sql(), rows.unwrap_or(0));
            }
        };
        let tag = match self.connection.run(&statement, &[])? {
            Outcome::Rows(mut rows) => {
                let gives_rows = is_query(&statement);
                // The columns of EXECUTE are only known now.
                let columns = rows.columns().to_vec();
                let mut printer = Printer::new(&self.look, &columns);
                printer.begin(&mut self.out)?;
                while let Some(row) = rows.next()? {
                    printer.row(&mut self.out, &row)?;
                }
                printer.end(&mut self.out)?;
                let tag = rows.tag();
                if gives_rows {
                    record(tag.rows);
                    return Ok(());
                }
                tag
            }
            Outcome::Done(tag) => tag,
            Outcome::CopyIn(mut copy) => {
                // As in psql, lines are data up to one with a backslash and a dot. A line break is
                // written only before a following line.
                let mut line_break: &[u8] = b"";
                while let Some(line) = next_line(source, '>', asked)? {
                    copy.write(line_break)?;
                    line_break = b"\n";
                    if is_end_of_rows(&line) {
                        break;
                    }
                    copy.write(line.as_bytes())?;
                }
                copy.finish()?
            }
            Outcome::CopyOut(mut copy) => {
                while let Some(bytes) = copy.next()? {
                    self.out.bytes(&bytes)?;
                }
                record(copy.tag().rows);
                return Ok(());
            }
        };
        record(tag.rows);
        if self.is_interactive { self.out.line(tag) } else { Ok(()) }
    }

    fn command(&mut self, line: &str) -> Result<Flow> {
        let Shell { out, connection, .. } = self;
        match command::parse(line)? {
            Command::Quit => return Ok(Flow::Ends),
            Command::Help => out.text(command::HELP)?,
            Command::Tables(pattern) => describe::names(out, connection, pattern.as_deref())?,
            Command::Schema(pattern) => describe::schema(out, connection, pattern.as_deref())?,
            Command::Indexes(table) => describe::indexes(out, connection, table.as_deref())?,
            Command::List(kinds, pattern) => describe::list(out, connection, kinds, pattern.as_deref())?,
            Command::Describe(name) => describe::describe(out, connection, &name)?,
            Command::Dump(pattern) => _ = dump::dump(out, connection, pattern.as_deref())?,
            Command::Backup(path) => upkeep::copy_to(&self.fs, connection.database(), Path::new(&path))?,
            Command::Explain(text) => {
                let mut nothing = source::Text::new("");
                self.statement(&format!("EXPLAIN {text}"), &mut nothing)?;
            }
            Command::Settings => {
                let mut nothing = source::Text::new("");
                self.statement("SHOW ALL", &mut nothing)?;
            }
            Command::Echo(text) => out.line(text)?,
            Command::Read(path) => self.read(Path::new(&path))?,
            Command::Output(path) if path.as_ref().is_none_or(|path| path == "-") => {
                self.redirect(Sink::stdout())?;
            }
            Command::Output(None) => {}
            Command::Output(Some(path)) => {
                let sink = Sink::file(&self.fs, Path::new(&path))?;
                self.redirect(sink)?;
            }
            Command::Import(what) => {
                let tag = import::import(&self.fs, connection, &what, &self.asked)?;
                self.say(tag)?;
            }
            Command::Copy { sql, file, is_in: true } => {
                let tag = import::copy_in(&self.fs, connection, &sql, Path::new(&file), &self.asked)?;
                self.say(tag)?;
            }
            Command::Copy { sql, file, is_in: false } => {
                let tag = import::copy_out(&self.fs, connection, &sql, Path::new(&file))?;
                self.say(tag)?;
            }
            Command::Databases => {
                Grid::print(out, &["Name", "Encoding"], vec![vec![self.name.clone(), "UTF8".into()]])?
            }
            Command::Schemas => {
                let catalog = super::catalog::catalog(connection)?;
                Grid::print(out, &["Name"], catalog.schemas().map(|name| vec![name.to_owned()]).collect())?;
            }
            Command::Users => out.line("Users are the server's: `cairn sql passwd` makes them.")?,
            Command::Connection => {
                out.line(format_args!("You are connected to the file {:?}, by yourself.", self.name))?
            }
            other => self.look_command(other)?,
        }
        Ok(Flow::Goes)
    }

    /// Runs a command that changes the output format.
    fn look_command(&mut self, command: Command) -> Result<()> {
        let word = |on: bool| if on { "on" } else { "off" };
        match command {
            Command::Mode(mode, table) => {
                self.look.mode = mode.unwrap_or(self.look.mode);
                self.look.table = table.unwrap_or_else(|| self.look.table.clone());
                if mode.is_none() {
                    self.say(format_args!("mode: {:?}", self.look.mode).to_string().to_lowercase())?;
                }
            }
            Command::Headers(switch) => {
                self.look.has_headers = switch.unwrap_or(!self.look.has_headers);
                self.say(format!("Headers are {}.", word(self.look.has_headers)))?;
            }
            Command::Timer(switch) => {
                self.is_timed = switch.unwrap_or(!self.is_timed);
                self.say(format!("Timing is {}.", word(self.is_timed)))?;
            }
            Command::Expanded(switch) => {
                self.look.is_expanded = switch.unwrap_or(!self.look.is_expanded);
                self.say(format!("Expanded display is {}.", word(self.look.is_expanded)))?;
            }
            Command::Null(text) => self.look.null = text,
            _ => {}
        }
        Ok(())
    }

    /// Prints a message that scripts should not get.
    fn say(&mut self, what: impl std::fmt::Display) -> Result<()> {
        if self.is_interactive { self.out.line(what) } else { Ok(()) }
    }

    fn redirect(&mut self, to: Sink) -> Result<()> {
        std::mem::replace(&mut self.out, to).finish()
    }

    /// Closes the output. An output file is discarded if the statements that should fill it have
    /// failed.
    pub fn finish(&mut self, is_done: bool) -> Result<()> {
        let out = std::mem::replace(&mut self.out, Sink::stdout());
        match out {
            Sink::File { .. } if !is_done => Ok(()),
            out => out.finish(),
        }
    }

    /// Runs the statements of a file. In an interactive session, an error ends the file but not the
    /// shell.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::usage(format!("{}: scripts are nested too deeply", path.display())));
        }
        let mut source = source::file(&self.fs, &PathBuf::from(path))?;
        let was_interactive = std::mem::replace(&mut self.is_interactive, false);
        self.depth += 1;
        let done = self.run(source.as_mut());
        self.depth -= 1;
        self.is_interactive = was_interactive;
        done
    }
}

/// Reads the next line of a source, which may block. For an interactive session `asked` is `None`,
/// because the editor handles Ctrl-C itself.
fn next_line(
    source: &mut dyn Source,
    mark: char,
    asked: Option<&StatementInterrupt>,
) -> Result<Option<String>> {
    match asked {
        Some(asked) => asked.waiting(|| source.line(mark)),
        None => source.line(mark),
    }
}

/// Returns true if a line ends the data of COPY.
fn is_end_of_rows(line: &str) -> bool {
    line.strip_suffix('\r').unwrap_or(line) == "\\."
}

/// Returns true if a statement is run for its rows, so that its command tag is not printed.
fn is_query(statement: &Statement) -> bool {
    matches!(statement.kind(), StatementKind::Query | StatementKind::Fetch)
}

/// Reports an error to the user without ending the shell.
fn tell(error: &Error, place: Option<String>) {
    let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
    // Nothing can be done if standard error is closed.
    let _ = writeln!(io::stderr(), "{} {place}{error}", error_label());
}
