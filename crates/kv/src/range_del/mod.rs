//! Range tombstones: deletions of all keys from one to another, by one entry.
//!
//! A set of them is kept *fragmented*: cut at every start and end, so that its pieces do not
//! overlap, each with the sequence numbers of all tombstones that cover it. Whether a key is
//! covered is then one binary search.
//!
//! ```text
//! tombstones   [a ──────── 7 ──────── m)            bounds   a      f      m      t
//!                     [f ──────── 9 ──────── t)     seqnos     7     9,7     9
//! ```
//!
//! The pieces' lists together can be longer than the tombstones are many: of n that all overlap,
//! n²/2. Whoever keeps a set accounts for [`RangeTombstones::memory_bytes`]; compactions drop what
//! no snapshot tells apart ([`RangeTombstones::for_snapshots`]).

mod encoding;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::kind::Seqno;

/// The deletion of the keys from `start` (inclusive) to `end` (exclusive) that were written before
/// it.
#[cfg(test)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RangeTombstone {
    /// The first key that it covers.
    pub start: Vec<u8>,
    /// The first key behind it.
    pub end: Vec<u8>,
    /// When it was written.
    pub seqno: Seqno,
}

/// The deletion of the keys from `start` (inclusive) to `end` (exclusive) that were written before
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangeTombstoneRef<'a> {
    /// The first key that it covers.
    pub start: &'a [u8],
    /// The first key behind it.
    pub end: &'a [u8],
    /// When it was written.
    pub seqno: Seqno,
}

/// A set of range tombstones, cut into pieces that do not overlap. Immutable.
///
/// Sets that delete the same are equal: neighbours with the same sequence numbers are one piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    /// Ascending by key. The list of the last one is empty, as are those before gaps.
    cuts: Vec<Cut>,
    /// The cuts' keys, one after the other.
    keys: Vec<u8>,
    /// The sequence numbers from each cut to the next, one list after the other, each descending.
    seqnos: Vec<Seqno>,
}

/// A key where a piece begins or ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cut {
    /// Where the key ends in `keys`; it begins where the one before ends.
    key_end: usize,
    /// Where the list of the piece behind the cut ends in `seqnos`, likewise.
    seqnos_end: usize,
}

/// Of the numbers in `active` between the same two of `snapshots`, the highest; descending.
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
    /// The same, borrowed.
    pub(crate) fn borrow(&self) -> RangeTombstoneRef<'_> {
        RangeTombstoneRef { start: &self.start, end: &self.end, seqno: self.seqno }
    }
}

impl RangeTombstones {
    /// The set of `tombstones`, in any order. Those that cover nothing are left out.
    #[cfg(test)]
    pub(crate) fn new(tombstones: Vec<RangeTombstone>) -> Self {
        RangeTombstones::build(tombstones.iter().map(RangeTombstone::borrow))
    }

