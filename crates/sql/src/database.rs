//! Databases: where they are, and what they are given to work with.

use std::path::Path;
use std::time::Duration;

use cairn_table::Options;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, OnceLock};
use cairn_vfs::{Clock, Fs, Rng, StdFs, SystemClock, SystemRng};

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::query::General;
use crate::sequence::Counters;
use crate::sqlstate::{OUT_OF_MEMORY, UNDEFINED_FILE};

/// Pages in memory at the least: what threads that split nodes need.
const LEAST_FRAMES: usize = 256;

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

/// An open database. Clones are the same one; it is closed with the last of them and of its
/// connections.
#[derive(Debug, Clone)]
pub struct Database(Arc<Shared>);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub tables: cairn_table::Database,
    /// Where the files of COPY and of backups are.
    pub fs: Arc<dyn Fs>,
    pub clock: Arc<dyn Clock>,
    pub durability: cairn_table::Durability,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Option<Duration>,
    pub threads: usize,
    pub memory_limit: u64,
    pub read_only: bool,
    /// The disk had no room to open it for changes.
    pub is_full: bool,
    /// When it was opened, in microseconds since 1970.
    pub started: i64,
    /// What it is called, as far as clients ask.
    pub name: String,
    pub sequences: Mutex<Counters>,
    pub general: OnceLock<General>,
    runtime: OnceLock<Runtime>,
    timers: OnceLock<Runtime>,
    backends: AtomicU32,
    /// The last number that a change of any session's settings has.
    pub settings_versions: Arc<AtomicU64>,
    seed: u64,
}

/// Threads of the general path. Ending does not wait for them: what they do has nobody any more who
/// waits for it.
#[derive(Debug)]
struct Runtime(Option<tokio::runtime::Runtime>);

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Room on the stack of such a thread, of which the system gives what is used: a plan of as many
/// levels as there may be is computed by as many calls.
const STACK_BYTES: usize = 64 << 20;

/// Threads that are started when they are needed first.
fn threads(place: &OnceLock<Runtime>, count: usize, name: &str) -> Result<tokio::runtime::Handle> {
    if let Some(Runtime(Some(runtime))) = place.get() {
        return Ok(runtime.handle().clone());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(count)
        .thread_name(name)
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| Error::new(OUT_OF_MEMORY, format!("threads cannot be started: {error}")))?;
    let handle = runtime.handle().clone();
    // Somebody else may have been faster: theirs is as good.
    let kept = place.get_or_init(|| Runtime(Some(runtime)));
    Ok(kept.0.as_ref().map_or(handle, |runtime| runtime.handle().clone()))
}

impl Shared {
    /// The threads of the general path, which are started when they are needed first.
    ///
    /// Errors: 53200 where the system has no more threads to give.
    pub fn runtime(&self) -> Result<tokio::runtime::Handle> {
        threads(&self.runtime, self.threads, "cairn-sql")
    }

    /// A thread that does nothing but look at the time: those of queries may be at work for long.
    ///
    /// Errors: as [`Shared::runtime`].
    pub fn timers(&self) -> Result<tokio::runtime::Handle> {
        threads(&self.timers, 1, "cairn-sql-time")
    }

    /// Gives back space that nothing is in.
    ///
    /// Errors: the file system's.
    pub fn reclaim(&self) -> Result<()> {
        self.tables.vacuum()?;
        Ok(())
    }

    pub fn take_backend(&self) -> u32 {
        self.backends.fetch_add(1, Ordering::Relaxed)
    }

    /// Where a session's random numbers begin.
    pub fn seed(&self, backend: u32) -> u64 {
        self.seed ^ u64::from(backend).wrapping_mul(0xd134_2543_de82_ef95)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What fails here leaves a gap in a sequence, as a crash does.
        let _ = crate::sequence::close(self);
    }
}

/// A statement's time, which runs.
#[derive(Debug)]
pub(crate) struct Timer {
    fired: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
}

impl Timer {
    /// Cancels after so much time.
    pub fn start(shared: &Shared, after: Duration, canceller: &cairn_table::Canceller) -> Result<Timer> {
        let fired = Arc::new(AtomicBool::new(false));
        let (flag, canceller) = (Arc::clone(&fired), canceller.clone());
        let task = shared.timers()?.spawn(async move {
            tokio::time::sleep(after).await;
            flag.store(true, Ordering::SeqCst);
            canceller.cancel();
        });
        Ok(Timer { fired, task: task.abort_handle() })
    }

