//! The binary format of a segment.
//!
//! ```text
//!   segment             record, at a multiple of 8
//!   0      header       0   checksum    u64   upper 16 bits: of length, kind, synced and position
//!   2048   header again                       lower 48 bits: of these and the payload
//!   4096   records      8   length      u32   of the payload
//!          ...          12  synced | kind u32 kind: the lowest 3 bits; the rest: see below
//!          zeros        16  payload, zeros up to the next multiple of 8
//!
//!   header
//!   0   magic "CAIRNWAL"
//!   8   version         u32
//!   12  segment number  u32
//!   16  log id          u64   random, the same in all segments of a log
//!   24  salt            u64   random, of this segment
//!   32  previous salt   u64   of the segment before; 0 when there is none
//!   40  previous end    u64   segment number << 32 | end of its last record; 0 when there is none
//!   48  previous synced u32   of the segment before; see below
//!   52  oldest          u32   the log's oldest segment when this one was begun; 0 if not recorded
//!   56  checksum        u64   xxh3-64 of the 56 bytes before
//!   64  length          u64   of the file, durable before the first record; 0 if not recorded
//!   72  note            u64 u64   the log owner's note when the segment was begun
//!   88  checksum        u64   xxh3-64 of the 88 bytes before
//! ```
//!
//! Headers of version 1 end after the first checksum. Records of kind 3 and 4 have a note as their
//! payload, or no payload.
//!
//! The synced field states how much was certainly on stable storage when the record was begun. 0
//! means nothing relevant, and 4096 means all earlier segments. A larger value, a multiple of 8,
//! means all earlier segments and the records of this segment up to that offset.
//!
//! Salt, number and log id form the seed of a segment. The seed and the record's offset go into
//! every record's checksum. Bytes of another segment, of an earlier use of the file, or of another
//! offset are therefore never taken for records.

use cairn_codec::checksum::xxh3_64;

use crate::Lsn;

/// Offset of the first record. One page, so that the header is never written together with records.
pub(crate) const HEADER_BYTES: u32 = 4096;
/// Offsets of the two copies of the header, in separate sectors. Damage to one copy loses nothing.
pub(crate) const HEADER_COPIES: [usize; 2] = [0, 2048];
const HEADER_USED: usize = 96;
const _: () = assert!(HEADER_COPIES[0] + HEADER_USED <= HEADER_COPIES[1]);
const _: () = assert!(HEADER_COPIES[1] + HEADER_USED <= HEADER_BYTES as usize && HEADER_BYTES == 4096);
// No copy crosses a sector of 512 bytes.
const _: () =
    assert!(HEADER_COPIES[0] % 512 + HEADER_USED <= 512 && HEADER_COPIES[1] % 512 + HEADER_USED <= 512);
/// The header size of version 1.
const HEADER_USED_1: usize = 64;
const _: () = assert!(HEADER_USED_1 + 8 + NOTE_BYTES + 8 == HEADER_USED);
const MAGIC: [u8; 8] = *b"CAIRNWAL";
/// The version of the segments that this build writes.
pub(crate) const VERSION: u32 = 2;
/// The oldest version that this build reads.
pub(crate) const OLDEST_VERSION: u32 = 1;
const _: () = assert!(0 < OLDEST_VERSION && OLDEST_VERSION <= VERSION);

/// Two numbers that the log stores for its owner. Their meaning is up to the owner; zeros mean no
/// note.
pub(crate) type Note = [u64; 2];
/// The size of a note in bytes.
pub(crate) const NOTE_BYTES: usize = 16;

