//! The B+tree, which maps keys to records without a common lock.
//!
//! Readers descend by optimistic lock coupling: they take the version of a node, choose the child,
//! take the child's version and only then validate the node's version, which proves that the child
//! was the right one at that moment. If anything changed, they restart. Writers descend likewise
//! and lock the leaf, and also its parent if the leaf must be split.
//!
//! Nodes are split but never merged or freed, because keys are not removed from a memtable.
//! Therefore the lower bound of a leaf never changes, and keys that have left a leaf can always be
//! found by following `next`.

use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::thread;

use super::arena::{Arena, Held, Link};
use super::lock::Seen;
use super::node::{Inner, Node, Rank};
use super::prefetch::prefetch;
use super::probe::Probe;
use super::record::{Entry, Record};
use super::versions;

/// Cache lines of a node that a search may touch: the first one and the heads.
const SEARCHED_LINES: usize = 9;
#[cfg(not(cairn_shuttle))]
const _: () = assert!(SEARCHED_LINES == 1 + 8 * super::node::CAPACITY / 64, "eight heads fit into a line");

/// Number of threads that can remember their last insert position without interfering.
const FINGERS: usize = 8;

/// A tree and the arena in which it lives.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) arena: Arena,
    /// Changed only under the lock of the node to which it leads.
    pub(super) root: Link<Node>,
    /// The rightmost leaf, or one that recently was.
    pub(super) last: Link<Node>,
    fingers: [Finger; FINGERS],
}

/// The leaf of a thread's last insert, for sequences of nearby keys.
///
/// Random keys hardly ever hit the leaf of the previous insert, and trying it would cost them time.
/// Therefore it is tried only after two consecutive inserts have descended to the same leaf.
#[derive(Debug)]
#[repr(align(128))] // processors fetch cache lines in pairs
struct Finger {
    leaf: Link<Node>,
    is_tried: AtomicBool,
}

impl Finger {
    fn new() -> Self {
        Finger { leaf: Link::empty(), is_tried: AtomicBool::new(false) }
    }

    /// Returns the leaf to try.
    #[inline]
    fn leaf(&self) -> Option<Held<'_, Node>> {
        if self.is_tried.load(Ordering::Relaxed) { self.leaf.get() } else { None }
    }

    /// Records that an insert has descended to `leaf`.
    #[inline]
    fn moved_to(&self, leaf: Held<'_, Node>) {
        debug_assert_eq!(leaf.level(), 0, "inserts end at a leaf");
        let is_same = self.leaf.get() == Some(leaf);
        self.is_tried.store(is_same, Ordering::Relaxed);
        if !is_same {
            self.leaf.set(Some(leaf));
        }
    }
}

/// The position of a key as seen a moment ago, for an insert that follows soon.
pub(crate) struct Place<'a, 'k> {
    probe: Probe<'k>,
    leaf: Held<'a, Node>,
    seen: Seen,
    rank: Rank<'a>,
    /// True if the leaf was found by a descent.
    is_far: bool,
}

/// A leaf and its parent, as found by an insert.
pub(super) struct Path<'a> {
    /// `None` if the leaf is the root.
    pub(super) parent: Option<(Held<'a, Inner>, Seen)>,
    pub(super) leaf: Held<'a, Node>,
    pub(super) seen: Seen,
}

impl Tree {
    /// Creates a tree with one empty leaf.
    pub(super) fn new() -> Self {
        let arena = Arena::new();
        let leaf = arena.node(Node::leaf());
        let (root, last) = (Link::to(Some(leaf)), Link::to(Some(leaf)));
        Tree { arena, root, last, fingers: std::array::from_fn(|_| Finger::new()) }
    }