    pub fn has_fired(&self) -> bool {
        self.fired.load(Ordering::SeqCst)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a database is opened with.
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
    /// The file system it is in: the machine's by default.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }

    /// The file system in which COPY finds the files that it names, and to which backups go: the
    /// database's own by default, which for one in memory nobody else sees.
    #[must_use]
    pub fn files(mut self, fs: Arc<dyn Fs>) -> Self {
        self.files = Some(fs);
        self
    }

    /// Time: the machine's by default.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How much of it is kept in memory, in bytes: 128 MiB by default.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// What commits wait for: the disk by default. The setting `synchronous_commit` changes it for
    /// a session.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long statements may take: for ever by default. The setting `statement_timeout` changes
    /// it for a session.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// How long statements wait for rows that another transaction has changed: for ever by default,
    /// as deadlocks are found. The setting `lock_timeout` changes it for a session.
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

    /// How much memory sorts, joins and groups of all queries together may take, in bytes: 1 GiB by
    /// default. More goes to temporary files. Any limit will do: an operator may have 8 MiB
    /// whatever it is. SQLSTATE 53200 is for what can neither go to files nor be had in another
    /// way, as `NOT IN` of a subquery that does not fit.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Whether a database is made where there is none: true by default. An empty file without a log
    /// is none, too.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Refuses all changes with 25006, and makes no database where there is none. Opening one
    /// recovers it all the same, and keeps others out.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Opens the database in this file, or makes one.
    ///
    /// Errors: 58030 where the file system fails, XX001 where the file is damaged or is no
    /// database, 58P01 where there is none and [`Builder::create`] or [`Builder::read_only`] says
    /// that none is made.
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
            // What is there can be read all the same.
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
            runtime: OnceLock::new(),
            timers: OnceLock::new(),
            backends: AtomicU32::new(1),
            settings_versions: Arc::default(),
            seed,
        };
        crate::sequence::load_all(&shared)?;
        Ok(Database(Arc::new(shared)))
    }

    /// Fails where there is nothing, or an empty file, which would become a database.
    fn expect_database(&self, path: &Path) -> Result<()> {
        let missing = |what: &str| Err(Error::new(UNDEFINED_FILE, format!("{} {what}", path.display())));
        let log = cairn_table::log_dir(&cairn_table::real_path(&self.fs, path)?);
        if !self.fs.exists(path).map_err(cairn_table::Error::from)? {
            return missing("is not there");
        }
        // With a log it is what a power loss has left of one.
        let found = self.fs.metadata(path).map_err(cairn_table::Error::from)?;
        if found.is_file && found.len == 0 && !self.fs.exists(&log).map_err(cairn_table::Error::from)? {
            return missing("is not a database: it is empty");
        }
        Ok(())
    }
}

impl Database {
    /// Opens the database in this file, or makes one, with the settings that [`Builder`] starts
    /// with.
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
        self.connect_as(self.take_id())
    }

    /// A number that no connection has, for whoever names a session before it begins:
    /// [`Database::connect_as`].
    pub fn take_id(&self) -> u32 {
        self.0.take_backend()
    }

    /// A new session of a number from [`Database::take_id`], each of which is for one:
    /// [`Connection::id`].
    pub fn connect_as(&self, id: u32) -> Connection {
        Connection::new(self.clone(), id)
    }

    /// Writes all changes into the file, so that opening it needs no log.
    ///
    /// Errors: 58030 where the file system fails.
    pub fn checkpoint(&self) -> Result<()> {
        Ok(self.0.tables.checkpoint()?)
    }

    /// The tables, for programs that use them without SQL as well.
    pub fn tables(&self) -> &cairn_table::Database {
        &self.0.tables
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// Copies the database as it is at one moment, while others change it.
    ///
    /// Errors: 58030 where the file system fails.
    pub fn backup(&self, to: &Path) -> Result<()> {
        Ok(self.0.tables.backup(&self.0.fs, to)?)
    }

    /// Looks through everything: trees, the entry of each row in each index, pages. It waits until
    /// no transaction runs, this thread's own included.
    ///
    /// Errors: XX001 for the first thing that is wrong; 58030 where the file system fails.
    pub fn check(&self) -> Result<cairn_table::CheckReport> {
        Ok(self.0.tables.check()?)
    }
}