/// Encodes a note.
pub(crate) fn note_bytes(note: Note) -> [u8; NOTE_BYTES] {
    let mut bytes = [0; NOTE_BYTES];
    for (place, word) in bytes.chunks_mut(8).zip(note) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Decodes a note; `None` if `bytes` has the wrong length.
pub(crate) fn read_note(bytes: &[u8]) -> Option<Note> {
    (bytes.len() == NOTE_BYTES).then(|| [word(bytes, 0), word(bytes, 8)])
}

const _: () = assert!(NOTE_BYTES == size_of::<Note>());

/// The size of a record's head.
pub(crate) const HEAD_BYTES: usize = 16;
/// Records begin and end at multiples of this. The kind of a record takes the freed low bits of
/// its synced field.
pub(crate) const RECORD_ALIGNMENT: u32 = 8;
const _: () = assert!(HEADER_BYTES.is_multiple_of(RECORD_ALIGNMENT) && HEAD_BYTES.is_multiple_of(8));
const _: () = assert!((Kind::Note as u32) < RECORD_ALIGNMENT && Kind::Data as u32 > 0);
const _: () = assert!(RECORD_ALIGNMENT == 1 << 3, "the kind of a record has 3 bits");
/// The longest payload of a record: 1 GiB.
pub const MAX_RECORD_BYTES: usize = 1 << 30;
/// The largest allowed segment size.
pub(crate) const MAX_SEGMENT_BYTES: u32 = 2 << 30;
const _: () = assert!(MAX_RECORD_BYTES as u64 + 2 * HEADER_BYTES as u64 <= MAX_SEGMENT_BYTES as u64);

/// Returns the size of a record with this payload, including head and padding.
pub(crate) fn record_bytes(payload_bytes: usize) -> usize {
    debug_assert!(payload_bytes <= MAX_RECORD_BYTES, "a payload of {payload_bytes} bytes");
    (HEAD_BYTES + payload_bytes).next_multiple_of(RECORD_ALIGNMENT as usize)
}

/// A segment's header: its identity, and the link to the previous segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) number: u32,
    pub(crate) log_id: u64,
    pub(crate) salt: u64,
    /// The segment that precedes this one; `None` for the first.
    pub(crate) previous: Option<Previous>,
    /// The oldest segment that had not been released when this one was begun: this segment itself
    /// if there was none before; 0 if not recorded.
    pub(crate) oldest: u32,
    /// Length of the file, durable before this header is written; 0 if not recorded.
    pub(crate) bytes: u64,
    /// The owner's note when the segment was begun.
    pub(crate) note: Note,
}

/// The previous segment, as its writer left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) salt: u64,
    /// The end of its last record.
    pub(crate) end: Lsn,
    /// How much of it and of earlier segments was certainly on stable storage; see the
    /// [module](self).
    pub(crate) synced: u32,
}

/// The result of decoding one copy of a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Header(Header),
    /// Only zeros: never written.
    Blank,
    /// Sound, but of a later version of the format.
    Version(u32),
    Damaged,
}

impl Header {
    /// Encodes the header page with both copies.
    pub(crate) fn encode(&self, page: &mut [u8]) {
        assert!(self.is_in_order(), "no reader would accept this header: {self:?}");
        assert!(page.len() == HEADER_BYTES as usize, "a header page of {} bytes", page.len());
        let (salt, end, synced) = self.previous.map_or((0, 0, 0), |p| (p.salt, p.end.get(), p.synced));
        let mut bytes = Vec::with_capacity(HEADER_USED);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        let recorded = u64::from(synced) | u64::from(self.oldest) << 32;
        for word in [self.log_id, self.salt, salt, end, recorded] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        debug_assert_eq!(bytes.len(), HEADER_USED_1);
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        bytes.extend_from_slice(&note_bytes(self.note));
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        debug_assert_eq!(bytes.len(), HEADER_USED);
        page.fill(0);
        for at in HEADER_COPIES {
            if let Some(copy) = page.get_mut(at..at + HEADER_USED) {
                copy.copy_from_slice(&bytes);
            }
            debug_assert!(
                Header::decode(page, at) == Decoded::Header(*self),
                "the copy at {at} reads back otherwise"
            );
        }
    }

    /// Returns true if a writer can have produced this header. Later code relies on it: the number
    /// is not 0, the previous segment has a lower one, and had been synced up to its end at most.
    fn is_in_order(&self) -> bool {
        let follows = |p: Previous| p.end.segment() < self.number && p.synced <= p.end.offset();
        self.number != 0 && self.previous.is_none_or(follows) && self.oldest <= self.number
    }

