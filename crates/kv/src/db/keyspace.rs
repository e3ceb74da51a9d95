//! The handles: [`Db`], [`Keyspace`], [`Snapshot`].

use std::path::Path;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::batch::{DEFAULT, Operation, WriteBatch};
use crate::db::core::Core;
use crate::db::key_range::KeyRange;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::range::{DbCursor, Range, RangeMaker, half_open};
use crate::db::snapshots::SnapshotGuard;
use crate::db::stats::Stats;
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::options::{Durability, ReadOptions};
use crate::value::Value;
use crate::version::KeyspaceId;

/// An open store. Cheap to clone and safe to use from many threads. The store closes when the last
/// handle, snapshot, cursor and iterator are dropped.
///
/// It dereferences to its default keyspace, so that `db.put(..)` works as expected.
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
    pub(crate) fn new(core: Arc<Core>, default: Arc<KeyspaceState>) -> Db {
        debug_assert_eq!(default.id, DEFAULT, "{:?} is not the default keyspace", default.name);
        let default = Keyspace { core: Arc::clone(&core), state: default };
        Db { core, default }
    }

    /// Returns the store's directory.
    pub fn path(&self) -> &Path {
        &self.core.inner.path
    }

    /// Commits a batch atomically: after a crash either the whole batch is there or nothing of it,
    /// and readers see either all of it or nothing.
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, self.core.inner.options.durability)
    }

    /// Like [`Db::write`], with the given durability.
    pub fn write_with(&self, batch: &WriteBatch, durability: Durability) -> Result<()> {
        self.core.inner.write_batch(batch, durability)
    }

    /// Makes all earlier writes durable, regardless of their durability, except those with
    /// [`Durability::Memory`], which need a [`Keyspace::flush`]. Costs one sync of the log, shared
    /// with concurrent callers.
    pub fn sync(&self) -> Result<()> {
        self.core.inner.sync_all()
    }

    /// Returns statistics of the store.
    pub fn stats(&self) -> Stats {
        self.core.inner.stats()
    }

    /// Changes the size of the block cache immediately. See [`crate::Options::cache_bytes`].
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.core.inner.tables.cache.set_capacity(bytes);
    }

    /// Returns the keyspace `name`, if it exists.
    pub fn keyspace(&self, name: &str) -> Option<Keyspace> {
        let state = self.core.inner.keyspaces.named(name)?;
        Some(Keyspace { core: Arc::clone(&self.core), state })
    }

    /// Returns all keyspaces, the default one first.
    pub fn keyspaces(&self) -> Vec<Keyspace> {
        let all = self.core.inner.all_keyspaces();
        debug_assert!(
            all.first().is_some_and(|first| first.id == DEFAULT),
            "the default one is never dropped"
        );
        all.into_iter().map(|state| Keyspace { core: Arc::clone(&self.core), state }).collect()
    }

    /// Takes a snapshot of the current state for later reads. While it is held, compactions keep
    /// the old versions that it sees.
    pub fn snapshot(&self) -> Snapshot {
        let inner = &self.core.inner;
        Snapshot { guard: inner.snapshots.take(&inner.order), core: Arc::clone(&self.core) }
    }
}

/// The state of the store at one moment, across all keyspaces. Cheap to take and to clone; valid as
/// long as it is held.
#[derive(Debug, Clone)]
pub struct Snapshot {
    guard: SnapshotGuard,
    #[allow(dead_code)] // keeps the store open
    core: Arc<Core>,
}

impl Snapshot {
    /// Returns the sequence number of the newest write that the snapshot sees.
    pub fn seqno(&self) -> Seqno {
        self.guard.seqno()
    }
}

/// An ordered map within a store, with its own options; a "column family" in RocksDB. Batches and
/// snapshots span keyspaces.
#[derive(Debug, Clone)]
pub struct Keyspace {
    pub(crate) core: Arc<Core>,
    pub(crate) state: Arc<KeyspaceState>,
}

impl Keyspace {
    /// Returns the keyspace id, for [`WriteBatch::add`].
    pub fn id(&self) -> KeyspaceId {
        self.state.id
    }

