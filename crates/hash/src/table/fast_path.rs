//! The fast path of a lookup, which nearly always suffices: pages known to be sound, one index
//! line, the first candidate.
//!
//! All unusual cases (a page that was not verified yet, a second line, a second candidate, a long
//! head) are left to the complete search in `reader.rs`, which gives the same results and reports
//! errors. A processor overlaps the cache misses of as many lookups as fit into its reorder buffer,
//! so each instruction saved here increases throughput.

use super::format::{LINE_BYTES, PAGE_BYTES};
use super::line::{Line, SLOTS};
use super::place::Fingerprint;
use super::reader::Reader;
use super::record::Tag;

/// The start of the search for a hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Home {
    /// Number of the index line.
    pub line: u64,
    /// File offset of the partition's data.
    data_start: u64,
    fingerprint: Fingerprint,
}

/// The result of searching a hash in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// The complete search has to decide.
    Unsure,
    /// The table has no key with this hash.
    Absent,
    /// The record at this file offset may have the key.
    At {
        start: u64,
        /// Approximate size of the record, for prefetching.
        bytes: u64,
    },
}

/// The stored value of the record of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub tag: Tag,
    pub bytes: &'a [u8],
    /// File offset of the stored value.
    pub start: u64,
}

/// Returns true if the slices are equal. Keys of 8 to 16 bytes are common, and comparing two words
/// is faster than calling a library function.
#[inline(always)]
fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) if a.len() <= 16 => {
            let differ = |x: &[u8; 8], y: &[u8; 8]| u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
            differ(a_first, b_first) | differ(a_last, b_last) == 0
        }
        _ => a == b,
    }
}

/// Properties of a whole open table, so that lookups need not test them one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Records with lengths and nothing else. Pages need not be checked: every page was verified at
    /// open, or the caller trusts the file.
    PlainTrusted,
    /// The same, but pages have to be checked.
    Plain,
    /// Records with tags.
    Tagged,
    /// Records of one width.
    Fixed,
    /// Records that have to be read from the file first. There is no fast path.
    Read,
}

/// Calls a function of the reader that is generic over FIXED, TAGGED and CHECKED.
macro_rules! for_kind {
    ($self:ident . $function:ident ( $($argument:expr),* ), or $otherwise:expr) => {
        match $self.kind {
            Kind::PlainTrusted => $self.$function::<false, false, false>($($argument),*),
            Kind::Plain => $self.$function::<false, false, true>($($argument),*),
            Kind::Tagged => $self.$function::<false, true, true>($($argument),*),
            Kind::Fixed => $self.$function::<true, false, true>($($argument),*),
            Kind::Read => $otherwise,
        }
    };
}
pub(crate) use for_kind;

impl Reader {
    /// Looks up the value of `key` in a plain table. The outer `None` means that only the complete
    /// search can tell, the inner one that the key is absent.
    #[inline(always)]
    pub(crate) fn try_get_plain<const CHECKED: bool>(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        Some(self.try_stored::<false, false, CHECKED>(key, self.hash(key))?.map(|stored| stored.bytes))
    }

    /// Looks up the stored value of `key`, whatever its tag. The outer `None` means that only the
    /// complete search can tell, the inner one that the key is absent. The pages of the returned
    /// value are sound.
    #[inline(always)]
    pub(crate) fn try_stored<const FIXED: bool, const TAGGED: bool, const CHECKED: bool>(
        &self,
        key: &[u8],
        hash: u64,
    ) -> Option<Option<Stored<'_>>> {
        match self.candidate::<FIXED, TAGGED, CHECKED>(self.home(hash)) {
            Candidate::Unsure => None,
            Candidate::Absent => Some(None),
            Candidate::At { start, .. } => self.matches_at::<FIXED, TAGGED, CHECKED>(start, key).map(Some),
        }
    }

    /// Returns the start of the search for `hash`.
    #[inline(always)]
    pub(crate) fn home(&self, hash: u64) -> Home {
        let (partition, place) = self.partitions.find(hash);
        let line = partition.first_line + u64::from(place.home);
        debug_assert!(line < self.header.index_lines, "line {line}");
        Home { line, data_start: partition.data_start, fingerprint: place.fingerprint }
    }

    /// Searches the home line. The table must be mapped and of the kind that the parameters
    /// describe.
    #[inline(always)]
    pub(crate) fn candidate<const FIXED: bool, const TAGGED: bool, const CHECKED: bool>(
        &self,
        Home { line, data_start, fingerprint }: Home,
    ) -> Candidate {
        debug_assert!(self.is_mapped());
        debug_assert_eq!((FIXED, TAGGED), (self.header.is_fixed(), self.header.is_tagged()));
        if CHECKED && !self.checker.is_sound(self.index_page + line / (PAGE_BYTES / LINE_BYTES)) {
            return Candidate::Unsure;
        }
        let Some(line) = self.lines().get(line as usize).map(Line::new) else { return Candidate::Unsure };
        let slot = line.first_home::<FIXED>(fingerprint) as usize;
        if slot < SLOTS {
            let (record, bytes) = if FIXED {
                let width = self.header.key_bytes_max + self.header.value_bytes_max;
                (line.base() + slot as u64 * width, width)
            } else {
                (line.record(slot), line.record_bytes(slot))
            };
            return Candidate::At { start: data_start + record, bytes };
        }
        if line.is_last() { Candidate::Absent } else { Candidate::Unsure }
    }

    /// Compares the key of the record at `start` with `key`. `None` leaves the decision to the
    /// complete search, also if the key differs.
    #[inline(always)]
    pub(crate) fn matches_at<const FIXED: bool, const TAGGED: bool, const CHECKED: bool>(
        &self,
        start: u64,
        key: &[u8],
    ) -> Option<Stored<'_>> {
        if CHECKED && !self.checker.is_sound(start / PAGE_BYTES) {
            return None;
        }
        let bytes = self.records_to_data_end().get(start as usize..)?;
        let (head_bytes, key_bytes, stored_bytes, tag) = if FIXED {
            (0, self.header.key_bytes_max as usize, self.header.value_bytes_max as usize, Tag::Raw)
        } else {
            // Handles a key of up to 127 bytes and a value of up to 16 KiB. If the head crosses
            // into the next page, that page is checked below.
            let (key_bytes, token, head_bytes) = match *bytes {
                [key, token, ..] if (key | token) < 0x80 => (key, usize::from(token), 2),
                [key @ 0..0x80, low, high @ 1..0x80, ..] => {
                    (key, usize::from(low & 0x7f) | usize::from(high) << 7, 3)
                }
                _ => return None,
            };
            match TAGGED {
                false => (head_bytes, usize::from(key_bytes), token, Tag::Raw),
                true => (head_bytes, usize::from(key_bytes), token >> 2, Tag::from_bits(token as u64)),
            }
        };
        if key_bytes != key.len() {
            return None;
        }
        let value_at = head_bytes + key_bytes;
        if CHECKED {
            // The bytes read so far may be used only if all pages up to the end of the record are
            // sound.
            let (page, last) = (start / PAGE_BYTES, start + (value_at + stored_bytes).max(3) as u64 - 1);
            if last / PAGE_BYTES != page
                && !(last / PAGE_BYTES == page + 1 && self.checker.is_sound(page + 1))
            {
                return None;
            }
        }
        let record = bytes.get(head_bytes..value_at + stored_bytes)?;
        let (found, bytes) = record.split_at_checked(key_bytes)?;
        equal(found, key).then_some(Stored { tag, bytes, start: start + value_at as u64 })
    }
}
