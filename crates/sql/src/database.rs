//! Databases: where they are, and what they are given to work with.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::{Fs, StdFs};

use crate::connection::Connection;
use crate::error::{Error, Result};

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing: it is lost with the process.
    Memory,
    /// The operating system has it: it is lost with the machine.
    Buffered,
    /// The disk has it.
    #[default]
    Sync,
}

/// An open database. Clones are the same one; it is closed with the last of them and of its connections.
#[derive(Debug, Clone)]
pub struct Database(Arc<Inner>);

#[derive(Debug)]
struct Inner {}

/// What a database is opened with.
#[derive(Debug, Clone)]
pub struct Builder {
    fs: Arc<dyn Fs>,
    cache_bytes: u64,
    durability: Durability,
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    threads: Option<usize>,
    memory_limit: u64,
    read_only: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            fs: Arc::new(StdFs::new()),
            cache_bytes: 128 << 20,
            durability: Durability::Sync,
            statement_timeout: None,
            lock_timeout: None,
            threads: None,
            memory_limit: 1 << 30,
            read_only: false,
        }
    }
}

impl Builder {
    /// The file system it is in: the machine's by default.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// How much of it is kept in memory, in bytes: 128 MiB by default.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// What commits wait for: the disk by default. The setting `synchronous_commit` changes it for a session.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long statements may take: for ever by default. The setting `statement_timeout` changes it for a session.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// How long statements wait for rows that another transaction has changed: for ever by default, as deadlocks are found.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// How many threads work on one query: as many as there are processors by default.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How much memory sorts, joins and groups of all queries together may take, in bytes: 1 GiB by default.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Refuses all changes with 25006.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Opens the database in this file, or makes one.
    ///
    /// Errors: 58030 where the file system fails, XX001 where the file is damaged or is no database.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let _ = (&self.fs, self.cache_bytes, self.durability, self.statement_timeout, self.lock_timeout);
        let _ = (self.threads, self.memory_limit, self.read_only);
        Err(Error::unsupported(path.as_ref().display()))
    }
}

impl Database {
    /// Opens the database in this file, or makes one, with the settings that [`Builder`] starts with.
    ///
    /// Errors: as [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// To open one with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A new session.
    pub fn connect(&self) -> Connection {
        Connection::new(self.clone())
    }

    /// Writes all changes into the file, so that opening it needs no log.
    ///
    /// Errors: 58030 where the file system fails.
    pub fn checkpoint(&self) -> Result<()> {
        let _ = &self.0;
        Err(Error::unsupported("CHECKPOINT"))
    }

    /// Copies the database as it is at one moment, while others change it.
    ///
    /// Errors: 58030 where the file system fails.
    pub fn backup(&self, to: &Path) -> Result<()> {
        Err(Error::unsupported(to.display()))
    }
}
