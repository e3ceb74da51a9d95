//! DuckDB, from a shared library that is loaded at run time, because building it would take twenty
//! minutes.

mod ffi;
mod handles;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Fs, StdFs};

use self::ffi::Api;
use self::handles::{Connection, Database, Statement};
use crate::core::answer::Cell;
use crate::core::data_files::data_bytes;
use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::sql::{Dialect, Prepared, Rows, SqlDb, SqlSession, SqlSettings, SqlStore, Visit};

/// Name of the engine.
pub const NAME: &str = "duckdb";
const FILE: &str = "data.duckdb";

/// Memory for joins and sorts, in addition to the pages. The other engines limit only their pages.
const WORK_BYTES: u64 = 2 << 30;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// Returns the path of the shared library: `CAIRN_DUCKDB_LIB`, else `lib/libduckdb.so` in the cache
/// directory.
pub fn library_path() -> PathBuf {
    match env::var_os("CAIRN_DUCKDB_LIB") {
        Some(path) => path.into(),
        None => crate::core::cache::cache_dir().join("lib/libduckdb.so"),
    }
}

/// DuckDB, with its library loaded.
#[derive(Debug)]
pub struct DuckDb {
    api: Arc<Api>,
}

impl DuckDb {
    /// Loads the library.
    ///
    /// Errors: there is no such library, or it is not DuckDB; the message names the expected path.
    pub fn find() -> Result<DuckDb> {
        let path = library_path();
        if !StdFs::new().exists(&path)? {
            return Err(fail(format!(
                "no library at {}; `scripts/setup peers` in a clone of Cairn fetches it, or set CAIRN_DUCKDB_LIB",
                path.display()
            )));
        }
        Ok(DuckDb { api: Api::load(path.as_os_str())? })
    }
}

impl SqlStore for DuckDb {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        handles::version(&self.api)
    }

    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory | Durability::Buffered => {
                Guarantee::stronger("each commit syncs the WAL, which cannot be turned off")
            }
            Durability::Sync => Guarantee::equal("each commit syncs the WAL"),
        }
    }

    fn settings(&self, given: &SqlSettings) -> Settings {
        let mut all = settings([
            ("connections", "one a client thread, statements prepared once for each"),
            ("threads", "as many as there are cores (default)"),
            ("checkpoint_threshold", "16 MB (default)"),
            ("bulk load", "appender"),
        ]);
        all.insert("memory_limit".to_owned(), memory_limit(given));
        all
    }

    fn open(&self, dir: &Path, given: &SqlSettings) -> Result<Box<dyn SqlDb>> {
        let options = [("memory_limit", memory_limit(given))];
        let database = Database::open(&self.api, &dir.join(FILE), &options)?;
        Ok(Box::new(Open { dir: dir.to_owned(), database }))
    }
}

fn memory_limit(given: &SqlSettings) -> String {
    format!("{} MiB", (given.cache_bytes + WORK_BYTES) >> 20)
}

struct Open {
    dir: PathBuf,
    database: Database,
}

impl Open {
    fn command(&self, sql: &str) -> Result<()> {
        self.database.connect()?.query(sql).map(drop)
    }
}

impl SqlDb for Open {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        let connection = self.database.connect()?;
        work(&mut Session { connection: &connection, statements: Vec::new() })
    }

    fn load(&self, table: &str, _: usize, rows: &mut dyn Rows) -> Result<u64> {
        let connection = self.database.connect()?;
        connection.query("BEGIN TRANSACTION")?;
        let (mut appender, mut count) = (connection.appender(table)?, 0);
        rows.each(&mut |row| {
            count += 1;
            appender.row(row)
        })?;
        appender.close()?;
        connection.query("COMMIT")?;
        Ok(count)
    }

    fn analyze(&self) -> Result<()> {
        self.command("ANALYZE")
    }

    fn settle(&self) -> Result<()> {
        self.command("CHECKPOINT")
    }

    fn bytes(&self, _: &[&str]) -> Result<u64> {
        data_bytes(&self.dir)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // The checkpoint reports writes that failed at the end.
        self.settle()
    }
}

struct Session<'c> {
    connection: &'c Connection<'c>,
    statements: Vec<Statement<'c>>,
}

impl<'c> Session<'c> {
    fn statement(&mut self, prepared: Prepared) -> Result<&mut Statement<'c>> {
        self.statements.get_mut(prepared.0).ok_or_else(|| fail("no such statement"))
    }
}

impl SqlSession for Session<'_> {
    fn execute(&mut self, sql: &str) -> Result<u64> {
        Ok(self.connection.query(sql)?.changed())
    }

    fn select(&mut self, sql: &str, visit: &mut Visit<'_>) -> Result<()> {
        self.connection.query(sql)?.show(visit)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        self.statements.push(self.connection.prepare(sql)?);
        Ok(Prepared(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Prepared, parameters: &[Cell<'_>]) -> Result<u64> {
        Ok(self.statement(statement)?.run(parameters)?.changed())
    }

    fn query(&mut self, statement: Prepared, parameters: &[Cell<'_>], visit: &mut Visit<'_>) -> Result<()> {
        self.statement(statement)?.run(parameters)?.show(visit)
    }

    fn begin(&mut self) -> Result<()> {
        self.execute("BEGIN TRANSACTION").map(drop)
    }

    fn commit(&mut self) -> Result<()> {
        self.execute("COMMIT").map(drop)
    }

    fn rollback(&mut self) -> Result<()> {
        self.execute("ROLLBACK").map(drop)
    }
}
