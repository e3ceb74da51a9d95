//! Blob files: large values, kept apart from their keys so that compactions need not copy them (Lu
//! et al., *WiscKey*, FAST 2016).
//!
//! A flush or a compaction that meets a value of at least `blob_bytes_min` writes it to a blob file
//! and keeps a reference in the table. Compactions that drop a reference count its bytes as garbage
//! of its file. A file with too much garbage has the tables that point into it marked: their next
//! compaction moves what is still alive to a new file. A file without live values is removed.
//!
//! ```text
//! file         magic "CRNB" u32 | version u32 = 2 | number u64 | records ... | footer
//! record       checksum u64 | length u32 | value
//!              the checksum is XXH3 of length and value, seeded with the file's number and the record's offset: a
//!              record in another place does not pass
//! footer       values u64 | bytes of values u64 | checksum u64 of both and of number and length of the file, and, from version 2
//!              on, of the XXH3 of all that is in front of the footer: it stands for the whole file | magic u32
//! reference    varint file number | varint offset of the record | varint length of the value
//! ```

mod reader;
mod reference;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use reader::{BlobReader, Blobs};
pub(crate) use reference::BlobRef;
pub(crate) use writer::BlobWriter;

use cairn_codec::checksum::xxh3_64_seeded;

const MAGIC: u32 = u32::from_le_bytes(*b"CRNB");
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 16;
const RECORD_HEADER_BYTES: usize = 12;
const FOOTER_BYTES: usize = 28;

/// What a record's checksum is seeded with.
#[inline]
fn seed(number: u64, offset: u64) -> u64 {
    number.rotate_left(40) ^ offset
}

/// The checksum of a footer. `body` is the XXH3 of what is in front of it; version 1 left that out.
fn footer_checksum(values: u64, value_bytes: u64, number: u64, file_bytes: u64, body: Option<u64>) -> u64 {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(&values.to_le_bytes());
    bytes.extend_from_slice(&value_bytes.to_le_bytes());
    body.iter().for_each(|body| bytes.extend_from_slice(&body.to_le_bytes()));
    xxh3_64_seeded(&bytes, seed(number, file_bytes))
}

/// The checksum in a footer.
fn footer_sum(footer: &[u8; FOOTER_BYTES]) -> u64 {
    footer.get(16..).and_then(|rest| rest.first_chunk()).map_or(0, |sum| u64::from_le_bytes(*sum))
}
