//! The range tombstones of a memtable: added one by one, and consulted by every read.
//!
//! Most readers need the newest tombstone over a key. Therefore the tombstones up to some sequence
//! number are kept *painted*: each is drawn over the earlier ones, which yields non-overlapping
//! pieces with one number each. Painting a tombstone removes the parts below it, so there are never
//! more than twice as many pieces as tombstones, however they overlap, and each costs amortized
//! logarithmic time.
//!
//! ```text
//! all      1 [b ──────── f)  2 [d ─────────── m)  3 [a ── c)  4 [e ── k)  5 [x ── z)
//! painted  up to 3:  [a ─3─ c)[c ─1─ d)[d ──2── m)
//! recent   4 and 5, searched one by one
//! ```
//!
//! A writer only adds to the recent tombstones. A reader that sees too many of them paints all but
//! the newest few. The painted tombstones are thus visible to all readers except those at an
//! earlier moment. For such a moment, all tombstones up to it are painted separately and kept for
//! further readers.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, RwLock, read, write};

use crate::kind::Seqno;
use crate::range_del::{RangeTombstoneRef, RangeTombstones};

/// Maximum number of recent tombstones that a reader searches.
const RECENT_MAX: usize = if cfg!(cairn_shuttle) { 2 } else { 16 };

/// Maximum number of earlier moments that are kept painted.
const EARLIER_MAX: usize = 8;

/// Memory of a tombstone without the bytes of its keys: two shared keys, its entry in `all`, and
/// two pieces.
const TOMBSTONE_BYTES: usize = 192;

#[cfg(not(cairn_shuttle))]
const _: () = assert!(
    4 * size_of::<usize>() + size_of::<(Seqno, Span)>() + 2 * size_of::<(Arc<[u8]>, Piece)>()
        <= TOMBSTONE_BYTES,
    "the counts of two keys, an entry in `all`, two pieces"
);

/// Range tombstones that are added one by one and read by many threads.
#[derive(Debug)]
pub(super) struct Ranges {
    /// The number of tombstones. Becomes nonzero only after `state` contains them.
    count: AtomicUsize,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    all: BTreeMap<Seqno, Span>,
    painted: Painted,
    /// The unpainted tombstones, in ascending order of numbers.
    recent: VecDeque<(Seqno, Span)>,
    /// Painted tombstones as of earlier moments, the most recently painted one last.
    earlier: Vec<Painted>,
    /// Number of tombstones painted so far, counting repetitions.
    #[cfg(test)]
    work: u64,
}

/// The range of a tombstone. Its keys are shared with the pieces made from it.
#[derive(Debug, Clone)]
struct Span {
    start: Arc<[u8]>,
    end: Arc<[u8]>,
}

/// The newest tombstone over each key, considering tombstones up to a sequence number.
#[derive(Debug, Default)]
struct Painted {
    /// The highest sequence number included; 0 if there is none.
    to: Seqno,
    /// Non-overlapping pieces by their first keys.
    pieces: BTreeMap<Arc<[u8]>, Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    end: Arc<[u8]>,
    seqno: Seqno,
}

/// The newest tombstone over a key, and the range around the key in which it is the newest.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    /// The tombstone's sequence number; 0 if there is none.
    pub seqno: Seqno,
    /// The first key of the range; `None` if it has no lower bound.
    pub from: Option<Arc<[u8]>>,
    /// The first key after the range; `None` if it has no upper bound.
    pub until: Option<Arc<[u8]>>,
}

/// Work that must be done before a query can be answered.
enum Missing {
    /// Paint most of the recent tombstones.
    Paint,
    /// Paint the tombstones up to this sequence number separately.
    Earlier(Seqno),
}

impl Ranges {
    pub(super) fn new() -> Self {
        Ranges { count: AtomicUsize::new(0), state: RwLock::new(State::default()) }
    }

