//! One index line: the fingerprints and the record offsets of up to 14 (or 28) entries in 64 bytes.
//!
//! ```text
//!  0  head u64:  bits 0..48 base | 48..53 count | 53..58 unit shift | 58..60 overflow | 60..64 zero
//!  8  fingerprints, u16 each:  14 slots (28 where widths are fixed)
//! 36  record offsets, u16 each, 14 slots (not there where widths are fixed)
//! ```
//! A record starts at `partition data start + base + (offset << unit shift)`; with fixed widths at
//! `base + slot * width`. Entries are in hash order over the whole partition. A line that is full passes what is
//! left to the next one and says so: overflow 1 when its last slot is at home here (then only keys whose
//! fingerprint is not below that slot's may be further on), 2 when even the last slot came from a line before.
//! A search therefore reads one line, and the next one too for six to eight keys in a hundred (at the default fill).

use super::format::LINE_BYTES;

/// Slots of a line with record offsets.
pub(crate) const SLOTS: usize = 14;
/// Slots of a line where all widths are fixed.
pub(crate) const SLOTS_FIXED: usize = 28;

/// The bytes of a line.
pub(crate) type LineBytes = [u8; LINE_BYTES as usize];

const OFFSETS_AT: usize = 8 + 2 * SLOTS;
const BASE_MASK: u64 = (1 << 48) - 1;

/// Whether entries at home in a line, or passing through it, stand in lines after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// No entry went on.
    None = 0,
    /// Entries at home here went on, those from the last slot's fingerprint upwards.
    Home = 1,
    /// The line is full of entries from lines before; anything may have gone on.
    Passing = 2,
}

/// A line, read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    bytes: &'a LineBytes,
    head: u64,
}

impl<'a> Line<'a> {
    /// Takes the bytes as a line. Checks nothing: see [`Line::problem`].
    #[inline]
    pub fn new(bytes: &'a LineBytes) -> Self {
        Line { bytes, head: bytes.first_chunk().map_or(0, |head| u64::from_le_bytes(*head)) }
    }

    /// Offset of the first record, from the start of the partition's data.
    #[inline]
    pub fn base(self) -> u64 {
        self.head & BASE_MASK
    }

    /// Used slots; a garbled line may say up to 31.
    #[inline]
    pub fn count(self) -> usize {
        (self.head >> 48) as usize & 31
    }

    /// Records start at multiples of `1 << shift` from the base.
    #[inline]
    pub fn shift(self) -> u32 {
        (self.head >> 53) as u32 & 31
    }

    #[inline]
    fn overflow(self) -> u64 {
        self.head >> 58 & 3
    }

    /// The fingerprint in `slot`, which is below 28.
    #[inline]
    pub fn fingerprint(self, slot: usize) -> u16 {
        let at = 8 + 2 * slot;
        match self.bytes.get(at..at + 2) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]),
            _ => 0,
        }
    }

    /// Where the record of `slot` starts, from the start of the partition's data.
    #[inline]
    pub fn record(self, slot: usize) -> u64 {
        // A garbled line may have more slots; whatever they give is checked by the caller.
        let at = OFFSETS_AT + 2 * slot.min(SLOTS - 1);
        let offset = match self.bytes.get(at..at + 2) {
            Some(&[low, high]) => u16::from_le_bytes([low, high]),
            _ => 0,
        };
        self.base() + (u64::from(offset) << self.shift())
    }

    /// A bit for every used slot that has `fingerprint`.
    #[inline]
    pub fn matches<const FIXED: bool>(self, fingerprint: u16) -> u32 {
        let used = (1u32 << self.count()) - 1;
        crate::simd::equal_u16::<FIXED>(self.bytes, fingerprint) & used
    }

    /// True when a key with `fingerprint` whose home is `distance` lines before this one may stand further on.
    #[inline]
    pub fn goes_on(self, fingerprint: u16, distance: u32) -> bool {
        match self.overflow() {
            0 => false,
            1 => distance == 0 && fingerprint >= self.fingerprint(self.count().saturating_sub(1)),
            _ => true,
        }
    }

    /// What is wrong with the line, if something is, given the slots of this kind of table.
    pub fn problem(self, slots: usize) -> Option<String> {
        let count = self.count();
        if count > slots || self.head >> 60 != 0 || self.overflow() == 3 {
            return Some(format!("index line head {:016x}: {count} slots of {slots}", self.head));
        }
        if self.overflow() != 0 && count < slots {
            return Some(format!("index line says it overflows with {count} of {slots} slots used"));
        }
        None
    }
}

/// What a line is made of, before it is bytes.
#[derive(Debug, Clone)]
pub(crate) struct LineBuilder {
    /// Offset of the first record from the start of the partition's data.
    pub base: u64,
    /// Fingerprints in hash order.
    pub fingerprints: Vec<u16>,
    /// Record offsets from the base in units; empty where widths are fixed.
    pub offsets: Vec<u16>,
    /// Unit of the offsets, as a power of two.
    pub shift: u32,
    /// See [`Overflow`].
    pub overflow: Overflow,
}

impl LineBuilder {
    /// The line as it stands on disk.
    pub fn encode(&self) -> LineBytes {
        debug_assert!(self.base <= BASE_MASK && self.shift < 32);
        debug_assert!(self.fingerprints.len() <= if self.offsets.is_empty() { SLOTS_FIXED } else { SLOTS });
        let mut bytes = [0; LINE_BYTES as usize];
        let head = self.base & BASE_MASK
            | (self.fingerprints.len() as u64) << 48
            | u64::from(self.shift) << 53
            | (self.overflow as u64) << 58;
        bytes[..8].copy_from_slice(&head.to_le_bytes());
        for (to, from) in bytes[8..].chunks_exact_mut(2).zip(&self.fingerprints) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        for (to, from) in bytes[OFFSETS_AT..].chunks_exact_mut(2).zip(&self.offsets) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes
    }
}
