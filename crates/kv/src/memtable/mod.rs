//! The memtable: what was written last, in memory and in order, until it is flushed to a table.
//!
//! A B+tree that any number of threads insert into and read from without a common lock, over an arena that is freed
//! as a whole. `docs/src/engines/kv.md` says why a tree and not a skip list. From the ground up:
//!
//! | module | what |
//! |---|---|
//! | `arena` | memory, and links between what lies in it |
//! | `record`, `versions` | a key with its versions in a chain |
//! | `lock`, `probe`, `node` | one node: its version lock, prefix, heads and search |
//! | `tree`, `split` | the way down, inserts, splits |
//! | `cursor` | iteration both ways |

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

use self::ranges::Ranges;
use self::record::Entry;
use self::tree::Tree;
use self::versions::Versions;
use crate::Result;
use crate::kind::{Kind, Seqno, Version};
use crate::range_del::RangeTombstones;

pub(crate) use self::cursor::MemCursor;
pub(crate) use self::record::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Entries in memory, ordered by key, and within a key from the newest version to the oldest.
///
/// Everything may be called from any number of threads at once. What [`Memtable::insert`] returned from, every later
/// call sees, from whatever thread.
#[derive(Debug)]
pub(crate) struct Memtable {
    tree: Tree,
    ranges: Ranges,
}

impl Memtable {
    /// An empty memtable, of some kilobytes.
    pub(crate) fn new() -> Self {
        Memtable { tree: Tree::new(), ranges: Ranges::default() }
    }

    /// Adds a version of `key`. The pair of key and sequence number must be new; versions may come in any order.
    ///
    /// Errors: [`crate::Error::Invalid`], and nothing is added, for keys and values over [`KEY_BYTES_MAX`] and
    /// [`VALUE_BYTES_MAX`] and sequence numbers over [`crate::kind::SEQNO_MAX`].
    ///
    /// Cost: about three cache misses in a large memtable; none for keys that ascend.
    #[inline]
    pub(crate) fn insert(&self, key: &[u8], seqno: Seqno, kind: Kind, value: &[u8]) -> Result<()> {
        self.tree.insert(&Entry::new(key, seqno, kind, value)?);
        Ok(())
    }

    /// The versions of `key` written at or before `at`, newest first.
    #[inline]
    pub(crate) fn versions(&self, key: &[u8], at: Seqno) -> impl Iterator<Item = Version<'_>> {
        self.tree.find(key).into_iter().flat_map(move |record| Versions::at(record, at))
    }

    /// Shows `visit` the versions of `key` written at or before `at`, newest first, until it breaks.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], at: Seqno, visit: impl FnMut(Version<'_>) -> ControlFlow<()>) {
        if let Some(record) = self.tree.find(key) {
            // Whether it broke or ran out of versions is nothing to the caller, who saw it.
            let _ = Versions::at(record, at).try_for_each(visit);
        }
    }

    /// Removes the keys from `start` to before `end` that were written before `seqno`.
    ///
    /// Errors: as [`Memtable::insert`].
    pub(crate) fn delete_range(&self, start: &[u8], end: &[u8], seqno: Seqno) -> Result<()> {
        Entry::new(start, seqno, Kind::Delete, &[])?;
        Entry::new(end, seqno, Kind::Delete, &[])?;
        self.ranges.add(start, end, seqno);
        Ok(())
    }

    /// Whether there are range tombstones. One load.
    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.ranges.count() > 0
    }

    /// The range tombstones. Costs a build of the set after each [`Memtable::delete_range`].
    pub(crate) fn range_tombstones(&self) -> Arc<RangeTombstones> {
        self.ranges.set()
    }

    /// A cursor over all versions.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemCursor {
        MemCursor::new(Arc::clone(self))
    }

    /// Whether nothing was inserted.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0 && !self.has_range_tombstones()
    }

    /// Versions of keys.
    pub(crate) fn entries(&self) -> u64 {
        self.tree.arena.counts().entries
    }

    /// Versions that are tombstones.
    pub(crate) fn tombstones(&self) -> u64 {
        self.tree.arena.counts().tombstones
    }

    /// Bytes taken from the allocator, what is not used yet counted. Cost: one load of a word that rarely changes.
    #[inline]
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.tree.arena.allocated_bytes() + self.ranges.bytes()
    }

    /// The lowest and the highest sequence number; `None` if it is empty.
    pub(crate) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        let counts = self.tree.arena.counts();
        (counts.entries > 0).then_some((counts.smallest, counts.largest))
    }
}
