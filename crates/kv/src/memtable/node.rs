//! A node of the tree: up to [`CAPACITY`] sorted keys, with the parts of them that a search needs
//! without leaving the node.
//!
//! ```text
//! line 0       lock | next | prev | count, level, prefix_len | prefix (24 bytes) | end
//! lines 1..9   heads: for each key, the eight bytes after the prefix; u64::MAX after the last key
//! lines 9..17  refs: the records that hold the keys
//! inner nodes  children: one more than keys
//!              child i holds the keys from key i-1 (inclusive) to key i (exclusive)
//! ```
//!
//! All keys of the node begin with its prefix. If the prefix is longer than 24 bytes, the rest of
//! it is read from the first key.
//!
//! Readers hold no lock, so they may see a mixture of states until they validate the version. Such
//! a mixture is memory-safe: indexes are clamped, links lead to live records or nowhere, and a
//! mixture that is recognizably inconsistent yields [`None`].
#![allow(unsafe_code)]

use std::cmp::Ordering as Order;

use cairn_vfs::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::arena::{Held, Link};
use super::lock::VersionLock;
use super::prefetch::prefetch_line;
use super::probe::{self, INLINE_PREFIX_BYTES, Probe};
use super::record::Record;

/// Number of keys in a node. Small under schedule exploration, so that every test splits nodes.
pub(super) const CAPACITY: usize = if cfg!(cairn_shuttle) { 4 } else { 64 };
const _: () = assert!(CAPACITY.is_power_of_two());
#[cfg(not(cairn_shuttle))] // shuttle's atomics are larger
const _: () = assert!(size_of::<Node>() == 64 + 16 * CAPACITY);
#[cfg(not(cairn_shuttle))]
const _: () = assert!(std::mem::offset_of!(Node, heads) == 64, "the heads begin at a cache line");
const _: () = assert!(CAPACITY <= u16::MAX as usize, "the number of keys has 16 bits");
const _: () = assert!(std::mem::offset_of!(Inner, node) == 0, "a pointer to an inner node is one to a node");

/// If the first and the last head agree in at least this many leading bytes, the node takes a
/// longer prefix.
const HEAD_BYTES_SPENT: u32 = 4;
const _: () = assert!(0 < HEAD_BYTES_SPENT && HEAD_BYTES_SPENT < 8, "a head has eight bytes");

/// The common part of leaves and inner nodes. A leaf consists of nothing else.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Node {
    pub(super) lock: VersionLock,
    /// In leaves: the leaf with the next higher keys.
    pub(super) next: Link<Node>,
    /// In leaves: some leaf to the left, from which `next` links lead here.
    pub(super) prev: Link<Node>,
    count: AtomicU16,
    /// Distance to the leaves; 0 for a leaf. Never changes.
    level: u16,
    prefix_len: AtomicU32,
    prefix: [AtomicU64; INLINE_PREFIX_BYTES / 8],
    /// In leaves: the lower bound of the next leaf, by which a key is known to belong here without
    /// a descent from the root. Empty in the last leaf.
    pub(super) end: Link<Record>,
    heads: [AtomicU64; CAPACITY],
    refs: [Link<Record>; CAPACITY],
}

/// An inner node: a node with children.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Inner {
    node: Node,
    children: [Link<Node>; CAPACITY + 1],
}

/// The position of a key among the keys of a node.
#[derive(Clone, Copy)]
pub(super) struct Rank<'a> {
    /// Number of smaller keys.
    pub(super) pos: usize,
    /// The record of the key itself, at `pos`, if it is in the node.
    pub(super) equal: Option<Held<'a, Record>>,
}

impl Rank<'_> {
    /// Returns the index of the child that covers the key.
    #[inline]
    pub(super) fn child(&self) -> usize {
        let child = self.pos + usize::from(self.equal.is_some());
        debug_assert!(child <= CAPACITY, "child {child} of at most {}", CAPACITY + 1);
        child
    }
}

impl Node {
    /// Creates an empty leaf.
    pub(super) fn leaf() -> Self {
        Node::new(0)
    }

    fn new(level: u16) -> Self {
        Node {
            lock: VersionLock::default(),
            next: Link::empty(),
            prev: Link::empty(),
            count: AtomicU16::new(0),
            level,
            prefix_len: AtomicU32::new(0),
            prefix: std::array::from_fn(|_| AtomicU64::new(0)),
            end: Link::empty(),
            heads: std::array::from_fn(|_| AtomicU64::new(u64::MAX)),
            refs: std::array::from_fn(|_| Link::empty()),
        }
    }

