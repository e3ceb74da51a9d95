//! Connections: the interface of a program to a database.

use cairn_table::schema::ColumnType;

use crate::column::Column;
use crate::database::Database;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::executor::{Answer, Executor, Statement, StatementKind};
use crate::general::GENERAL;
use crate::outcome::{CopyIn, CopyOut, Outcome, Rows};
use crate::runtime::sequence::Sequence;
use crate::session::{Notice, Session, TransactionStatus};
use crate::sqlstate::{FEATURE_NOT_SUPPORTED, INTERNAL_ERROR, SYNTAX_ERROR};
use crate::syntax::parse;

/// Cancels a connection's statements from another thread.
#[derive(Debug, Clone)]
pub struct Canceller(cairn_table::Canceller);

impl Canceller {
    /// Ends the running statement with 57014. Statements that begin later are unaffected, except
    /// those of the same message: see [`Connection::begin_message`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A session: settings, a transaction and prepared statements. It serves one thread at a time, and
/// every call blocks until it is done.
#[derive(Debug)]
pub struct Connection {
    database: Database,
    executor: Executor,
}

#[cfg(test)]
impl Connection {
    /// Starts a query twice at the same time.
    pub(crate) fn run_twice(
        &mut self,
        query: &dyn crate::session::GeneralQuery,
    ) -> [Box<dyn crate::rows::BatchSource>; 2] {
        let mut run = || query.run(&mut self.executor.session, &[]).unwrap();
        [run(), run()]
    }
}

impl Connection {
    pub(crate) fn new(database: Database, id: u32) -> Self {
        let session = Session::new(database.shared(), id, &GENERAL);
        Connection { executor: Executor::new(session), database }
    }

    /// The database of this connection.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The number of this connection, unique within its database, as `pg_backend_pid()` returns it.
    pub fn id(&self) -> u32 {
        self.executor.backend
    }

    /// Returns the answer as the caller reads it.
    fn outcome(&mut self, answer: Answer) -> Outcome<'_> {
        let session = &mut self.executor.session;
        match answer {
            Answer::Rows { source, columns, verb, goes_on } => {
                Outcome::Rows(Rows::new(session, columns, source, verb, goes_on))
            }
            Answer::Done(tag) => Outcome::Done(tag),
            Answer::CopyIn(reader) => Outcome::CopyIn(CopyIn::new(session, reader)),
            Answer::CopyOut(writer) => Outcome::CopyOut(CopyOut::new(session, writer)),
        }
    }

    fn statement(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.executor.cached(sql)
            && statement.is_as_prepared(&statement.planned())
        {
            return Ok(statement);
        }
        let statement = self.executor.prepare(sql, &[])?;
        // Cached under the text as the caller wrote it, blanks included.
        let is_kept = matches!(
            statement.kind(),
            StatementKind::Query | StatementKind::Change | StatementKind::Transaction
        );
        if is_kept && statement.sql() == sql {
            self.executor.cache(&statement);
        }
        Ok(statement)
    }

    /// Returns the tables, indexes and views as a statement would see them now. Within a
    /// transaction that includes its own changes.
    ///
    /// Errors: 25P02 in a transaction that has failed.
    pub fn catalog(&mut self) -> Result<std::sync::Arc<cairn_table::Catalog>> {
        self.executor.begin_statement()?;
        let catalog = self.executor.transaction().map(|open| std::sync::Arc::clone(open.view().catalog()));
        // The statement only read, so a failure to end it loses nothing.
        let _ = self.executor.end_statement(true);
        catalog
    }

    /// Returns the sequences, with namespace and name, as a statement would see them now.
    ///
    /// Errors: 25P02 in a transaction that has failed; those of the disk.
    pub fn sequences(&mut self) -> Result<Vec<((String, String), Sequence)>> {
        let joined = self.executor.in_block();
        self.executor.begin_statement()?;
        let all = self.executor.transaction().and_then(|open| crate::runtime::sequence::all(open.view()));
        if !joined {
            // The statement only read, so a failure to end it loses nothing.
            let _ = self.executor.end_statement(true);
        }
        all
    }

    /// Runs one statement to completion, and returns the number of rows that it changed or
    /// returned.
    ///
    /// Errors: any error of the statement, with PostgreSQL's codes.
    pub fn execute(&mut self, sql: &str, params: &[Datum]) -> Result<u64> {
        let statement = self.statement(sql)?;
        let answer = self.executor.run(&statement, params, false)?;
        finish(self.outcome(answer))
    }

