//! One index line: fingerprints and record lengths of up to 28 entries in 64 bytes.
//!
//! ```text
//!  0  head u64:  0..5, 5..10, 10..15 quarters | 15..20 state | 20..25 unit shift | 25..64 base
//!  8  seconds, u8 each, 28 slots:  record length in units (fixed widths: second fingerprint byte)
//! 36  firsts, u8 each, 28 slots:   first fingerprint byte
//! ```
//! The record of a slot starts at `partition data start + base + (sum of the seconds before it <<
//! unit shift)`. With fixed widths it starts at `base + slot * width`. The second of the last slot
//! only tells how much to prefetch, and may be too small.
//!
//! Entries are in hash order over the whole partition. A full line passes its remaining entries on
//! to the next line, which stores them before its own. The quarters are the numbers of slots before
//! the first own entry whose fingerprint begins with the bits 01, 10 and 11. They give two more
//! bits of fingerprint for less than one bit per entry.
//!
//! State: 0 to 28 is the number of used slots. 29: all slots are used, and some entries at home
//! here were passed on, none of them with a smaller fingerprint than that of the last slot. 30: all
//! slots are used by entries from earlier lines, and any entry may have been passed on. At the
//! default fill, one search in a hundred reads a second line.

use super::format::LINE_BYTES;
pub(crate) use super::format::SLOTS;
use super::place::Fingerprint;
use crate::simd::{equal_firsts, equal_seconds, sum_first};

/// The encoded form of a line.
pub(crate) type LineBytes = [u8; LINE_BYTES as usize];

/// Exclusive bound of the base of a line, which is an offset in bytes from the start of the
/// partition's data.
pub(crate) const BASE_END: u64 = 1 << 39;

/// Maximum distance in lines between an entry and its home line. By chance, not even the fullest
/// tables have an entry more than about ten lines away. The limit bounds a search even in a forged
/// table.
pub(crate) const DISTANCE_MAX: u32 = 256;

const SECONDS_AT: usize = 8;
const FIRSTS_AT: usize = SECONDS_AT + SLOTS;
const STATE_AT: u32 = 15;
const SHIFT_AT: u32 = 20;
const BASE_AT: u32 = 25;
const STATE_HOME: u64 = SLOTS as u64 + 1;
const STATE_PASSING: u64 = SLOTS as u64 + 2;

const _: () = assert!(FIRSTS_AT + SLOTS == LINE_BYTES as usize, "head, seconds and firsts fill a line");
const _: () = assert!(SECONDS_AT == 8 && FIRSTS_AT == 36 && SLOTS == 28, "the offsets in simd.rs");
const _: () = assert!(STATE_PASSING < 32, "the state has five bits");
const _: () = assert!(STATE_AT + 5 == SHIFT_AT && SHIFT_AT + 5 == BASE_AT, "fields of five bits");
const _: () = assert!(BASE_END == 1 << (64 - BASE_AT), "the base takes the rest of the head");

/// Whether the line passed entries on to later lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// The line passed no entries on.
    None,
    /// Entries at home here were passed on, none of them with a smaller fingerprint than that of
    /// the last slot.
    Home,
    /// The line is full of entries from earlier lines; any entry may have been passed on.
    Passing,
}

/// A read view of an encoded line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    bytes: &'a LineBytes,
    head: u64,
}

