//! Format of a backup record.
//!
//! ```text
//!  0  8 magic CAIRNBAK
//!  8  4 version, 1
//! 12  4 zeros
//! 16  8 number of the backup
//! 24  8 time of creation, in seconds since the Unix epoch
//! 32  8 id of the store
//! 40  8 bytes that were copied for it
//! 48  8 length of the edit, n
//! 56  n the edit that creates the store's state from an empty one (see the manifest's format)
//!  …  8 xxh3 of everything before
//! ```
//!
//! Integers are little-endian. The file is replaced as a whole, so a record is either complete or
//! absent.

use std::path::Path;

use cairn_codec::checksum::xxh3_64;

use crate::version::{VersionEdit, decode_edit, encode_edit};
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"CAIRNBAK";
const VERSION: u64 = 1;
const HEADER_BYTES: usize = 56;

const _: () = assert!(HEADER_BYTES == 8 * 7, "magic and six words");
const _: () = assert!(VERSION == 1, "what `encode` writes, `decode` reads, and it knows version 1");

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub id: u64,
    pub created_secs: u64,
    pub store_id: u64,
    pub copied_bytes: u64,
    pub edit: VersionEdit,
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let edit = encode_edit(&self.edit);
        let mut out = MAGIC.to_vec();
        let words =
            [VERSION, self.id, self.created_secs, self.store_id, self.copied_bytes, edit.len() as u64];
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
        debug_assert_eq!(out.len(), HEADER_BYTES, "the edit follows the header");
        out.extend_from_slice(&edit);
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        debug_assert_eq!(out.len(), HEADER_BYTES + edit.len() + 8, "header, edit, checksum");
        out
    }

    /// Decodes a record.
    ///
    /// Errors: [`Error::Corruption`] of `path` for damaged bytes, [`Error::Unsupported`] for a
    /// later version.
    pub(super) fn decode(bytes: &[u8], path: &Path) -> Result<Record> {
        let damaged = |offset: usize, what: &str| Error::corruption(path, offset as u64, what);
        let Some((body, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(damaged(0, "expected a backup record"));
        };
        let Some((header, edit)) = body.split_first_chunk::<HEADER_BYTES>() else {
            return Err(damaged(0, "expected a header of 56 bytes"));
        };
        let mut words = header.chunks_exact(8);
        let mut word =
            || words.next().map_or(0, |word| word.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
        let (magic, version) = (word(), word());
        if magic != u64::from_le_bytes(MAGIC) {
            return Err(damaged(0, "expected the magic CAIRNBAK"));
        }
        if u64::from_le_bytes(*sum) != xxh3_64(body) {
            return Err(damaged(body.len(), "the checksum does not match"));
        }
        match version {
            1 => {}
            other => {
                let what = format!("version {other} of a backup record, supported is version 1");
                return Err(Error::unsupported(path, what));
            }
        }
        let (id, created_secs, store_id, copied_bytes, len) = (word(), word(), word(), word(), word());
        if len != edit.len() as u64 {
            return Err(damaged(48, "the length of the edit does not match the file's"));
        }
        let edit = decode_edit(edit).map_err(|_| damaged(HEADER_BYTES, "the edit cannot be read"))?;
        Ok(Record { id, created_secs, store_id, copied_bytes, edit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::KeyspaceId;

    /// Goal: a record survives the round trip, and every changed bit and every truncation is
    /// detected.
    #[test]
    fn round_trip_and_damage() {
        let mut edit = VersionEdit { last_seqno: Some(9), ..VersionEdit::default() };
        edit.keyspace(KeyspaceId(3)).log_start = Some(7);
        let record = Record { id: 2, created_secs: 1 << 40, store_id: u64::MAX, copied_bytes: 5, edit };
        let (bytes, path) = (record.encode(), Path::new("b"));
        assert_eq!(Record::decode(&bytes, path).unwrap(), record);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(&changed, path).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Record::decode(&bytes[..len], path).is_err(), "{len} bytes");
        }
    }
}