    /// Runs one statement that returns rows.
    ///
    /// Errors: as [`Connection::execute`].
    pub fn query(&mut self, sql: &str, params: &[Datum]) -> Result<Rows<'_>> {
        let statement = self.statement(sql)?;
        let answer = self.executor.run(&statement, params, false)?;
        match self.outcome(answer) {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(Error::new(SYNTAX_ERROR, "the statement returns no rows")),
        }
    }

    /// Runs several statements, separated by semicolons, and discards their rows. Statements
    /// outside of an explicit transaction form one transaction together.
    ///
    /// Errors: that of the first statement that fails; the statements after it are not run.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        let all = parse(sql).inspect_err(|_| self.executor.fail_block())?;
        let together = all.len() > 1;
        if together {
            self.executor.begin_implicit()?;
        }
        let mut result = Ok(());
        for parsed in all {
            result = self.one_of_batch(parsed);
            if result.is_err() {
                break;
            }
            if together {
                self.executor.begin_implicit()?;
            }
        }
        if together {
            let failed = result.is_err();
            if failed {
                self.executor.fail_block();
            }
            let ended = self.executor.end_implicit();
            if !failed {
                return ended;
            }
        }
        result
    }

    fn one_of_batch(&mut self, parsed: crate::syntax::Parsed<'_>) -> Result<()> {
        let statement = self.executor.prepare_parsed(parsed, &[])?;
        let answer = self.executor.run(&statement, &[], false)?;
        finish(self.outcome(answer)).map(|_| ())
    }

    /// Parses a statement and binds it to tables. The result is kept in the plan cache under its
    /// text.
    ///
    /// Errors: any error of the statement, and 42601 for more than one statement.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.statement(sql)?;
        if !self.is_stale(&statement) {
            return Ok(statement);
        }
        // The columns may have changed since, and the caller of prepare reads them.
        let statement = self.executor.prepare(sql, &[])?;
        if statement.sql() == sql {
            self.executor.cache(&statement);
        }
        Ok(statement)
    }

    /// Whether a cached statement was planned for another version of the catalog than the one it
    /// would run on, or under other settings.
    fn is_stale(&self, statement: &Statement) -> bool {
        let planned = statement.planned();
        matches!(statement.kind(), StatementKind::Query | StatementKind::Change)
            && (planned.catalog, planned.settings) != self.executor.versions()
    }

    /// Like [`Connection::prepare`], with the types of parameters as far as they are known.
    ///
    /// Errors: as [`Connection::prepare`].
    pub fn prepare_typed(&mut self, sql: &str, types: &[Option<ColumnType>]) -> Result<Statement> {
        if types.iter().all(Option::is_none) { self.prepare(sql) } else { self.executor.prepare(sql, types) }
    }

    /// Checks that a prepared query is still valid: its tables and columns exist, and its rows have
    /// the columns that the caller knows. The check is free if no definition has changed since.
    ///
    /// Errors: any error of the statement as it stands now, and 0A000 if its columns have changed.
    /// Like errors of running the statement, they fail the open transaction.
    pub fn revalidate(&mut self, statement: &Statement) -> Result<()> {
        // A statement that reads the system catalogs is planned anew for each run.
        let is_of_now = statement.planned().catalog == u64::MAX;
        if is_of_now || !self.is_stale(statement) {
            return Ok(());
        }
        let again = self.executor.prepare(statement.sql(), statement.given())?;
        match statement.is_as_prepared(&again.planned()) {
            true => Ok(()),
            false => {
                self.executor.fail_block();
                let what = "cached plan must not change result type";
                Err(Error::new(crate::sqlstate::FEATURE_NOT_SUPPORTED, what)
                    .in_routine("RevalidateCachedQuery"))
            }
        }
    }

    /// Runs a prepared statement.
    ///
    /// Errors: as [`Connection::execute`].
    pub fn run(&mut self, statement: &Statement, params: &[Datum]) -> Result<Outcome<'_>> {
        let answer = self.executor.run(statement, params, true)?;
        Ok(self.outcome(answer))
    }

    /// Like [`Connection::run`], but returns only the first few rows. A cursor of this name keeps
    /// the rest for [`Connection::fetch`] until the transaction ends. Pick a name that no cursor
    /// has, which [`Connection::cursor`] tells; an existing cursor of this name is replaced. Other
    /// statements may run in between.
    ///
    /// Errors: as [`Connection::run`]; 54000 for too many cursors.
    pub fn run_in_parts(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        name: &str,
        most: u64,
    ) -> Result<Outcome<'_>> {
        let answer = self.executor.run_in_parts(statement, params, name, most)?;
        Ok(self.outcome(answer))
    }

    /// Returns up to `most` further rows of a cursor that DECLARE or [`Connection::run_in_parts`]
    /// made; 0 means all of them. [`Rows::tag`] is that of the query.
    ///
    /// Errors: 34000 if no such cursor exists; those of computing the rows. A cursor that has
    /// failed returns 55000 from then on.
    pub fn fetch(&mut self, name: &str, most: u64) -> Result<Rows<'_>> {
        let answer = self.executor.fetch_more(name, most)?;
        match self.outcome(answer) {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(Error::new(INTERNAL_ERROR, "a fetch returned no rows")),
        }
    }

    /// Returns the result columns of a cursor; `None` if no cursor has this name.
    pub fn cursor(&self, name: &str) -> Option<&[Column]> {
        self.executor.cursors.get(name).map(|cursor| &*cursor.columns)
    }

    /// Returns the number of a cursor; `None` if no cursor has this name. Numbers are unique within
    /// the connection, so a caller can tell later whether the name still means the same cursor.
    pub fn cursor_number(&self, name: &str) -> Option<u64> {
        self.executor.cursors.get(name).map(|cursor| cursor.number)
    }

    /// Closes a cursor, also in a transaction that has failed. Does nothing if no cursor has this
    /// name.
    pub fn close_cursor(&mut self, name: &str) {
        // Closing a cursor that does not exist is not an error here.
        let _ = self.executor.cursors.close(name);
    }

    /// Begins a transaction that covers all statements up to [`Connection::end_implicit`], unless
    /// one is open. A BEGIN among them turns it into an explicit transaction; COMMIT and ROLLBACK
    /// end it. The wire protocol uses this when several statements arrive at once.
    ///
    /// Errors: as BEGIN.
    pub fn begin_implicit(&mut self) -> Result<()> {
        self.executor.begin_implicit()
    }

    /// Commits the transaction that [`Connection::begin_implicit`] began, or rolls it back after an
    /// error. Does nothing if BEGIN has made it explicit.
    ///
    /// Errors: as COMMIT.
    pub fn end_implicit(&mut self) -> Result<()> {
        self.executor.end_implicit()
    }

    /// Marks the open transaction as failed, after an error outside of its statements, such as one
    /// in reading the parameters of a statement. It can only be rolled back from then on. Does
    /// nothing outside of a transaction.
    pub fn fail(&mut self) {
        self.executor.fail_block();
    }

    /// The state of the transaction.
    pub fn status(&self) -> TransactionStatus {
        self.executor.status()
    }

    /// Returns the handle by which other threads cancel this connection's statements.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.executor.canceller.clone())
    }

    /// Makes requests to cancel hold for all statements up to the next call of this method,
    /// including those that have not begun. Earlier requests are forgotten. The wire protocol calls
    /// it because a message may hold several statements, and a request may arrive between them.
    /// Without it, each statement starts with no request pending.
    pub fn begin_message(&mut self) {
        self.executor.keeps_cancels = true;
        self.executor.canceller.reset();
    }

    /// Sets a setting, as SET does.
    ///
    /// Errors: 42704 for a setting that does not exist, 22023 for an invalid value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.executor.set_named(name, &[value.to_owned()], false)
    }

    /// Makes the current settings the defaults that RESET, DISCARD ALL and the like restore. Meant
    /// for settings that are made before the session's own statements run.
    pub fn keep_settings(&mut self) {
        self.executor.context.settings.keep();
    }

    /// A version that differs after every change of a setting, including those undone by a
    /// rollback. It may also change without one.
    pub fn settings_version(&self) -> u64 {
        self.executor.context.settings.version
    }

    /// Sets the name that `current_user` returns. The default is `cairn`. Every user may do
    /// everything.
    pub fn set_user(&mut self, name: &str) {
        self.executor.context.settings.set_user(name);
    }

    /// Returns a setting, as SHOW does; `None` for a setting that does not exist.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.executor.setting(name)
    }

    /// Takes the notices that have accumulated since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.executor.notices)
    }
}

/// Drains an outcome, and returns the number of rows changed or returned.
fn finish(outcome: Outcome<'_>) -> Result<u64> {
    match outcome {
        Outcome::Done(tag) => Ok(tag.rows.unwrap_or(0)),
        Outcome::Rows(mut rows) => {
            while rows.next()?.is_some() {}
            Ok(rows.count())
        }
        Outcome::CopyIn(copy) => Err(copy.fail("the caller supplies no rows")),
        Outcome::CopyOut(_) => {
            Err(Error::new(FEATURE_NOT_SUPPORTED, "COPY TO STDOUT needs somebody who takes the rows"))
        }
    }
}
