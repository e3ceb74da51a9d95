//! Blob files: large values, stored apart from their keys so that compactions need not copy them
//! (Lu et al., *WiscKey*, FAST 2016).
//!
//! A flush or a compaction writes each value of at least `blob_bytes_min` to a blob file and stores
//! a reference in the table. Compactions that drop a reference count its bytes as garbage of its
//! file. When a file has too much garbage, the tables that refer to it are marked: their next
//! compaction moves the live values to a new file. A file without live values is removed.
//!
//! ```text
//! file         magic "CRNB" u32 | version u32 = 2 | number u64 | records ... | footer
//! record       checksum u64 | length u32 | value
//!              the checksum is XXH3 of length and value, seeded with the file's number and the
//!              record's offset: a record in another place does not pass
//! footer       values u64 | bytes of values u64 | checksum u64 | magic u32
//!              the checksum covers both counts, the number and length of the file and, from
//!              version 2 on, the XXH3 of everything before the footer, so it covers the whole file
//! reference    varint file number | varint offset of the record | varint length of the value
//! ```

mod reader;
mod reference;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::BlobReader;
pub(crate) use reference::BlobRef;
pub(crate) use writer::BlobWriter;

use cairn_codec::checksum::xxh3_64_seeded;

const MAGIC: u32 = u32::from_le_bytes(*b"CRNB");
/// The version that is written. [`FormatVersion::of`] tells the versions that are read.
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 16;
const RECORD_HEADER_BYTES: usize = 12;
const FOOTER_BYTES: usize = 28;

const _: () = assert!(HEADER_BYTES == 4 + 4 + 8, "magic, version, number");
const _: () = assert!(RECORD_HEADER_BYTES == 8 + 4, "checksum, length");
const _: () = assert!(FOOTER_BYTES == 8 + 8 + 8 + 4, "values, their bytes, checksum, magic");

/// A version of the format that this build reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatVersion {
    V1,
    V2,
}

impl FormatVersion {
    /// Returns the version with this number, or `None` for one that this build does not read.
    fn of(number: u32) -> Option<FormatVersion> {
        match number {
            1 => Some(FormatVersion::V1),
            2 => Some(FormatVersion::V2),
            _ => None,
        }
    }

    /// Returns the checksum of everything before the footer as the footer of this version covers
    /// it: version 1 does not.
    fn footer_body(self, checksum: u64) -> Option<u64> {
        match self {
            FormatVersion::V1 => None,
            FormatVersion::V2 => Some(checksum),
        }
    }
}

/// Returns the seed of a record's checksum.
#[inline]
fn seed(number: u64, offset: u64) -> u64 {
    number.rotate_left(40) ^ offset
}

/// Computes the checksum of a footer. `body` is the XXH3 of everything before the footer; version 1
/// omits it.
fn footer_checksum(values: u64, value_bytes: u64, number: u64, file_bytes: u64, body: Option<u64>) -> u64 {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(&values.to_le_bytes());
    bytes.extend_from_slice(&value_bytes.to_le_bytes());
    body.iter().for_each(|body| bytes.extend_from_slice(&body.to_le_bytes()));
    xxh3_64_seeded(&bytes, seed(number, file_bytes))
}

/// Returns the checksum stored in a footer.
fn footer_sum(footer: &[u8; FOOTER_BYTES]) -> u64 {
    footer.get(16..).and_then(|rest| rest.first_chunk()).map_or(0, |sum| u64::from_le_bytes(*sum))
}
