//! The state that all connections of a database share.

use std::any::Any;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, OnceLock};
use cairn_vfs::{Clock, Fs};

use super::sequence::{self, Counters};
use super::threads::{self, Threads};
use crate::error::Result;

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub tables: cairn_table::Database,
    /// The file system of COPY and of backups.
    pub fs: Arc<dyn Fs>,
    pub clock: Arc<dyn Clock>,
    pub durability: cairn_table::Durability,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Option<Duration>,
    pub threads: usize,
    pub memory_limit: u64,
    pub read_only: bool,
    /// The disk was too full to open the database for changes.
    pub is_full: bool,
    /// The time of opening, in microseconds since 1970.
    pub started: i64,
    /// The name reported to clients.
    pub name: String,
    pub sequences: Mutex<Counters>,
    /// The general path's state for all sessions, once one has used it.
    pub general: OnceLock<Box<dyn Any + Send + Sync>>,
    pub(crate) query_threads: OnceLock<Threads>,
    pub(crate) timer_thread: OnceLock<Threads>,
    pub(crate) backends: AtomicU32,
    /// The version of the last change of settings in any session.
    pub settings_versions: Arc<AtomicU64>,
    pub(crate) seed: u64,
}

impl Shared {
    /// The threads of the general path, started at the first call.
    ///
    /// Errors: 53200 if the system has no more threads.
    pub fn runtime(&self) -> Result<tokio::runtime::Handle> {
        threads::started(&self.query_threads, self.threads, "cairn-sql")
    }

    /// The thread that only serves timers. The threads of queries may be busy for long.
    ///
    /// Errors: as [`Shared::runtime`].
    pub fn timers(&self) -> Result<tokio::runtime::Handle> {
        threads::started(&self.timer_thread, 1, "cairn-sql-time")
    }

    /// Returns unused space to the file system.
    ///
    /// Errors: those of the file system.
    pub fn reclaim(&self) -> Result<()> {
        self.tables.vacuum()?;
        Ok(())
    }

    pub fn take_backend(&self) -> u32 {
        self.backends.fetch_add(1, Ordering::Relaxed)
    }

    /// The seed of a session's random numbers.
    pub fn seed(&self, backend: u32) -> u64 {
        self.seed ^ u64::from(backend).wrapping_mul(0xd134_2543_de82_ef95)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A failure leaves a gap in a sequence, as a crash does.
        let _ = sequence::close(self);
    }
}
