//! SQLite in WAL mode, as both suites that write to it configure it: a connection per client
//! thread, one writer at a time.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;

const FILE: &str = "data.sqlite";

/// Timeout for a busy lock. It should never be needed, because the lab's mutex serializes writers.
const BUSY: Duration = Duration::from_secs(60);

/// Returns the versions of SQLite and of its binding.
pub(super) fn version() -> String {
    format!("{} (rusqlite 0.41)", rusqlite::version())
}

/// Returns the guarantee of SQLite's settings for a durability.
pub(super) fn guarantee(durability: Durability) -> Guarantee {
    match durability {
        Durability::Memory => {
            Guarantee::stronger("WAL, synchronous = OFF: each commit is handed to the kernel")
        }
        Durability::Buffered => Guarantee::equal(
            "WAL, synchronous = NORMAL: each commit is handed to the kernel, checkpoints sync",
        ),
        Durability::Sync => Guarantee::equal("WAL, synchronous = FULL: each commit syncs the WAL"),
    }
}

/// Returns the settings, including relevant defaults.
pub(super) fn common_settings(cache_bytes: u64) -> Settings {
    let mut all = settings([
        ("writers", "take turns at a mutex of the lab, not by waiting for busy locks"),
        ("page_size", "4096 (default)"),
        ("mmap_size", "0 (default)"),
        ("wal_autocheckpoint", "1000 pages (default)"),
    ]);
    all.insert("cache_size".to_owned(), format!("{cache_bytes} bytes, for each client thread's connection"));
    all
}

/// A database file in WAL mode.
#[derive(Debug)]
pub(super) struct WalFile {
    pub path: PathBuf,
    pragmas: String,
    writing: Mutex<()>,
    /// Unused connections, which keep their cached pages and statements. The other stores keep
    /// their caches from one pass to the next, and a real program keeps its connections.
    idle: Mutex<Vec<Connection>>,
}

/// A connection that is lent to a session.
#[derive(Debug)]
pub(super) struct LentConnection<'f> {
    file: &'f WalFile,
    /// `None` only while it is being returned.
    connection: Option<Connection>,
}

/// Returns the initial pragmas of every connection.
pub(super) fn pragmas(cache_bytes: u64, durability: Durability) -> String {
    let synchronous = match durability {
        Durability::Memory => "OFF",
        Durability::Buffered => "NORMAL",
        Durability::Sync => "FULL",
    };
    let cache_kib = cache_bytes / 1024;
    format!(
        "PRAGMA journal_mode = WAL;\nPRAGMA synchronous = {synchronous};\nPRAGMA cache_size = -{cache_kib};\nPRAGMA temp_store = MEMORY;\n"
    )
}

impl WalFile {
    pub fn new(dir: &Path, cache_bytes: u64, durability: Durability) -> WalFile {
        let pragmas = pragmas(cache_bytes, durability);
        WalFile { path: dir.join(FILE), pragmas, writing: Mutex::new(()), idle: Mutex::default() }
    }

    /// Lends an unused connection, the most recently returned first, or opens a new one.
    pub fn lend(&self) -> rusqlite::Result<LentConnection<'_>> {
        let known = self.idle().pop();
        let connection = match known {
            Some(connection) => connection,
            None => self.connect()?,
        };
        Ok(LentConnection { file: self, connection: Some(connection) })
    }

    /// Closes the unused connections, because their view of the file is stale.
    pub fn forget(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection with all settings.
    pub fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY)?;
        connection.execute_batch(&self.pragmas)?;
        Ok(connection)
    }

    /// Takes the writers' mutex.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        // A poisoned mutex is fine, because it guards no data.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for LentConnection<'_> {
    type Target = Connection;

    #[expect(clippy::expect_used, reason = "it is there until it is dropped")]
    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("a connection")
    }
}

impl DerefMut for LentConnection<'_> {
    #[expect(clippy::expect_used, reason = "it is there until it is dropped")]
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a connection")
    }
}

impl Drop for LentConnection<'_> {
    fn drop(&mut self) {
        // A connection within a transaction is not reused.
        let kept = self.connection.take().filter(Connection::is_autocommit);
        self.file.idle().extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::scratch::Scratch;

    /// Goal: a session gets the connection of the previous one, with its cached state, but never
    /// one within a transaction. Method: temporary tables, which only their connection sees.
    #[test]
    fn connections_are_kept() {
        let scratch = Scratch::temporary("sqlite-wal").unwrap();
        let file = WalFile::new(scratch.path(), 1 << 20, Durability::Memory);
        let mark = |connection: &Connection, name: &str| {
            connection.execute_batch(&format!("CREATE TEMP TABLE {name} (x)")).unwrap();
        };
        let marks = |connection: &Connection| -> u32 {
            connection.query_row("SELECT count(*) FROM temp.sqlite_schema", [], |row| row.get(0)).unwrap()
        };
        mark(&file.lend().unwrap(), "one");
        {
            let (first, second) = (file.lend().unwrap(), file.lend().unwrap());
            assert_eq!((marks(&first), marks(&second)), (1, 0));
            second.execute_batch("BEGIN").unwrap();
        }
        assert_eq!(file.idle().len(), 1);
        file.forget();
        assert_eq!(marks(&file.lend().unwrap()), 0);
    }
}
