//! The fast path of a lookup: index and log in memory, log not compressed.
//!
//! A lookup here takes only a few loads and compares, and returning errors would double its cost.
//! This path therefore reports no errors. If the bytes are invalid it is [unsure](Answer::Unsure),
//! and the caller repeats the lookup by the general path, which determines the damage and its
//! location.

use cairn_codec::murmur3;

use super::index_header::IndexHeader;
use super::log_header::LOG_HEADER_BYTES;
use super::record::{RecordHead, RecordKind};
use super::slot::{Ring, Slot};
use crate::prefetch::prefetch;

/// Size of a cache line on all common processors.
const LINE_BYTES: usize = 64;

/// The result of a fast lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    Found(&'a [u8]),
    Absent,
    /// The general path has to decide.
    Unsure,
}

/// The bytes of both files, and the parts of the index header that a lookup needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct InMemory<'a> {
    pub header: &'a IndexHeader,
    pub ring: &'a Ring,
    /// All slots.
    pub slots: &'a [u8],
    /// The records of the log, from [`LOG_HEADER_BYTES`] to its end.
    pub log: &'a [u8],
}

impl<'a> InMemory<'a> {
    /// Returns the hash of `key` with `H` bytes.
    #[inline(always)]
    pub fn hash<const H: usize>(&self, key: &[u8]) -> u64 {
        let seed = self.header.seed;
        if H == 4 { u64::from(murmur3::hash32(key, seed)) } else { murmur3::hash64(key, seed) }
    }

    /// Looks up `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Answer<'a> {
        match (self.header.hash_bytes, self.header.address_bytes) {
            (4, 4) => self.get_in::<4, 4>(key),
            (4, _) => self.get_in::<4, 8>(key),
            (_, 4) => self.get_in::<8, 4>(key),
            (_, _) => self.get_in::<8, 8>(key),
        }
    }

    #[inline(always)]
    fn get_in<const H: usize, const A: usize>(&self, key: &[u8]) -> Answer<'a> {
        debug_assert_eq!((H, A), (self.header.hash_bytes as usize, self.header.address_bytes as usize));
        let hash = self.hash::<H>(key);
        match probe::<H, A>(self, hash) {
            Step::Candidate(address) => match self.record(address, key) {
                Record::Value(value) => Answer::Found(value),
                // Two keys with the same hash are rare, so the general path handles this case.
                Record::OtherKey | Record::Bad => Answer::Unsure,
            },
            Step::Absent => Answer::Absent,
            Step::Unsure => Answer::Unsure,
        }
    }

    /// Prefetches the cache lines of the first slots that a probe for `hash` reads.
    #[inline(always)]
    pub fn prefetch_slots<const H: usize, const A: usize>(&self, hash: u64) {
        debug_assert_eq!((H, A), (self.header.hash_bytes as usize, self.header.address_bytes as usize));
        let at = self.ring.home(hash) as usize * (H + A);
        prefetch(self.slots, at);
        // On average a probe ends with the third slot.
        prefetch(self.slots, at + 3 * (H + A) - 1);
    }

    /// Prefetches the cache lines of the record at `address`.
    #[inline(always)]
    pub fn prefetch_record(&self, address: u64) {
        let position = (self.header.split(address).0 as usize).wrapping_sub(LOG_HEADER_BYTES);
        prefetch(self.log, position);
        prefetch(self.log, position.wrapping_add(LINE_BYTES));
    }

    /// Compares the record at `address` with `key`.
    #[inline(always)]
    pub fn record(&self, address: u64, key: &[u8]) -> Record<'a> {
        let (position, entry) = self.header.split(address);
        match usize::try_from(position).ok().and_then(|position| position.checked_sub(LOG_HEADER_BYTES)) {
            Some(at) if entry == 0 => match self.log.get(at..) {
                Some(record) => match_record(record, key),
                None => Record::Bad,
            },
            _ => Record::Bad,
        }
    }
}

/// The result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The first address stored under the hash.
    Candidate(u64),
    /// No slot has the hash.
    Absent,
    /// The slots contradict the header.
    Unsure,
}

/// Probes the slots that may hold `hash`, up to the first that does.
#[inline(always)]
pub(super) fn probe<const H: usize, const A: usize>(in_memory: &InMemory<'_>, hash: u64) -> Step {
    let mut slot = in_memory.ring.home(hash);
    // BOUND: no entry is further from its home than the maximum in the header. In a full table the
    // probe may have seen all entries by then; the general path handles this case.
    for displacement in 0..=in_memory.header.displacement_max + 1 {
        let at = slot as usize * (H + A);
        let Some(bytes) = in_memory.slots.get(at..at + H + A) else { return Step::Unsure };
        let found = Slot::decode::<H, A>(bytes);
        if found.is_empty() {
            return if found.hash == 0 { Step::Absent } else { Step::Unsure };
        }
        if found.hash == hash {
            return Step::Candidate(found.address);
        }
        let others = in_memory.ring.displacement(slot, found.hash);
        // An impossible slot, most likely because its hash is damaged.
        if others > in_memory.header.displacement_max {
            return Step::Unsure;
        }
        if others < displacement {
            return Step::Absent;
        }
        slot = in_memory.ring.next_slot(slot);
    }
    Step::Unsure
}