impl<'a> Line<'a> {
    /// Interprets the bytes as a line. Checks nothing: see [`Line::problem`].
    #[inline(always)]
    pub fn new(bytes: &'a LineBytes) -> Self {
        Line { bytes, head: bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head)) }
    }

    /// Returns the offset of the first record from the start of the partition's data.
    #[inline(always)]
    pub fn base(self) -> u64 {
        self.head >> BASE_AT
    }

    /// Returns the number of used slots.
    pub fn count(self) -> usize {
        (self.state() as usize).min(SLOTS)
    }

    #[inline(always)]
    fn state(self) -> u64 {
        self.head >> STATE_AT & 31
    }

    #[inline(always)]
    fn shift(self) -> u32 {
        (self.head >> SHIFT_AT) as u32 & 31
    }

    /// Returns the number of slots before the first own entry of `quarter`, 1 to 3.
    fn quarter_start(self, quarter: u32) -> u32 {
        debug_assert!((1..=3).contains(&quarter), "quarter {quarter}, expected 1 to 3");
        (self.head << 5 >> (5 * quarter)) as u32 & 31
    }

    /// Returns the offset of the record of `slot` from the start of the partition's data. Not for
    /// fixed widths.
    #[inline(always)]
    pub fn record(self, slot: usize) -> u64 {
        debug_assert!(slot < SLOTS, "slot {slot} of a line");
        self.base() + (sum_first(self.bytes, slot) << self.shift())
    }

    /// Returns the first slot that may hold a key with `fingerprint` at home in this line;
    /// [`SLOTS`] if there is none.
    #[inline(always)]
    pub fn first_home<const FIXED: bool>(self, fingerprint: Fingerprint) -> u32 {
        let (start, end) = self.quarter(fingerprint);
        // A state above the number of slots does no harm, because no bits are set above them.
        let matches = u64::from(self.equal::<FIXED>(fingerprint) >> start);
        let slot = start + (matches | 1 << 32).trailing_zeros();
        if slot < end { slot } else { SLOTS as u32 }
    }

    /// Returns the approximate size of the record of `slot` in bytes, for prefetching. Not for
    /// fixed widths.
    #[inline(always)]
    pub fn record_bytes(self, slot: usize) -> u64 {
        debug_assert!(slot < SLOTS, "slot {slot} of a line");
        u64::from(self.bytes[SECONDS_AT + slot.min(SLOTS - 1)]) << self.shift()
    }

    /// Returns a bit for every slot that may hold a key with `fingerprint` at home in this line.
    #[inline]
    pub fn matches_home<const FIXED: bool>(self, fingerprint: Fingerprint) -> u32 {
        let (start, end) = self.quarter(fingerprint);
        self.equal::<FIXED>(fingerprint) & (1u32 << end).wrapping_sub(1 << start)
    }

    /// Returns the first slot of the quarter of `fingerprint` and the slot after its last.
    #[inline(always)]
    fn quarter(self, fingerprint: Fingerprint) -> (u32, u32) {
        // Selects two neighbours of the five-bit numbers: 0, the three quarters, the state.
        let (ends, shift) = (self.head as u32, 5 * fingerprint.quarter());
        (ends << 5 >> shift & 31, ends >> shift & 31)
    }

    /// Does the same as [`Line::matches_home`] for a key whose home is an earlier line.
    #[inline]
    pub fn matches_passed<const FIXED: bool>(self, fingerprint: Fingerprint) -> u32 {
        self.equal::<FIXED>(fingerprint) & ((1 << self.quarter_start(1)) - 1)
    }

    #[inline(always)]
    fn equal<const FIXED: bool>(self, fingerprint: Fingerprint) -> u32 {
        let first = equal_firsts(self.bytes, fingerprint.first());
        debug_assert_eq!(first >> SLOTS, 0, "a bit for each slot");
        if FIXED { first & equal_seconds(self.bytes, fingerprint.second()) } else { first }
    }

    /// Returns true if the line passed nothing on, so that no search has to continue after it.
    #[inline(always)]
    pub fn is_last(self) -> bool {
        self.state() <= SLOTS as u64
    }

    /// Returns true if a key with `fingerprint`, whose home is `distance` lines before this one,
    /// may be in a later line.
    #[inline]
    pub fn goes_on(self, fingerprint: Fingerprint, distance: u32) -> bool {
        match self.state() {
            STATE_HOME => distance == 0 && fingerprint.first_ten() >= self.last_own(),
            state => state > STATE_HOME,
        }
    }

    /// Returns the first ten bits of the fingerprint in the last slot, which is at home here.
    fn last_own(self) -> u32 {
        debug_assert_eq!(self.state(), STATE_HOME, "only then the last slot is at home here");
        let last = SLOTS as u32 - 1;
        let quarter = (1..4).filter(|&quarter| self.quarter_start(quarter) <= last).count() as u32;
        quarter << 8 | u32::from(self.bytes[FIRSTS_AT + SLOTS - 1])
    }

    /// Returns a description of the damage if the line is invalid.
    pub fn problem(self) -> Option<String> {
        let ends = [1, 2, 3].map(|quarter| self.quarter_start(quarter));
        let in_order = ends[0] <= ends[1] && ends[1] <= ends[2] && ends[2] <= self.count() as u32;
        if self.state() > STATE_PASSING || !in_order {
            return Some(format!(
                "index line head {:016x}: state {} with quarters at {ends:?}",
                self.head,
                self.state()
            ));
        }
        None
    }
}

