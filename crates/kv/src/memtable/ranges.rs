//! The range tombstones of a memtable: few, as a rule none.

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::kind::Seqno;
use crate::range_del::{RangeTombstone, RangeTombstones};

/// Range tombstones in the order in which they were written, and the set that readers ask.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// How many there are, so that lookups without any take no lock.
    count: AtomicU64,
    bytes: AtomicU64,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    all: Vec<RangeTombstone>,
    /// `all` as a set, made when it is asked for and there are new ones: deleting many ranges in a row costs one build.
    set: Arc<RangeTombstones>,
    in_set: usize,
}

impl Ranges {
    /// Adds one. An empty range adds nothing.
    pub(super) fn add(&self, start: &[u8], end: &[u8], seqno: Seqno) {
        if start >= end {
            return;
        }
        let mut written = lock(&self.written);
        written.all.push(RangeTombstone { start: start.to_vec(), end: end.to_vec(), seqno });
        self.bytes.fetch_add((start.len() + end.len() + size_of::<RangeTombstone>()) as u64, Relaxed);
        self.count.store(written.all.len() as u64, Release);
    }

    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed) as usize
    }

    /// All that were added by now.
    pub(super) fn set(&self) -> Arc<RangeTombstones> {
        let mut written = lock(&self.written);
        if written.in_set < written.all.len() {
            written.set = Arc::new(RangeTombstones::new(written.all.clone()));
            written.in_set = written.all.len();
        }
        Arc::clone(&written.set)
    }
}
