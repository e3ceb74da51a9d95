//! An open database.

use std::path::Path;
use std::time::Duration;

use cairn_pool::Lsn;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Current, Mutex, MutexGuard, OnceLock, lock};
use cairn_vfs::{Clock, File, Fs, Operation, Rng, SystemClock, SystemRng};

use crate::catalog::{Catalog, ROOT};
use crate::clean::{self, Cleaning};
use crate::mvcc::{Canceller, CommitQueue, Rows, Slots, Waits};
use crate::sorter::Scratch;
use crate::storage::{Giving, Store, StoreOptions, Tree, is_giving};
use crate::transaction::{SchemaLock, Spare, Transaction};
use crate::view::long_row;
use crate::{Error, Result, hook};

/// The durability that a commit guarantees when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// In the page cache: survives a crash of the process, but not a power loss.
    Buffered,
    /// On stable storage.
    #[default]
    Sync,
}

/// The isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees the commits before it began.
    #[default]
    ReadCommitted,
    /// All statements see the commits before the first one. If two transactions change the same
    /// row, the second one fails.
    Snapshot,
    /// As if transactions had run one after another. A transaction fails if it has read data that
    /// another has changed meanwhile.
    Serializable,
}

/// Options for opening a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Pages and log.
    pub store: StoreOptions,
    /// Amount of log after which a checkpoint follows. Recovery has to read at most about twice as
    /// much. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Memory for sorting: the entries of a new index, and the rows of a bulk load or a backup that
    /// do not arrive in order. The rest spills to a temporary file beside the database. Default 64
    /// MiB.
    pub sort_bytes: usize,
    /// How long a transaction waits for a row that another one holds. `None`, the default, for no
    /// limit; deadlocks are detected at once, not by a timeout.
    pub lock_timeout: Option<Duration>,
    /// Whether bulk-built trees, for bulk inserts into empty tables and for new indexes, get packed
    /// leaves where these save at least a quarter of the bytes. Default true. The first change of a
    /// row in a packed leaf costs more, because the leaf must be unpacked. Files may contain both
    /// kinds in any case.
    pub pack: bool,
    /// The clock for the timeout.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            store: StoreOptions::default(),
            checkpoint_bytes: 256 << 20,
            sort_bytes: 64 << 20,
            lock_timeout: None,
            pack: true,
            clock: Arc::new(SystemClock::new()),
        }
    }
}

/// Statistics of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions with changes that committed since it was opened.
    pub commits: u64,
    /// Transactions with changes that were undone.
    pub aborts: u64,
    /// Deadlocks detected.
    pub deadlocks: u64,
    /// Transactions at the levels snapshot and serializable that could not be serialized.
    pub serialization_failures: u64,
    /// Current number of snapshots.
    pub snapshots: usize,
    /// Number of rows with old versions or locks.
    pub versioned_rows: usize,
    /// Ended transactions whose versions may still be needed.
    pub ended: usize,
}

/// An open database. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
}

/// The state shared by all handles.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) slots: Arc<Slots>,
    pub(crate) rows: Rows,
    pub(crate) waits: Waits,
    pub(crate) commits: CommitQueue,
    pub(crate) catalog: Current<Catalog>,
    pub(crate) schema: SchemaLock,
    pub(crate) options: Options,
    next_transaction: AtomicU64,
    /// Number of sorters created so far.
    sorters: AtomicU64,
    failed: AtomicBool,
    cause: OnceLock<Arc<str>>,
    checkpointed: AtomicU64,
    checkpointing: Mutex<()>,
    pub(crate) cleaning: Cleaning,
    /// The first error in freeing space or releasing log since it was last reported.
    put_off: Mutex<Option<Error>>,
    pub(crate) counts: Counts,
    /// The locked file that this is a shadow of: see [`Database::open_shadow`].
    pub(crate) shadowed: Option<Box<dyn File>>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) conflicts: AtomicU64,
}

