//! Cairn's relational engine, embedded: `cairn-sql` in this process, with a connection per client
//! thread.

use std::path::{Path, PathBuf};

use cairn_sql::{Connection, Database, Datum, DatumRef, Outcome, Statement, Type};

use crate::core::answer::Cell;
use crate::core::data_files::data_bytes;
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::cells::Cells;
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::{Dialect, Prepared, Rows, SqlDb, SqlSession, SqlSettings, SqlStore, Visit};

/// Name of the engine.
pub const NAME: &str = "cairn";
const FILE: &str = "data.db";

/// Cairn's SQL without a server.
#[derive(Debug, Default)]
pub struct CairnSql;

fn fail(error: cairn_sql::Error) -> Error {
    if error.is_retryable() {
        return Error::conflict(NAME, error);
    }
    Error::engine(NAME, format!("{error} ({})", error.sqlstate()))
}

impl SqlStore for CairnSql {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::equal("Durability::Memory: the log is written later"),
            Durability::Buffered => {
                Guarantee::equal("Durability::Buffered: each commit hands the log to the kernel")
            }
            Durability::Sync => {
                Guarantee::equal("Durability::Sync: each commit syncs the log, several at once")
            }
        }
    }

    fn settings(&self, given: &SqlSettings) -> Settings {
        let mut all = settings([
            ("connections", "one a client thread, statements prepared once for each"),
            ("isolation", "read committed (default)"),
            ("bulk load", "COPY FROM STDIN, rows as values (CopyIn::push)"),
        ]);
        all.insert("cache_bytes".to_owned(), given.cache_bytes.to_string());
        all
    }

    fn open(&self, dir: &Path, given: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        Ok(Box::new(Open { dir: dir.to_owned(), database: database(dir, given)? }))
    }
}

/// Opens the database file in `dir`.
pub(crate) fn database(dir: &Path, given: &SqlSettings) -> Result<Database> {
    let builder = Database::builder().cache_bytes(given.cache_bytes).durability(match given.durability {
        Durability::Memory => cairn_sql::Durability::Memory,
        Durability::Buffered => cairn_sql::Durability::Buffered,
        Durability::Sync => cairn_sql::Durability::Sync,
    });
    builder.open(dir.join(FILE)).map_err(fail)
}

struct Open {
    dir: PathBuf,
    database: Database,
}

impl SqlDb for Open {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        work(&mut Session {
            connection: self.database.connect(),
            statements: Vec::new(),
            parameters: Vec::new(),
        })
    }

    fn load(&self, table: &str, columns: usize, rows: &mut dyn Rows) -> Result<u64> {
        let mut connection = self.database.connect();
        let kinds = {
            let catalog = connection.catalog().map_err(fail)?;
            let found = catalog.table("public", table);
            let found = found.ok_or_else(|| Error::engine(NAME, format!("no table {table}")))?;
            found.def().columns.iter().map(|column| column.kind.kind).collect::<Vec<_>>()
        };
        let statement = connection.prepare(&format!("COPY {table} FROM STDIN")).map_err(fail)?;
        let Outcome::CopyIn(mut copy) = connection.run(&statement, &[]).map_err(fail)? else {
            return Err(Error::engine(NAME, "COPY FROM STDIN takes no rows"));
        };
        let mut count = 0;
        rows.each(&mut |row| {
            let mut values = Vec::with_capacity(columns);
            for (&cell, &kind) in row.iter().zip(&kinds) {
                values.push(borrowed(cell, Some(kind))?);
            }
            count += 1;
            copy.push(&values).map_err(fail)
        })?;
        copy.finish().map_err(fail)?;
        Ok(count)
    }

    fn analyze(&self) -> Result<()> {
        self.database.connect().execute("ANALYZE", &[]).map(drop).map_err(fail)
    }

    fn settle(&self) -> Result<()> {
        self.database.checkpoint().map_err(fail)
    }

    fn bytes(&self, _: &[&str]) -> Result<u64> {
        data_bytes(&self.dir)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // The checkpoint reports writes that failed at the end.
        self.settle()
    }
}

struct Session {
    connection: Connection,
    statements: Vec<Statement>,
    parameters: Vec<Datum>,
}

