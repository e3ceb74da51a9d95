//! Databases and the settings with which they are opened.

use std::path::Path;
use std::time::Duration;

use cairn_table::Options;
use cairn_vfs::sync::atomic::AtomicU32;
use cairn_vfs::sync::{Arc, Mutex, OnceLock};
use cairn_vfs::{Clock, Fs, Rng, StdFs, SystemClock, SystemRng};

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::runtime::Shared;
use crate::runtime::sequence::{self, Counters};
use crate::sqlstate::UNDEFINED_FILE;

/// The least number of pages in the buffer pool, which threads that split nodes need.
const LEAST_FRAMES: usize = 256;

/// The place that a commit's changes must reach before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Memory of the process: the commit is lost if the process ends.
    Memory,
    /// The operating system: the commit is lost if the machine fails.
    Buffered,
    /// The disk.
    #[default]
    Sync,
}

/// An open database. Clones share it. It is closed when the last of them and of its connections is
/// dropped.
#[derive(Debug, Clone)]
pub struct Database(Arc<Shared>);

/// The settings with which a database is opened.
#[derive(Debug, Clone)]
pub struct Builder {
    fs: Arc<dyn Fs>,
    files: Option<Arc<dyn Fs>>,
    clock: Arc<dyn Clock>,
    cache_bytes: u64,
    durability: Durability,
    statement_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    threads: Option<usize>,
    memory_limit: u64,
    create: bool,
    read_only: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            fs: Arc::new(StdFs::new()),
            files: None,
            clock: Arc::new(SystemClock::new()),
            cache_bytes: 128 << 20,
            durability: Durability::Sync,
            statement_timeout: None,
            lock_timeout: None,
            threads: None,
            memory_limit: 1 << 30,
            create: true,
            read_only: false,
        }
    }
}

impl Builder {
    /// Sets the file system of the database. The default is that of the machine.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// Sets the file system in which COPY finds its files and to which backups go. The default is
    /// the database's own; that of a database in memory is invisible to others.
    #[must_use]
    pub fn files(mut self, fs: Arc<dyn Fs>) -> Self {
        self.files = Some(fs);
        self
    }

