//! What a reader reads: the memtables and the tables of a keyspace, replaced as one.

use cairn_vfs::sync::Arc;
use cairn_wal::Lsn;

use crate::kind::Seqno;
use crate::memtable::Memtable;
use crate::version::Version;

/// A memtable that takes no more writes and waits for its flush.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub memtable: Arc<Memtable>,
    /// Its last write has at most this number. When that is visible, all its writers are done.
    pub last_seqno: Seqno,
    /// The log's position at the seal: its writes are all before, later ones of the keyspace all
    /// after.
    pub end: Lsn,
}

/// The sources of a keyspace, newest first. Immutable; what holds it keeps its files alive.
#[derive(Debug)]
pub(crate) struct View {
    pub active: Arc<Memtable>,
    /// Newest first.
    pub sealed: Vec<Arc<Sealed>>,
    pub version: Arc<Version>,
}

impl View {
    /// True when nothing is in memtables.
    pub(crate) fn is_empty(&self) -> bool {
        self.sealed.is_empty() && self.active.is_empty()
    }

    /// With `fresh` in place of the active memtable, which is `sealed`.
    pub(crate) fn with_sealed(&self, fresh: Arc<Memtable>, sealed: Arc<Sealed>) -> View {
        let mut all = Vec::with_capacity(self.sealed.len() + 1);
        all.push(sealed);
        all.extend(self.sealed.iter().cloned());
        View { active: fresh, sealed: all, version: Arc::clone(&self.version) }
    }

    /// With other tables, and without the sealed memtables `flushed` that they now contain.
    pub(crate) fn with_version(&self, version: Arc<Version>, flushed: &[Arc<Sealed>]) -> View {
        let is_flushed = |sealed: &Arc<Sealed>| flushed.iter().any(|other| Arc::ptr_eq(sealed, other));
        let sealed = self.sealed.iter().filter(|sealed| !is_flushed(sealed)).cloned().collect();
        View { active: Arc::clone(&self.active), sealed, version }
    }
}
