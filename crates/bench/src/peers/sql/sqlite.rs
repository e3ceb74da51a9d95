//! SQLite through rusqlite: WAL mode, a connection per client thread.

use std::path::Path;
use std::sync::MutexGuard;

use cairn_vfs::{Fs, StdFs};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ErrorCode, Statement, ToSql};

use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::peers::sqlite_wal::{self, LentConnection, WalFile};
use crate::stores::cells::Cells;
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::{Dialect, Prepared, Rows, SqlDb, SqlSession, SqlSettings, SqlStore, Visit};

/// Name of the engine.
pub const NAME: &str = "sqlite";

/// SQLite in WAL mode.
#[derive(Debug, Default)]
pub struct Sqlite;

fn fail(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::conflict(NAME, error),
        _ => Error::engine(NAME, error),
    }
}

impl SqlStore for Sqlite {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        sqlite_wal::version()
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        sqlite_wal::guarantee(durability)
    }

    fn settings(&self, given: &SqlSettings) -> Settings {
        let mut all = sqlite_wal::common_settings(given.cache_bytes);
        all.extend(settings([
            ("connections", "one a client thread, statements prepared once for each"),
            ("statements by their text", "kept by rusqlite (prepare_cached), as Cairn keeps them"),
            ("transactions that write", "BEGIN IMMEDIATE"),
            ("primary keys", "INTEGER PRIMARY KEY, which is the row's own number"),
            ("bulk load", "one prepared INSERT, rows in one transaction"),
        ]));
        all
    }

    fn open(&self, dir: &Path, given: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        let open = Open(WalFile::new(dir, given.cache_bytes, given.durability));
        open.lend()?;
        Ok(Box::new(open))
    }
}

struct Open(WalFile);

impl Open {
    fn lend(&self) -> Result<LentConnection<'_>> {
        self.0.lend().map_err(fail)
    }
}

impl SqlDb for Open {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        let connection = self.lend()?;
        work(&mut Session { db: self, connection: &connection, statements: Vec::new(), writing: None })
    }

    fn load(&self, table: &str, columns: usize, rows: &mut dyn Rows) -> Result<u64> {
        let _turn = self.0.turn();
        let connection = self.lend()?;
        connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
        let marks = vec!["?"; columns].join(", ");
        let mut insert =
            connection.prepare(&format!("INSERT INTO {table} VALUES ({marks})")).map_err(fail)?;
        let mut count = 0;
        rows.each(&mut |row| {
            bind(&mut insert, row)?;
            count += insert.raw_execute().map_err(fail)? as u64;
            Ok(())
        })?;
        connection.execute_batch("COMMIT").map_err(fail)?;
        Ok(count)
    }

    fn analyze(&self) -> Result<()> {
        self.lend()?.execute_batch("ANALYZE").map_err(fail)?;
        // A connection reads statistics only when it reads the schema, so existing connections are
        // closed.
        self.0.forget();
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        // The pragma returns a row, which is not needed.
        let connection = self.lend()?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fail)
    }

    fn bytes(&self, _: &[&str]) -> Result<u64> {
        Ok(StdFs::new().metadata(&self.0.path)?.len)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.forget();
        self.0.connect().map_err(fail)?.close().map_err(|(_, error)| fail(error))
    }
}

struct Session<'c> {
    db: &'c Open,
    connection: &'c Connection,
    statements: Vec<Statement<'c>>,
    /// Held while a transaction is open.
    writing: Option<MutexGuard<'c, ()>>,
}

impl<'c> Session<'c> {
    fn statement(&mut self, prepared: Prepared) -> Result<&mut Statement<'c>> {
        let missing = || Error::engine(NAME, "no such statement");
        self.statements.get_mut(prepared.0).ok_or_else(missing)
    }

    /// Takes the writers' mutex for one statement, unless the session holds it already or the
    /// statement is read-only.
    fn turn_for(&self, statement: &Statement<'_>) -> Option<MutexGuard<'c, ()>> {
        (self.writing.is_none() && !statement.readonly()).then(|| self.db.0.turn())
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(fail)
    }
}

impl SqlSession for Session<'_> {
    // Repeated texts are prepared once, as in Cairn; users of rusqlite get that by
    // `prepare_cached`.
    fn execute(&mut self, sql: &str) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fail)?;
        let _turn = self.turn_for(&statement);
        changed(&mut statement)
    }

    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fail)?;
        show(&mut statement, visit)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.statements.push(self.connection.prepare(sql).map_err(fail)?);
        Ok(Prepared(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64> {
        let (db, has_turn) = (self.db, self.writing.is_some());
        let statement = self.statement(statement)?;
        let _turn = (!has_turn && !statement.readonly()).then(|| db.0.turn());
        bind(statement, parameters)?;
        changed(statement)
    }

    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()> {
        let statement = self.statement(statement)?;
        bind(statement, parameters)?;
        show(statement, visit)
    }

    fn begin(&mut self) -> Result<()> {
        self.writing = Some(self.db.0.turn());
        self.batch("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<()> {
        let ended = self.batch("COMMIT");
        self.writing = None;
        ended
    }

    fn rollback(&mut self) -> Result<()> {
        let ended = self.batch("ROLLBACK");
        self.writing = None;
        ended
    }
}

/// Runs a statement to its end, even if it returns rows.
fn changed(statement: &mut Statement<'_>) -> Result<u64> {
    if statement.column_count() == 0 {
        return statement.raw_execute().map(|count| count as u64).map_err(fail);
    }
    let (mut rows, mut count) = (statement.raw_query(), 0);
    while rows.next().map_err(fail)?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn show(statement: &mut Statement<'_>, visit: &mut Visit<'_>) -> Result<()> {
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(fail)? {
        let mut cells = Cells::new();
        for column in 0..columns {
            cells.push(match row.get_ref(column).map_err(fail)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(value) => Cell::Int(value),
                ValueRef::Real(value) => Cell::Real(value),
                ValueRef::Text(text) => {
                    Cell::Text(std::str::from_utf8(text).map_err(|error| Error::engine(NAME, error))?)
                }
                ValueRef::Blob(_) => return Err(Error::engine(NAME, "a blob, where the lab has none")),
            });
        }
        visit(cells.row());
    }
    Ok(())
}

struct Bound<'a>(Cell<'a>);

impl ToSql for Bound<'_> {
    #[inline]
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Cell::Null => ToSqlOutput::Owned(Value::Null),
            Cell::Int(value) => ToSqlOutput::Owned(Value::Integer(value)),
            Cell::Date(days) => ToSqlOutput::Owned(Value::Integer(i64::from(days))),
            Cell::Real(value) => ToSqlOutput::Owned(Value::Real(value)),
            Cell::Decimal(units, scale) => {
                ToSqlOutput::Owned(Value::Real(units as f64 / 10_f64.powi(i32::from(scale))))
            }
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

#[inline]
fn bind(statement: &mut Statement<'_>, parameters: &[Cell<'_>]) -> Result<()> {
    for (index, &cell) in parameters.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, Bound(cell)).map_err(fail)?;
    }
    Ok(())
}