    /// Returns the distance to the leaves.
    #[inline]
    pub(super) fn level(&self) -> u16 {
        self.level
    }

    /// Returns the number of keys.
    #[inline]
    pub(super) fn count(&self) -> usize {
        usize::from(self.count.load(Ordering::Acquire)).min(CAPACITY)
    }

    /// Returns true if no more keys fit.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.count() == CAPACITY
    }

    /// Returns the record at `pos`, if there is one.
    #[inline]
    pub(super) fn record(&self, pos: usize) -> Option<Held<'_, Record>> {
        self.refs.get(pos)?.get()
    }

    #[inline]
    fn prefix_len(&self) -> usize {
        self.prefix_len.load(Ordering::Acquire) as usize
    }

    /// Compares the key with the prefix. `Equal` means that the key begins with it.
    #[inline]
    fn compare_prefix(&self, probe: &Probe<'_>, len: usize) -> Option<Order> {
        if len == 0 {
            return Some(Order::Equal);
        }
        for (index, prefix) in self.prefix.iter().enumerate() {
            let Some(bytes @ 1..) = len.checked_sub(8 * index) else { break };
            // Both have as many words. A zip of the two would not be inlined.
            let Some(word) = probe.words.get(index) else { break };
            let mask = u64::MAX << (64 - 8 * bytes.min(8));
            match (word & mask).cmp(&(prefix.load(Ordering::Acquire) & mask)) {
                Order::Equal => {}
                order => return Some(order),
            }
        }
        // The comparison above treated missing bytes of the key as zeros.
        if probe.key.len() < len.min(INLINE_PREFIX_BYTES) {
            return Some(Order::Less);
        }
        if len <= INLINE_PREFIX_BYTES { Some(Order::Equal) } else { self.compare_long_prefix(probe.key, len) }
    }

    /// Like [`Node::compare_prefix`], for the part that is not inline.
    #[cold]
    fn compare_long_prefix(&self, key: &[u8], len: usize) -> Option<Order> {
        let prefix = self.record(0)?.key().get(INLINE_PREFIX_BYTES..len)?;
        let key = key.get(INLINE_PREFIX_BYTES..).unwrap_or_default();
        let key = key.get(..prefix.len()).unwrap_or(key);
        Some(key.cmp(prefix))
    }

    /// Returns the position of `probe` among the keys, or `None` for an inconsistent mixture of
    /// states.
    #[inline]
    pub(super) fn rank(&self, probe: &Probe<'_>) -> Option<Rank<'_>> {
        let len = self.prefix_len();
        match self.compare_prefix(probe, len)? {
            Order::Less => return Some(Rank { pos: 0, equal: None }),
            Order::Greater => return Some(Rank { pos: self.count(), equal: None }),
            Order::Equal => {}
        }
        let head = probe.head(len);
        let pos = self.lower_bound(head);
        if pos >= self.count() || self.head(pos) != head {
            return Some(Rank { pos, equal: None });
        }
        self.rank_in_tie(probe.key, len, head, pos)
    }

    /// Like [`Node::rank`], among the keys whose head is `head`. The first of them is at `low`.
    #[inline]
    fn rank_in_tie(&self, key: &[u8], prefix_len: usize, head: u64, low: usize) -> Option<Rank<'_>> {
        let count = self.count();
        let rest = key.get(prefix_len..)?;
        let compare = |pos: usize| {
            let record = self.record(pos)?;
            Some((record.key().get(prefix_len..)?.cmp(rest), record))
        };
        // Ties of more than one key are rare.
        let (mut low, mut high) = (low, low + 1);
        while high < count && self.head(high) == head {
            high += 1;
        }
        while low < high {
            let middle = (low + high) / 2;
            match compare(middle)? {
                (Order::Less, _) => low = middle + 1,
                // A mixture may combine the prefix of one state with the records of another.
                // Callers use a returned record without validation, so the whole key must match.
                (Order::Equal, record) if record.key().get(..prefix_len) == key.get(..prefix_len) => {
                    return Some(Rank { pos: middle, equal: Some(record) });
                }
                (Order::Equal, _) => return None,
                (Order::Greater, _) => high = middle,
            }
        }
        Some(Rank { pos: low, equal: None })
    }

    /// Returns the first position whose head is not less than `head`; at most `CAPACITY`.
    /// Branch-free.
    #[inline]
    fn lower_bound(&self, head: u64) -> usize {
        let mut base = 0;
        let mut size = CAPACITY;
        while size > 1 {
            size /= 2;
            debug_assert!(base + size <= CAPACITY, "position {} of {CAPACITY}", base + size);
            // SAFETY: `base + size <= CAPACITY` holds initially with the old size, and `base` grows
            // by at most the new size.
            let middle = unsafe { self.heads.get_unchecked(base + size - 1) };
            base += if middle.load(Ordering::Acquire) < head { size } else { 0 };
        }
        base + usize::from(self.head(base) < head)
    }

    #[inline]
    fn head(&self, pos: usize) -> u64 {
        self.heads.get(pos).map_or(u64::MAX, |head| head.load(Ordering::Acquire))
    }

    /// Like [`Node::rank`], if the key provably belongs to this leaf: between two of its keys, or
    /// after the last one and before the next leaf. `None` proves nothing.
    ///
    /// Ascending keys are found at the end, without a search.
    #[inline]
    pub(super) fn rank_within(&self, probe: &Probe<'_>) -> Option<Rank<'_>> {
        let (len, count) = (self.prefix_len(), self.count());
        if self.compare_prefix(probe, len)? != Order::Equal {
            return None;
        }
        let head = probe.head(len);
        let pos =
            if head > self.head(count.checked_sub(1)?) { count } else { self.lower_bound(head).min(count) };
        let rank = if pos < count && self.head(pos) == head {
            self.rank_in_tie(probe.key, len, head, pos)?
        } else {
            Rank { pos, equal: None }
        };
        let is_within = match rank.pos {
            0 => rank.equal.is_some(),
            pos if pos < count => true,
            _ => self.end.get().is_none_or(|end| probe.key < end.key()),
        };
        is_within.then_some(rank)
    }

    /// Prefetches the references that an insert at `pos` moves, which no search has touched.
    #[inline]
    pub(super) fn prefetch_refs(&self, pos: usize) {
        const LINE: usize = 64_usize.div_ceil(size_of::<Link<Record>>());
        for link in self.refs.iter().take(self.count() + 1).skip(pos / LINE * LINE).step_by(LINE) {
            prefetch_line(link);
        }
    }

    /// Inserts `record` before position `pos`. The caller holds the lock, the node is not full, and
    /// `probe` is the record's key, whose position is `pos`.
    #[inline]
    pub(super) fn insert(&self, probe: &Probe<'_>, pos: usize, record: Held<'_, Record>) {
        let count = self.count();
        debug_assert!(count < CAPACITY && pos <= count, "an insert at {pos} of {count}");
        debug_assert!(probe.key == record.key(), "the position of another key");
        self.admit(probe);
        shift(&self.heads, pos, count, |from, to| to.store(from.load(Ordering::Acquire), Ordering::Release));
        shift(&self.refs, pos, count, |from, to| to.set(from.get()));
        if let (Some(head), Some(link)) = (self.heads.get(pos), self.refs.get(pos)) {
            head.store(probe.head(self.prefix_len()), Ordering::Release);
            link.set(Some(record));
        }
        self.count.store(count as u16 + 1, Ordering::Release);
        debug_assert!(
            pos == 0 || self.record(pos - 1).is_some_and(|before| before.key() < probe.key),
            "the key does not come after the one before position {pos}"
        );
        debug_assert!(
            pos == count || self.record(pos + 1).is_some_and(|after| after.key() > probe.key),
            "the key does not come before the one after position {pos}"
        );
        if head_tells_little(self.head(0), self.head(count)) && count > 0 {
            self.lengthen();
        }
    }

    /// Takes a longer prefix if the keys have one. A node that started with few keys gets here once
    /// or twice; after that its first and last heads differ early.
    #[cold]
    fn lengthen(&self) {
        let (entries, prefix_len) = self.entries();
        // Heads of short keys may agree only in their zero padding, which is not part of the keys.
        if longer_prefix(&entries, prefix_len) > prefix_len {
            self.fill(&entries, prefix_len);
        }
    }

    /// Shortens the prefix until `probe` begins with it. The caller holds the lock.
    #[inline]
    pub(super) fn admit(&self, probe: &Probe<'_>) {
        let len = self.prefix_len();
        if self.compare_prefix(probe, len) != Some(Order::Equal) {
            self.shorten(probe, len);
        }
    }

    #[cold]
    fn shorten(&self, probe: &Probe<'_>, len: usize) {
        let key = self.record(0).map_or(&[][..], Held::key);
        let shorter = probe::common_prefix(key.get(..len).unwrap_or(key), probe.key);
        debug_assert!(shorter < len, "the key begins with the prefix of {len} bytes");
        debug_assert!(self.count() > 0, "a node without keys has a prefix of {len} bytes");
        let freed = len - shorter;
        // Each new head starts with the bytes that the prefix loses, followed by the old head.
        let lost = probe::head(key, shorter);
        for head in self.heads.iter().take(self.count()) {
            let rest = head.load(Ordering::Acquire);
            let moved = if freed >= 8 {
                lost
            } else {
                let kept = 8 * freed as u32;
                lost & !(u64::MAX >> kept) | rest >> kept
            };
            head.store(moved, Ordering::Release);
        }
        self.prefix_len.store(shorter as u32, Ordering::Release);
    }
}

