//! The handles: [`Db`], [`Keyspace`], [`Snapshot`].

use std::path::Path;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::batch::{Operation, WriteBatch};
use crate::db::builder::Builder;
use crate::db::core::Core;
use crate::db::inner::KeyspaceState;
use crate::db::key_range::KeyRange;
use crate::db::range::{DbCursor, Range, RangeMaker, half_open};
use crate::db::snapshots::SnapshotGuard;
use crate::db::stats::Stats;
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::options::{Durability, ReadOptions};
use crate::txn::{Transaction, TransactionOptions};
use crate::value::Value;
use crate::version::KeyspaceId;

/// An open store. Cheap to clone; safe to use from many threads. The store closes when the last
/// handle, snapshot, cursor and iterator are gone.
///
/// It dereferences to its default keyspace, so that `db.put(..)` does what one expects.
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// use cairn_kv::Db;
///
/// let db = Db::builder("/store").fs(fs).open()?;
/// db.put("apple", "red")?;
/// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
/// db.delete("apple")?;
/// assert_eq!(db.get("apple")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Db {
    pub(crate) core: Arc<Core>,
    default: Keyspace,
}

impl std::ops::Deref for Db {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl Db {
    /// Opens or makes the store in the directory `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }

    /// Opens or makes the store in the directory `path` with default options.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::builder(path).open()
    }

    pub(crate) fn new(core: Arc<Core>, default: Arc<KeyspaceState>) -> Db {
        let default = Keyspace { core: Arc::clone(&core), state: default };
        Db { core, default }
    }

    /// The store's directory.
    pub fn path(&self) -> &Path {
        &self.core.inner.path
    }

    /// Commits a batch: all of it or, after a crash, nothing. Readers too see all of it or nothing.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, self.core.inner.options.durability)
    }

    /// As [`Db::write`], with a durability of its own.
    pub fn write_with(&self, batch: &WriteBatch, durability: Durability) -> Result<()> {
        self.core.inner.write_batch(batch, durability)
    }

    /// Makes everything that was written so far durable, whatever durability it was written with,
    /// except [`Durability::Memory`], which takes a [`Keyspace::flush`]. One sync of the log,
    /// shared with other callers.
    pub fn sync(&self) -> Result<()> {
        self.core.inner.sync_all()
    }

    /// The store in numbers.
    pub fn stats(&self) -> Stats {
        self.core.inner.stats()
    }

    /// Changes the memory for blocks of tables, at once. See [`crate::Options::cache_bytes`].
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.core.inner.tables.cache.set_capacity(bytes);
    }

    /// The keyspace `name`, when there is one.
    pub fn keyspace(&self, name: &str) -> Option<Keyspace> {
        let state = self.core.inner.keyspaces.named(name)?;
        Some(Keyspace { core: Arc::clone(&self.core), state })
    }

    /// All keyspaces, the default one first.
    pub fn keyspaces(&self) -> Vec<Keyspace> {
        let all = self.core.inner.all_keyspaces();
        all.into_iter().map(|state| Keyspace { core: Arc::clone(&self.core), state }).collect()
    }

    /// Begins an optimistic transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// Begins a transaction of either kind.
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(Arc::clone(&self.core), options)
    }

    /// What the store is now, for reads later. Holds on to old versions: compactions keep what it
    /// sees.
    pub fn snapshot(&self) -> Snapshot {
        let inner = &self.core.inner;
        Snapshot { guard: inner.snapshots.take(&inner.order), core: Arc::clone(&self.core) }
    }
}

/// The store as it was at one moment, all keyspaces together. Cheap to take and to clone; lasts as
/// long as it is held.
#[derive(Debug, Clone)]
pub struct Snapshot {
    guard: SnapshotGuard,
    #[allow(dead_code)] // keeps the store open
    core: Arc<Core>,
}

impl Snapshot {
    /// The number of the newest write that it shows.
    pub fn seqno(&self) -> Seqno {
        self.guard.seqno()
    }
}

/// One ordered map of a store, with options of its own; "column family" in RocksDB. Batches and
/// snapshots span keyspaces.
#[derive(Debug, Clone)]
pub struct Keyspace {
    pub(crate) core: Arc<Core>,
    pub(crate) state: Arc<KeyspaceState>,
}

