//! Connections: what a program talks to.

use cairn_table::schema::ColumnType;

use crate::database::Database;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::outcome::{Column, Outcome, Rows};
use crate::sequence::Sequence;
use crate::session::{Notice, Session, TransactionStatus};
use crate::sqlstate::{FEATURE_NOT_SUPPORTED, SYNTAX_ERROR};
use crate::statement::{Statement, StatementKind};
use crate::syntax::parse;

/// Ends what a connection is doing, from another thread.
#[derive(Debug, Clone)]
pub struct Canceller(cairn_table::Canceller);

impl Canceller {
    /// The statement that runs now ends with 57014. None that begins later is touched, but for
    /// those of the same message: [`Connection::begin_message`].
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A session: settings, a transaction, prepared statements. One thread at a time uses it, and waits
/// for what it asks.
#[derive(Debug)]
pub struct Connection {
    database: Database,
    session: Session,
}

#[cfg(test)]
impl Connection {
    /// Two runs of a query, of which none has come to its end.
    pub(crate) fn run_twice(&mut self, query: &crate::query::Query) -> [crate::query::Batches; 2] {
        let mut run = || query.run(&mut self.session, &[]).unwrap();
        [run(), run()]
    }
}

impl Connection {
    pub(crate) fn new(database: Database, id: u32) -> Self {
        Connection { session: Session::new(database.shared(), id), database }
    }

    /// What it is a connection to.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// A number of its own among those of its database, as `pg_backend_pid()` gives it.
    pub fn id(&self) -> u32 {
        self.session.backend
    }

    fn statement(&mut self, sql: &str) -> Result<Statement> {
        if let Some(statement) = self.session.kept(sql)
            && statement.is_as_prepared(&statement.planned())
        {
            return Ok(statement);
        }
        let statement = self.session.prepare(sql, &[])?;
        // Under the text that it was asked for with, blanks and all.
        let is_kept = matches!(
            statement.kind(),
            StatementKind::Query | StatementKind::Change | StatementKind::Transaction
        );
        if is_kept && statement.sql() == sql {
            self.session.keep(&statement);
        }
        Ok(statement)
    }

    /// Tables, indexes and views, as a statement would see them now: within a transaction, with its
    /// own changes.
    ///
    /// Errors: 25P02 in a transaction that has failed.
    pub fn catalog(&mut self) -> Result<std::sync::Arc<cairn_table::Catalog>> {
        self.session.begin_statement()?;
        let catalog = self.session.transaction().map(|open| std::sync::Arc::clone(open.view().catalog()));
        // What was only read is not missed when ending fails.
        let _ = self.session.end_statement(true);
        catalog
    }

    /// Sequences by namespace and name, as a statement would see them now.
    ///
    /// Errors: 25P02 in a transaction that has failed; the disk's.
    pub fn sequences(&mut self) -> Result<Vec<((String, String), Sequence)>> {
        let joined = self.session.in_block();
        self.session.begin_statement()?;
        let all = self.session.transaction().and_then(|open| crate::sequence::all(open.view()));
        if !joined {
            // What was only read is not missed when ending fails.
            let _ = self.session.end_statement(true);
        }
        all
    }

    /// Runs one statement to its end and gives the rows that it changed, or returned.
    ///
    /// Errors: whatever is wrong with it, with PostgreSQL's codes.
    pub fn execute(&mut self, sql: &str, params: &[Datum]) -> Result<u64> {
        let statement = self.statement(sql)?;
        let outcome = self.session.run(&statement, params, false)?;
        finish(outcome)
    }

    /// Runs one statement that gives rows.
    ///
    /// Errors: as [`Connection::execute`].
    pub fn query(&mut self, sql: &str, params: &[Datum]) -> Result<Rows<'_>> {
        let statement = self.statement(sql)?;
        match self.session.run(&statement, params, false)? {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(Error::new(SYNTAX_ERROR, "the statement gives no rows")),
        }
    }