    /// Sets the clock. The default is that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the size of the buffer pool, in bytes. The default is 128 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the durability of commits. The default is the disk. The setting `synchronous_commit`
    /// changes it for a session.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the time limit of statements. There is none by default. The setting `statement_timeout`
    /// changes it for a session.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Sets the time that statements wait for rows changed by another transaction. It is unlimited
    /// by default, because deadlocks are detected. The setting `lock_timeout` changes it for a
    /// session.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Sets the number of threads per query. The default is the number of processors.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the memory that the sorts, joins and groups of all queries together may take, in bytes.
    /// The default is 1 GiB. Beyond the limit they spill. Any limit works, because each operator
    /// may use 8 MiB regardless of it. SQLSTATE 53200 remains for operations that can neither spill
    /// nor be computed in another way, such as `NOT IN` of a subquery that does not fit.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets whether to create a database that does not exist. The default is true. An empty file
    /// without a log counts as no database.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Rejects all changes with 25006, and creates no database. Opening one still recovers it, and
    /// still locks it.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Opens the database in this file, or creates it.
    ///
    /// Errors: 58030 if the file system fails, XX001 if the file is damaged or not a database,
    /// 58P01 if it does not exist and [`Builder::create`] or [`Builder::read_only`] forbids its
    /// creation.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let path = path.as_ref();
        if self.read_only || !self.create {
            self.expect_database(path)?;
        }
        let mut options = Options::default();
        let frames = self.cache_bytes / options.store.page_size as u64;
        options.store.frames = usize::try_from(frames).unwrap_or(usize::MAX).max(LEAST_FRAMES);
        options.lock_timeout = self.lock_timeout;
        options.clock = Arc::clone(&self.clock);
        let tables = match cairn_table::Database::open(&self.fs, path, &options) {
            // On a full disk the existing contents can still be read.
            Err(error) if error.is_full() => {
                cairn_table::Database::open_shadow(&self.fs, path, &options).map_err(|_| error)?
            }
            opened => opened?,
        };
        let is_full = tables.is_shadow();
        let seed = SystemRng::new().map_or(0, |mut rng| rng.next_u64());
        let threads = self.threads.or_else(|| std::thread::available_parallelism().ok().map(Into::into));
        let shared = Shared {
            tables,
            fs: Arc::clone(self.files.as_ref().unwrap_or(&self.fs)),
            clock: Arc::clone(&self.clock),
            durability: match self.durability {
                Durability::Sync => cairn_table::Durability::Sync,
                Durability::Buffered | Durability::Memory => cairn_table::Durability::Buffered,
            },
            statement_timeout: self.statement_timeout,
            lock_timeout: self.lock_timeout,
            threads: threads.unwrap_or(1).max(1),
            memory_limit: self.memory_limit,
            read_only: self.read_only || is_full,
            is_full,
            started: self.clock.wall().as_micros() as i64,
            name: path
                .file_stem()
                .map_or_else(|| "cairn".to_owned(), |stem| stem.to_string_lossy().into_owned()),
            sequences: Mutex::new(Counters::new()),
            general: OnceLock::new(),
            query_threads: OnceLock::new(),
            timer_thread: OnceLock::new(),
            backends: AtomicU32::new(1),
            settings_versions: Arc::default(),
            seed,
        };
        sequence::load_all(&shared)?;
        Ok(Database(Arc::new(shared)))
    }

    /// Fails if there is no file, or an empty one, which would become a database.
    fn expect_database(&self, path: &Path) -> Result<()> {
        let missing = |what: &str| Err(Error::new(UNDEFINED_FILE, format!("{} {what}", path.display())));
        let log = cairn_table::log_dir(&cairn_table::real_path(&self.fs, path)?);
        if !self.fs.exists(path).map_err(cairn_table::Error::from)? {
            return missing("does not exist");
        }
        // An empty file with a log is a database after a power loss.
        let found = self.fs.metadata(path).map_err(cairn_table::Error::from)?;
        if found.is_file && found.len == 0 && !self.fs.exists(&log).map_err(cairn_table::Error::from)? {
            return missing("is not a database: it is empty");
        }
        Ok(())
    }
}

impl Database {
    /// Opens the database in this file, or creates it, with the defaults of [`Builder`].
    ///
    /// Errors: as [`Builder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Database> {
        Builder::default().open(path)
    }

    /// Returns a builder, to open a database with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens a session.
    pub fn connect(&self) -> Connection {
        self.connect_as(self.take_id())
    }

    /// Returns an unused connection number, for callers that must name a session before it begins:
    /// see [`Database::connect_as`].
    pub fn take_id(&self) -> u32 {
        self.0.take_backend()
    }

    /// Opens a session under a number from [`Database::take_id`]. Each number is for one session:
    /// see [`Connection::id`].
    pub fn connect_as(&self, id: u32) -> Connection {
        Connection::new(self.clone(), id)
    }

    /// Writes all changes into the file, so that the next opening needs no log.
    ///
    /// Errors: 58030 if the file system fails.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.0.tables.checkpoint()?)
    }

    /// The tables, for programs that also use them without SQL.
    pub fn tables(&self) -> &cairn_table::Database {
        &self.0.tables
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// Copies a snapshot of the database to `to`, while other transactions change it.
    ///
    /// Errors: 58030 if the file system fails.
    pub fn backup(&self, to: &Path) -> Result<()> {
        Ok(self.0.tables.backup(&self.0.fs, to)?)
    }

    /// Checks the whole database: the trees, the entry of each row in each index, and the pages. It
    /// waits until no transaction runs, including those of the calling thread.
    ///
    /// Errors: XX001 for the first damage found; 58030 if the file system fails.
    pub fn check(&self) -> Result<cairn_table::CheckReport> {
        Ok(self.0.tables.check()?)
    }
}