impl Database {
    /// Opens or creates a database. After a crash, committed changes are present and others are
    /// not.
    ///
    /// Cost: reads the log since the last checkpoint, and undoes transactions that did not commit.
    /// Errors: `Busy` while it is open elsewhere; [`Error::Corruption`]; the file system's.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<Database> {
        let mut rng =
            SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
        Database::open_seeded(fs, path, options, &mut rng)
    }

    /// Like [`Database::open`], with the random number generator from which the salts of the log
    /// are drawn.
    pub fn open_seeded(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: &Options,
        rng: &mut dyn Rng,
    ) -> Result<Database> {
        let (store, unfinished) = Store::recover(fs, path, &options.store, rng)?;
        let next = unfinished.next_transaction;
        let giving = Giving::undo();
        let ghosts = store.undo(unfinished)?;
        let catalog = load_catalog(&store)?;
        clean::remove_left(&store, &catalog, ghosts)?;
        let inner = Inner {
            store,
            slots: Arc::new(Slots::new()),
            rows: Rows::new(),
            waits: Waits::default(),
            commits: CommitQueue::default(),
            catalog: Current::new(Arc::new(catalog)),
            schema: SchemaLock::default(),
            options: options.clone(),
            next_transaction: AtomicU64::new(next),
            sorters: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            cause: OnceLock::new(),
            checkpointed: AtomicU64::new(0),
            checkpointing: Mutex::new(()),
            cleaning: Cleaning::default(),
            put_off: Mutex::default(),
            counts: Counts::default(),
            shadowed: None,
        };
        let database = Database { inner: Arc::new(inner) };
        database.checkpoint()?;
        drop(giving);
        // Without space for the reserve, inserts fail until it can be allocated.
        let _ = database.inner.store.restore_reserve();
        Ok(database)
    }

    /// Begins a transaction. Cost: some ten nanoseconds, until it changes something. Errors:
    /// [`Error::Busy`], [`Error::Failed`].
    pub fn begin(&self, isolation: Isolation) -> Result<Transaction> {
        Transaction::begin(&self.inner, isolation, Canceller::new(), self.inner.options.lock_timeout)
    }

    /// Like [`Database::begin`], with a canceller, which also ends a wait for a schema change, and
    /// with a lock timeout. Errors: also [`Error::Cancelled`].
    pub fn begin_with(
        &self,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Transaction> {
        Transaction::begin(&self.inner, isolation, canceller.clone(), lock_timeout)
    }

    /// Like [`Database::begin_with`], but reuses an ended transaction, which is cheaper and avoids
    /// reference counts that threads share.
    pub fn begin_from(
        &self,
        spare: Option<Spare>,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Box<Transaction>> {
        Transaction::begin_from(spare, &self.inner, isolation, canceller, lock_timeout)
    }

    /// Writes dirty pages, so that the next opening has little to do, and releases the log that is
    /// no longer needed. Other transactions continue meanwhile. Errors: the pool's and the log's.
    ///
    /// Also reports, once, the first failure since the last call in the cleanup after commits and
    /// rollbacks, whose outcome it does not affect.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()?;
        lock(&self.inner.put_off).take().map_or(Ok(()), Err)
    }

    /// Makes all previous commits durable. Errors: the log's.
    pub fn sync(&self) -> Result<()> {
        self.inner.store.sync()
    }

    /// Returns statistics.
    pub fn stats(&self) -> Stats {
        let inner = &self.inner;
        Stats {
            commits: inner.counts.commits.load(Ordering::Relaxed),
            aborts: inner.counts.aborts.load(Ordering::Relaxed),
            deadlocks: inner.waits.deadlocks.load(Ordering::Relaxed),
            serialization_failures: inner.counts.conflicts.load(Ordering::Relaxed),
            snapshots: inner.slots.snapshots(),
            versioned_rows: inner.rows.len(),
            ended: inner.commits.len(),
        }
    }

    /// Returns the number of pages of the file, and the number of free ones. Cost: reads the free
    /// ones.
    pub fn pages(&self) -> Result<(u32, u32)> {
        let space = self.inner.store.space();
        Ok((space.pages()?, space.free_pages()?))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.inner.store.space().path()
    }

    /// Returns the version of the newest committed catalog, which changes with each committed
    /// schema change. Takes no lock.
    pub fn catalog_version(&self) -> u64 {
        self.inner.catalog.load().version()
    }
}

fn load_catalog(store: &Store) -> Result<Catalog> {
    let space = store.space();
    if space.pages()? <= ROOT {
        Tree::create(space)?;
    }
    let mut catalog = Catalog::new();
    let mut cursor = Tree::open(space, ROOT)
        .scan((std::ops::Bound::Unbounded, std::ops::Bound::Unbounded), crate::storage::Direction::Forward);
    while let Some((key, record)) = cursor.next()? {
        let Some((&flags, bytes)) = record.split_first() else {
            return Err(space.damaged(ROOT, "the catalog has a record without bytes"));
        };
        if flags & crate::catalog::GHOST != 0 {
            continue;
        }
        let whole;
        let bytes = if flags & crate::catalog::LONG == 0 {
            bytes
        } else {
            whole = long_row(store, record)?;
            whole.get(1..).unwrap_or_default()
        };
        if !catalog.load(space, key, bytes) {
            return Err(space.damaged(ROOT, format!("the catalog has an invalid record {key:?}")));
        }
    }
    Ok(catalog)
}

