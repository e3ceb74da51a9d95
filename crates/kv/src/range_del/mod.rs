//! Range tombstones: single entries that delete all keys in a range.
//!
//! A set of them is kept *fragmented*: it is cut at every start and end into fragments that do not
//! overlap, each with the sequence numbers of all tombstones that cover it. One binary search then
//! tells whether a key is covered.
//!
//! ```text
//! tombstones   [a ──────── 7 ──────── m)            bounds   a      f      m      t
//!                     [f ──────── 9 ──────── t)     seqnos     7     9,7     9
//! ```
//!
//! The total length of the fragments' lists can exceed the number of tombstones: for n tombstones
//! that all overlap, it is n²/2. Owners of a set account for [`RangeTombstones::memory_bytes`], and
//! compactions drop tombstones that no snapshot can distinguish
//! ([`RangeTombstones::for_snapshots`]).

mod encoding;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::kind::Seqno;

/// Deletes the keys from `start` (inclusive) to `end` (exclusive) that were written before it.
#[cfg(test)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RangeTombstone {
    /// The first covered key.
    pub start: Vec<u8>,
    /// The first key after the covered ones.
    pub end: Vec<u8>,
    /// The sequence number of its write.
    pub seqno: Seqno,
}

/// Deletes the keys from `start` (inclusive) to `end` (exclusive) that were written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangeTombstoneRef<'a> {
    /// The first covered key.
    pub start: &'a [u8],
    /// The first key after the covered ones.
    pub end: &'a [u8],
    /// The sequence number of its write.
    pub seqno: Seqno,
}

/// A set of range tombstones, cut into fragments that do not overlap. Immutable.
///
/// Sets that delete the same keys are equal, because adjacent fragments with the same sequence
/// numbers are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    /// Ascending by key. The list of the last cut is empty, as are those before gaps.
    cuts: Vec<Cut>,
    /// The cuts' keys, concatenated.
    keys: Vec<u8>,
    /// The sequence numbers that apply from each cut to the next: concatenated lists, each
    /// descending.
    seqnos: Vec<Seqno>,
}

/// A key at which a fragment begins or ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cut {
    /// End of the key in `keys`. It begins at the end of the previous one.
    key_end: usize,
    /// End of the list in `seqnos` that applies after the cut. It begins at the end of the previous
    /// one.
    seqnos_end: usize,
}

/// Returns, in descending order, the highest number in `active` in each interval between adjacent
/// `snapshots`.
fn newest_of_each<'a>(
    active: &'a BTreeMap<Seqno, usize>,
    snapshots: &'a [Seqno],
) -> impl Iterator<Item = Seqno> + 'a {
    let newest = |at: Seqno| active.range(..=at).next_back().map(|(&seqno, _)| seqno);
    let mut last = None;
    let ends = std::iter::once(Seqno::MAX).chain(snapshots.iter().rev().copied());
    ends.map_while(newest).filter(move |&seqno| last.replace(seqno) != Some(seqno))
}

#[cfg(test)]
impl RangeTombstone {
    /// Returns a borrowed form.
    pub(crate) fn borrow(&self) -> RangeTombstoneRef<'_> {
        RangeTombstoneRef { start: &self.start, end: &self.end, seqno: self.seqno }
    }
}

impl RangeTombstones {
    /// Builds the set of `tombstones`, which may be in any order. Empty ranges are left out.
    #[cfg(test)]
    pub(crate) fn new(tombstones: Vec<RangeTombstone>) -> Self {
        RangeTombstones::build(tombstones.iter().map(RangeTombstone::borrow))
    }

