//! An open database.

use std::path::Path;
use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::{Fs, Operation, Rng, SystemRng, ensure};

use crate::catalog::{Catalog, GHOST, ROOT};
use crate::cleanup::remove_leftover_ghosts;
use crate::inner::Inner;
use crate::mvcc::Canceller;
use crate::options::{Isolation, Options};
use crate::storage::{LONG, Reclaiming, Store, Tree};
use crate::transaction::{ReusableTransaction, Transaction};
use crate::{Error, Result};

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
        let (store, recovery_work) = Store::recover(fs, path, &options.store, rng)?;
        let next = recovery_work.next_transaction;
        let reclaiming = Reclaiming::undo();
        let ghosts = store.undo(recovery_work)?;
        let catalog = load_catalog(&store)?;
        remove_leftover_ghosts(&store, &catalog, ghosts)?;
        let inner = Inner::new(store, catalog, options, next);
        let database = Database { inner: Arc::new(inner) };
        database.checkpoint()?;
        drop(reclaiming);
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
        reusable: Option<ReusableTransaction>,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Box<Transaction>> {
        Transaction::begin_from(reusable, &self.inner, isolation, canceller, lock_timeout)
    }

    /// Writes dirty pages, so that the next opening has little to do, and releases the log that is
    /// no longer needed. Other transactions continue meanwhile. Errors: the pool's and the log's.
    ///
    /// Also reports, once, the first failure since the last call in the cleanup after commits and
    /// rollbacks, whose outcome it does not affect.
    pub fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()?;
        self.inner.take_deferred_error().map_or(Ok(()), Err)
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
        let root = Tree::create(space)?.root();
        ensure!(root == ROOT, "the catalog's tree begins at page {root}, expected {ROOT}");
    }
    ensure!(space.pages()? > ROOT, "the catalog's tree was not created as the first one");
    let mut catalog = Catalog::new();
    let mut cursor = Tree::open(space, ROOT)
        .scan((std::ops::Bound::Unbounded, std::ops::Bound::Unbounded), crate::storage::Direction::Forward);
    while let Some((key, record)) = cursor.next()? {
        let Some((&flags, bytes)) = record.split_first() else {
            return Err(space.damaged(ROOT, "the catalog has a record without bytes"));
        };
        if flags & GHOST != 0 {
            continue;
        }
        let whole;
        let bytes = if flags & LONG == 0 {
            bytes
        } else {
            whole = store.read_long_record(record)?;
            whole.get(1..).unwrap_or_default()
        };
        if let Some(layout) = Catalog::later_layout(key, bytes) {
            return Err(Error::Unsupported {
                file: space.path().to_owned(),
                what: format!(
                    "a record of the catalog has layout {layout}, which a later version of Cairn has written"
                ),
            });
        }
        if !catalog.load(space, key, bytes) {
            return Err(space.damaged(ROOT, format!("the catalog has an invalid record {key:?}")));
        }
    }
    Ok(catalog)
}
