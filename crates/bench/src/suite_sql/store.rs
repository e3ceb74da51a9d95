//! SQL engines as the lab sees them: opened in a directory, asked by sessions, a session for each
//! client thread.
//!
//! A [`SqlStore`] is a kind of engine. [`SqlStore::open`] gives a [`SqlDb`], which all threads of a
//! measurement share; each of them is lent a [`SqlSession`] before the clock starts. A session is
//! lent and not given, so that an engine's statements may borrow its connection: nobody looks a
//! prepared statement up by its text in the loop that is measured.
//!
//! All engines get the same text: parameters are `$1`, `$2`, … in the order in which they first
//! appear. Where an engine's types or functions have other names, [`Dialect`] says so.

use std::fmt::Debug;
use std::path::Path;

use crate::engine::Settings;
use crate::error::Result;
use crate::suite_kv::Guarantee;
use crate::workload::Durability;

/// What every engine is opened with: the same for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlSettings {
    /// What a commit promises when it returns.
    pub durability: Durability,
    /// Bytes of pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Sessions at a time, at most.
    pub sessions: u32,
}

/// Whose words an engine understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's, which Cairn and DuckDB speak as well.
    Postgres,
    /// As [`Dialect::Postgres`]; reads whole columns, and is given no primary keys where its makers
    /// give it none.
    DuckDb,
    /// SQLite's: no dates and no decimals.
    Sqlite,
}

/// A value that goes in or comes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// Any integer; a boolean is 0 or 1.
    Int(i64),
    /// A floating-point number, or a decimal number that comes out.
    Real(f64),
    /// A decimal number that goes in: this many of its smallest unit, and how many digits there are
    /// behind the point.
    Decimal(i64, u8),
    /// Text. A date goes in as `2026-11-21`.
    Text(&'a str),
    /// A date that comes out: days since 1970.
    Date(i32),
}

/// Where a server is to be found, in the words that PostgreSQL's programs take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A name, a number, or the directory of a Unix socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Who asks.
    pub user: String,
    /// What of.
    pub database: String,
}

/// A statement that a session has prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// What rows are shown to.
pub type Visit<'v> = dyn FnMut(&[Cell<'_>]) + 'v;

/// Rows that are made one after the other, to be loaded.
pub trait Rows {
    /// Shows each row to `visit`, until it fails.
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()>;
}

/// A kind of SQL engine.
pub trait SqlStore: Debug + Send + Sync {
    /// Its name, unique among engines, in lower case: the word of `--peers`.
    fn name(&self) -> &str;

    /// The version of the library or server.
    fn version(&self) -> String;

    /// True for Cairn's own.
    fn ours(&self) -> bool {
        false
    }

    /// Whose SQL it takes.
    fn dialect(&self) -> Dialect;

    /// What `durability` means in this engine.
    fn guarantee(&self, durability: Durability) -> Guarantee;

    /// Every setting that it is opened with, in words; durability is added by the suite.
    fn settings(&self, settings: &SqlSettings) -> Settings;

    /// Makes an empty database in the existing, empty directory `dir`.
    fn open(&self, dir: &Path, settings: &SqlSettings) -> Result<Box<dyn SqlDb>>;

    /// As [`SqlStore::open`], for other programs to connect to as well. `None` where the engine is
    /// no server.
    fn serve(&self, _: &Path, _: &SqlSettings) -> Result<Option<(Box<dyn SqlDb>, Address)>> {
        Ok(None)
    }
}

/// An open database, shared by all threads of a measurement.
pub trait SqlDb: Send + Sync {
    /// Lends one thread a session. Called on the thread that uses it.
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()>;

    /// Loads rows into an empty table in the fastest way that the engine has, in one transaction.
    /// Durable as commits are when it returns.
    fn load(&self, table: &str, columns: usize, rows: &mut dyn Rows) -> Result<u64>;

    /// Gathers what the engine's planner wants to know of its tables.
    fn analyze(&self) -> Result<()>;

    /// Brings what was written to where it stays, so that it is not done in somebody else's turn.
    fn settle(&self) -> Result<()>;

    /// Bytes that tables and their indexes take on the disk; of an embedded engine the whole
    /// database. After [`SqlDb::settle`].
    fn bytes(&self, tables: &[&str]) -> Result<u64>;

    /// Closes the database and says what went wrong at that.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's way in. A statement outside of [`SqlSession::begin`] and [`SqlSession::commit`] is
/// a transaction of its own.
///
/// Errors: [`Error::Conflict`](crate::error::Error::Conflict) where another transaction was in the
/// way and the whole transaction may be tried again; it is rolled back by then.
pub trait SqlSession {
    /// Runs a statement by its text, as the engine does that best, and says how many rows it
    /// changed.
    fn execute(&mut self, sql: &str) -> Result<u64>;

    /// Shows the rows of a query by its text, as the engine does that best.
    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()>;

    /// Prepares a statement.
    fn prepare(&mut self, sql: &str) -> Result<Prepared>;

    /// Runs a prepared statement, and says how many rows it changed.
    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64>;

    /// Shows the rows of a prepared query.
    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()>;

    /// Begins a transaction that will write.
    fn begin(&mut self) -> Result<()>;

    /// Commits it.
    fn commit(&mut self) -> Result<()>;

    /// Undoes it.
    fn rollback(&mut self) -> Result<()>;
}
