//! The memtable: a sorted buffer in memory that takes the newest writes until it is flushed to a
//! table.
//!
//! It is a B+tree into which any number of threads insert and from which they read without a common
//! lock, over an arena that is freed as a whole. `docs/src/engines/kv.md` explains why it is a tree
//! and not a skip list. From the bottom up:
//!
//! | module | contents |
//! |---|---|
//! | `arena` | memory, and links between objects in it |
//! | `record`, `versions` | a key with its versions in a chain |
//! | `lock`, `probe`, `node` | one node: its version lock, prefix, heads and search |
//! | `tree`, `split` | descent, inserts, splits |
//! | `cursor` | iteration in both directions |
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

/// Entries in memory, ordered by key and, within a key, from the newest version to the oldest.
///
/// All methods may be called from any number of threads at once. Once [`Memtable::insert`] has
/// returned, every later call in any thread sees its entry.
#[derive(Debug)]
pub(crate) struct Memtable {
    tree: Tree,
    ranges: Ranges,
    /// See [`Memtable::budgeted_bytes`]. [`NO_LONGER_NOTED`] stands for `None`.
    noted: AtomicU64,
}

const NO_LONGER_NOTED: u64 = u64::MAX;

impl Memtable {
    /// Creates an empty memtable of a few kilobytes.
    pub(crate) fn new() -> Self {
        Memtable { tree: Tree::new(), ranges: Ranges::new(), noted: AtomicU64::new(0) }
    }