    /// All tombstones of `sets` together.
    pub(crate) fn merge<'a>(sets: impl IntoIterator<Item = &'a RangeTombstones>) -> Self {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty());
        match (sets.next(), sets.next()) {
            (Some(a), Some(b)) => {
                RangeTombstones::build([a, b].into_iter().chain(sets).flat_map(RangeTombstones::iter))
            }
            (only, _) => only.cloned().unwrap_or_default(),
        }
    }

    /// Cuts `tombstones` into pieces. Cost: n log n, and the length of the lists.
    pub(crate) fn build<'a>(tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>) -> Self {
        RangeTombstones::build_for(tombstones, None)
    }

    /// As [`RangeTombstones::build`] and then [`RangeTombstones::for_snapshots`], where `snapshots`
    /// are given. The lists in between, which can be n²/2 long, are not made. Cost: n log n for
    /// each snapshot and one more.
    pub(crate) fn build_for<'a>(
        tombstones: impl Iterator<Item = RangeTombstoneRef<'a>>,
        snapshots: Option<&[Seqno]>,
    ) -> Self {
        // Where tombstones begin (true) and end, in order.
        let mut edges: Vec<(&[u8], Seqno, bool)> = tombstones
            .filter(|tombstone| tombstone.start < tombstone.end)
            .flat_map(|t| [(t.start, t.seqno, true), (t.end, t.seqno, false)])
            .collect();
        edges.sort_unstable();
        let mut set = RangeTombstones::default();
        // Those that cover the current piece. One may do so twice: cut into parts that overlap and
        // merged again.
        let mut active: BTreeMap<Seqno, usize> = BTreeMap::new();
        for edges in edges.chunk_by(|a, b| a.0 == b.0) {
            for &(_, seqno, begins) in edges {
                let count = active.entry(seqno).or_default();
                // At one key, ends come before beginnings.
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
        set
    }

    /// Lets `seqnos`, descending, cover what follows from `key` on, which is greater than the cuts
    /// so far.
    fn cut(&mut self, key: &[u8], seqnos: impl Iterator<Item = Seqno>) {
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

    /// The list behind cut `index`, which ends at `end`.
    fn list_before(&self, index: usize, end: usize) -> &[Seqno] {
        self.seqnos.get(self.before(index).seqnos_end..end).unwrap_or_default()
    }

    /// Where the key and the list of cut `index` begin.
    fn before(&self, index: usize) -> Cut {
        index.checked_sub(1).and_then(|before| self.cuts.get(before)).copied().unwrap_or_default()
    }

    /// The key of cut `index`.
    fn key(&self, index: usize) -> &[u8] {
        let end = self.cuts.get(index).map_or(0, |cut| cut.key_end);
        self.keys.get(self.before(index).key_end..end).unwrap_or_default()
    }

    /// The sequence numbers behind cut `index`, descending.
    fn list(&self, index: usize) -> &[Seqno] {
        self.list_before(index, self.cuts.get(index).map_or(0, |cut| cut.seqnos_end))
    }

    /// Whether it covers nothing.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// The highest sequence number, up to `at`, of the tombstones that cover `key`. Cost: a binary
    /// search; one branch for an empty set.
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
        let list = self.list(low.checked_sub(1)?);
        list.get(list.partition_point(|&seqno| seqno > at)).copied()
    }

    /// Its tombstones as pieces: by start ascending, within a piece from the newest to the oldest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RangeTombstoneRef<'_>> {
        self.pieces().flat_map(|(start, end, seqnos)| {
            seqnos.iter().map(move |&seqno| RangeTombstoneRef { start, end, seqno })
        })
    }

    /// Its pieces, ascending: start, end, and the sequence numbers, descending, never none.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&[u8], &[u8], &[Seqno])> {
        (0..self.cuts.len())
            .map(|index| (self.key(index), self.key(index + 1), self.list(index)))
            .filter(|(_, _, seqnos)| !seqnos.is_empty())
    }

    /// How many tombstones [`RangeTombstones::iter`] gives.
    pub(crate) fn len(&self) -> usize {
        self.seqnos.len()
    }

    /// The first key that it covers and the first one behind all that it covers.
    pub(crate) fn span(&self) -> Option<(&[u8], &[u8])> {
        let last = self.cuts.len().checked_sub(1)?;
        Some((self.key(0), self.key(last)))
    }

    /// The lowest and the highest sequence number.
    pub(crate) fn seqno_range(&self) -> Option<(Seqno, Seqno)> {
        Some((*self.seqnos.iter().min()?, *self.seqnos.iter().max()?))
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity()
            + self.cuts.capacity() * size_of::<Cut>()
            + self.seqnos.capacity() * size_of::<Seqno>()
    }

    /// What covers the keys from `start` (inclusive) to `end` (exclusive); no bound where it is
    /// `None`.
    pub(crate) fn clip(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        let mut clipped = RangeTombstones::default();
        for (from, to, seqnos) in self.pieces() {
            let from = start.map_or(from, |start| from.max(start));
            let to = end.map_or(to, |end| to.min(end));
            if from < to {
                clipped.piece(from, to, seqnos.iter().copied());
            }
        }
        clipped.shrink()
    }

    /// Those written after `seqno`.
    pub(crate) fn newer_than(&self, seqno: Seqno) -> Self {
        self.keep(|seqnos| seqnos.iter().copied().take_while(move |&newer| newer > seqno))
    }

    /// Those that somebody may miss: of the tombstones over a piece that lie between the same two
    /// of `snapshots` (ascending), the newest hides all that the others do.
    pub(crate) fn for_snapshots(&self, snapshots: &[Seqno]) -> Self {
        let stripe = |seqno: Seqno| snapshots.partition_point(|&snapshot| snapshot < seqno);
        self.keep(|seqnos| {
            let mut last = None;
            seqnos.iter().copied().filter(move |&seqno| last.replace(stripe(seqno)) != Some(stripe(seqno)))
        })
    }

    /// The set with the part of each piece's list that `keep` gives.
    fn keep<'a, I: Iterator<Item = Seqno>>(&'a self, keep: impl Fn(&'a [Seqno]) -> I) -> Self {
        let mut kept = RangeTombstones::default();
        for (start, end, seqnos) in self.pieces() {
            kept.piece(start, end, keep(seqnos));
        }
        kept.shrink()
    }

    /// Appends a piece that begins where the last one ends, or later.
    fn piece(&mut self, start: &[u8], end: &[u8], seqnos: impl Iterator<Item = Seqno>) {
        // The cut that ended the last piece begins this one if they touch.
        if self.cuts.len().checked_sub(1).is_some_and(|last| self.key(last) == start) {
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
        self
    }
}