    /// Decodes the copy at one of the [`HEADER_COPIES`] of a page.
    pub(crate) fn decode(page: &[u8], at: usize) -> Decoded {
        let Some(bytes) = page.get(at..).and_then(<[u8]>::first_chunk::<HEADER_USED>) else {
            return Decoded::Blank;
        };
        if bytes.iter().all(|&byte| byte == 0) {
            return Decoded::Blank;
        }
        if bytes[..8] != MAGIC || word(bytes, 56) != xxh3_64(&bytes[..56]) {
            return Decoded::Damaged;
        }
        let version = word(bytes, 8) as u32;
        // Every version begins with the fields up to the first checksum.
        let later_fields = match version {
            1 => Some((0, [0; 2])),
            2 => later_fields_2(bytes),
            _ => return Decoded::Version(version),
        };
        let Some((bytes_here, note)) = later_fields else { return Decoded::Damaged };
        let (end, recorded) = (Lsn::from(word(bytes, 40)), word(bytes, 48));
        let (synced, oldest) = (recorded as u32, (recorded >> 32) as u32);
        let previous = (end != Lsn::ZERO).then(|| Previous { salt: word(bytes, 32), end, synced });
        let number = (word(bytes, 8) >> 32) as u32;
        let (log_id, salt) = (word(bytes, 16), word(bytes, 24));
        let header = Header { number, log_id, salt, previous, oldest, bytes: bytes_here, note };
        // No writer produces a header out of order, so it must be forged.
        if header.is_in_order() { Decoded::Header(header) } else { Decoded::Damaged }
    }

    /// Returns the seed for the checksums of the segment's records.
    pub(crate) fn seed(&self) -> Seed {
        let mut bytes = [0; 24];
        for (place, word) in bytes.chunks_mut(8).zip([self.log_id, self.salt, u64::from(self.number)]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Seed(xxh3_64(&bytes))
    }
}

/// Reads the fields of version 2 after the first checksum: the file's length and the note. `None`
/// if they are damaged.
fn later_fields_2(bytes: &[u8; HEADER_USED]) -> Option<(u64, Note)> {
    let is_sound = word(bytes, 88) == xxh3_64(&bytes[..88]);
    is_sound.then(|| (word(bytes, 64), [word(bytes, 72), word(bytes, 80)]))
}

/// Reads the little-endian word at `at`, or 0 past the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Ties a record to its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(u64);

/// The type of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A payload of the log's user.
    Data = 1,
    /// A reservation that was dropped. Its payload is meaningless.
    Void = 2,
    /// The closing mark. It tells how far the log had been synced.
    Close = 3,
    /// Carries a note.
    Note = 4,
}

/// The head of a record, without its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) len: u32,
    /// See the [module](self). Never above the record's own offset.
    pub(crate) synced: u32,
}

/// The bits of the checksum that depend on the head alone.
const HEAD_MASK: u64 = 0xffff << 48;

impl Head {
    fn words(self) -> u64 {
        debug_assert!(self.synced.is_multiple_of(RECORD_ALIGNMENT), "synced up to {}", self.synced);
        debug_assert!(self.len as usize <= MAX_RECORD_BYTES, "a payload of {} bytes", self.len);
        u64::from(self.len) | u64::from(self.synced | self.kind as u32) << 32
    }

    /// Encodes the 16 bytes that precede `payload` in a record at `offset`.
    #[inline]
    pub(crate) fn encode(self, seed: Seed, offset: u32, payload: &[u8]) -> [u8; HEAD_BYTES] {
        // The reader's conditions.
        debug_assert!(self.synced <= offset, "the record at {offset} says that {} was synced", self.synced);
        debug_assert!(offset.is_multiple_of(RECORD_ALIGNMENT) && payload.len() == self.len as usize);
        let words = self.words();
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&checksum(mix(seed, offset, words), payload).to_le_bytes());
        bytes[8..].copy_from_slice(&words.to_le_bytes());
        bytes
    }

    /// Decodes the head at `offset` if it is plausible. Garbage passes with probability 2^-16,
    /// before the payload is checked.
    #[inline]
    pub(crate) fn decode(seed: Seed, offset: u32, bytes: &[u8; HEAD_BYTES]) -> Option<Head> {
        let words = word(bytes, 8);
        let high = (words >> 32) as u32;
        let kind = match high & 7 {
            1 => Kind::Data,
            2 => Kind::Void,
            3 => Kind::Close,
            4 => Kind::Note,
            _ => return None,
        };
        let head = Head { kind, len: words as u32, synced: high & !7 };
        let plausible = head.len as usize <= MAX_RECORD_BYTES && head.synced <= offset;
        (plausible && (mix(seed, offset, words) ^ word(bytes, 0)) & HEAD_MASK == 0).then_some(head)
    }

    /// Returns true when `payload` matches the checksum of the record.
    pub(crate) fn matches(self, seed: Seed, offset: u32, bytes: &[u8; HEAD_BYTES], payload: &[u8]) -> bool {
        word(bytes, 0) == checksum(mix(seed, offset, self.words()), payload)
    }
}

