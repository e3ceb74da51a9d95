//! Splits of full nodes: the upper part moves to a new right sibling, which is then added to the
//! parent.
//!
//! Locks are taken from the top down by upgrading versions read during the descent. A thread whose
//! upgrade fails restarts, so no thread waits while it holds a lock.

use super::arena::Held;
use super::lock::{Seen, Writing};
use super::node::{CAPACITY, Inner, Node};
use super::probe::{Probe, common_prefix};
use super::record::Record;
use super::tree::{Path, Tree};

impl Tree {
    /// Splits the full leaf of `path` and inserts `record`, the key of `probe`, before position
    /// `pos` of the leaf. Returns `None`, without any effect, if another thread was faster.
    #[cold]
    pub(super) fn split_leaf<'a>(
        &'a self,
        path: &Path<'a>,
        probe: &Probe<'_>,
        pos: usize,
        record: Held<'a, Record>,
    ) -> Option<()> {
        let leaf = path.leaf.get();
        let above = self.lock_parent(path.parent)?;
        let Some(writing) = leaf.lock.upgrade(path.seen) else {
            if let Some((_, writing)) = above {
                writing.cancel();
            }
            return None;
        };
        let right = self.divide_leaf(leaf, probe, pos, record);
        debug_assert_eq!(leaf.count() + right.count(), CAPACITY + 1, "a split lost keys, or copied some");
        // Both exist: the lock is held and both leaves have keys.
        let (last, first) = (leaf.record(leaf.count() - 1)?, right.get().record(0)?);
        debug_assert!(last.key() < first.key(), "the leaves overlap after a split");
        let separator = Record::separator(&self.arena, between(last.key(), first.key()));
        let next = leaf.next.get();
        right.next.set(next);
        right.end.set(leaf.end.get());
        right.prev.set(Some(path.leaf));
        match next {
            Some(next) => next.prev.set(Some(right)),
            None => self.last.set(Some(right)),
        }
        leaf.next.set(Some(right));
        leaf.end.set(Some(separator));
        self.adopt(above.as_ref().map(|(parent, _)| *parent), path.leaf, separator, right);
        drop(writing);
        drop(above);
        Some(())
    }

    /// Distributes the keys of the full `leaf` and one more over it and a new leaf, which it
    /// returns.
    fn divide_leaf<'a>(
        &'a self,
        leaf: &'a Node,
        probe: &Probe<'_>,
        pos: usize,
        record: Held<'a, Record>,
    ) -> Held<'a, Node> {
        debug_assert!(leaf.is_full() && leaf.level() == 0, "a leaf of {} keys is split", leaf.count());
        debug_assert!(pos <= CAPACITY, "position {pos} of {CAPACITY}");
        let right = self.arena.node(Node::leaf());
        // A key at either end gets a leaf of its own, so that ascending and descending insertions
        // leave full leaves.
        if pos == 0 || pos == CAPACITY {
            let (entries, prefix_len) = leaf.entries();
            let neighbour = if pos == 0 { entries.first() } else { entries.last() };
            let alone_len = neighbour.map_or(0, |(_, record)| common_prefix(record.key(), probe.key));
            let alone = [(probe.head(alone_len), record)];
            if pos == 0 {
                right.fill(&entries, prefix_len);
                leaf.fill(&alone, alone_len);
            } else {
                right.fill(&alone, alone_len);
            }
            return right;
        }
        leaf.admit(probe);
        let (mut entries, prefix_len) = leaf.entries();
        entries.insert(pos.min(entries.len()), (probe.head(prefix_len), record));
        let (low, high) = entries.split_at(entries.len() / 2);
        right.fill(high, prefix_len);
        leaf.fill(low, prefix_len);
        right
    }

    /// Splits the full `inner`, unless it or its parent was changed since they were seen.
    #[cold]
    pub(super) fn split_inner<'a>(
        &'a self,
        parent: Option<(Held<'a, Inner>, Seen)>,
        inner: Held<'a, Inner>,
        seen: Seen,
    ) {
        let Some(above) = self.lock_parent(parent) else { return };
        let node = inner.get().node();
        let Some(writing) = node.lock.upgrade(seen) else {
            if let Some((_, writing)) = above {
                writing.cancel();
            }
            return;
        };
        debug_assert!(node.is_full() && node.level() > 0, "an inner node of {} keys is split", node.count());
        let (entries, prefix_len) = node.entries();
        let middle = entries.len() / 2;
        if let (low, [(_, separator), high @ ..]) = entries.split_at(middle) {
            let right = Inner::of(node.level(), inner.get().children_from(middle + 1));
            debug_assert!(
                right.child(high.len()).is_some() && right.child(high.len() + 1).is_none(),
                "{} keys do not separate the children",
                high.len()
            );
            right.node().fill(high, prefix_len);
            let right = self.arena.node(right).as_node();
            node.fill(low, prefix_len);
            self.adopt(above.as_ref().map(|(parent, _)| *parent), inner.as_node(), *separator, right);
        }
        drop(writing);
        drop(above);
    }

    /// Locks the parent for writing. The inner `None` means that there is no parent, above the
    /// root.
    #[allow(clippy::type_complexity)]
    fn lock_parent<'a>(
        &self,
        parent: Option<(Held<'a, Inner>, Seen)>,
    ) -> Option<Option<(&'a Inner, Writing<'a>)>> {
        let Some((inner, seen)) = parent else { return Some(None) };
        let inner = inner.get();
        Some(Some((inner, inner.node().lock.upgrade(seen)?)))
    }

    /// Adds `right`, which was split off from `left` at `separator`, to `parent`. Without a parent,
    /// makes both of them children of a new root. The caller holds the locks of `parent` and
    /// `left`.
    fn adopt<'a>(
        &'a self,
        parent: Option<&Inner>,
        left: Held<'a, Node>,
        separator: Held<'a, Record>,
        right: Held<'a, Node>,
    ) {
        debug_assert_eq!(left.level(), right.level(), "a node is split into siblings");
        match parent {
            Some(parent) => parent.insert(separator, right),
            None => {
                debug_assert!(self.root.get() == Some(left), "only the root has no parent");
                let root = Inner::over(left);
                root.insert(separator, right);
                self.root.set(Some(self.arena.node(root).as_node()));
            }
        }
    }
}

/// Returns the shortest key greater than `low` and not greater than `high`. `high` must be greater
/// than `low`.
fn between<'k>(low: &[u8], high: &'k [u8]) -> &'k [u8] {
    debug_assert!(low < high, "no key separates {low:?} and {high:?}");
    let separator = high.get(..common_prefix(low, high) + 1).unwrap_or(high);
    debug_assert!(low < separator && separator <= high, "{separator:?} does not separate");
    separator
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: separators separate, and are no longer than needed. Method: pairs that differ early,
    /// late, only in length, and in a zero byte.
    #[test]
    fn separators() {
        let cases: [(&[u8], &[u8], &[u8]); 5] = [
            (b"a", b"b", b"b"),
            (b"apple", b"apricot", b"apr"),
            (b"ab", b"abc", b"abc"),
            (b"", b"\0", b"\0"),
            (b"a\0", b"a\0\0", b"a\0\0"),
        ];
        for (low, high, expected) in cases {
            assert_eq!(between(low, high), expected);
            assert!(low < expected && expected <= high);
        }
    }
}