    /// Runs several statements, separated by semicolons, and throws away the rows. Without a
    /// transaction of their own they are one transaction together.
    ///
    /// Errors: of the first one that fails; those behind it are not run.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        let all = parse(sql).inspect_err(|_| self.session.fail_block())?;
        let together = all.len() > 1;
        if together {
            self.session.begin_implicit()?;
        }
        let mut result = Ok(());
        for parsed in all {
            result = self.one_of_batch(parsed);
            if result.is_err() {
                break;
            }
            if together {
                self.session.begin_implicit()?;
            }
        }
        if together {
            let failed = result.is_err();
            if failed {
                self.session.fail_block();
            }
            let ended = self.session.end_implicit();
            if !failed {
                return ended;
            }
        }
        result
    }

    fn one_of_batch(&mut self, parsed: crate::syntax::Parsed<'_>) -> Result<()> {
        let statement = self.session.prepare_parsed(parsed, &[])?;
        let outcome = self.session.run(&statement, &[], false)?;
        finish(outcome).map(|_| ())
    }

    /// Parses a statement and binds it to tables. Kept by its text.
    ///
    /// Errors: whatever is wrong with it, and 42601 for more than one.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.statement(sql)?;
        if !self.is_stale(&statement) {
            return Ok(statement);
        }
        // Its columns may be others now, and whoever prepares is told about them.
        let statement = self.session.prepare(sql, &[])?;
        if statement.sql() == sql {
            self.session.keep(&statement);
        }
        Ok(statement)
    }

    /// Whether a kept statement was planned for another catalog than the one it would run on, or
    /// under other settings.
    fn is_stale(&self, statement: &Statement) -> bool {
        let planned = statement.planned();
        matches!(statement.kind(), StatementKind::Query | StatementKind::Change)
            && (planned.catalog, planned.settings) != self.session.versions()
    }

    /// As [`Connection::prepare`], with the types of parameters, as far as they are known.
    ///
    /// Errors: as [`Connection::prepare`].
    pub fn prepare_typed(&mut self, sql: &str, types: &[Option<ColumnType>]) -> Result<Statement> {
        if types.iter().all(Option::is_none) { self.prepare(sql) } else { self.session.prepare(sql, types) }
    }

    /// Sees that a prepared query still is what it was: its tables and columns are there, and its
    /// rows have the columns that its caller knows. Costs nothing where no definition has changed
    /// since.
    ///
    /// Errors: whatever is wrong with it by now, and 0A000 for other columns. As an error of the
    /// statement's run they end the transaction that is open.
    pub fn revalidate(&mut self, statement: &Statement) -> Result<()> {
        // What asks for the system catalogs is planned anew each time that it runs.
        let is_of_now = statement.planned().catalog == u64::MAX;
        if is_of_now || !self.is_stale(statement) {
            return Ok(());
        }
        let again = self.session.prepare(statement.sql(), statement.given())?;
        match statement.is_as_prepared(&again.planned()) {
            true => Ok(()),
            false => {
                self.session.fail_block();
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
        self.session.run(statement, params, true)
    }

    /// As [`Connection::run`], but of rows only the first few are given: a cursor of this name has
    /// the others, for [`Connection::fetch`], as long as the transaction lasts. The name is one
    /// that no cursor has, which [`Connection::cursor`] tells; one that has it is gone. Other
    /// statements run between.
    ///
    /// Errors: as [`Connection::run`]; 54000 for too many cursors.
    pub fn run_in_parts(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        name: &str,
        most: u64,
    ) -> Result<Outcome<'_>> {
        self.session.run_in_parts(statement, params, name, most)
    }

    /// Some more rows of a cursor, which DECLARE or [`Connection::run_in_parts`] made; 0 for all.
    /// [`Rows::tag`] is the query's.
    ///
    /// Errors: 34000 where there is none; those of computing the rows. A cursor that has failed
    /// gives 55000 from then on.
    pub fn fetch(&mut self, name: &str, most: u64) -> Result<Rows<'_>> {
        self.session.fetch_more(name, most)
    }

    /// The columns of the rows of a cursor; `None` where there is none of this name.
    pub fn cursor(&self, name: &str) -> Option<&[Column]> {
        self.session.cursors.get(name).map(|cursor| &*cursor.columns)
    }

    /// The number of a cursor; `None` where there is none of this name. No other cursor of the
    /// connection has it: whoever comes back later sees whether this is the same one.
    pub fn cursor_number(&self, name: &str) -> Option<u64> {
        self.session.cursors.get(name).map(|cursor| cursor.number)
    }

    /// Closes a cursor, in a transaction that has failed too. Without effect where there is none.
    pub fn close_cursor(&mut self, name: &str) {
        // Who wants it gone does not mind that it is.
        let _ = self.session.cursors.close(name);
    }

    /// Begins a transaction that the statements up to [`Connection::end_implicit`] are in together,
    /// unless one is open. BEGIN among them makes it an ordinary one; COMMIT and ROLLBACK end it.
    /// For the wire protocol, where several statements come at once.
    ///
    /// Errors: as BEGIN.
    pub fn begin_implicit(&mut self) -> Result<()> {
        self.session.begin_implicit()
    }

    /// Commits what [`Connection::begin_implicit`] began, or takes it back after an error. Nothing
    /// where BEGIN has made it an ordinary one.
    ///
    /// Errors: as COMMIT.
    pub fn end_implicit(&mut self) -> Result<()> {
        self.session.end_implicit()
    }

    /// Something that belongs to the open transaction has failed outside of it, such as reading the
    /// parameters of one of its statements: it can only be taken back now. Without effect outside
    /// of transactions.
    pub fn fail(&mut self) {
        self.session.fail_block();
    }

    /// Where it is with its transaction.
    pub fn status(&self) -> TransactionStatus {
        self.session.status()
    }

    /// What other threads end its statements with.
    pub fn canceller(&self) -> Canceller {
        Canceller(self.session.canceller.clone())
    }

    /// From here on requests to cancel hold for all statements up to the next call of this, also
    /// for those that have not begun; what was asked before is forgotten. For the wire protocol,
    /// where a message has several statements, and a request may come between them. Without it each
    /// call begins anew.
    pub fn begin_message(&mut self) {
        self.session.keeps_cancels = true;
        self.session.canceller.reset();
    }

    /// As SET.
    ///
    /// Errors: 42704 for a setting that does not exist, 22023 for a value that it cannot have.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.session.set_named(name, &[value.to_owned()], false)
    }

    /// What settings are now is what RESET, DISCARD ALL and the like make of them from here on: for
    /// whoever sets some before the session's own statements come.
    pub fn keep_settings(&mut self) {
        self.session.context.settings.keep();
    }

    /// A number that is another one after each change of a setting, also where a transaction takes
    /// it back; and at times where nothing has changed.
    pub fn settings_version(&self) -> u64 {
        self.session.context.settings.version
    }

    /// Says who is connected: what `current_user` gives. It is `cairn` at first; all may do
    /// everything.
    pub fn set_user(&mut self, name: &str) {
        self.session.context.settings.set_user(name);
    }

    /// As SHOW. `None` for a setting that does not exist.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.session.setting(name)
    }

    /// What there was to be told since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.session.notices)
    }
}

/// Sees an outcome to its end. Gives the rows that were changed or returned.
fn finish(outcome: Outcome<'_>) -> Result<u64> {
    match outcome {
        Outcome::Done(tag) => Ok(tag.rows.unwrap_or(0)),
        Outcome::Rows(mut rows) => {
            while rows.next()?.is_some() {}
            Ok(rows.count())
        }
        Outcome::CopyIn(copy) => Err(copy.fail("there is nobody who sends rows")),
        Outcome::CopyOut(_) => {
            Err(Error::new(FEATURE_NOT_SUPPORTED, "COPY TO STDOUT needs somebody who takes the rows"))
        }
    }
}
