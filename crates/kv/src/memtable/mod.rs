//! The memtable: what was written last, in memory and in order, until it is flushed to a table.
//!
//! A B+tree that any number of threads insert into and read from without a common lock, over an
//! arena that is freed as a whole. `docs/src/engines/kv.md` says why a tree and not a skip list.
//! From the ground up:
//!
//! | module | what |
//! |---|---|
//! | `arena` | memory, and links between what lies in it |
//! | `record`, `versions` | a key with its versions in a chain |
//! | `lock`, `probe`, `node` | one node: its version lock, prefix, heads and search |
//! | `tree`, `split` | the way down, inserts, splits |
//! | `cursor` | iteration both ways |
//! | `ranges` | range tombstones, beside the tree |

mod arena;
mod cursor;
mod lock;
mod node;
mod prefetch;
mod probe;
mod ranges;
mod record;
mod split;
mod tree;
mod versions;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

use self::ranges::Ranges;
use self::record::Entry;
use self::tree::Tree;
use self::versions::Versions;
use crate::kind::{Kind, SEQNO_MAX, Seqno, Version};
use crate::range_del::{RangeTombstoneRef, RangeTombstones};
use crate::{Error, Result};

pub(crate) use self::cursor::MemCursor;
pub(crate) use self::ranges::Cover;
pub(crate) use self::tree::Place;

/// Entries in memory, ordered by key, and within a key from the newest version to the oldest.
///
/// Everything may be called from any number of threads at once. What [`Memtable::insert`] returned
/// from, every later call sees, from whatever thread.
#[derive(Debug)]
pub(crate) struct Memtable {
    tree: Tree,
    ranges: Ranges,
    /// See [`Memtable::noted_bytes`]; [`NO_LONGER_NOTED`] for `None`.
    noted: AtomicU64,
}

const NO_LONGER_NOTED: u64 = u64::MAX;

impl Memtable {
    /// An empty memtable, of some kilobytes.
    pub(crate) fn new() -> Self {
        Memtable { tree: Tree::new(), ranges: Ranges::new(), noted: AtomicU64::new(0) }
    }

