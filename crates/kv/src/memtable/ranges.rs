//! The range tombstones of a memtable: added one by one, asked for with every read.
//!
//! What most readers want is the newest tombstone over a key. So the tombstones up to some number
//! are kept *painted*: each over the ones before it, as pieces that do not overlap and have one
//! number each. Painting one takes away what lies under it, so that pieces are never more than
//! twice the tombstones, however they overlap, and each costs a logarithm.
//!
//! ```text
//! all       1 [b ──────── f)   2 [d ─────────── m)   3 [a ── c)          4 [e ── k)      5 [x ── z)
//! painted   up to 3:  [a ─3─ c)[c ─1─ d)[d ──2── m)
//! recent    4 and 5, looked through one by one
//! ```
//!
//! A writer only adds to the recent ones. A reader who finds too many of them that it sees paints
//! the older half. So what is painted is behind what readers see, but for one who holds on to an
//! earlier moment: for that moment, all tombstones up to it are painted apart, and kept for the
//! next who asks.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, RwLock, read, write};

use crate::kind::Seqno;
use crate::range_del::{RangeTombstoneRef, RangeTombstones};

/// Recent tombstones that a reader looks through, at most.
const RECENT_MAX: usize = if cfg!(cairn_shuttle) { 2 } else { 16 };

/// Earlier moments that are kept painted.
const EARLIER_MAX: usize = 8;

/// What a tombstone takes beside the bytes of its keys: two shared keys, its place among all, and
/// two pieces.
const TOMBSTONE_BYTES: usize = 192;

/// Range tombstones that are added one by one and read by many.
#[derive(Debug)]
pub(super) struct Ranges {
    /// How many there are; not 0 only after `state` holds them.
    count: AtomicUsize,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    all: BTreeMap<Seqno, Span>,
    painted: Painted,
    /// Those that are not painted, ascending.
    recent: VecDeque<(Seqno, Span)>,
    /// As of earlier moments, the one that was asked for last at the end.
    earlier: Vec<Painted>,
    /// How many tombstones were painted so far, each time counted.
    #[cfg(test)]
    work: u64,
}

/// What a tombstone covers. Its keys are shared with the pieces that are made of it.
#[derive(Debug, Clone)]
struct Span {
    start: Arc<[u8]>,
    end: Arc<[u8]>,
}

/// The newest tombstone over each key, of those up to a number.
#[derive(Debug, Default)]
struct Painted {
    /// The highest number of them; 0 for none.
    to: Seqno,
    /// By their first keys; they do not overlap.
    pieces: BTreeMap<Arc<[u8]>, Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    end: Arc<[u8]>,
    seqno: Seqno,
}

/// The newest tombstone over a key, and how far around the key that holds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Its number; 0 for none.
    pub seqno: Seqno,
    /// The first key for which it is so; `None` from the beginning on.
    pub from: Option<Arc<[u8]>>,
    /// The first key behind; `None` up to the end.
    pub until: Option<Arc<[u8]>>,
}

/// What has to be done before a question can be answered.
enum Missing {
    /// Many of the recent ones are to be painted.
    Paint,
    /// The moment of this number is to be painted.
    Earlier(Seqno),
}

impl Ranges {
    pub(super) fn new() -> Self {
        Ranges { count: AtomicUsize::new(0), state: RwLock::new(State::default()) }
    }

    /// How many were added. Cost: one load.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds one and returns how many bytes of memory it takes; `None` if it covers nothing.
    ///
    /// Cost: a search among all by number; where it comes later than ones with higher numbers that
    /// are painted, also the pieces that it reaches over.
    pub(super) fn add(&self, tombstone: RangeTombstoneRef<'_>) -> Option<usize> {
        let RangeTombstoneRef { start, end, seqno } = tombstone;
        if start >= end {
            return None;
        }
        let span = Span { start: Arc::from(start), end: Arc::from(end) };
        let mut state = write(&self.state);
        state.all.insert(seqno, span.clone());
        if seqno < state.painted.to {
            state.painted.paint_under(seqno, &span);
            state.earlier.retain(|painted| painted.to < seqno);
        } else {
            // The last place, or a few before it: writers come in nearly the order of their
            // numbers.
            let at = state.recent.partition_point(|(other, _)| *other < seqno);
            state.recent.insert(at, (seqno, span));
        }
        drop(state);
        self.count.fetch_add(1, Ordering::Release);
        Some(TOMBSTONE_BYTES + start.len() + end.len())
    }

    /// Runs `look` on the state, which can tell what tombstones up to `at` come to.
    #[inline]
    fn look<T>(&self, at: Seqno, look: impl Fn(&State) -> Result<T, Missing>) -> T {
        // BOUND: each turn does what the one before missed. Another reader may paint for a later
        // moment in between, and only as many of them come as there are readers; then `at` is an
        // earlier moment, which stays.
        loop {
            let missing = match look(&read(&self.state)) {
                Ok(found) => return found,
                Err(missing) => missing,
            };
            write(&self.state).make(at, missing);
        }
    }