    /// Returns the number of tombstones added. Cost: one load.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds a tombstone and returns the bytes of memory that it takes, or `None` if it covers
    /// nothing.
    ///
    /// Cost: a search among all tombstones by number. If tombstones with higher numbers have
    /// already been painted, also the pieces that it overlaps.
    pub(super) fn add(&self, tombstone: RangeTombstoneRef<'_>) -> Option<usize> {
        let RangeTombstoneRef { start, end, seqno } = tombstone;
        if start >= end {
            return None;
        }
        let span = Span { start: Arc::from(start), end: Arc::from(end) };
        let mut state = write(&self.state);
        state.all.insert(seqno, span.clone());
        debug_assert!(
            state.recent.front().is_none_or(|(recent, _)| *recent > state.painted.to),
            "it is painted"
        );
        if seqno < state.painted.to {
            state.painted.paint_under(seqno, &span);
            state.earlier.retain(|painted| painted.to < seqno);
        } else {
            // Usually the last position or a few before it, because writers arrive almost in the
            // order of their numbers.
            let at = state.recent.partition_point(|(other, _)| *other < seqno);
            state.recent.insert(at, (seqno, span));
        }
        drop(state);
        self.count.fetch_add(1, Ordering::Release);
        Some(TOMBSTONE_BYTES + start.len() + end.len())
    }

    /// Calls `query` with the state, which can answer queries as of `at`.
    #[inline]
    fn query<T>(&self, at: Seqno, query: impl Fn(&State) -> Result<T, Missing>) -> T {
        // BOUND: each iteration does the work that the previous one missed. Another reader may
        // paint for a later moment in between, but at most once per reader. `at` is then an earlier
        // moment, whose painting is kept.
        loop {
            let missing = match query(&read(&self.state)) {
                Ok(found) => return found,
                Err(missing) => missing,
            };
            write(&self.state).make(at, missing);
        }
    }

    /// Returns the highest sequence number, up to `at`, of a tombstone that covers `key`. Cost: one
    /// branch if there are none.
    #[inline]
    pub(super) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        if self.count() == 0 {
            return None;
        }
        self.query(at, |state| {
            let (painted, recent) = state.as_of(at)?;
            let covering = recent.filter(|(_, span)| span.covers(key)).map(|(seqno, _)| *seqno).max();
            let newest = covering.max(painted.and_then(|painted| painted.covering(key)));
            debug_assert!(newest.is_none_or(|newest| newest <= at), "{newest:?} is not visible at {at}");
            Ok(newest)
        })
    }

    /// Like [`Ranges::newest_covering`], together with the range around `key` in which the result
    /// holds for this `at`.
    pub(super) fn cover(&self, key: &[u8], at: Seqno) -> Cover {
        self.query(at, |state| {
            let (painted, recent) = state.as_of(at)?;
            let mut cover = painted.map_or_else(Cover::default, |painted| painted.cover(key));
            recent.for_each(|(seqno, span)| cover.narrow(key, *seqno, span));
            debug_assert!(cover.holds_for(key), "a range beside its key");
            debug_assert!(cover.seqno <= at, "{} is not visible at {at}", cover.seqno);
            Ok(cover)
        })
    }

    /// Returns true if a tombstone written after `seqno` covers `key`. `visible` is the number that
    /// readers see; later tombstones are searched one by one.
    pub(super) fn covers_after(&self, key: &[u8], seqno: Seqno, visible: Seqno) -> bool {
        self.query(visible, |state| {
            // A reader that sees more may have painted more.
            let at = visible.max(state.painted.to);
            let (painted, recent) = state.as_of(at)?;
            let unseen = state.recent.iter().rev().take_while(|(other, _)| *other > at);
            let mut recent = recent.chain(unseen).filter(|(other, _)| *other > seqno);
            let painted = painted.and_then(|painted| painted.covering(key));
            Ok(painted.is_some_and(|newest| newest > seqno) || recent.any(|(_, span)| span.covers(key)))
        })
    }

    /// Calls `visit` with each tombstone written after `seqno`, oldest first, and returns its first
    /// result.
    pub(super) fn find_after<T>(
        &self,
        seqno: Seqno,
        mut visit: impl FnMut(RangeTombstoneRef<'_>) -> Option<T>,
    ) -> Option<T> {
        let state = read(&self.state);
        let after = (Bound::Excluded(seqno), Bound::Unbounded);
        state
            .all
            .range(after)
            .find_map(|(&seqno, span)| visit(RangeTombstoneRef { start: &span.start, end: &span.end, seqno }))
    }

    /// Returns the tombstones needed by a reader that has one of `snapshots` (ascending) or sees
    /// everything: see [`RangeTombstones::build_for`].
    pub(super) fn for_snapshots(&self, snapshots: &[Seqno]) -> RangeTombstones {
        let state = read(&self.state);
        let all = state.all.iter();
        let all = all.map(|(&seqno, Span { start, end })| RangeTombstoneRef { start, end, seqno });
        RangeTombstones::build_for(all, Some(snapshots))
    }

    /// Returns all tombstones.
    #[cfg(test)]
    pub(super) fn all(&self) -> RangeTombstones {
        let state = read(&self.state);
        let all = state.all.iter();
        RangeTombstones::build(all.map(|(&seqno, Span { start, end })| RangeTombstoneRef {
            start,
            end,
            seqno,
        }))
    }

    /// Returns the number of tombstones painted so far, counting repetitions.
    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        read(&self.state).work
    }

    /// Returns the lowest and the highest sequence number.
    pub(super) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        let state = read(&self.state);
        Some((*state.all.first_key_value()?.0, *state.all.last_key_value()?.0))
    }
}