    /// Adds a version of `key`. The pair of key and sequence number must be new; versions may come
    /// in any order.
    ///
    /// Errors: [`crate::Error::Invalid`], and nothing is added, for keys and values of 4 GiB or
    /// more and sequence numbers over [`crate::kind::SEQNO_MAX`].
    ///
    /// Cost: about three cache misses in a large memtable; none for keys that ascend.
    #[cfg(test)]
    pub(crate) fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        self.insert_at(None, key, seqno, kind, value)
    }

    /// Looks where `key` belongs, for [`Memtable::insert_at`]: what takes most of an insert's time
    /// can so be done before others have to wait for the insert. `None` does no harm.
    #[inline]
    pub(crate) fn locate<'k>(&self, key: &'k [u8]) -> Option<Place<'_, 'k>> {
        self.tree.locate(key)
    }

    /// As [`Memtable::insert`] of the key that was located at `place` of this memtable.
    #[inline]
    pub(crate) fn insert_at(
        &self,
        place: Option<Place<'_, '_>>,
        key: &[u8],
        seqno: Seqno,
        kind: Kind,
        value: &[u8],
    ) -> Result<()> {
        self.tree.insert(&Entry::new(key, seqno, kind, value)?, place);
        Ok(())
    }

    /// The versions of `key` written at or before `at`, newest first.
    #[inline]
    pub(crate) fn versions(&self, key: &[u8], at: Seqno) -> impl Iterator<Item = Version<'_>> {
        self.tree.find(key).into_iter().flat_map(move |record| Versions::at(record, at))
    }

    /// Shows `visit` the versions of `key` written at or before `at`, newest first, until it
    /// breaks.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], at: Seqno, visit: impl FnMut(Version<'_>) -> ControlFlow<()>) {
        if let Some(record) = self.tree.find(key) {
            // Whether it broke or ran out of versions is nothing to the caller, who saw it.
            let _ = Versions::at(record, at).try_for_each(visit);
        }
    }

    /// A cursor over all versions. Range tombstones are not applied.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemCursor {
        MemCursor::new(Arc::clone(self))
    }

    /// Adds a range tombstone: it covers the versions written before `seqno` of the keys from
    /// `start` (inclusive) to `end` (exclusive). Nothing is added if that is no key. It covers
    /// nothing by itself: readers ask [`Memtable::newest_covering`].
    ///
    /// Errors: [`crate::Error::Invalid`] for sequence numbers over [`crate::kind::SEQNO_MAX`].
    pub(crate) fn delete_range(&self, start: &[u8], end: &[u8], seqno: Seqno) -> Result<()> {
        if seqno > SEQNO_MAX {
            return Err(Error::invalid(format!("sequence number {seqno}, expected at most {SEQNO_MAX}")));
        }
        if let Some(bytes) = self.ranges.add(RangeTombstoneRef { start, end, seqno }) {
            self.tree.arena.charge(bytes);
        }
        Ok(())
    }

    /// Whether there are range tombstones. Cost: one load.
    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.ranges.count() > 0
    }

    /// The highest sequence number, up to `at`, of the range tombstones that cover `key`. Cost: one
    /// branch while there are none.
    #[inline]
    pub(crate) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        self.ranges.newest_covering(key, at)
    }

    /// As [`Memtable::newest_covering`], with how far that holds around `key` for this `at`, of
    /// which all tombstones must be there: of an `at` that is visible.
    pub(crate) fn cover(&self, key: &[u8], at: Seqno) -> Cover {
        self.ranges.cover(key, at)
    }

    /// Whether a range tombstone that was written after `seqno` covers `key`. `visible` is what
    /// readers see by now.
    pub(crate) fn covers_after(&self, key: &[u8], seqno: Seqno, visible: Seqno) -> bool {
        self.has_range_tombstones() && self.ranges.covers_after(key, seqno, visible)
    }

    /// Shows `look` the range tombstones that were written after `seqno`, until it gives something.
    pub(crate) fn find_range_tombstone<T>(
        &self,
        seqno: Seqno,
        look: impl FnMut(RangeTombstoneRef<'_>) -> Option<T>,
    ) -> Option<T> {
        if self.has_range_tombstones() { self.ranges.find_after(seqno, look) } else { None }
    }

    /// The range tombstones that somebody may miss: of those over a key that lie between the same
    /// two of `snapshots` (ascending), the newest. Cost: n log n.
    pub(crate) fn range_tombstones_for(&self, snapshots: &[Seqno]) -> RangeTombstones {
        self.ranges.for_snapshots(snapshots)
    }

    /// All range tombstones.
    #[cfg(test)]
    pub(crate) fn range_tombstones(&self) -> RangeTombstones {
        self.ranges.all()
    }

    /// Work done so far for range tombstones, in painted ones.
    #[cfg(test)]
    pub(crate) fn range_work(&self) -> u64 {
        self.ranges.work()
    }

    /// Whether nothing was inserted, range tombstones counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.has_range_tombstones()
    }

    /// Versions of keys, tombstones counted, range tombstones not.
    pub(crate) fn entries(&self) -> u64 {
        self.tree.arena.counts().entries
    }

    /// Versions that are tombstones.
    #[cfg(test)]
    pub(crate) fn tombstones(&self) -> u64 {
        self.tree.arena.counts().tombstones
    }

    /// Bytes of keys and values of all versions, each with its key.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.tree.arena.counts().raw_bytes
    }

    /// Bytes taken from the allocator, what is not used yet counted. Cost: one load of a word that
    /// rarely changes.
    #[inline]
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.tree.arena.allocated_bytes()
    }

    /// The bytes under which the store's [`Budget`](crate::db::budget::Budget) has it in its list:
    /// 0 before it is there, `None` once it is not to come back.
    #[inline]
    pub(crate) fn noted_bytes(&self) -> Option<u64> {
        Some(self.noted.load(Ordering::Relaxed)).filter(|noted| *noted != NO_LONGER_NOTED)
    }

    /// Only for the budget, under its lock.
    pub(crate) fn note_bytes(&self, bytes: Option<u64>) {
        self.noted.store(bytes.unwrap_or(NO_LONGER_NOTED), Ordering::Relaxed);
    }

    /// The lowest and the highest sequence number, range tombstones counted; `None` if it is empty.
    pub(crate) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        let counts = self.tree.arena.counts();
        let entries = (counts.entries > 0).then_some((counts.smallest, counts.largest));
        match (entries, self.ranges.seqnos()) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (entries, ranges) => entries.or(ranges),
        }
    }
}