/// Mixes everything but the payload. Bijective in `words`, so that every change of a head is
/// detected.
#[inline]
fn mix(seed: Seed, offset: u32, words: u64) -> u64 {
    let position = seed.0.wrapping_add(u64::from(offset).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The finalizer of MurmurHash3 (Appleby), which spreads each bit over all others.
    let mut hash = words ^ position;
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[inline]
fn checksum(mixed: u64, payload: &[u8]) -> u64 {
    mixed ^ (xxh3_64(payload) & !HEAD_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let previous = Previous { salt: 3, end: Lsn::new(6, 9000), synced: 8000 };
        let (bytes, note) = (1 << 20, [17, 19]);
        Header { number: 7, log_id: 1, salt: 2, previous: Some(previous), oldest: 5, bytes, note }
    }

    /// Goal: a header reads back from either copy, and a copy with a flipped bit is never accepted.
    #[test]
    fn header_round_trip() {
        for header in [header(), Header { previous: None, ..header() }, Header { oldest: 0, ..header() }] {
            let mut page = vec![1; HEADER_BYTES as usize];
            header.encode(&mut page);
            for at in HEADER_COPIES {
                assert_eq!(Header::decode(&page, at), Decoded::Header(header));
                for bit in 0..HEADER_USED * 8 {
                    page[at + bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(Header::decode(&page, at), Decoded::Damaged, "bit {bit}");
                    page[at + bit / 8] ^= 1 << (bit % 8);
                }
            }
        }
        assert_eq!(Header::decode(&[0; 4096], 2048), Decoded::Blank);
        assert_eq!(Header::decode(&[1; 95], 0), Decoded::Blank);
    }

    /// Goal: headers with a valid checksum but impossible values are refused; an earlier version is
    /// read, and a later one is recognised as such.
    #[test]
    fn header_forgeries() {
        let forge = |at: usize, value: u32| {
            let mut page = vec![0; 4096];
            header().encode(&mut page);
            page[at..at + 4].copy_from_slice(&value.to_le_bytes());
            for end in [56, 88] {
                let sum = xxh3_64(&page[..end]).to_le_bytes();
                page[end..end + 8].copy_from_slice(&sum);
            }
            Header::decode(&page, 0)
        };
        assert_eq!(forge(8, 3), Decoded::Version(3));
        assert_eq!(forge(8, 1), Decoded::Header(Header { bytes: 0, note: [0; 2], ..header() }));
        for (at, value) in [(12, 0), (12, 6), (44, 7), (48, 9008), (52, 8)] {
            assert_eq!(forge(at, value), Decoded::Damaged, "{value} at {at}");
        }
    }

    /// Goal: a record is accepted only in its own place. Method: every flipped bit, and other
    /// seeds, offsets and salts.
    #[test]
    fn records_are_tied_to_their_place() {
        let (seed, offset, payload) = (header().seed(), 4096, b"some payload of a record");
        let passes = |seed: Seed, offset: u32, bytes: &[u8; 16], payload: &[u8]| {
            Head::decode(seed, offset, bytes).filter(|head| head.matches(seed, offset, bytes, payload))
        };
        for kind in [Kind::Data, Kind::Void, Kind::Close, Kind::Note] {
            let head = Head { kind, len: payload.len() as u32, synced: 4088 };
            let bytes = head.encode(seed, offset, payload);
            assert_eq!(passes(seed, offset, &bytes, payload), Some(head));
            for bit in 0..128 {
                let mut other = bytes;
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(passes(seed, offset, &other, payload), None, "bit {bit}");
            }
            for bit in 0..payload.len() * 8 {
                let mut other = *payload;
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(passes(seed, offset, &bytes, &other), None, "payload bit {bit}");
            }
            for place in (0..1 << 20).step_by(8).filter(|&place| place != offset) {
                assert_eq!(passes(seed, place, &bytes, payload), None, "offset {place}");
            }
            for other in [Header { salt: 9, ..header() }, Header { log_id: 9, ..header() }] {
                assert_eq!(passes(other.seed(), offset, &bytes, payload), None);
            }
        }
        assert_eq!(Head::decode(seed, 4096, &[0; 16]), None);
    }

    /// Goal: record sizes match the documented layout.
    #[test]
    fn sizes() {
        assert_eq!([0, 1, 8, 9, 40].map(record_bytes), [16, 24, 24, 32, 56]);
    }
}