impl Keyspace {
    /// Its number, for [`WriteBatch::add`].
    pub fn id(&self) -> KeyspaceId {
        self.state.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Sets `key` to `value`, with the store's default durability.
    ///
    /// Costs some hundreds of nanoseconds, and now and then the wait that [`crate::Event::Stalled`]
    /// explains.
    /// Errors: [`crate::Error::Invalid`] for a key of more than [`crate::KEY_BYTES_MAX`] or a value
    /// of more than [`crate::VALUE_BYTES_MAX`] bytes, [`crate::Error::Poisoned`] after a failure.
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, self.core.inner.options.durability)
    }

    /// As [`Keyspace::put`], with a durability of its own.
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.write(Operation::Put { key: key.as_ref(), value: value.as_ref() }, durability)
    }

    /// Removes `key`; fine when it is not there.
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, self.core.inner.options.durability)
    }

    /// As [`Keyspace::delete`], with a durability of its own.
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.write(Operation::Delete { key: key.as_ref() }, durability)
    }

    /// Adds an operand for the keyspace's merge operator, which reads and compactions apply.
    /// Errors: [`crate::Error::Invalid`] without an operator.
    #[inline]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, self.core.inner.options.durability)
    }

    /// As [`Keyspace::merge`], with a durability of its own.
    pub fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        if self.state.options.merge_operator.is_none() {
            return Err(crate::Error::invalid(format!(
                "keyspace {:?} has no merge operator",
                self.state.name
            )));
        }
        self.write(Operation::Merge { key: key.as_ref(), operand: operand.as_ref() }, durability)
    }

    /// Removes all keys from `start` to before `end` with one entry, whatever there is between
    /// them.
    /// Errors: [`crate::Error::Invalid`] when `start` is after `end`.
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_with(start, end, self.core.inner.options.durability)
    }

    /// As [`Keyspace::delete_range`], with a durability of its own.
    pub fn delete_range_with(
        &self,
        start: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.write(Operation::DeleteRange { start: start.as_ref(), end: end.as_ref() }, durability)
    }

    #[inline]
    fn write(&self, operation: Operation<'_>, durability: Durability) -> Result<()> {
        self.core.inner.write_one(&self.state, operation, durability)
    }

    /// The value of `key`; `None` when it has none.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core.inner.get(&self.state, key.as_ref(), None)
    }

    /// The value that `key` had at `snapshot`. Errors: [`crate::Error::Invalid`] for a snapshot of
    /// another store, as of all that take one.
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Value>> {
        self.core.inner.check_snapshot(&snapshot.guard)?;
        self.core.inner.get(&self.state, key.as_ref(), Some(snapshot.seqno()))
    }

    /// The values of `keys`, in their order, all as of one moment.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.core.inner.multi_get(&self.state, keys, None)
    }

    /// As [`Keyspace::multi_get`], as of `snapshot`.
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Value>>> {
        self.core.inner.check_snapshot(&snapshot.guard)?;
        self.core.inner.multi_get(&self.state, keys, Some(snapshot.seqno()))
    }

    /// A cursor over the whole keyspace as it is now.
    pub fn cursor(&self) -> Result<DbCursor> {
        self.cursor_in(.., None, &ReadOptions::default())
    }

    /// A cursor over `range`, as of `snapshot` when one is given.
    pub fn cursor_in(
        &self,
        range: impl KeyRange,
        snapshot: Option<&Snapshot>,
        options: &ReadOptions,
    ) -> Result<DbCursor> {
        self.maker(half_open(&range), snapshot, options).cursor()
    }

    /// The entries of `range` as an iterator from either end, as they are now.
    pub fn range(&self, range: impl KeyRange) -> Range {
        Range::new(self.maker(half_open(&range), None, &ReadOptions::default()))
    }

    /// As [`Keyspace::range`], as of `snapshot`. One of another store is an error as the only item.
    pub fn range_at(&self, range: impl KeyRange, snapshot: &Snapshot) -> Range {
        Range::new(self.maker(half_open(&range), Some(snapshot), &ReadOptions::default()))
    }

    /// All entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let bounds = Bounds::of_prefix(prefix.as_ref());
        Range::new(self.maker(bounds, None, &ReadOptions::default()))
    }

    /// All entries.
    pub fn iter(&self) -> Range {
        self.range(..)
    }

    fn maker(&self, bounds: Bounds, snapshot: Option<&Snapshot>, options: &ReadOptions) -> RangeMaker {
        let inner = &self.core.inner;
        let snapshot = match snapshot {
            Some(snapshot) => snapshot.guard.clone(),
            None => inner.snapshots.take(&inner.order),
        };
        let (core, keyspace) = (Arc::clone(&self.core), Arc::clone(&self.state));
        RangeMaker { core, keyspace, bounds, options: options.clone(), snapshot }
    }

    /// Writes the memtables to tables and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.core.inner.flush(&self.state)
    }

    /// Compacts the tables of a range as far down as they go, which removes all that is deleted and
    /// overwritten in it, and waits for it. Flushes first.
    pub fn compact_range(&self, range: impl KeyRange) -> Result<()> {
        self.core.inner.compact_range(&self.state, half_open(&range))
    }

    /// Waits until no flush and no compaction is due; then gives back what the log has allocated
    /// for writes to come, and all of it when everything is in tables.
    pub fn wait_idle(&self) -> Result<()> {
        self.core.inner.wait_idle()
    }
}