    /// Adds a version of `key`. The pair of key and sequence number must be new; versions may be
    /// added in any order.
    ///
    /// Errors: [`crate::Error::Invalid`], without adding anything, for keys and values of 4 GiB or
    /// more and sequence numbers above [`crate::kind::SEQNO_MAX`].
    ///
    /// Cost: about three cache misses in a large memtable; none for ascending keys.
    #[cfg(test)]
    pub(crate) fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        self.insert_at(None, key, seqno, kind, value)
    }

    /// Finds the position of `key` for [`Memtable::insert_at`]. Most of the time of an insert can
    /// thus be spent before other writers have to wait for it. `None` is harmless.
    #[inline]
    pub(crate) fn locate<'k>(&self, key: &'k [u8]) -> Option<Place<'_, 'k>> {
        self.tree.locate(key)
    }

    /// Like [`Memtable::insert`], for a key that was located at `place` of this memtable.
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

    /// Returns the versions of `key` written at or before `at`, newest first.
    #[inline]
    pub(crate) fn versions(&self, key: &[u8], at: Seqno) -> impl Iterator<Item = Version<'_>> {
        self.tree.find(key).into_iter().flat_map(move |record| Versions::at(record, at))
    }

    /// Calls `visit` with the versions of `key` written at or before `at`, newest first, until it
    /// breaks.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], at: Seqno, visit: impl FnMut(Version<'_>) -> ControlFlow<()>) {
        if let Some(record) = self.tree.find(key) {
            // Whether the loop broke or ran out of versions is irrelevant here: the caller knows
            // from `visit`.
            let _ = Versions::at(record, at).try_for_each(visit);
        }
    }

    /// Returns a cursor over all versions. It does not apply range tombstones.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemCursor {
        MemCursor::new(Arc::clone(self))
    }

    /// Adds a range tombstone, which covers the versions written before `seqno` of the keys from
    /// `start` (inclusive) to `end` (exclusive). An empty range adds nothing. The memtable does not
    /// apply range tombstones itself: readers must call [`Memtable::newest_covering`].
    ///
    /// Errors: [`crate::Error::Invalid`] for sequence numbers above [`crate::kind::SEQNO_MAX`].
    pub(crate) fn delete_range(&self, start: &[u8], end: &[u8], seqno: Seqno) -> Result<()> {
        if seqno > SEQNO_MAX {
            return Err(Error::invalid(format!("sequence number {seqno}, expected at most {SEQNO_MAX}")));
        }
        if let Some(bytes) = self.ranges.add(RangeTombstoneRef { start, end, seqno }) {
            self.tree.arena.charge(bytes);
        }
        Ok(())
    }

    /// Returns true if there are range tombstones. Cost: one load.
    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.ranges.count() > 0
    }

    /// Returns the highest sequence number, up to `at`, of a range tombstone that covers `key`.
    /// Cost: one branch if there are none.
    #[inline]
    pub(crate) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        self.ranges.newest_covering(key, at)
    }

    /// Like [`Memtable::newest_covering`], together with the key range around `key` in which the
    /// result holds for this `at`. All tombstones up to `at` must have been added, as is the case
    /// if `at` is visible.
    pub(crate) fn cover(&self, key: &[u8], at: Seqno) -> Cover {
        self.ranges.cover(key, at)
    }

    /// Returns true if a range tombstone written after `seqno` covers `key`. `visible` is the
    /// number that readers currently see.
    pub(crate) fn covers_after(&self, key: &[u8], seqno: Seqno, visible: Seqno) -> bool {
        self.has_range_tombstones() && self.ranges.covers_after(key, seqno, visible)
    }

    /// Calls `visit` with the range tombstones written after `seqno`, until it returns a value.
    pub(crate) fn find_range_tombstone<T>(
        &self,
        seqno: Seqno,
        visit: impl FnMut(RangeTombstoneRef<'_>) -> Option<T>,
    ) -> Option<T> {
        if self.has_range_tombstones() { self.ranges.find_after(seqno, visit) } else { None }
    }

    /// Returns the range tombstones that some reader needs: of the tombstones over a key between
    /// the same two of `snapshots` (ascending), only the newest. Cost: O(n log n).
    pub(crate) fn range_tombstones_for(&self, snapshots: &[Seqno]) -> RangeTombstones {
        self.ranges.for_snapshots(snapshots)
    }

    /// Returns all range tombstones.
    #[cfg(test)]
    pub(crate) fn range_tombstones(&self) -> RangeTombstones {
        self.ranges.all()
    }

    /// Returns the work done for range tombstones so far, as the number of painted ones.
    #[cfg(test)]
    pub(crate) fn range_work(&self) -> u64 {
        self.ranges.work()
    }

    /// Returns true if nothing was inserted, including range tombstones.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.has_range_tombstones()
    }

    /// Returns the number of versions of keys, including tombstones but not range tombstones.
    pub(crate) fn entries(&self) -> u64 {
        self.tree.arena.counts().entries
    }

    /// Returns the number of versions that are tombstones.
    #[cfg(test)]
    pub(crate) fn tombstones(&self) -> u64 {
        self.tree.arena.counts().tombstones
    }

    /// Returns the bytes of keys and values of all versions, counting the key for each version.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.tree.arena.counts().raw_bytes
    }

    /// Returns the bytes taken from the allocator, including unused ones. Cost: one load of a word
    /// that rarely changes.
    #[inline]
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.tree.arena.allocated_bytes()
    }

    /// Returns the size under which the store's [`Budget`](crate::db::budget::Budget) lists the
    /// memtable: 0 if it is not listed yet, `None` if it has been removed for good.
    #[inline]
    pub(crate) fn budgeted_bytes(&self) -> Option<u64> {
        Some(self.noted.load(Ordering::Relaxed)).filter(|noted| *noted != NO_LONGER_NOTED)
    }

    /// Sets [`Memtable::budgeted_bytes`]. For the budget only, under its lock.
    pub(crate) fn set_budgeted_bytes(&self, bytes: Option<u64>) {
        debug_assert!(bytes != Some(NO_LONGER_NOTED), "a size that stands for none");
        debug_assert!(self.budgeted_bytes().is_some(), "a memtable is removed from the budget for good");
        self.noted.store(bytes.unwrap_or(NO_LONGER_NOTED), Ordering::Relaxed);
    }

    /// Returns the lowest and the highest sequence number, including range tombstones; `None` if
    /// the memtable is empty.
    pub(crate) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        let counts = self.tree.arena.counts();
        let entries = (counts.entries > 0).then_some((counts.smallest, counts.largest));
        match (entries, self.ranges.seqnos()) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (entries, ranges) => entries.or(ranges),
        }
    }
}
