//! The fastest path: index and log in memory, log not compressed.
//!
//! A lookup here is a handful of loads and compares, and every `Result` with a real error in it
//! would double that. So this path knows no errors. Where the bytes make no sense it is
//! [unsure](Answer::Unsure), and the caller asks again by the general path, which finds out what is
//! wrong and where.

use cairn_codec::murmur3;

use super::index_header::IndexHeader;
use super::log_header::LOG_HEADER_BYTES;
use super::record::{RecordHead, RecordKind};
use super::slot::{Ring, Slot};
use crate::prefetch::prefetch;

/// A cache line, on all common processors.
const LINE_BYTES: usize = 64;

/// What a fast lookup found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    Found(&'a [u8]),
    Absent,
    /// Ask by the general path.
    Unsure,
}

/// The bytes of both files, and what of the index's header a lookup needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flat<'a> {
    pub header: &'a IndexHeader,
    pub ring: &'a Ring,
    /// All slots.
    pub slots: &'a [u8],
    /// The records of the log, from [`LOG_HEADER_BYTES`] up to its end.
    pub log: &'a [u8],
}

impl<'a> Flat<'a> {
    /// The hash of `key` with `H` bytes.
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
        let hash = self.hash::<H>(key);
        match probe::<H, A>(self, hash) {
            Step::Candidate(address) => match self.record(address, key) {
                Record::Value(value) => Answer::Found(value),
                // Two keys of one hash are rare, so the general path may see whether this key has
                // it.
                Record::OtherKey | Record::Bad => Answer::Unsure,
            },
            Step::Absent => Answer::Absent,
            Step::Unsure => Answer::Unsure,
        }
    }

    /// Asks for the cache lines of the first slots that a probe for `hash` reads.
    #[inline(always)]
    pub fn prefetch_slots<const H: usize, const A: usize>(&self, hash: u64) {
        let at = self.ring.home(hash) as usize * (H + A);
        prefetch(self.slots, at);
        // On average a probe ends with the third slot.
        prefetch(self.slots, at + 3 * (H + A) - 1);
    }

    /// Asks for the cache lines of the record at `address`.
    #[inline(always)]
    pub fn prefetch_record(&self, address: u64) {
        let position = (self.header.split(address).0 as usize).wrapping_sub(LOG_HEADER_BYTES);
        prefetch(self.log, position);
        prefetch(self.log, position.wrapping_add(LINE_BYTES));
    }

    /// Holds the record at `address` against `key`.
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

/// Where a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// An address under the hash.
    Candidate(u64),
    /// There is no more.
    Absent,
    /// The slots contradict the header.
    Unsure,
}

/// Walks over the slots that may hold `hash`, up to the first that does.
#[inline(always)]
pub(super) fn probe<const H: usize, const A: usize>(flat: &Flat<'_>, hash: u64) -> Step {
    let mut slot = flat.ring.home(hash);
    // BOUND: no entry is further from its home than the header says. In a full table the walk may
    // have seen them all by then, which the general path knows.
    for displacement in 0..=flat.header.displacement_max + 1 {
        let at = slot as usize * (H + A);
        let Some(bytes) = flat.slots.get(at..at + H + A) else { return Step::Unsure };
        let found = Slot::decode::<H, A>(bytes);
        if found.is_empty() {
            return if found.hash == 0 { Step::Absent } else { Step::Unsure };
        }
        if found.hash == hash {
            return Step::Candidate(found.address);
        }
        let others = flat.ring.displacement(slot, found.hash);
        // A slot that cannot be: a garbled hash, most likely.
        if others > flat.header.displacement_max {
            return Step::Unsure;
        }
        if others < displacement {
            return Step::Absent;
        }
        slot = flat.ring.after(slot);
    }
    Step::Unsure
}

/// What a record turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record<'a> {
    /// A PUT of the key, with this value.
    Value(&'a [u8]),
    OtherKey,
    /// No PUT record, or one that is cut off.
    Bad,
}

/// Holds the record at the front of `record` against `key`.
#[inline(always)]
pub(super) fn match_record<'a>(record: &'a [u8], key: &[u8]) -> Record<'a> {
    // Short keys with short values, which are most, have two bytes of head.
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

/// Key length, value length and what follows the head.
#[inline(never)]
fn long_head(record: &[u8]) -> Option<(u64, u64, &[u8])> {
    let head = RecordHead::decode(record).ok()?;
    (head.kind == RecordKind::Put).then_some(())?;
    Some((head.key_bytes, head.value_bytes, record.get(head.head_bytes..)?))
}

/// True when two slices of equal length are equal. Up to 16 bytes, two overlapping loads of each
/// are cheaper than a call of `memcmp`.
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

    /// Goal: the short compare is a compare. Method: every length to 40, equal and with a
    /// difference at each place.
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

    /// Goal: records are told apart, and broken ones from both. Method: hand-made records with
    /// short and long heads.
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