/// The content of a line before it is encoded.
#[derive(Debug, Clone)]
pub(crate) struct LineBuilder<'a> {
    /// Offset of the first record from the start of the partition's data.
    pub base: u64,
    /// The fingerprints in slot order, each with whether its home is this line.
    pub fingerprints: &'a [(Fingerprint, bool)],
    /// For each slot the length of its record in units (for the last slot capped at 255), or the
    /// second fingerprint byte.
    pub seconds: &'a [u8],
    /// The unit of the lengths, as a power of two.
    pub shift: u32,
    /// See [`Overflow`].
    pub overflow: Overflow,
}

impl LineBuilder<'_> {
    /// Encodes the line.
    pub fn encode(&self) -> LineBytes {
        self.assert_invariants();
        let state = match self.overflow {
            Overflow::None => self.fingerprints.len() as u64,
            Overflow::Home => STATE_HOME,
            Overflow::Passing => STATE_PASSING,
        };
        let mut head = self.base << BASE_AT | u64::from(self.shift) << SHIFT_AT | state << STATE_AT;
        for quarter in 1..4 {
            let before = |(print, own): &&(Fingerprint, bool)| !own || print.quarter() < quarter;
            let start = self.fingerprints.iter().take_while(before).count() as u64;
            head |= start << (5 * (quarter - 1));
        }
        let mut bytes = [0; LINE_BYTES as usize];
        bytes[..8].copy_from_slice(&head.to_le_bytes());
        bytes[SECONDS_AT..SECONDS_AT + self.seconds.len()].copy_from_slice(self.seconds);
        for (first, (print, _)) in bytes[FIRSTS_AT..].iter_mut().zip(self.fingerprints) {
            *first = print.first();
        }
        let line = Line::new(&bytes);
        debug_assert_eq!(line.problem(), None, "a reader accepts the line");
        debug_assert_eq!((line.base(), line.shift()), (self.base, self.shift));
        debug_assert_eq!(line.count(), self.fingerprints.len());
        bytes
    }

    /// Checks the content that a search relies on.
    fn assert_invariants(&self) {
        let prints = self.fingerprints;
        debug_assert!(self.base < BASE_END, "base {}", self.base);
        debug_assert!(self.shift < 32, "unit shift {}", self.shift);
        debug_assert!(prints.len() <= SLOTS, "{} entries in a line", prints.len());
        debug_assert_eq!(self.seconds.len(), prints.len());
        // A search for a key at home here begins at its quarter, after the entries of earlier
        // lines.
        debug_assert!(prints.is_sorted_by_key(|(_, own)| *own), "own entries come last");
        debug_assert!(
            prints.iter().filter(|(_, own)| *own).is_sorted_by_key(|(print, _)| print.first_ten()),
            "own entries ascend"
        );
        // A search goes on only from a full line.
        let is_full = prints.len() == SLOTS;
        let ends_own = prints.last().is_some_and(|(_, own)| *own);
        match self.overflow {
            Overflow::None => {}
            Overflow::Home => debug_assert!(is_full && ends_own, "{} entries were passed on", prints.len()),
            Overflow::Passing => debug_assert!(is_full && !ends_own, "{} entries", prints.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(quarter: u64, first: u64, second: u64) -> Fingerprint {
        Fingerprint::new(quarter << 62 | first << 54 | second << 46)
    }

    /// Goal: a key is searched in the slots of its quarter and nowhere else. Method: the same
    /// fingerprint byte in every slot, so that only the quarter tells keys apart.
    #[test]
    fn quarters_bound_the_search() {
        let prints: Vec<_> = [(0, false), (0, true), (1, true), (1, true), (3, true), (3, true)]
            .map(|(quarter, own)| (print(quarter, 9, 0), own))
            .to_vec();
        let builder = LineBuilder {
            base: BASE_END - 1,
            fingerprints: &prints,
            seconds: &[255, 3, 0, 1, 7, 0],
            shift: 31,
            overflow: Overflow::None,
        };
        let bytes = builder.encode();
        let line = Line::new(&bytes);
        assert_eq!((line.base(), line.count(), line.problem()), (BASE_END - 1, 6, None));
        for (quarter, slots) in [(0, 0b11), (1, 0b1100), (2, 0), (3, 0b11_0000)] {
            let wanted = print(quarter, 9, 77);
            assert_eq!(line.matches_home::<false>(wanted), slots, "quarter {quarter}");
            let first = slots.trailing_zeros().min(SLOTS as u32);
            assert_eq!(line.first_home::<false>(wanted), first, "quarter {quarter}");
            assert_eq!(line.matches_home::<false>(print(quarter, 8, 0)), 0);
        }
        // Entries from earlier lines come before the quarters.
        assert_eq!(line.matches_passed::<false>(print(3, 9, 0)), 0b11);
        // With fixed widths the second byte is compared too.
        assert_eq!(line.matches_home::<true>(print(1, 9, 1)), 0b1000);
        assert_eq!(line.first_home::<true>(print(1, 9, 1)), 3);
        assert_eq!(line.record(0), BASE_END - 1);
        assert_eq!(line.record(5), BASE_END - 1 + ((255 + 3 + 1 + 7) << 31));
        assert!(line.is_last() && !line.goes_on(print(3, 255, 0), 0));
    }

    /// Goal: a search continues to the next line exactly if entries were passed on. Method: full
    /// lines of own entries and of entries from earlier lines.
    #[test]
    fn full_lines_continue_in_the_next_line() {
        let encode = |own: bool, overflow| {
            let prints: Vec<_> = (0..SLOTS as u64).map(|n| (print(n / 10, n, 0), own)).collect();
            let seconds = &[1; SLOTS];
            LineBuilder { base: 0, fingerprints: &prints, seconds, shift: 0, overflow }.encode()
        };
        let bytes = encode(true, Overflow::Home);
        let line = Line::new(&bytes);
        assert_eq!((line.count(), line.is_last(), line.problem()), (SLOTS, false, None));
        for (wanted, goes_on) in [
            (print(2, 27, 0), true),
            (print(2, 26, 255), false),
            (print(3, 0, 0), true),
            (print(1, 99, 0), false),
        ] {
            assert_eq!(line.goes_on(wanted, 0), goes_on, "{wanted:?}");
            assert!(!line.goes_on(wanted, 1));
        }
        assert_eq!(line.first_home::<false>(print(3, 27, 0)), SLOTS as u32);
        // The last slot is the only one of its quarter.
        let prints: Vec<_> = (0..SLOTS as u64).map(|n| (print(n / 27 * 2, n, 0), true)).collect();
        let seconds = &[1; SLOTS];
        let overflow = Overflow::Home;
        let bytes = LineBuilder { base: 0, fingerprints: &prints, seconds, shift: 0, overflow }.encode();
        let line = Line::new(&bytes);
        for (wanted, goes_on) in [(print(0, 99, 0), false), (print(1, 99, 0), false), (print(2, 27, 0), true)]
        {
            assert_eq!(line.goes_on(wanted, 0), goes_on, "{wanted:?}");
        }
        let bytes = encode(false, Overflow::Passing);
        let line = Line::new(&bytes);
        assert_eq!((line.count(), line.problem()), (SLOTS, None));
        assert!(line.goes_on(print(0, 0, 0), 0) && line.goes_on(print(0, 0, 0), 5));
        assert_eq!(line.matches_passed::<false>(print(0, 27, 0)), 1 << 27);
    }

    /// Goal: heads that no builder writes are reported. Method: a state out of range, and quarters
    /// out of range or out of order.
    #[test]
    fn impossible_line_heads_are_reported() {
        for (head, sound) in
            [(0u64, true), (31 << 15, false), (5 | 3 << 5, false), (4 << 10 | 3 << 15, false)]
        {
            let mut bytes = [0; LINE_BYTES as usize];
            bytes[..8].copy_from_slice(&head.to_le_bytes());
            assert_eq!(Line::new(&bytes).problem().is_none(), sound, "{head:x}");
        }
    }
}
