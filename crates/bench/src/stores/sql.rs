//! SQL engines as the lab sees them: opened in a directory, queried through sessions, with one
//! session per client thread.
//!
//! A [`SqlStore`] is a kind of engine. [`SqlStore::open`] returns a [`SqlDb`], which all threads of
//! a measurement share. Each of them borrows a [`SqlSession`] before the clock starts. Sessions are
//! lent, not owned, so that an engine's statements can borrow its connection. So the measured loop
//! contains no lookup of prepared statements by their text.
//!
//! All engines get the same text. Parameters are `$1`, `$2`, … in the order of their first
//! occurrence. [`Dialect`] says where an engine's types or functions have other names.

use std::fmt::Debug;
use std::path::Path;

use crate::core::answer::Cell;
use crate::core::error::Result;
use crate::core::settings::Settings;
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;

/// Name of the suite of such engines, and label of their scratch directories.
pub const LABEL: &str = "sql";

/// The settings with which every engine is opened, the same for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlSettings {
    /// The guarantee of a commit when it returns.
    pub durability: Durability,
    /// Bytes of pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Maximum number of concurrent sessions.
    pub sessions: u32,
}

/// The SQL dialect of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's, which Cairn and DuckDB also support.
    Postgres,
    /// Like [`Dialect::Postgres`], for an engine that reads whole columns. Its tables have no
    /// primary keys where its makers' own setup has none.
    DuckDb,
    /// SQLite's, without dates and decimals.
    Sqlite,
}

/// The address of a server, in the form that PostgreSQL's programs take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// A host name, an address, or the directory of a Unix socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
}

/// A statement prepared by a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// A function that receives rows.
pub type Visit<'v> = dyn FnMut(&[Cell<'_>]) + 'v;

/// Rows that are generated one after another for loading.
pub trait Rows {
    /// Passes each row to `visit`, until `visit` fails.
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()>;
}

/// A kind of SQL engine.
pub trait SqlStore: Debug + Send + Sync {
    /// Returns the name, unique among engines, in lower case, as used by `--peers`.
    fn name(&self) -> &str;

    /// Returns the version of the library or server.
    fn version(&self) -> String;

    /// Returns true for Cairn's own.
    fn ours(&self) -> bool {
        false
    }

    /// Returns the dialect.
    fn dialect(&self) -> Dialect;

    /// Returns the meaning of `durability` in this engine.
    fn guarantee(&self, durability: Durability) -> Guarantee;

    /// Describes every setting with which the engine is opened. The suite adds durability.
    fn settings(&self, settings: &SqlSettings) -> Settings;

    /// Creates an empty database in the existing, empty directory `dir`.
    fn open(&self, dir: &Path, settings: &SqlSettings) -> Result<Box<dyn SqlDb>>;

    /// Like [`SqlStore::open`], but other programs can connect too. `None` if the engine is not a
    /// server.
    fn serve(&self, _: &Path, _: &SqlSettings) -> Result<Option<(Box<dyn SqlDb>, Address)>> {
        Ok(None)
    }
}

/// An open database, shared by all threads of a measurement.
pub trait SqlDb: Send + Sync {
    /// Lends a session to one thread. Call it on the thread that uses the session.
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()>;

    /// Loads rows into an empty table in the engine's fastest way, in one transaction. It is as
    /// durable as a commit when it returns.
    fn load(&self, table: &str, columns: usize, rows: &mut dyn Rows) -> Result<u64>;

    /// Gathers statistics for the engine's planner.
    fn analyze(&self) -> Result<()>;

    /// Writes pending data to its final place, so that this does not happen in another contender's
    /// turn.
    fn settle(&self) -> Result<()>;

    /// Returns the size of tables and their indexes on disk; for an embedded engine that of the
    /// whole database. Call it after [`SqlDb::settle`].
    fn bytes(&self, tables: &[&str]) -> Result<u64>;

    /// Closes the database and returns errors of closing.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A server of this process alone, which its user configures and restarts.
pub trait PrivateServer {
    /// Returns the server's version.
    fn version(&self) -> &str;

    /// Calls `work` with a session.
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()>;

    /// Stops the server, calls `between` with the directory of its files, and starts it again, even
    /// if `between` failed.
    fn restart(&mut self, between: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()>;

    /// Stops the server. Errors: the shutdown failed.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The session of one thread. A statement outside of [`SqlSession::begin`] and
/// [`SqlSession::commit`] is a transaction of its own.
///
/// Errors: [`Error::Conflict`](crate::core::error::Error::Conflict) if another transaction
/// interfered and the whole transaction, which has been rolled back, may be repeated.
pub trait SqlSession {
    /// Runs a statement given as text, in the engine's best way, and returns the number of changed
    /// rows.
    fn execute(&mut self, sql: &str) -> Result<u64>;

    /// Runs a query given as text, in the engine's best way, and passes its rows to `visit`.
    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()>;

    /// Prepares a statement.
    fn prepare(&mut self, sql: &str) -> Result<Prepared>;

    /// Runs a prepared statement, and returns the number of changed rows.
    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64>;

    /// Runs a prepared query, and passes its rows to `visit`.
    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()>;

    /// Begins a transaction that will write.
    fn begin(&mut self) -> Result<()>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<()>;

    /// Rolls the transaction back.
    fn rollback(&mut self) -> Result<()>;
}