    /// Returns the record of `key`.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<Held<'_, Record>> {
        let probe = Probe::new(key);
        loop {
            let (leaf, seen) = self.leaf(&probe);
            // Records never leave the tree, so a record with the key needs no validation.
            match leaf.get().rank(&probe) {
                Some(rank) if rank.equal.is_some() || leaf.lock.unchanged(seen) => return rank.equal,
                _ => {}
            }
        }
    }

    /// Returns the leaf that covers `probe`. The caller must check at the end that the returned
    /// version is still current.
    #[inline]
    pub(super) fn leaf(&self, probe: &Probe<'_>) -> (Held<'_, Node>, Seen) {
        loop {
            if let Some(found) = self.try_leaf(probe) {
                return found;
            }
        }
    }

    #[inline]
    fn try_leaf(&self, probe: &Probe<'_>) -> Option<(Held<'_, Node>, Seen)> {
        let (mut node, mut seen) = self.top()?;
        while let Some(inner) = node.inner() {
            let child = inner.get().child(node.get().rank(probe)?.child())?;
            prefetch(child, SEARCHED_LINES);
            let child_seen = child.lock.read();
            if !node.lock.unchanged(seen) {
                return None;
            }
            debug_assert_eq!(child.level() + 1, node.level(), "the descent skips a level");
            (node, seen) = (child, child_seen);
        }
        debug_assert_eq!(node.level(), 0, "the descent ends above the leaves");
        Some((node, seen))
    }

    /// Returns the root and its version.
    #[inline]
    pub(super) fn top(&self) -> Option<(Held<'_, Node>, Seen)> {
        let root = self.root.get()?;
        let seen = root.lock.read();
        (self.root.get() == Some(root)).then_some((root, seen))
    }

    /// Returns the leaf that had the highest keys at some moment of the call.
    pub(super) fn last_leaf(&self) -> Option<Held<'_, Node>> {
        let mut leaf = self.last.get()?;
        // BOUND: the number of leaves that are split off at the end during the loop.
        while let Some(next) = leaf.get().next.get() {
            leaf = next;
        }
        debug_assert_eq!(leaf.level(), 0, "the last leaf");
        Some(leaf)
    }

    /// Returns the current position of `key`, or `None` if a single attempt does not find it. Costs
    /// the cache misses that an insert would otherwise have.
    #[inline]
    pub(super) fn locate<'a, 'k>(&'a self, key: &'k [u8]) -> Option<Place<'a, 'k>> {
        let probe = Probe::new(key);
        let (leaf, seen, rank, is_far) = Tree::locate_near(self.finger().leaf(), &probe)
            .or_else(|| Tree::locate_near(self.last.get(), &probe))
            .or_else(|| {
                let (leaf, seen) = self.try_leaf(&probe)?;
                let rank = leaf.get().rank(&probe)?;
                if rank.equal.is_none() {
                    leaf.get().prefetch_refs(rank.pos);
                }
                Some((leaf, seen, rank, true))
            })?;
        Some(Place { probe, leaf, seen, rank, is_far })
    }

    #[inline]
    fn locate_near<'a>(
        leaf: Option<Held<'a, Node>>,
        probe: &Probe<'_>,
    ) -> Option<(Held<'a, Node>, Seen, Rank<'a>, bool)> {
        let leaf = leaf?;
        let seen = leaf.lock.try_read()?;
        Some((leaf, seen, leaf.get().rank_within(probe)?, false))
    }

    /// Adds a version. `place` is the result of [`Tree::locate`] for its key, if that was called.
    #[inline]
    pub(super) fn insert(&self, entry: &Entry<'_>, place: Option<Place<'_, '_>>) {
        debug_assert!(
            place.as_ref().is_none_or(|place| place.probe.key == entry.key),
            "another key was located"
        );
        // Created by the first attempt that needs it, and reused by later attempts.
        let mut record = None;
        let probe = match place {
            Some(place) => {
                if self.insert_into(&place, entry, &mut record) {
                    return;
                }
                place.probe
            }
            None => Probe::new(entry.key),
        };
        if self.insert_near(self.finger().leaf(), &probe, entry, &mut record)
            || self.insert_near(self.last.get(), &probe, entry, &mut record)
        {
            return;
        }
        while self.try_insert(&probe, entry, &mut record).is_none() {}
    }

    /// Inserts at the located position. Returns false, without any effect, if a split is needed or
    /// another thread was faster.
    #[inline]
    fn insert_into<'a>(
        &'a self,
        place: &Place<'a, '_>,
        entry: &Entry<'_>,
        record: &mut Option<Held<'a, Record>>,
    ) -> bool {
        let Place { probe, leaf, seen, rank, is_far } = place;
        if rank.equal.is_none() && leaf.is_full() {
            return false;
        }
        let is_done = self.insert_at(leaf.get(), *seen, *rank, probe, entry, record).is_some();
        if is_done && *is_far {
            self.finger().moved_to(*leaf);
        }
        is_done
    }

    /// Inserts into `leaf` if the key provably belongs there and there is room. This saves the
    /// descent for sequences of nearby keys. Returns false, without any effect, if these conditions
    /// do not hold or another thread was faster.
    #[inline]
    fn insert_near<'a>(
        &'a self,
        leaf: Option<Held<'a, Node>>,
        probe: &Probe<'_>,
        entry: &Entry<'_>,
        record: &mut Option<Held<'a, Record>>,
    ) -> bool {
        let Some(leaf) = leaf.map(Held::get) else { return false };
        let Some(seen) = leaf.lock.try_read() else { return false };
        let Some(rank) = leaf.rank_within(probe) else { return false };
        if rank.equal.is_none() && leaf.is_full() {
            return false;
        }
        self.insert_at(leaf, seen, rank, probe, entry, record).is_some()
    }

    /// Tries to insert by a descent. Returns `None` if another thread was faster.
    #[inline]
    fn try_insert<'a>(
        &'a self,
        probe: &Probe<'_>,
        entry: &Entry<'_>,
        record: &mut Option<Held<'a, Record>>,
    ) -> Option<()> {
        let path = self.path(probe)?;
        let leaf = path.leaf.get();
        let rank = leaf.rank(probe)?;
        if rank.equal.is_none() && leaf.is_full() {
            let record = *record.get_or_insert_with(|| Record::create(&self.arena, entry));
            self.split_leaf(&path, probe, rank.pos, record)?;
        } else {
            self.insert_at(leaf, path.seen, rank, probe, entry, record)?;
        }
        self.finger().moved_to(path.leaf);
        Some(())
    }

    /// Inserts at `rank` if the version of `leaf` is still `seen`. Returns `None`, without any
    /// effect, if another thread was faster.
    #[inline]
    fn insert_at<'a>(
        &'a self,
        leaf: &'a Node,
        seen: Seen,
        rank: Rank<'a>,
        probe: &Probe<'_>,
        entry: &Entry<'_>,
        record: &mut Option<Held<'a, Record>>,
    ) -> Option<()> {
        debug_assert_eq!(probe.key, entry.key, "the position of another key");
        if let Some(present) = rank.equal {
            debug_assert_eq!(present.key(), entry.key, "the record of another key");
            versions::push(&self.arena, present, entry);
            if record.is_some() {
                // Another thread inserted the key first, so this record stays unused. Its memory is
                // not returned, but the entry must not be counted twice.
                self.arena.uncount(entry.kind, entry.raw_bytes());
            }
            return Some(());
        }
        let record = *record.get_or_insert_with(|| Record::create(&self.arena, entry));
        let writing = leaf.lock.upgrade(seen)?;
        leaf.insert(probe, rank.pos, record);
        drop(writing);
        Some(())
    }

    #[inline]
    fn finger(&self) -> &Finger {
        &self.fingers[thread::number() % FINGERS]
    }

    /// Returns the path to the leaf that covers `probe`. Splits full inner nodes during the
    /// descent, so that the leaf's parent has room for one more child.
    #[inline]
    fn path(&self, probe: &Probe<'_>) -> Option<Path<'_>> {
        let (mut node, mut seen) = self.top()?;
        let mut parent = None;
        while let Some(inner) = node.inner() {
            if node.is_full() {
                self.split_inner(parent, inner, seen);
                return None;
            }
            let child = inner.get().child(node.get().rank(probe)?.child())?;
            prefetch(child, SEARCHED_LINES);
            let child_seen = child.lock.read();
            if !node.lock.unchanged(seen) {
                return None;
            }
            debug_assert_eq!(child.level() + 1, node.level(), "the descent skips a level");
            parent = Some((inner, seen));
            (node, seen) = (child, child_seen);
        }
        Some(Path { parent, leaf: node, seen })
    }
}