impl Session {
    fn perform(&mut self, prepared: Prepared, parameters: &[Cell<'_>]) -> Result<Outcome<'_>> {
        let statement = self.statements.get(prepared.0);
        let statement = statement.ok_or_else(|| Error::engine(NAME, "no such statement"))?;
        self.parameters.clear();
        for (index, &cell) in parameters.iter().enumerate() {
            let kind = statement.parameters().get(index).map(|column| column.kind);
            self.parameters.push(datum(cell, kind)?);
        }
        self.connection.run(statement, &self.parameters).map_err(fail)
    }

    fn command(&mut self, sql: &str) -> Result<()> {
        self.connection.execute(sql, &[]).map(drop).map_err(fail)
    }
}

impl SqlSession for Session {
    fn execute(&mut self, sql: &str) -> Result<u64> {
        self.connection.execute(sql, &[]).map_err(fail)
    }

    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()> {
        show(self.connection.query(sql, &[]).map_err(fail)?, visit)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.statements.push(self.connection.prepare(sql).map_err(fail)?);
        Ok(Prepared(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64> {
        match self.perform(statement, parameters)? {
            Outcome::Done(tag) => Ok(tag.rows.unwrap_or(0)),
            Outcome::Rows(mut rows) => {
                let mut count = 0;
                while rows.next().map_err(fail)?.is_some() {
                    count += 1;
                }
                Ok(count)
            }
            _ => Err(Error::engine(NAME, "COPY is for loads")),
        }
    }

    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()> {
        match self.perform(statement, parameters)? {
            Outcome::Rows(rows) => show(rows, visit),
            _ => Err(Error::engine(NAME, "a query without rows")),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.command("BEGIN")
    }

    fn commit(&mut self) -> Result<()> {
        self.command("COMMIT")
    }

    fn rollback(&mut self) -> Result<()> {
        self.command("ROLLBACK")
    }
}

/// Converts a parameter, to the statement's integer type for it if that is narrower.
#[inline]
fn datum(cell: Cell<'_>, kind: Option<Type>) -> Result<Datum> {
    borrowed(cell, kind).map(DatumRef::to_owned)
}

fn borrowed(cell: Cell<'_>, kind: Option<Type>) -> Result<DatumRef<'_>> {
    let narrow = |_| Error::engine(NAME, "a number that is too large for its column");
    Ok(match (cell, kind) {
        (Cell::Null, _) => DatumRef::Null,
        (Cell::Int(value), Some(Type::Int)) => DatumRef::Int(i32::try_from(value).map_err(narrow)?),
        (Cell::Int(value), Some(Type::SmallInt)) => DatumRef::SmallInt(i16::try_from(value).map_err(narrow)?),
        (Cell::Int(value), _) => DatumRef::BigInt(value),
        (Cell::Real(value), _) => DatumRef::Double(value),
        (Cell::Decimal(units, scale), _) => DatumRef::Decimal { unscaled: i128::from(units), scale },
        (Cell::Text(text), _) => DatumRef::Text(text),
        (Cell::Date(days), _) => DatumRef::Date(days),
    })
}

fn show(mut rows: cairn_sql::Rows<'_>, visit: &mut Visit<'_>) -> Result<()> {
    while let Some(row) = rows.next().map_err(fail)? {
        let mut cells = Cells::new();
        for column in 0..row.len() {
            cells.push(match row.get(column) {
                DatumRef::Null => Cell::Null,
                DatumRef::Boolean(value) => Cell::Int(i64::from(value)),
                DatumRef::SmallInt(value) => Cell::Int(i64::from(value)),
                DatumRef::Int(value) => Cell::Int(i64::from(value)),
                DatumRef::BigInt(value) => Cell::Int(value),
                DatumRef::Real(value) => Cell::Real(f64::from(value)),
                DatumRef::Double(value) => Cell::Real(value),
                DatumRef::Decimal { unscaled, scale } => decimal(unscaled, scale),
                DatumRef::Text(text) => Cell::Text(text),
                DatumRef::Date(days) => Cell::Date(days),
                other => {
                    return Err(Error::engine(
                        NAME,
                        format!("{other:?}, which the lab's queries do not have"),
                    ));
                }
            });
        }
        visit(cells.row());
    }
    Ok(())
}

fn decimal(unscaled: i128, scale: u8) -> Cell<'static> {
    match i64::try_from(unscaled) {
        Ok(value) if scale == 0 => Cell::Int(value),
        _ => Cell::Real(unscaled as f64 / 10_f64.powi(i32::from(scale))),
    }
}
