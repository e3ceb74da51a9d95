//! The view of a reader: the memtables and tables of a keyspace, replaced together.

use cairn_vfs::sync::Arc;
use cairn_wal::Lsn;

use crate::kind::Seqno;
use crate::memtable::Memtable;
use crate::version::Version;

/// A memtable that takes no more writes and waits for its flush.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub memtable: Arc<Memtable>,
    /// An upper bound of its sequence numbers. Once this number is visible, all writers to the
    /// memtable have finished.
    pub last_seqno: Seqno,
    /// The log position at the seal. All writes of the memtable are before it, and all later writes
    /// of the keyspace after it.
    pub end: Lsn,
}

/// The sources of a keyspace, newest first. Immutable. Holding a view keeps its files alive.
#[derive(Debug)]
pub(crate) struct View {
    pub active: Arc<Memtable>,
    /// Newest first.
    pub sealed: Vec<Arc<Sealed>>,
    pub version: Arc<Version>,
}

impl View {
    /// Returns true if all memtables are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.sealed.is_empty() && self.active.is_empty()
    }

    /// Returns a view in which the active memtable has become `sealed` and `fresh` is active.
    pub(crate) fn with_sealed(&self, fresh: Arc<Memtable>, sealed: Arc<Sealed>) -> View {
        debug_assert!(fresh.is_empty(), "the active memtable is replaced by one with writes");
        debug_assert!(Arc::ptr_eq(&self.active, &sealed.memtable), "another memtable than the active one");
        debug_assert!(!sealed.memtable.is_empty(), "an empty memtable waits for a flush");
        debug_assert!(
            self.sealed.first().is_none_or(|it| it.last_seqno <= sealed.last_seqno && it.end <= sealed.end),
            "memtables are sealed in the order of their writes"
        );
        let mut all = Vec::with_capacity(self.sealed.len() + 1);
        all.push(sealed);
        all.extend(self.sealed.iter().cloned());
        View { active: fresh, sealed: all, version: Arc::clone(&self.version) }
    }

    /// Returns a view of `version` without the sealed memtables `flushed`, which its tables now
    /// contain.
    pub(crate) fn with_version(&self, version: Arc<Version>, flushed: &[Arc<Sealed>]) -> View {
        debug_assert!(
            self.sealed.len() >= flushed.len()
                && self.sealed.iter().rev().zip(flushed.iter().rev()).all(|(a, b)| Arc::ptr_eq(a, b)),
            "a flush takes the oldest sealed memtables"
        );
        let is_flushed = |sealed: &Arc<Sealed>| flushed.iter().any(|other| Arc::ptr_eq(sealed, other));
        let sealed: Vec<_> = self.sealed.iter().filter(|sealed| !is_flushed(sealed)).cloned().collect();
        debug_assert_eq!(sealed.len() + flushed.len(), self.sealed.len(), "a memtable is in no table");
        View { active: Arc::clone(&self.active), sealed, version }
    }
}