    /// Returns the name of the keyspace.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Sets `key` to `value`, with the store's default durability.
    ///
    /// Takes a few hundred nanoseconds. Occasionally the write stalls, which
    /// [`crate::Event::Stalled`] reports.
    ///
    /// Errors: [`crate::Error::Invalid`] for a key of more than [`crate::KEY_BYTES_MAX`] or a value
    /// of more than [`crate::VALUE_BYTES_MAX`] bytes, [`crate::Error::Poisoned`] after a failure.
    #[inline]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, self.core.inner.options.durability)
    }

    /// Like [`Keyspace::put`], with the given durability.
    #[inline]
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        self.write(Operation::Put { key: key.as_ref(), value: value.as_ref() }, durability)
    }

    /// Removes `key`. Succeeds if the key does not exist.
    #[inline]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, self.core.inner.options.durability)
    }

    /// Like [`Keyspace::delete`], with the given durability.
    #[inline]
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        self.write(Operation::Delete { key: key.as_ref() }, durability)
    }

    /// Adds an operand for the keyspace's merge operator, which reads and compactions apply.
    ///
    /// Errors: [`crate::Error::Invalid`] if the keyspace has no operator.
    #[inline]
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_with(key, operand, self.core.inner.options.durability)
    }

    /// Like [`Keyspace::merge`], with the given durability.
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

    /// Removes all keys from `start` (inclusive) to `end` (exclusive) with a single entry, however
    /// many there are.
    ///
    /// Errors: [`crate::Error::Invalid`] if `start` is after `end`.
    pub fn delete_range(&self, start: impl AsRef<[u8]>, end: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range_with(start, end, self.core.inner.options.durability)
    }

    /// Like [`Keyspace::delete_range`], with the given durability.
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

    /// Returns the value of `key`, or `None` if it has none.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core.inner.get(&self.state, key.as_ref(), None)
    }

    /// Returns the value that `key` had at `snapshot`. Errors: like every method that takes a
    /// snapshot, [`crate::Error::Invalid`] if it is of another store.
    pub fn get_at(&self, key: impl AsRef<[u8]>, snapshot: &Snapshot) -> Result<Option<Value>> {
        self.core.inner.check_snapshot(&snapshot.guard)?;
        self.core.inner.get(&self.state, key.as_ref(), Some(snapshot.seqno()))
    }

    /// Returns the values of `keys`, in the order of `keys`, all as of the same moment.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.core.inner.multi_get(&self.state, keys, None)
    }

    /// Like [`Keyspace::multi_get`], as of `snapshot`.
    pub fn multi_get_at<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        snapshot: &Snapshot,
    ) -> Result<Vec<Option<Value>>> {
        self.core.inner.check_snapshot(&snapshot.guard)?;
        self.core.inner.multi_get(&self.state, keys, Some(snapshot.seqno()))
    }

    /// Returns a cursor over the current state of the whole keyspace.
    pub fn cursor(&self) -> Result<DbCursor> {
        self.cursor_in(.., None, &ReadOptions::default())
    }

    /// Returns a cursor over `range`, as of `snapshot` if one is given.
    pub fn cursor_in(
        &self,
        range: impl KeyRange,
        snapshot: Option<&Snapshot>,
        options: &ReadOptions,
    ) -> Result<DbCursor> {
        self.maker(half_open(&range), snapshot, options).cursor()
    }

    /// Returns a double-ended iterator over the current entries of `range`.
    pub fn range(&self, range: impl KeyRange) -> Range {
        Range::new(self.maker(half_open(&range), None, &ReadOptions::default()))
    }

    /// Like [`Keyspace::range`], as of `snapshot`. With a snapshot of another store, the only item
    /// is an error.
    pub fn range_at(&self, range: impl KeyRange, snapshot: &Snapshot) -> Range {
        Range::new(self.maker(half_open(&range), Some(snapshot), &ReadOptions::default()))
    }

    /// Returns an iterator over all entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let bounds = Bounds::of_prefix(prefix.as_ref());
        Range::new(self.maker(bounds, None, &ReadOptions::default()))
    }

    /// Returns an iterator over all entries.
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

    /// Flushes the memtables to tables, and waits for the flush.
    pub fn flush(&self) -> Result<()> {
        self.core.inner.flush(&self.state)
    }

    /// Compacts the tables of a range down to the last level, which removes all deleted and
    /// overwritten entries in it, and waits for the compaction. Flushes first.
    pub fn compact_range(&self, range: impl KeyRange) -> Result<()> {
        self.core.inner.compact_range(&self.state, half_open(&range))
    }

    /// Waits until no flush or compaction is due. Then releases the log space allocated for later
    /// writes, and the whole log if everything is in tables.
    pub fn wait_idle(&self) -> Result<()> {
        self.core.inner.wait_idle()
    }
}