/// The result of comparing a record with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A PUT of the key, with this value.
    Value(&'a [u8]),
    OtherKey,
    /// Not a PUT record, or a truncated one.
    Bad,
}

/// Compares the record at the start of `record` with `key`.
#[inline(always)]
pub(super) fn match_record<'a>(record: &'a [u8], key: &[u8]) -> Record<'a> {
    // Most records have a short key and a short value, and so a head of two bytes.
    let (key_bytes, value_bytes, body) = match record {
        [key_bytes @ 1..0x80, value_bytes @ ..0x80, body @ ..] => {
            (u64::from(*key_bytes) - 1, u64::from(*value_bytes), body)
        }
        _ => match long_head(record) {
            Some(parts) => parts,
            None => return Record::Bad,
        },
    };
    if key_bytes != key.len() as u64 {
        return Record::OtherKey;
    }
    match body.split_at_checked(key.len()) {
        Some((found, rest)) if same_bytes(found, key) => {
            match usize::try_from(value_bytes).ok().and_then(|bytes| rest.get(..bytes)) {
                Some(value) => Record::Value(value),
                None => Record::Bad,
            }
        }
        Some(_) => Record::OtherKey,
        None => Record::Bad,
    }
}

/// Returns the key length, the value length and the bytes after the head.
#[inline(never)]
fn long_head(record: &[u8]) -> Option<(u64, u64, &[u8])> {
    let head = RecordHead::decode(record).ok()?;
    (head.kind == RecordKind::Put).then_some(())?;
    Some((head.key_bytes, head.value_bytes, record.get(head.head_bytes..)?))
}

/// Returns true if two slices are equal. Up to 16 bytes, two overlapping loads from each are
/// cheaper than a call of `memcmp`.
#[inline(always)]
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    if a.len() > 16 || a.len() != b.len() {
        return a == b;
    }
    if let (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) =
        (a.first_chunk::<8>(), a.last_chunk::<8>(), b.first_chunk::<8>(), b.last_chunk::<8>())
    {
        let different = (u64::from_ne_bytes(*a_first) ^ u64::from_ne_bytes(*b_first))
            | (u64::from_ne_bytes(*a_last) ^ u64::from_ne_bytes(*b_last));
        return different == 0;
    }
    if let (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) =
        (a.first_chunk::<4>(), a.last_chunk::<4>(), b.first_chunk::<4>(), b.last_chunk::<4>())
    {
        let different = (u32::from_ne_bytes(*a_first) ^ u32::from_ne_bytes(*b_first))
            | (u32::from_ne_bytes(*a_last) ^ u32::from_ne_bytes(*b_last));
        return different == 0;
    }
    a.iter().zip(b).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the comparison of short slices is correct. Method: every length up to 40, equal and
    /// with a difference at each position.
    #[test]
    fn compares_every_byte() {
        for len in 0..40 {
            let a: Vec<u8> = (0..len).collect();
            assert!(same_bytes(&a, &a.clone()));
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!same_bytes(&a, &b), "{len} {at}");
            }
            assert!(!same_bytes(&a, &[&a[..], &[0]].concat()));
        }
    }

    /// Goal: records of the key, of other keys, and damaged records are distinguished. Method:
    /// handwritten records with short and long heads.
    #[test]
    fn records() {
        assert_eq!(match_record(b"\x02\x03kabcrest", b"k"), Record::Value(b"abc"));
        assert_eq!(match_record(b"\x01\x00", b""), Record::Value(b""));
        assert_eq!(match_record(b"\x02\x03kabc", b"x"), Record::OtherKey);
        assert_eq!(match_record(b"\x02\x03kabc", b"kk"), Record::OtherKey);
        assert_eq!(match_record(b"\x02\x03kab", b"k"), Record::Bad);
        assert_eq!(match_record(b"\x03\x00k", b"kk"), Record::Bad);
        assert_eq!(match_record(b"\x00\x01k", b"k"), Record::Bad);
        assert_eq!(match_record(b"\x02", b"k"), Record::Bad);
        assert_eq!(match_record(b"", b"k"), Record::Bad);
        let mut long = vec![2, 0x80, 1, b'k'];
        long.extend([7; 128]);
        assert_eq!(match_record(&long, b"k"), Record::Value(&[7; 128]));
        assert_eq!(match_record(&long[..100], b"k"), Record::Bad);
        let huge = [2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, b'k', 0];
        assert_eq!(match_record(&huge, b"k"), Record::Bad);
    }
}