    /// The highest sequence number, up to `at`, of those that cover `key`. Cost: one branch while
    /// there are none.
    #[inline]
    pub(super) fn newest_covering(&self, key: &[u8], at: Seqno) -> Option<Seqno> {
        if self.count() == 0 {
            return None;
        }
        self.look(at, |state| {
            let (painted, recent) = state.as_of(at)?;
            let covering = recent.filter(|(_, span)| span.covers(key)).map(|(seqno, _)| *seqno).max();
            Ok(covering.max(painted.and_then(|painted| painted.covering(key))))
        })
    }

    /// As [`Ranges::newest_covering`], with how far that holds around `key` for this `at`.
    pub(super) fn cover(&self, key: &[u8], at: Seqno) -> Cover {
        self.look(at, |state| {
            let (painted, recent) = state.as_of(at)?;
            let mut cover = painted.map_or_else(Cover::default, |painted| painted.cover(key));
            recent.for_each(|(seqno, span)| cover.narrow(key, *seqno, span));
            Ok(cover)
        })
    }

    /// Whether one of those written after `seqno` covers `key`. `visible` is what readers see:
    /// later ones are looked through one by one.
    pub(super) fn covers_after(&self, key: &[u8], seqno: Seqno, visible: Seqno) -> bool {
        self.look(visible, |state| {
            // A reader who sees more may have painted more.
            let at = visible.max(state.painted.to);
            let (painted, recent) = state.as_of(at)?;
            let unseen = state.recent.iter().rev().take_while(|(other, _)| *other > at);
            let mut recent = recent.chain(unseen).filter(|(other, _)| *other > seqno);
            let painted = painted.and_then(|painted| painted.covering(key));
            Ok(painted.is_some_and(|newest| newest > seqno) || recent.any(|(_, span)| span.covers(key)))
        })
    }

    /// The result of `look` at each tombstone written after `seqno`, from the oldest on, until
    /// there is one.
    pub(super) fn find_after<T>(
        &self,
        seqno: Seqno,
        mut look: impl FnMut(RangeTombstoneRef<'_>) -> Option<T>,
    ) -> Option<T> {
        let state = read(&self.state);
        let after = (Bound::Excluded(seqno), Bound::Unbounded);
        state
            .all
            .range(after)
            .find_map(|(&seqno, span)| look(RangeTombstoneRef { start: &span.start, end: &span.end, seqno }))
    }

    /// Those that somebody may miss who has one of `snapshots` (ascending) or sees all: see
    /// [`RangeTombstones::build_for`].
    pub(super) fn for_snapshots(&self, snapshots: &[Seqno]) -> RangeTombstones {
        let state = read(&self.state);
        let all = state.all.iter();
        let all = all.map(|(&seqno, Span { start, end })| RangeTombstoneRef { start, end, seqno });
        RangeTombstones::build_for(all, Some(snapshots))
    }

    /// All of them.
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

    /// How many tombstones were painted so far, each time counted.
    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        read(&self.state).work
    }

    /// The lowest and the highest sequence number.
    pub(super) fn seqnos(&self) -> Option<(Seqno, Seqno)> {
        let state = read(&self.state);
        Some((*state.all.first_key_value()?.0, *state.all.last_key_value()?.0))
    }
}

impl State {
    /// What tombstones up to `at` come to: those that are painted, and the others.
    #[inline]
    fn as_of(&self, at: Seqno) -> Result<(Option<&Painted>, impl Iterator<Item = &(Seqno, Span)>), Missing> {
        let mut painted = Some(&self.painted);
        let mut recent = 0;
        if at >= self.painted.to {
            // Not counted to the end: there may be thousands that the reader does not see.
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

    /// Does what was missing for a reader at `at`.
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
            }
            Missing::Earlier(last) => {
                let mut painted = Painted::default();
                for (&seqno, span) in self.all.range(..=last) {
                    painted.paint(seqno, span);
                    #[cfg(test)]
                    (self.work += 1);
                }
                if self.earlier.len() >= EARLIER_MAX {
                    self.earlier.remove(0);
                }
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
    /// Puts a tombstone over the others: it has the highest number.
    fn paint(&mut self, seqno: Seqno, span: &Span) {
        self.cover_up(seqno, &span.start, &span.end);
        self.to = self.to.max(seqno);
    }

    /// Puts a tombstone where no newer one is.
    fn paint_under(&mut self, seqno: Seqno, span: &Span) {
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
        for (start, end) in free {
            self.cover_up(seqno, &start, &end);
        }
    }

    /// Makes everything from `start` to before `end` one piece. Each piece is taken away once and a
    /// call adds two at most, so that calls cost a logarithm each, all counted together.
    fn cover_up(&mut self, seqno: Seqno, start: &Arc<[u8]>, end: &Arc<[u8]>) {
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
    }

    /// The last piece that begins at or before `key`.
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
    /// True when it holds for `key` too.
    #[inline]
    pub(crate) fn holds_for(&self, key: &[u8]) -> bool {
        self.from.as_deref().is_none_or(|from| from <= key)
            && self.until.as_deref().is_none_or(|until| key < until)
    }

    /// Takes a tombstone into account that lies around `key`, before it or behind it.
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
