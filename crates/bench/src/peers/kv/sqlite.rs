//! SQLite through rusqlite: one `WITHOUT ROWID` table in WAL mode. Every write is a transaction of
//! its own unless batched.

use std::path::Path;

use rusqlite::Connection;

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::peers::sqlite_wal::{self, LentConnection, WalFile};
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "sqlite";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS records (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID";
const PUT: &str = "REPLACE INTO records (k, v) VALUES (?1, ?2)";
const DELETE: &str = "DELETE FROM records WHERE k = ?1";
const GET: &str = "SELECT v FROM records WHERE k = ?1";
const SCAN: &str = "SELECT k, v FROM records WHERE k >= ?1 ORDER BY k";

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// SQLite in WAL mode.
#[derive(Debug, Default)]
pub struct SqliteKv;

impl KvStore for SqliteKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "SQLite"
    }

    fn version(&self) -> String {
        sqlite_wal::version()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        sqlite_wal::guarantee(durability)
    }

    fn settings(&self, given: &KvSettings) -> Settings {
        let mut all = sqlite_wal::common_settings(given.cache_bytes);
        all.extend(settings([
            ("table", "WITHOUT ROWID, BLOB key"),
            ("statements", "prepared once for each thread"),
            ("transactions", "one for each write, one for each batch"),
            ("flush", "PRAGMA wal_checkpoint(TRUNCATE)"),
        ]));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let pragmas = sqlite_wal::pragmas(settings.cache_bytes, settings.durability);
        format!("-- on every connection, each with a cache of its own\n{pragmas}-- once\n{CREATE};\n")
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let open = Open(WalFile::new(dir, settings.cache_bytes, settings.durability));
        open.0.lend().map_err(fail)?.execute_batch(CREATE).map_err(fail)?;
        Ok(Box::new(open))
    }
}

struct Open(WalFile);

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session { open: self, connection: self.0.lend().map_err(fail)? }))
    }

    fn flush(&self) -> Result<()> {
        let _turn = self.0.turn();
        self.0.lend().map_err(fail)?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").map_err(fail)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Session<'a> {
    open: &'a Open,
    connection: LentConnection<'a>,
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let _turn = self.open.0.turn();
        Writing(&self.connection).put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let _turn = self.open.0.turn();
        Writing(&self.connection).delete(key)
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        let _turn = self.open.0.turn();
        // Rolls back if it is dropped without a commit.
        let transaction = self.connection.transaction().map_err(fail)?;
        fill_all(&transaction, fill)?;
        transaction.commit().map_err(fail)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut select = self.connection.prepare_cached(GET).map_err(fail)?;
        let mut rows = select.query([key]).map_err(fail)?;
        match rows.next().map_err(fail)? {
            Some(row) => {
                visit(row.get_ref(0).map_err(fail)?.as_blob().map_err(fail)?);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut select = self.connection.prepare_cached(SCAN).map_err(fail)?;
        let mut rows = select.query([from]).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            let key = row.get_ref(0).map_err(fail)?.as_blob().map_err(fail)?;
            if !visit(key, row.get_ref(1).map_err(fail)?.as_blob().map_err(fail)?) {
                break;
            }
        }
        Ok(())
    }
}

fn fill_all(connection: &Connection, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
    fill(&mut Writing(connection))
}

struct Writing<'a>(&'a Connection);

impl KvBatch for Writing<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut put = self.0.prepare_cached(PUT).map_err(fail)?;
        put.execute([key, value]).map_err(fail)?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut delete = self.0.prepare_cached(DELETE).map_err(fail)?;
        delete.execute([key]).map_err(fail)?;
        Ok(())
    }
}