impl State {
    /// Returns the tombstones up to `at`: the painted ones, and the recent ones.
    #[inline]
    fn as_of(&self, at: Seqno) -> Result<(Option<&Painted>, impl Iterator<Item = &(Seqno, Span)>), Missing> {
        let mut painted = Some(&self.painted);
        let mut recent = 0;
        if at >= self.painted.to {
            // Not counted to the end, because there may be thousands that the reader does not see.
            recent = self.recent.iter().take(RECENT_MAX + 1).take_while(|(seqno, _)| *seqno <= at).count();
            if recent > RECENT_MAX {
                return Err(Missing::Paint);
            }
        } else {
            painted = match self.all.range(..=at).next_back() {
                None => None,
                Some((&last, _)) => {
                    let found = self.earlier.iter().find(|painted| painted.to == last);
                    Some(found.ok_or(Missing::Earlier(last))?)
                }
            };
        }
        Ok((painted, self.recent.iter().take(recent)))
    }

    /// Does the missing work for a reader at `at`.
    #[cold]
    fn make(&mut self, at: Seqno, missing: Missing) {
        match missing {
            Missing::Paint => {
                let seen = self.recent.partition_point(|(seqno, _)| *seqno <= at);
                for (seqno, span) in self.recent.drain(..seen.saturating_sub(RECENT_MAX / 2)) {
                    self.painted.paint(seqno, &span);
                    #[cfg(test)]
                    (self.work += 1);
                }
                debug_assert!(
                    self.recent.front().is_none_or(|(seqno, _)| *seqno >= self.painted.to),
                    "a tombstone up to {} is still among the recent ones",
                    self.painted.to
                );
            }
            Missing::Earlier(last) => {
                let mut painted = Painted::default();
                for (&seqno, span) in self.all.range(..=last) {
                    painted.paint(seqno, span);
                    #[cfg(test)]
                    (self.work += 1);
                }
                debug_assert!(last < self.painted.to, "the moment {last} is not an earlier one");
                debug_assert_eq!(painted.to, last, "tombstones up to another number");
                if self.earlier.len() >= EARLIER_MAX {
                    self.earlier.remove(0);
                }
                debug_assert!(self.earlier.len() < EARLIER_MAX, "{} earlier moments", self.earlier.len());
                self.earlier.push(painted);
            }
        }
    }
}

impl Span {
    #[inline]
    fn covers(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }
}

impl Painted {
    /// Paints a tombstone with the highest number, over the others.
    fn paint(&mut self, seqno: Seqno, span: &Span) {
        debug_assert!(seqno > self.to || self.to == 0, "{seqno} is painted over {}", self.to);
        self.cover_up(seqno, &span.start, &span.end);
        self.to = self.to.max(seqno);
    }

