//! The state that all handles of an open database share, and its maintenance: checkpoints,
//! failures, and errors that are reported later.

use cairn_pool::Lsn;
use cairn_vfs::File;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Current, Mutex, MutexGuard, OnceLock, lock};

use crate::catalog::Catalog;
#[cfg(debug_assertions)]
use crate::mvcc::Taken;
use crate::mvcc::{Cleaning, CommitQueue, Rows, SchemaLock, Slots, Waits};
use crate::options::Options;
use crate::sorter::Scratch;
use crate::storage::{Store, is_reclaiming};
use crate::{Error, Result, hook};

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
    deferred_error: Mutex<Option<Error>>,
    pub(crate) counts: Counts,
    /// The locked file that this is a shadow of: see [`crate::Database::open_shadow`].
    pub(crate) shadowed: Option<Box<dyn File>>,
}

/// Checks that no lock and no version outlives the transactions, once the last handle is dropped.
#[cfg(debug_assertions)]
impl Drop for Inner {
    fn drop(&mut self) {
        if self.has_failed() || std::thread::panicking() {
            return;
        }
        while let Some(ended) = self.commits.take_visible(u64::MAX, usize::MAX, Taken::All) {
            if ended.is_empty() {
                break;
            }
            for ended in ended {
                ended.writes.iter().for_each(|write| self.rows.forget(write));
                ended.claims.iter().for_each(|(tree, key)| self.rows.release(*tree, key));
            }
        }
        debug_assert!(self.rows.len() == 0, "{} rows are still locked", self.rows.len());
        debug_assert!(self.waits.len() == 0, "{} transactions still wait", self.waits.len());
        // Snapshots and writers are not checked: a transaction may release them after its handle.
        debug_assert!(!self.schema.is_held(), "a transaction still holds the schema");
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) aborts: AtomicU64,
    pub(crate) conflicts: AtomicU64,
}

impl Inner {
    /// Creates the state of a database whose recovery is finished. `next_transaction` is a number
    /// that no transaction in the log has.
    pub(crate) fn new(store: Store, catalog: Catalog, options: &Options, next_transaction: u64) -> Inner {
        debug_assert!(next_transaction > 0, "a transaction would get number 0, which stands for none");
        Inner {
            store,
            slots: Arc::new(Slots::new()),
            rows: Rows::new(),
            waits: Waits::default(),
            commits: CommitQueue::default(),
            catalog: Current::new(Arc::new(catalog)),
            schema: SchemaLock::default(),
            options: options.clone(),
            next_transaction: AtomicU64::new(next_transaction),
            sorters: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            cause: OnceLock::new(),
            checkpointed: AtomicU64::new(0),
            checkpointing: Mutex::new(()),
            cleaning: Cleaning::default(),
            deferred_error: Mutex::default(),
            counts: Counts::default(),
            shadowed: None,
        }
    }

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
        let id = self.next_transaction.fetch_add(1, Ordering::Relaxed);
        debug_assert!(id != 0 && id != Waits::ALL, "a transaction gets number {id}");
        id
    }

    /// Returns a temporary place and memory for one of several sorters in use at the same time.
    pub(crate) fn scratch(&self, sorters: usize) -> Scratch {
        let number = self.sorters.fetch_add(1, Ordering::Relaxed);
        debug_assert!(sorters > 0, "memory is shared by no sorter");
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
        debug_assert!(needed <= end, "a checkpoint keeps the log from {needed} on, beyond its end {end}");
        let is_all = self.store.checkpoint(needed)?;
        let bytes = self.store.log_bytes();
        debug_assert!(
            bytes >= self.checkpointed.load(Ordering::Relaxed),
            "the log has {bytes} bytes, less than at the checkpoint before"
        );
        self.checkpointed.store(bytes, Ordering::Relaxed);
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
        if self.store.is_short() && !is_reclaiming() { self.store.restore_reserve() } else { Ok(()) }
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
    pub(crate) fn maintain(&self, most: usize) {
        for done in [self.clean(most), self.checkpoint_when_due()] {
            done.unwrap_or_else(|error| self.defer_error(error));
        }
    }

    /// Keeps an error for the next explicit checkpoint.
    pub(crate) fn defer_error(&self, error: Error) {
        lock(&self.deferred_error).get_or_insert(error);
    }

    /// Returns the first error kept since the last call.
    pub(crate) fn take_deferred_error(&self) -> Option<Error> {
        lock(&self.deferred_error).take()
    }

    /// Returns the error for a record of a tree that is not a row of its table.
    pub(crate) fn damaged_record(&self, page: u32) -> Error {
        self.store.space().damaged(page, "a record of its tree is not a row of its table")
    }
}
