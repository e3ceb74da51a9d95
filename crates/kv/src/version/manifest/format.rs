//! Header, record frame and seal of a manifest.
//!
//! ```text
//! header, 40 bytes           record                                  seal, 8 bytes
//!  0  8 magic CAIRNMAN        0  4 bytes of the payload, n            0  8 xxh3 of "sealed"
//!  8  4 version, 1            4  8 xxh3 of the payload
//! 12  4 features, 0          12  8 xxh3 of the 12 bytes before
//! 16  8 store id             20  n payload: a version edit
//! 24  8 number of the file
//! 32  8 xxh3 of the 32 bytes before
//! ```
//!
//! Each record is followed by its seal, then the next record. All checksums after the header's are
//! seeded with store id, file number and offset, so that sound bytes from another place do not
//! pass.
//!
//! The seal is written after the sync of its record, without a sync of its own. It distinguishes
//! two kinds of a damaged record at the end of the file. A record without a seal was torn by a
//! crash and never acknowledged. A record with a seal was durable and has rotted since.

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};

use crate::file::FileNumber;

pub(crate) const MAGIC: [u8; 8] = *b"CAIRNMAN";
/// The version that is written. [`read_header`] chooses the reader of each version.
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEADER_BYTES: usize = 40;
pub(crate) const FRAME_BYTES: usize = 20;
pub(crate) const SEAL_BYTES: usize = 8;

const _: () = assert!(HEADER_BYTES == 8 + 4 + 4 + 3 * 8, "magic, version, features, three words");
const _: () = assert!(FRAME_BYTES == 4 + 8 + 8, "length, checksum of the payload, checksum of the frame");

/// Identifies a file of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The store's id.
    pub(crate) store: u64,
    /// The number in the manifest's name.
    pub(crate) number: FileNumber,
}

impl Identity {
    /// Returns the seed of the checksums at `offset`.
    fn seed(self, offset: u64) -> u64 {
        xxh3_64_seeded(&offset.to_le_bytes(), self.store ^ self.number.rotate_left(32))
    }
}

/// The reason why a header is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// No writer writes the bytes at this offset.
    Damaged(u64, &'static str),
    /// An unsupported version or feature.
    Newer(String),
}

/// Encodes the header of a file.
pub(crate) fn header(identity: Identity) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    let fields = [
        u64::from_le_bytes(MAGIC),
        u64::from(VERSION), // the upper half: no features
        identity.store,
        identity.number,
    ];
    for (word, field) in out.chunks_exact_mut(8).zip(fields) {
        word.copy_from_slice(&field.to_le_bytes());
    }
    let (body, sum) = out.split_at_mut(HEADER_BYTES - 8);
    sum.copy_from_slice(&xxh3_64(body).to_le_bytes());
    debug_assert_eq!(read_header(&out), Ok(identity), "a header that would not be read back");
    out
}

/// Decodes and validates the header at the front of `file`.
pub(crate) fn read_header(file: &[u8]) -> Result<Identity, BadHeader> {
    let Some(bytes) = file.first_chunk::<HEADER_BYTES>() else {
        return Err(BadHeader::Damaged(file.len() as u64, "expected a header of 40 bytes"));
    };
    let mut words =
        bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
    let mut word = || words.next().unwrap_or(0);
    let (magic, version, store, number, sum) = (word(), word(), word(), word(), word());
    if magic != u64::from_le_bytes(MAGIC) {
        return Err(BadHeader::Damaged(0, "expected the magic CAIRNMAN"));
    }
    if sum != xxh3_64(bytes.get(..HEADER_BYTES - 8).unwrap_or(&[])) {
        return Err(BadHeader::Damaged(HEADER_BYTES as u64 - 8, "the header's checksum does not match"));
    }
    match (version as u32, version >> 32) {
        (1, 0) => Ok(Identity { store, number }),
        (version, features) => Err(BadHeader::Newer(format!(
            "version {version} with features {features:#x}; supported is version 1 without features"
        ))),
    }
}

/// Encodes the record at `offset` with this payload, without its seal.
pub(crate) fn frame(identity: Identity, offset: u64, payload: &[u8]) -> Vec<u8> {
    assert!(u32::try_from(payload.len()).is_ok(), "the length of a payload is stored in 32 bits");
    debug_assert!(offset >= HEADER_BYTES as u64, "a record at {offset} overlaps the header");
    let seed = identity.seed(offset);
    let mut out = Vec::with_capacity(FRAME_BYTES + payload.len() + SEAL_BYTES);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&xxh3_64_seeded(payload, seed).to_le_bytes());
    out.extend_from_slice(&xxh3_64_seeded(&out, seed).to_le_bytes());
    debug_assert_eq!(out.len(), FRAME_BYTES, "the payload follows the frame");
    out.extend_from_slice(payload);
    out
}

/// Returns the seal at `offset`.
pub(crate) fn seal(identity: Identity, offset: u64) -> [u8; SEAL_BYTES] {
    xxh3_64_seeded(b"sealed", identity.seed(offset)).to_le_bytes()
}

/// Returns the length and the checksum of the payload at `offset`, if the frame there is sound.
fn read_frame(identity: Identity, file: &[u8], offset: usize) -> Option<(usize, u64)> {
    let frame = file.get(offset..)?.first_chunk::<FRAME_BYTES>()?;
    let (body, sum) = frame.split_last_chunk::<8>()?;
    let (len, payload_sum) = body.split_first_chunk::<4>()?;
    let payload_sum: &[u8; 8] = payload_sum.first_chunk()?;
    let is_sound = xxh3_64_seeded(body, identity.seed(offset as u64)) == u64::from_le_bytes(*sum);
    is_sound.then_some((u32::from_le_bytes(*len) as usize, u64::from_le_bytes(*payload_sum)))
}

/// Returns the payload of the record at `offset`, if the record is sound.
pub(crate) fn read_record(identity: Identity, file: &[u8], offset: usize) -> Option<&[u8]> {
    let (len, sum) = read_frame(identity, file, offset)?;
    let start = offset + FRAME_BYTES;
    let payload = file.get(start..start.checked_add(len)?)?;
    (xxh3_64_seeded(payload, identity.seed(offset as u64)) == sum).then_some(payload)
}

/// Returns true if a seal or a frame exists anywhere after `offset`. Then the record at `offset`
/// was durable.
///
/// Checks every byte, because a damaged record does not tell where it ends. The probability that a
/// torn record contains such bytes by chance is about 2^-63 per byte.
pub(crate) fn was_durable(identity: Identity, file: &[u8], offset: usize) -> bool {
    (offset + 1..file.len()).any(|at| {
        let is_seal = file.get(at..at + SEAL_BYTES).is_some_and(|bytes| bytes == seal(identity, at as u64));
        is_seal || read_frame(identity, file, at).is_some()
    })
}