    /// Paints a tombstone only where there is no newer one.
    fn paint_under(&mut self, seqno: Seqno, span: &Span) {
        debug_assert!(seqno < self.to, "{seqno} is painted under {}", self.to);
        let mut free = Vec::new();
        let mut from = Arc::clone(&span.start);
        let before =
            self.pieces.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&*span.start))).next_back();
        let within =
            self.pieces.range::<[u8], _>((Bound::Included(&*span.start), Bound::Excluded(&*span.end)));
        for (start, piece) in before.into_iter().chain(within) {
            if piece.end <= from || piece.seqno < seqno {
                continue;
            }
            if from < *start {
                free.push((from, Arc::clone(start)));
            }
            from = Arc::clone(&piece.end);
        }
        if from < span.end {
            free.push((from, Arc::clone(&span.end)));
        }
        debug_assert!(free.is_sorted_by(|a, b| a.1 <= b.0), "the free parts overlap");
        for (start, end) in free {
            self.cover_up(seqno, &start, &end);
        }
    }

    /// Makes everything from `start` (inclusive) to `end` (exclusive) one piece. Each piece is
    /// removed once and a call adds at most two, so a call costs amortized logarithmic time.
    fn cover_up(&mut self, seqno: Seqno, start: &Arc<[u8]>, end: &Arc<[u8]>) {
        debug_assert!(start < end, "a piece without keys");
        let mut rest = None;
        let before = (Bound::Unbounded, Bound::Excluded(&**start));
        if let Some((_, piece)) = self.pieces.range_mut::<[u8], _>(before).next_back()
            && piece.end > *start
        {
            let old = std::mem::replace(&mut piece.end, Arc::clone(start));
            rest = Some(Piece { end: old, seqno: piece.seqno });
        }
        while let Some((first, _)) =
            self.pieces.range::<[u8], _>((Bound::Included(&**start), Bound::Excluded(&**end))).next()
        {
            let first = Arc::clone(first);
            rest = self.pieces.remove(&first);
        }
        if let Some(rest) = rest.filter(|rest| rest.end > *end) {
            self.pieces.insert(Arc::clone(end), rest);
        }
        self.pieces.insert(Arc::clone(start), Piece { end: Arc::clone(end), seqno });
        debug_assert!(
            self.pieces
                .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&**start)))
                .next_back()
                .is_none_or(|it| it.1.end <= *start),
            "the piece before overlaps"
        );
        debug_assert!(
            self.pieces
                .range::<[u8], _>((Bound::Excluded(&**start), Bound::Unbounded))
                .next()
                .is_none_or(|it| it.0 >= end),
            "the piece after overlaps"
        );
    }

    /// Returns the last piece that begins at or before `key`.
    #[inline]
    fn at_or_before(&self, key: &[u8]) -> Option<(&Arc<[u8]>, &Piece)> {
        self.pieces.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    #[inline]
    fn covering(&self, key: &[u8]) -> Option<Seqno> {
        let (_, piece) = self.at_or_before(key)?;
        (*key < *piece.end).then_some(piece.seqno)
    }

    fn cover(&self, key: &[u8]) -> Cover {
        let next = || {
            let after = (Bound::Excluded(key), Bound::Unbounded);
            self.pieces.range::<[u8], _>(after).next().map(|(start, _)| Arc::clone(start))
        };
        match self.at_or_before(key) {
            None => Cover { seqno: 0, from: None, until: next() },
            Some((start, Piece { end, seqno })) if *key < **end => {
                Cover { seqno: *seqno, from: Some(Arc::clone(start)), until: Some(Arc::clone(end)) }
            }
            Some((_, piece)) => Cover { seqno: 0, from: Some(Arc::clone(&piece.end)), until: next() },
        }
    }
}

impl Cover {
    /// Returns true if the cover also holds for `key`.
    #[inline]
    pub(crate) fn holds_for(&self, key: &[u8]) -> bool {
        self.from.as_deref().is_none_or(|from| from <= key)
            && self.until.as_deref().is_none_or(|until| key < until)
    }

    /// Takes another tombstone into account, which may cover `key` or lie before or after it.
    fn narrow(&mut self, key: &[u8], seqno: Seqno, span: &Span) {
        let covers = span.covers(key);
        if covers {
            self.seqno = self.seqno.max(seqno);
        }
        let begins_after = *key < *span.start;
        let (before, behind) =
            (if covers { &span.start } else { &span.end }, if covers { &span.end } else { &span.start });
        if !begins_after && self.from.as_ref().is_none_or(|from| from < before) {
            self.from = Some(Arc::clone(before));
        }
        if (covers || begins_after) && self.until.as_ref().is_none_or(|until| until > behind) {
            self.until = Some(Arc::clone(behind));
        }
    }
}