    /// Builds the union of `sets`.
    pub(crate) fn merge<'a>(sets: impl IntoIterator<Item = &'a RangeTombstones>) -> Self {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty());
        match (sets.next(), sets.next()) {
            (Some(a), Some(b)) => {
                RangeTombstones::build([a, b].into_iter().chain(sets).flat_map(RangeTombstones::iter))
            }
            (only, _) => only.cloned().unwrap_or_default(),
        }
    }

    /// Cuts `tombstones` into fragments. Cost: n log n, and the total length of the lists.
    pub(crate) fn build<'a>(tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>) -> Self {
        RangeTombstones::build_for(tombstones, None)
    }

    /// Builds a set as [`RangeTombstones::build`] does and, if `snapshots` are given, reduces it as
    /// [`RangeTombstones::for_snapshots`] does. The intermediate lists, which can have n²/2
    /// entries, are not created. Cost: n log n per snapshot, and once more.
    pub(crate) fn build_for<'a>(
        tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>,
        snapshots: Option<&[Seqno]>,
    ) -> Self {
        debug_assert!(snapshots.is_none_or(|snapshots| snapshots.is_sorted()), "snapshots {snapshots:?}");
        // The starts (true) and ends of tombstones, in order.
        let mut edges: Vec<(&[u8], Seqno, bool)> = tombstones
            .filter(|tombstone| tombstone.start < tombstone.end)
            .flat_map(|t| [(t.start, t.seqno, true), (t.end, t.seqno, false)])
            .collect();
        edges.sort_unstable();
        let mut set = RangeTombstones::default();
        // The tombstones that cover the current fragment. One can do so twice if it was cut into
        // overlapping parts that are merged again.
        let mut active: BTreeMap<Seqno, usize> = BTreeMap::new();
        for edges in edges.chunk_by(|a, b| a.0 == b.0) {
            for &(_, seqno, begins) in edges {
                let count = active.entry(seqno).or_default();
                debug_assert!(begins || *count > 0, "a tombstone ends before it begins");
                // At equal keys, ends come before starts.
                *count = if begins { *count + 1 } else { count.saturating_sub(1) };
                if *count == 0 {
                    active.remove(&seqno);
                }
            }
            let Some((key, ..)) = edges.first() else { continue };
            match snapshots {
                None => set.cut(key, active.keys().rev().copied()),
                Some(snapshots) => set.cut(key, newest_of_each(&active, snapshots)),
            }
        }
        debug_assert!(active.is_empty(), "a tombstone has no end");
        set.assert_sound();
        set
    }

    /// Makes `seqnos`, descending, apply from `key` on, which must be greater than all cuts so far.
    fn cut(&mut self, key: &[u8], seqnos: impl Iterator<Item = Seqno>) {
        let before = self.cuts.len().checked_sub(1).map(|last| self.key(last));
        debug_assert!(before.is_none_or(|before| before < key), "cuts ascend");
        let begin = self.seqnos.len();
        self.seqnos.extend(seqnos);
        let last = self.cuts.len().checked_sub(1).map_or(&[][..], |last| self.list_before(last, begin));
        if self.seqnos.get(begin..) == Some(last) {
            self.seqnos.truncate(begin);
            return;
        }
        self.keys.extend_from_slice(key);
        self.cuts.push(Cut { key_end: self.keys.len(), seqnos_end: self.seqnos.len() });
    }

    /// Returns the list after cut `index`, which ends at `end`.
    fn list_before(&self, index: usize, end: usize) -> &[Seqno] {
        debug_assert!(self.before(index).seqnos_end <= end, "the list of cut {index} ends at {end}");
        self.seqnos.get(self.before(index).seqnos_end..end).unwrap_or_default()
    }

    /// Returns the starts of the key and the list of cut `index`.
    fn before(&self, index: usize) -> Cut {
        index.checked_sub(1).and_then(|before| self.cuts.get(before)).copied().unwrap_or_default()
    }

    /// Returns the key of cut `index`.
    fn key(&self, index: usize) -> &[u8] {
        let end = self.cuts.get(index).map_or(0, |cut| cut.key_end);
        self.keys.get(self.before(index).key_end..end).unwrap_or_default()
    }

    /// Returns the sequence numbers after cut `index`, descending.
    fn list(&self, index: usize) -> &[Seqno] {
        self.list_before(index, self.cuts.get(index).map_or(0, |cut| cut.seqnos_end))
    }

    /// Asserts the form of the set: see the fields. For debug builds.
    fn assert_sound(&self) {
        let cuts = self.cuts.len();
        debug_assert_eq!(
            self.cuts.last().map_or(0, |cut| cut.key_end),
            self.keys.len(),
            "keys without a cut"
        );
        debug_assert_eq!(
            self.cuts.last().map_or(0, |cut| cut.seqnos_end),
            self.seqnos.len(),
            "numbers without a cut"
        );
        debug_assert!((1..cuts).all(|at| self.key(at - 1) < self.key(at)), "cuts ascend");
        debug_assert!(
            (1..cuts).all(|at| self.list(at - 1) != self.list(at)),
            "fragments with equal lists are joined"
        );
        debug_assert!((0..cuts).all(|at| self.list(at).is_sorted_by(|a, b| a > b)), "lists descend");
        debug_assert!(cuts == 0 || !self.list(0).is_empty(), "the first fragment covers nothing");
        debug_assert!(cuts == 0 || self.list(cuts - 1).is_empty(), "the last fragment has no end");
    }

    /// Returns true if the set covers nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Returns the highest sequence number, up to `at`, of the tombstones that cover `key`. Cost: a
    /// binary search; one branch for an empty set.
    #[inline]
    pub(crate) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        if self.is_empty() { None } else { self.search(key, at) }
    }

    fn search(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        let (mut low, mut high) = (0, self.cuts.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        debug_assert!(low == self.cuts.len() || self.key(low) > key, "cut {low} is not after the key");
        let list = self.list(low.checked_sub(1)?);
        list.get(list.partition_point(|&seqno| seqno > at)).copied()
    }

    /// Returns the tombstones as fragments: ascending by start, and within a fragment from the
    /// newest to the oldest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RangeTombstoneRef<'_>> {
        self.pieces().flat_map(|(start, end, seqnos)| {
            seqnos.iter().map(move |&seqno| RangeTombstoneRef { start, end, seqno })
        })
    }

    /// Returns the fragments in ascending order: start, end, and the sequence numbers, descending
    /// and not empty.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&[u8], &[u8], &[Seqno])> {
        (0..self.cuts.len())
            .map(|index| (self.key(index), self.key(index + 1), self.list(index)))
            .filter(|(_, _, seqnos)| !seqnos.is_empty())
    }

    /// Returns the number of tombstones that [`RangeTombstones::iter`] yields.
    pub(crate) fn len(&self) -> usize {
        self.seqnos.len()
    }

    /// Returns the first covered key, and the first key after all covered ones.
    pub(crate) fn span(&self) -> Option<(&[u8], &[u8])> {
        let last = self.cuts.len().checked_sub(1)?;
        debug_assert!(self.key(0) < self.key(last), "a set without keys");
        Some((self.key(0), self.key(last)))
    }

    /// Returns the lowest and the highest sequence number.
    pub(crate) fn seqno_range(&self) -> Option<(Seqno, Seqno)> {
        Some((*self.seqnos.iter().min()?, *self.seqnos.iter().max()?))
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.cuts.capacity() * size_of::<Cut>()
            + self.seqnos.capacity() * size_of::<Seqno>()
    }

    /// Returns the part that covers keys from `start` (inclusive) to `end` (exclusive). `None`
    /// means no bound.
    pub(crate) fn clip(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        let mut clipped = RangeTombstones::default();
        for (from, to, seqnos) in self.pieces() {
            let from = start.map_or(from, |start| from.max(start));
            let to = end.map_or(to, |end| to.min(end));
            if from < to {
                clipped.piece(from, to, seqnos.iter().copied());
            }
        }
        let clipped = clipped.shrink();
        debug_assert!(
            clipped.span().is_none_or(|(from, to)| {
                start.is_none_or(|start| start <= from) && end.is_none_or(|end| to <= end)
            }),
            "the part exceeds its bounds"
        );
        clipped
    }

    /// Returns the tombstones written after `seqno`.
    pub(crate) fn newer_than(&self, seqno: Seqno) -> Self {
        let newer = self.keep(|seqnos| seqnos.iter().copied().take_while(move |&newer| newer > seqno));
        debug_assert!(newer.seqno_range().is_none_or(|(lowest, _)| lowest > seqno), "an older tombstone");
        newer
    }

    /// Returns the tombstones that some reader needs. Among the tombstones over a fragment that lie
    /// between the same two `snapshots` (ascending), the newest hides everything that the others
    /// hide.
    pub(crate) fn for_snapshots(&self, snapshots: &[Seqno]) -> Self {
        debug_assert!(snapshots.is_sorted(), "snapshots {snapshots:?}");
        let stripe = |seqno: Seqno| snapshots.partition_point(|&snapshot| snapshot < seqno);
        self.keep(|seqnos| {
            let mut last = None;
            seqnos.iter().copied().filter(move |&seqno| last.replace(stripe(seqno)) != Some(stripe(seqno)))
        })
    }

    /// Returns the set with each fragment's list reduced to the part that `keep` returns.
    fn keep<'a, I: Iterator<Item = Seqno>>(&'a self, keep: impl Fn(&'a [Seqno]) -> I) -> Self {
        let mut kept = RangeTombstones::default();
        for (start, end, seqnos) in self.pieces() {
            kept.piece(start, end, keep(seqnos));
        }
        debug_assert!(kept.len() <= self.len(), "{} tombstones of {} are kept", kept.len(), self.len());
        kept.shrink()
    }

    /// Appends a fragment that begins at the end of the last one, or later.
    fn piece(&mut self, start: &[u8], end: &[u8], seqnos: impl Iterator<Item = Seqno>) {
        debug_assert!(start < end, "a fragment without keys");
        debug_assert!(
            self.cuts.len().checked_sub(1).is_none_or(|last| self.key(last) <= start),
            "fragments ascend"
        );
        // If the fragments touch, the cut that ended the last one begins this one.
        if self.cuts.len().checked_sub(1).is_some_and(|last| self.key(last) == start) {
            debug_assert!(self.list(self.cuts.len() - 1).is_empty(), "the last fragment has no end");
            self.cuts.pop();
            self.keys.truncate(self.cuts.last().map_or(0, |cut| cut.key_end));
        }
        self.cut(start, seqnos);
        self.cut(end, std::iter::empty());
    }

    fn shrink(mut self) -> Self {
        self.cuts.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.seqnos.shrink_to_fit();
        self.assert_sound();
        self
    }
}