/// Moves `cells[pos..count]` one position to the right.
#[inline]
fn shift<T>(cells: &[T], pos: usize, count: usize, copy: impl Fn(&T, &T)) {
    debug_assert!(pos <= count && count < cells.len(), "{pos} to {count} of {} cells", cells.len());
    if let Some(moved) = cells.get(pos..=count) {
        for pair in moved.windows(2).rev() {
            if let [from, to] = pair {
                copy(from, to);
            }
        }
    }
}

impl Node {
    /// Replaces the node's keys by `entries`, which are heads and records in order. The caller
    /// holds the lock or is the only owner of the node.
    ///
    /// All keys begin with the first `prefix_len` bytes of the first key, and the heads follow
    /// these. Takes a longer common prefix if the heads would distinguish too little without it.
    pub(super) fn fill(&self, entries: &[(u64, Held<'_, Record>)], prefix_len: usize) {
        debug_assert!(entries.len() <= CAPACITY, "{} entries for a node", entries.len());
        debug_assert!(entries.is_sorted_by(|(_, a), (_, b)| a.key() < b.key()), "the keys of a node ascend");
        let len = longer_prefix(entries, prefix_len);
        debug_assert!(
            entries.iter().all(|(_, record)| {
                entries.first().is_some_and(|(_, first)| record.key().get(..len) == first.key().get(..len))
            }),
            "a key without the common prefix of {len} bytes"
        );
        let mut cells = self.heads.iter().zip(&self.refs);
        for ((old, record), (head, link)) in entries.iter().zip(cells.by_ref()) {
            let new = if len == prefix_len { *old } else { probe::head(record.key(), len) };
            head.store(new, Ordering::Release);
            link.set(Some(*record));
        }
        for (head, _) in cells {
            head.store(u64::MAX, Ordering::Release);
        }
        let first = entries.first().map(|(_, record)| *record);
        for (word, new) in self.prefix.iter().zip(probe::prefix_words(first.map_or(&[], Held::key))) {
            word.store(new, Ordering::Release);
        }
        self.prefix_len.store(len as u32, Ordering::Release);
        self.count.store(entries.len().min(CAPACITY) as u16, Ordering::Release);
        debug_assert!(
            entries.iter().enumerate().all(|(at, entry)| self.head(at) == probe::head(entry.1.key(), len)),
            "a head is another part of its key than that after the prefix of {len} bytes"
        );
    }

    /// Copies the records to the front of `into` and returns their number. The caller validates the
    /// version.
    #[inline]
    pub(super) fn copy_records<'a>(&'a self, into: &mut [Option<Held<'a, Record>>; CAPACITY]) -> usize {
        let count = self.count();
        for (into, link) in into.iter_mut().zip(&self.refs).take(count) {
            *into = link.get();
        }
        count
    }

    /// Returns the node's entries in the form for [`Node::fill`], and the length of their prefix.
    /// The caller holds the lock.
    pub(super) fn entries(&self) -> (Vec<(u64, Held<'_, Record>)>, usize) {
        let mut entries = Vec::with_capacity(CAPACITY + 1);
        let cells = self.heads.iter().zip(&self.refs).take(self.count());
        entries.extend(cells.filter_map(|(head, link)| Some((head.load(Ordering::Acquire), link.get()?))));
        debug_assert_eq!(entries.len(), self.count(), "a key without a record");
        (entries, self.prefix_len())
    }
}

/// Returns the prefix length that [`Node::fill`] uses.
fn longer_prefix(entries: &[(u64, Held<'_, Record>)], len: usize) -> usize {
    match entries {
        [(low, first), .., (high, last)] if head_tells_little(*low, *high) => {
            len.max(probe::common_prefix(first.key(), last.key()))
        }
        _ => len,
    }
}

/// Returns true if the first and the last head of a node agree in so many bytes that few are left
/// to distinguish keys.
#[inline]
fn head_tells_little(low: u64, high: u64) -> bool {
    (low ^ high).leading_zeros() / 8 >= HEAD_BYTES_SPENT
}

impl Inner {
    /// Creates a node whose only child is `left`, without keys.
    pub(super) fn over(left: Held<'_, Node>) -> Self {
        Inner::of(left.level() + 1, std::iter::once(left))
    }

    /// Creates a node at `level` with `children`. The caller adds the keys.
    pub(super) fn of<'a>(level: u16, children: impl Iterator<Item = Held<'a, Node>>) -> Self {
        assert!(level > 0, "an inner node is above the leaves");
        let inner = Inner { node: Node::new(level), children: std::array::from_fn(|_| Link::empty()) };
        for (link, child) in inner.children.iter().zip(children) {
            debug_assert_eq!(child.level() + 1, level, "a child of another level");
            link.set(Some(child));
        }
        inner
    }

    /// Returns the part shared with leaves.
    #[inline]
    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the child at `pos`.
    #[inline]
    pub(super) fn child(&self, pos: usize) -> Option<Held<'_, Node>> {
        self.children.get(pos)?.get()
    }

    /// Returns the children from `pos` on. The caller holds the lock.
    pub(super) fn children_from(&self, pos: usize) -> impl Iterator<Item = Held<'_, Node>> {
        let count = self.node.count() + 1;
        debug_assert!(pos <= count, "child {pos} of {count}");
        self.children.iter().take(count).skip(pos).filter_map(Link::get)
    }

    /// Inserts `right`, which begins at `separator`, after the child from which it was split. The
    /// caller holds the lock, and the node is not full.
    pub(super) fn insert(&self, separator: Held<'_, Record>, right: Held<'_, Node>) {
        let probe = Probe::new(separator.key());
        let count = self.node.count();
        debug_assert!(count < CAPACITY, "the node is full");
        debug_assert_eq!(right.level() + 1, self.node.level, "a child of another level");
        debug_assert!(
            self.node.rank(&probe).is_some_and(|rank| rank.equal.is_none()),
            "the separator is in the node, or the node is inconsistent under its lock"
        );
        // Always matches: under the lock there are no mixtures, and separators are distinct.
        let Some(Rank { pos, equal: None }) = self.node.rank(&probe) else { return };
        shift(&self.children, pos + 1, count + 1, |from, to| to.set(from.get()));
        if let Some(link) = self.children.get(pos + 1) {
            link.set(Some(right));
        }
        self.node.insert(&probe, pos, separator);
    }
}

impl<'a> Held<'a, Node> {
    /// Returns the inner node, or `None` for a leaf.
    #[inline]
    pub(super) fn inner(self) -> Option<Held<'a, Inner>> {
        if self.get().level == 0 {
            return None;
        }
        // SAFETY: a node above level 0 is the beginning of an `Inner`: only `Inner::of` creates
        // such levels, and only `as_node` hands out inner nodes as nodes, with a pointer that
        // covers the whole.
        Some(unsafe { Held::new(self.as_ptr().cast()) })
    }
}

impl<'a> Held<'a, Inner> {
    /// Returns the node as its parent refers to it.
    pub(super) fn as_node(self) -> Held<'a, Node> {
        // SAFETY: an `Inner` begins with a `Node`.
        unsafe { Held::new(self.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::memtable::arena::Arena;
    use crate::memtable::record::Entry;

    /// Goal: a key that equals a record only after the prefix never gets that record. Method:
    /// builds the mixture seen by a reader that read the prefix before another thread split the
    /// node, and the record after.
    #[test]
    fn mixtures_name_no_record() {
        let arena = Arena::new();
        let entry = Entry { key: b"0 002", seqno: 1, kind: Kind::Put, value: b"" };
        let record = Record::create(&arena, &entry);
        let node = Node::leaf();
        node.fill(&[(probe::head(entry.key, 1), record)], 1);
        let rank = |key: &[u8]| node.rank(&Probe::new(key)).map(|rank| rank.equal.is_some());
        assert_eq!((rank(b"0 002"), rank(b"1 002")), (Some(true), Some(false)));
        for (word, other) in node.prefix.iter().zip(probe::prefix_words(b"1 002")) {
            word.store(other, Ordering::Release);
        }
        let probe = Probe::new(b"1 002");
        assert!(node.rank(&probe).is_none() && node.rank_within(&probe).is_none());
    }
}
