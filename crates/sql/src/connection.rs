//! Connections: what a program talks to.

use std::sync::Arc;

use cairn_table::schema::ColumnType;

use crate::database::Database;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::outcome::{Outcome, Rows};
use crate::statement::Statement;

/// Where a connection is with its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// In none: each statement is its own.
    Idle,
    /// In one.
    Open,
    /// In one that met an error and waits for ROLLBACK.
    Failed,
}

/// Something to be told to whoever is at the other end, without being an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// The code: five characters.
    pub sqlstate: &'static str,
    /// What it says.
    pub message: String,
}

/// Ends what a connection is doing, from another thread.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<std::sync::atomic::AtomicBool>);

impl Canceller {
    /// The statement that runs now ends with 57014. None that runs later is touched.
    pub fn cancel(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }
}

/// A session: settings, a transaction, prepared statements. One thread at a time uses it, and waits for what it asks.
#[derive(Debug)]
pub struct Connection {
    database: Database,
    cancelled: Arc<std::sync::atomic::AtomicBool>,
}

impl Connection {
    pub(crate) fn new(database: Database) -> Self {
        Connection { database, cancelled: Arc::default() }
    }

    /// What it is a connection to.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Runs one statement to its end and gives the rows that it changed, or returned.
    ///
    /// Errors: whatever is wrong with it, with PostgreSQL's codes.
    pub fn execute(&mut self, sql: &str, params: &[Datum]) -> Result<u64> {
        let _ = params;
        Err(not_yet(sql))
    }

    /// Runs one statement that gives rows.
    ///
    /// Errors: as [`Connection::execute`].
    pub fn query(&mut self, sql: &str, params: &[Datum]) -> Result<Rows<'_>> {
        let _ = params;
        Err(not_yet(sql))
    }

    /// Runs several statements, separated by semicolons, and throws away the rows. Without a transaction of their own they are one transaction together.
    ///
    /// Errors: of the first one that fails; those behind it are not run.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        Err(not_yet(sql))
    }

    /// Parses a statement and binds it to tables. Kept by its text.
    ///
    /// Errors: whatever is wrong with it, and 42601 for more than one.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepare_typed(sql, &[])
    }

    /// As [`Connection::prepare`], with the types of parameters, as far as they are known.
    ///
    /// Errors: as [`Connection::prepare`].
    pub fn prepare_typed(&mut self, sql: &str, types: &[Option<ColumnType>]) -> Result<Statement> {
        let _ = types;
        Err(not_yet(sql))
    }

    /// Runs a prepared statement.
    ///
    /// Errors: as [`Connection::execute`].
    pub fn run(&mut self, statement: &Statement, params: &[Datum]) -> Result<Outcome<'_>> {
        let _ = params;
        Err(not_yet(statement.sql()))
    }

    /// Begins a transaction that the statements up to [`Connection::end_implicit`] are in together, unless one is open. BEGIN among them makes it an
    /// ordinary one; COMMIT and ROLLBACK end it. For the wire protocol, where several statements come at once.
    ///
    /// Errors: as BEGIN.
    pub fn begin_implicit(&mut self) -> Result<()> {
        Err(not_yet("BEGIN"))
    }

    /// Commits what [`Connection::begin_implicit`] began, or takes it back after an error. Nothing where BEGIN has made it an ordinary one.
    ///
    /// Errors: as COMMIT.
    pub fn end_implicit(&mut self) -> Result<()> {
        Err(not_yet("COMMIT"))
    }

    /// Where it is with its transaction.
    pub fn status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// What other threads end its statements with.
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(&self.cancelled))
    }

    /// As SET.
    ///
    /// Errors: 42704 for a setting that does not exist, 22023 for a value that it cannot have.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let _ = value;
        Err(not_yet(name))
    }

    /// As SHOW. `None` for a setting that does not exist.
    pub fn setting(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// What there was to be told since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}

fn not_yet(what: &str) -> Error {
    Error::unsupported(what)
}
