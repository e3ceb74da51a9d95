//! The range tombstones of a memtable: few and rarely written, asked for with every read.
//!
//! Readers load a snapshot of the whole. A writer replaces it: a handful of recent tombstones stand beside the set,
//! unordered, until there are enough to be worth cutting all of them into pieces again.

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::kind::Seqno;
use crate::range_del::{RangeTombstone, RangeTombstones};
use crate::swap::Swap;

/// Recent tombstones that a reader has to look through, at most.
const RECENT_MAX: usize = if cfg!(cairn_shuttle) { 2 } else { 16 };

/// Range tombstones that are added one by one and read by many.
#[derive(Debug)]
pub(super) struct Ranges {
    /// How many there are; not 0 only after `state` holds them.
    count: AtomicUsize,
    state: Swap<State>,
    /// All of them as they were added. Held by who replaces `state`.
    all: Mutex<Vec<Arc<RangeTombstone>>>,
}

#[derive(Debug, Clone)]
struct State {
    set: Arc<RangeTombstones>,
    /// Those that are not in `set`.
    recent: Vec<Arc<RangeTombstone>>,
    /// The lowest and the highest sequence number of all; the lowest is over the highest while there are none.
    seqnos: (Seqno, Seqno),
}

impl Ranges {
    pub(super) fn new() -> Self {
        let state = State { set: Arc::default(), recent: Vec::new(), seqnos: (Seqno::MAX, 0) };
        Ranges { count: AtomicUsize::new(0), state: Swap::new(state), all: Mutex::default() }
    }

    /// How many were added. Cost: one load.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds one and returns by how many bytes this changes the memory that all take; `None` if it covers nothing.
    ///
    /// Cost: a copy of [`RECENT_MAX`] pointers, and for every sixteenth one a new set.
    pub(super) fn add(&self, tombstone: RangeTombstone) -> Option<isize> {
        if tombstone.start >= tombstone.end {
            return None;
        }
        let own = size_of::<RangeTombstone>() + tombstone.start.len() + tombstone.end.len();
        let mut all = lock(&self.all);
        let old = self.state.load_full();
        let mut new = State::clone(&old);
        new.seqnos = (old.seqnos.0.min(tombstone.seqno), old.seqnos.1.max(tombstone.seqno));
        let tombstone = Arc::new(tombstone);
        all.push(Arc::clone(&tombstone));
        new.recent.push(tombstone);
        if new.recent.len() > RECENT_MAX {
            new = new.settled(&all);
        }
        let grown = own as isize + new.grown_since(&old);
        self.state.store(Arc::new(new));
        self.count.fetch_add(1, Ordering::Release);
        Some(grown)
    }

    /// The highest sequence number, up to `at`, of those that cover `key`. Cost: one branch while there are none.
    #[inline]
    pub(super) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        if self.count() == 0 { None } else { self.state.load().newest_covering(key, at) }
    }

    /// All of them, and by how many bytes that changes the memory that they take: what is settled is kept, so that the next
    /// reader finds the work done.
    pub(super) fn all(&self) -> (Arc<RangeTombstones>, isize) {
        let state = self.state.load();
        if state.recent.is_empty() {
            return (Arc::clone(&state.set), 0);
        }
        let all = lock(&self.all);
        let old = self.state.load_full();
        if old.recent.is_empty() {
            return (Arc::clone(&old.set), 0);
        }
        let settled = old.settled(&all);
        let (set, grown) = (Arc::clone(&settled.set), settled.grown_since(&old));
        self.state.store(Arc::new(settled));
        (set, grown)
    }

    /// The lowest and the highest sequence number.
    pub(super) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        Some(self.state.load().seqnos).filter(|(lowest, highest)| lowest <= highest)
    }
}

impl State {
    fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        let covers =
            |t: &&Arc<RangeTombstone>| t.seqno <= at && t.start.as_slice() <= key && key < t.end.as_slice();
        let recent = self.recent.iter().filter(covers).map(|tombstone| tombstone.seqno).max();
        recent.max(self.set.newest_covering(key, at))
    }

    /// The same with nothing recent. Made of `all` tombstones and not of the set's pieces, which can be half their square.
    fn settled(&self, all: &[Arc<RangeTombstone>]) -> State {
        let set = Arc::new(RangeTombstones::build(all.iter().map(|tombstone| tombstone.borrow())));
        State { set, recent: Vec::new(), seqnos: self.seqnos }
    }

    /// By how many bytes the set has grown.
    fn grown_since(&self, old: &State) -> isize {
        self.set.memory_bytes() as isize - old.set.memory_bytes() as isize
    }
}
