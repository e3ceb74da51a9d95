//! The lookup that nearly always suffices: pages known to be sound, one or two index lines, the first candidate.
//!
//! Whatever is out of the ordinary (a page not checked yet, a third line, a second candidate, a long head) is left
//! to the complete search in `reader.rs`, which finds the same and knows how to fail. Keeping errors out of this
//! path more than halves its instructions: results stay in registers.

use super::format::{LINE_BYTES, PAGE_BYTES, partition_of, place_of};
use super::line::{Line, LineBytes};
use super::reader::Reader;
use super::record::Tag;

/// What the index says of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// Ask the complete search.
    Unsure,
    /// No key with this hash is in the table.
    Absent,
    /// Perhaps the record at this file offset.
    At(u64),
}

/// The stored value of a record whose key is the wanted one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub tag: Tag,
    pub bytes: &'a [u8],
    /// Where it stands in the file.
    pub start: u64,
}

/// True when the slices are equal. Keys of 8 to 16 bytes are common, and two words are compared faster than a
/// library function is called.
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

impl Reader {
    /// Looks into the home line of `hash` and the one after it. The table is mapped and of this kind.
    #[inline(always)]
    pub(crate) fn candidate<const FIXED: bool>(&self, hash: u64) -> Candidate {
        let bits = self.header.partition_bits;
        let Some(partition) = self.partitions.get(partition_of(hash, bits)) else { return Candidate::Unsure };
        let place = place_of(hash, bits, partition.home_lines);
        let mut offset =
            self.header.index_offset + (partition.first_line + u64::from(place.home)) * LINE_BYTES;
        // Hardly any search needs a third line. Whether a second one is still in the partition need not be asked:
        // a line that is not the partition's last is the only one that says it goes on, and if a garbled one says
        // so, the key compare or the complete search will tell.
        for distance in 0..2 {
            let Some(line) = self.sound_line(offset) else { return Candidate::Unsure };
            let matches = line.matches::<FIXED>(place.fingerprint);
            if matches != 0 {
                let slot = matches.trailing_zeros() as usize;
                let record = if FIXED {
                    line.base() + slot as u64 * (self.header.key_bytes_max + self.header.value_bytes_max)
                } else {
                    line.record(slot)
                };
                return match record < partition.data_bytes {
                    true => Candidate::At(partition.data_start + record),
                    false => Candidate::Unsure,
                };
            }
            if !line.goes_on(place.fingerprint, distance) {
                return Candidate::Absent;
            }
            offset += LINE_BYTES;
        }
        Candidate::Unsure
    }

    /// The index line at a file offset, if its page is known to be sound.
    #[inline(always)]
    fn sound_line(&self, offset: u64) -> Option<Line<'_>> {
        if !self.checker.is_sound(offset / PAGE_BYTES) {
            return None;
        }
        let bytes = self.window().bytes.get(offset as usize..(offset + LINE_BYTES) as usize)?;
        <&LineBytes>::try_from(bytes).ok().map(Line::new)
    }

    /// Holds the record at `start` against `key`; `None` leaves it to the complete search, also when the key is
    /// another one.
    #[inline(always)]
    pub(crate) fn matches_at<const FIXED: bool>(&self, start: u64, key: &[u8]) -> Option<Stored<'_>> {
        let page = start / PAGE_BYTES;
        if !self.checker.is_sound(page) {
            return None;
        }
        let bytes = self.window().bytes.get(start as usize..)?;
        let (head_bytes, key_bytes, stored_bytes, tag) = if FIXED {
            (0, self.header.key_bytes_max as usize, self.header.value_bytes_max as usize, Tag::Raw)
        } else {
            // Lengths of one byte each; the two may stand on two pages, and both pages are checked below.
            let &[key_bytes @ 0..0x80, token @ 0..0x80, ..] = bytes else { return None };
            match self.header.is_tagged() {
                false => (2, key_bytes as usize, token as usize, Tag::Raw),
                true => (2, key_bytes as usize, token as usize >> 2, Tag::from_bits(u64::from(token))),
            }
        };
        let value_at = head_bytes + key_bytes;
        // What was read so far is believed only if the pages it came from, to the record's end, are sound.
        let last_page = (start + (value_at + stored_bytes).max(2) as u64 - 1) / PAGE_BYTES;
        if last_page != page && !(last_page == page + 1 && self.checker.is_sound(last_page)) {
            return None;
        }
        let record = bytes.get(head_bytes..value_at + stored_bytes)?;
        let (found, bytes) = record.split_at_checked(key_bytes)?;
        equal(found, key).then_some(Stored { tag, bytes, start: start + value_at as u64 })
    }
}
