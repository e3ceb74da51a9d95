//! SQLite in WAL mode, as both suites that write to it set it up: a connection for each client thread, writers one at a time.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::engine::{Settings, settings};
use crate::suite_kv::Guarantee;
use crate::workload::Durability;

const FILE: &str = "data.sqlite";

/// As long as a writer waits for another one where the lab's mutex does not keep them apart, which it does.
const BUSY: Duration = Duration::from_secs(60);

/// The library, and what it is called through.
pub(super) fn version() -> String {
    format!("{} (rusqlite 0.41)", rusqlite::version())
}

/// What its settings for a durability promise.
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

/// What is set, and what is left as it is.
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

/// A database file that is written through its WAL.
#[derive(Debug)]
pub(super) struct WalFile {
    pub path: PathBuf,
    pragmas: String,
    writing: Mutex<()>,
}

/// What every connection says first.
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
        WalFile { path: dir.join(FILE), pragmas, writing: Mutex::new(()) }
    }

    /// Another connection with all settings made.
    pub fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(BUSY)?;
        connection.execute_batch(&self.pragmas)?;
        Ok(connection)
    }

    /// The writers' turn.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        // It guards nothing that a panic could leave half done.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