impl Inner {
    /// Fails if an earlier failure has left memory and log inconsistent.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) { Err(self.failure()) } else { Ok(()) }
    }

    #[cold]
    fn failure(&self) -> Error {
        let cause = self.cause.get().cloned().unwrap_or_else(|| "unknown".into());
        Error::Failed { cause }
    }

    /// Marks the database as failed: from now on only its files can be trusted.
    pub(crate) fn fail(&self, error: &Error) {
        let _ = self.cause.set(error.to_string().into());
        self.failed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn take_transaction_id(&self) -> u64 {
        self.next_transaction.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a temporary place and memory for one of several sorters in use at the same time.
    pub(crate) fn scratch(&self, sorters: usize) -> Scratch {
        let number = self.sorters.fetch_add(1, Ordering::Relaxed);
        self.store.scratch(number, self.options.sort_bytes / sorters.max(1))
    }

    pub(crate) fn log_end(&self) -> Lsn {
        self.store.log().end()
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Writes dirty pages and releases log, up to where the oldest writing transaction may have
    /// begun. Returns true if none of the log before it is left.
    pub(crate) fn checkpoint(&self) -> Result<bool> {
        self.checkpoint_with(&lock(&self.checkpointing))
    }

    fn checkpoint_with(&self, _alone: &MutexGuard<'_, ()>) -> Result<bool> {
        self.check()?;
        hook::at("makes a checkpoint");
        let end = self.log_end();
        // ORDER: the end of the log first, then the writers. A writer that is missed has all its
        // records after that end.
        let needed = self.slots.oldest_writer().map_or(end, |oldest| oldest.min(end));
        // ORDER: then this check once more. A transaction that could not be undone marks the
        // database as failed before it stops being a writer, and the next opening needs the log to
        // undo it.
        self.check()?;
        let is_all = self.store.checkpoint(needed)?;
        self.checkpointed.store(self.store.log_bytes(), Ordering::Relaxed);
        if self.store.is_short() {
            // There may be space now. If not, the next insert reports it.
            let _ = self.store.restore_reserve();
        }
        Ok(is_all)
    }

    /// Makes a checkpoint if the log has grown enough since the last one. Called after commits.
    pub(crate) fn checkpoint_when_due(&self) -> Result<()> {
        if !self.is_checkpoint_due() {
            return Ok(());
        }
        hook::at("a checkpoint is due");
        let Ok(alone) = self.checkpointing.try_lock() else { return Ok(()) };
        // Another thread may have made one between the check and the lock.
        if self.is_checkpoint_due() { self.checkpoint_with(&alone).map(|_| ()) } else { Ok(()) }
    }

    fn is_checkpoint_due(&self) -> bool {
        let grown = self.store.log_bytes().saturating_sub(self.checkpointed.load(Ordering::Relaxed));
        let due = self.options.checkpoint_bytes;
        grown >= if self.store.is_short() { due.min(self.store.short_checkpoint_bytes()) } else { due }
    }

    /// As [`Inner::check`], for inserts and updates: they also fail while the reserve for deletions
    /// is missing and cannot be allocated again.
    #[inline]
    pub(crate) fn check_room(&self) -> Result<()> {
        self.check()?;
        if self.store.is_short() && !is_giving() { self.store.restore_reserve() } else { Ok(()) }
    }

    /// Runs a due checkpoint while the reserve is given up, so that log segments are freed. The
    /// caller must hold no page latch. A failure is not reported here: the change that needs space
    /// reports it.
    pub(crate) fn make_room(&self) {
        if self.store.is_short() {
            let _ = self.checkpoint_when_due();
        }
    }

    /// Does maintenance at the end of a transaction. The transaction has already ended, so its
    /// caller does not get errors from here.
    pub(crate) fn tidy_up(&self, most: usize) {
        for done in [self.clean(most), self.checkpoint_when_due()] {
            done.unwrap_or_else(|error| self.put_off(error));
        }
    }

    /// Keeps an error for the next explicit checkpoint.
    pub(crate) fn put_off(&self, error: Error) {
        lock(&self.put_off).get_or_insert(error);
    }
}
