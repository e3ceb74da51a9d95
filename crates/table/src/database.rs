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

/// What a commit promises when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The kernel has it: it survives the process, not the power.
    Buffered,
    /// Stable storage has it.
    #[default]
    Sync,
}

/// What transactions see of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the first one. Of two that change the same row,
    /// the second fails.
    Snapshot,
    /// As if transactions had run one after the other. One fails that has read what another has
    /// changed meanwhile.
    Serializable,
}

/// How a database is opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Pages and log.
    pub store: StoreOptions,
    /// A checkpoint follows so many bytes of log: what a recovery has to read, at most about twice.
    /// Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Memory for sorting: entries of an index that is made, rows of a bulk load and of a backup
    /// that do not come in order. What is more goes to a file beside the database, which is gone
    /// afterwards. Default 64 MiB.
    pub sort_bytes: usize,
    /// How long a transaction waits for a row that another one has. `None`, the default: until that
    /// one ends; circles are found at once, not by time.
    pub lock_timeout: Option<Duration>,
    /// Whether trees that are built at once, by bulk inserts into empty tables and new indexes, get
    /// packed leaves where these save a quarter of the bytes at least. The default: rows that are
    /// changed later cost more the first time, as their leaf is taken apart. Files have both kinds
    /// in any case.
    pub pack: bool,
    /// Time, for the timeout.
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

/// Counts of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions that changed something and committed, since it was opened.
    pub commits: u64,
    /// Transactions that changed something and were undone.
    pub aborts: u64,
    /// Circles of waiting transactions.
    pub deadlocks: u64,
    /// Serializable transactions and snapshots that could not be put in a line.
    pub serialization_failures: u64,
    /// Snapshots that there are.
    pub snapshots: usize,
    /// Rows of which old versions or locks are kept.
    pub versioned_rows: usize,
    /// Ended transactions whose versions somebody may still need.
    pub ended: usize,
}

/// A database, open. Clones share it; the last one closes it.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
}

/// What all handles share.
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
    /// How many there ever were.
    sorters: AtomicU64,
    failed: AtomicBool,
    cause: OnceLock<Arc<str>>,
    checkpointed: AtomicU64,
    checkpointing: Mutex<()>,
    pub(crate) cleaning: Cleaning,
    /// The first error of giving space and log back since somebody asked.
    put_off: Mutex<Option<Error>>,
    pub(crate) counts: Counts,
    /// The file that this is a shadow of, locked: see [`Database::open_shadow`].
    pub(crate) shadowed: Option<Box<dyn File>>,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) conflicts: AtomicU64,
}

impl Database {
    /// Opens a database, or makes one. What was committed before a crash is there, what was not is
    /// not.
    ///
    /// Cost: reads the log since the last checkpoint, and undoes what did not commit. Errors:
    /// `Busy` while somebody has it open; [`Error::Corruption`]; the file system's.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<Database> {
        let mut rng =
            SystemRng::new().map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
        Database::open_seeded(fs, path, options, &mut rng)
    }

    /// As [`Database::open`], with the randomness that the log marks its segments by.
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

    /// As [`Database::begin`], of a transaction that somebody else can cancel, also while it waits
    /// for who changes the schema, and that waits for others so long.
    /// Errors: [`Error::Cancelled`] besides.
    pub fn begin_with(
        &self,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Transaction> {
        Transaction::begin(&self.inner, isolation, canceller.clone(), lock_timeout)
    }

    /// As [`Database::begin_with`], with what a transaction has left that ended before: cheaper,
    /// and without counts in memory that threads share.
    pub fn begin_from(
        &self,
        spare: Option<Spare>,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Box<Transaction>> {
        Transaction::begin_from(spare, &self.inner, isolation, canceller, lock_timeout)
    }

    /// Writes what is in memory only, so that the next opening has little to do, and gives the log
    /// back that nobody needs. Others go on meanwhile.
    /// Errors: the pool's and the log's.
    ///
    /// What has failed since the last call behind commits and rollbacks, which have nothing to do
    /// with it, is told here as well, once.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()?;
        lock(&self.inner.put_off).take().map_or(Ok(()), Err)
    }

    /// Makes everything durable that was committed before. Errors: the log's.
    pub fn sync(&self) -> Result<()> {
        self.inner.store.sync()
    }

    /// Counts.
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

    /// How many pages the file has, and how many of them are free. Cost: reads the free ones.
    pub fn pages(&self) -> Result<(u32, u32)> {
        let space = self.inner.store.space();
        Ok((space.pages()?, space.free_pages()?))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.inner.store.space().path()
    }

    /// The number of the newest committed catalog: another one after each committed change of the
    /// schema. Takes no lock.
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
    /// Errors when an earlier failure has left memory and log apart.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) { Err(self.failure()) } else { Ok(()) }
    }

    #[cold]
    fn failure(&self) -> Error {
        let cause = self.cause.get().cloned().unwrap_or_else(|| "unknown".into());
        Error::Failed { cause }
    }

    /// Nothing can be trusted from now on but what is on disk.
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

    /// What one of several sorters may use that run at the same time.
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

    /// Writes pages and gives log back, up to where the oldest transaction that writes may have
    /// begun. True when none of the log before it is left.
    pub(crate) fn checkpoint(&self) -> Result<bool> {
        self.checkpoint_with(&lock(&self.checkpointing))
    }

    fn checkpoint_with(&self, _alone: &MutexGuard<'_, ()>) -> Result<bool> {
        self.check()?;
        hook::at("makes a checkpoint");
        let end = self.log_end();
        // ORDER: the log's end first, then the writers: one that is missed has all its records
        // behind the end.
        let needed = self.slots.oldest_writer().map_or(end, |oldest| oldest.min(end));
        // ORDER: and then this once more: one that could not be undone is no writer any more by the
        // time that it says so, and the next opening needs the log for it.
        self.check()?;
        let is_all = self.store.checkpoint(needed)?;
        self.checkpointed.store(self.store.log_bytes(), Ordering::Relaxed);
        if self.store.is_short() {
            // There may be space now. If not, the next insert reports it.
            let _ = self.store.restore_reserve();
        }
        Ok(is_all)
    }

    /// A checkpoint, if the log has grown enough since the last one. Whoever commits calls it.
    pub(crate) fn checkpoint_when_due(&self) -> Result<()> {
        if !self.is_checkpoint_due() {
            return Ok(());
        }
        hook::at("a checkpoint is due");
        let Ok(alone) = self.checkpointing.try_lock() else { return Ok(()) };
        // Somebody may have made it since the look.
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

    /// Does for everybody what a transaction's end is a good occasion for. It has ended by then, so
    /// its caller is not told of what fails here.
    pub(crate) fn tidy_up(&self, most: usize) {
        for done in [self.clean(most), self.checkpoint_when_due()] {
            done.unwrap_or_else(|error| self.put_off(error));
        }
    }

    /// Keeps an error for who asks for a checkpoint.
    pub(crate) fn put_off(&self, error: Error) {
        lock(&self.put_off).get_or_insert(error);
    }
}
