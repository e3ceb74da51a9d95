//! The B+tree: keys to records, without a common lock.
//!
//! Readers go down by optimistic lock coupling: they take the version of a node, read which child to follow, take the
//! child's version and only then validate the node's, so that the child was the right one at that moment. If anything
//! changed they start again. Writers go down alike and lock the leaf, and its parent if the leaf has to be split.
//!
//! Nodes are split but never merged or freed: keys are not removed from a memtable. So a leaf's lowest possible key
//! never changes, and what leaves a leaf is always found by following `next`.

use super::arena::{Arena, Held, Link};
use super::lock::Seen;
use super::node::{Inner, Node};
use super::prefetch::prefetch;
use super::probe::Probe;
use super::record::{Entry, Record};
use super::versions;

/// Cache lines of a node that a search may touch: the first and the heads.
const SEARCHED_LINES: usize = 1;

/// A tree and the arena that it lives in.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) arena: Arena,
    /// Changed only under the lock of the node that it leads to.
    pub(super) root: Link<Node>,
    /// The rightmost leaf, or one that was until a moment ago.
    pub(super) last: Link<Node>,
}

/// A leaf, and what leads to it, as an insert found them.
pub(super) struct Path<'a> {
    /// `None` if the leaf is the root.
    pub(super) parent: Option<(Held<'a, Inner>, Seen)>,
    pub(super) leaf: Held<'a, Node>,
    pub(super) seen: Seen,
}

impl Tree {
    /// A tree with one empty leaf.
    pub(super) fn new() -> Self {
        let arena = Arena::new();
        let leaf = arena.node(Node::leaf());
        let (root, last) = (Link::to(Some(leaf)), Link::to(Some(leaf)));
        Tree { arena, root, last }
    }

    /// The record of `key`.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<Held<'_, Record>> {
        let probe = Probe::new(key);
        loop {
            let (leaf, seen) = self.leaf(&probe);
            // Records never leave the tree, so that one that was found needs no validation.
            match leaf.get().rank(&probe) {
                Some(rank) if rank.equal.is_some() || leaf.lock.unchanged(seen) => return rank.equal,
                _ => {}
            }
        }
    }

    /// The leaf that `probe` belongs to if its version is still the one given when the caller is done with it.
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
            (node, seen) = (child, child_seen);
        }
        Some((node, seen))
    }

    /// The root and its version.
    #[inline]
    pub(super) fn top(&self) -> Option<(Held<'_, Node>, Seen)> {
        let root = self.root.get()?;
        let seen = root.lock.read();
        (self.root.get() == Some(root)).then_some((root, seen))
    }

    /// The leaf with the highest keys, at some moment of the call.
    pub(super) fn last_leaf(&self) -> Option<Held<'_, Node>> {
        let mut leaf = self.last.get()?;
        // BOUND: leaves that are split off at the end while this runs.
        while let Some(next) = leaf.get().next.get() {
            leaf = next;
        }
        Some(leaf)
    }

    /// Adds a version.
    #[inline]
    pub(super) fn insert(&self, entry: &Entry<'_>) {
        let probe = Probe::new(entry.key);
        // Made at the first attempt that needs it and kept for the next ones.
        let mut record = None;
        while !self.append(&probe, entry, &mut record)
            && self.try_insert(&probe, entry, &mut record).is_none()
        {}
    }

    /// Inserts at the very end, if the key is greater than all and the last leaf has room: what ascending keys need.
    #[inline]
    fn append<'a>(
        &'a self,
        probe: &Probe<'_>,
        entry: &Entry<'_>,
        record: &mut Option<Held<'a, Record>>,
    ) -> bool {
        let Some(leaf) = self.last.get() else { return false };
        let Some(seen) = leaf.lock.try_read() else { return false };
        let count = leaf.count();
        if leaf.is_full() || !leaf.surely_ends_before(probe, count) || leaf.next.get().is_some() {
            return false;
        }
        let record = *record.get_or_insert_with(|| Record::create(&self.arena, entry));
        let Some(writing) = leaf.lock.upgrade(seen) else { return false };
        leaf.insert(probe, count, record);
        drop(writing);
        true
    }

    /// `None` if somebody else was quicker.
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
        if let Some(present) = rank.equal {
            versions::push(&self.arena, present, entry);
            if record.is_some() {
                // Somebody inserted the key first. Memory is not given back, but the entry is one.
                self.arena.uncount(entry.kind, entry.raw_bytes());
            }
            return Some(());
        }
        let record = *record.get_or_insert_with(|| Record::create(&self.arena, entry));
        if leaf.is_full() {
            return self.split_leaf(&path, probe, rank.pos, record);
        }
        let writing = leaf.lock.upgrade(path.seen)?;
        leaf.insert(probe, rank.pos, record);
        drop(writing);
        Some(())
    }

    /// The way to the leaf that `probe` belongs to. Splits full inner nodes on the way, so that the leaf's parent has
    /// room for one more.
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
            parent = Some((inner, seen));
            (node, seen) = (child, child_seen);
        }
        Some(Path { parent, leaf: node, seen })
    }
}
