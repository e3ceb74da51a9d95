//! The file header and the layout of the file that it describes.
//!
//! ```text
//! page 0        header
//! blobs         values of BLOB_MIN_BYTES and more, in insertion order
//! data          records, in hash order, partition by partition
//! index         lines of 64 bytes, partition by partition
//! partitions    32 bytes each
//! dictionary    the zstd dictionary, if there is one
//! checksums     one xxh3-64 for each page from the first after the header up to here, then one for
//!               each of those checksum pages, and so on up to a single page
//! ```
//! Every section starts on a page of 4096 bytes and is padded with zeros. Integers are
//! little-endian. The header is written last; a file without a valid header is not a table.

use std::path::Path;

use cairn_codec::checksum::xxh3_64;
use cairn_codec::compress::Format;

use crate::{Error, Result};

/// The unit of checksums and of alignment, in bytes.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// An index line: the size of a cache line of current processors.
pub(crate) const LINE_BYTES: u64 = 64;
/// Number of slots of an index line.
pub(crate) const SLOTS: usize = 28;
/// Values of at least this length are stored outside the records, so that records stay small and
/// values can be streamed.
pub(crate) const BLOB_MIN_BYTES: u64 = 32 * 1024;
/// Size of a partition entry on disk.
pub(crate) const PARTITION_BYTES: u64 = 32;
/// A table of more partitions would not fit the L1 data cache together with the other data of a
/// lookup.
pub(crate) const PARTITION_BITS_MAX: u32 = 8;

/// Fixed key and value widths together are less than this. For a longer record, a lookup would
/// first have to check that the record lies within the data section.
pub(crate) const FIXED_BYTES_END: u64 = 2 * BLOB_MIN_BYTES;

pub(crate) const MAGIC: [u8; 8] = *b"CAIRNTBL";
/// Version 1 (lines of 14 slots with 16-bit offsets) was never released.
const VERSION: u32 = 2;
const CHECKSUM_AT: usize = PAGE_BYTES as usize - 8;
/// Number of fields of 8 bytes in the header after its flags.
const WORDS: usize = 23;

const _: () = assert!(PAGE_BYTES.is_power_of_two(), "pages are found by division of an offset");
const _: () = assert!(PAGE_BYTES.is_multiple_of(LINE_BYTES), "no index line crosses a page");
const _: () = assert!(PAGE_BYTES.is_multiple_of(PARTITION_BYTES), "no partition entry crosses a page");
const _: () =
    assert!(PARTITION_BYTES << PARTITION_BITS_MAX <= 2 * PAGE_BYTES, "an open reads two pages of them");
const _: () = assert!(16 + 8 * WORDS <= CHECKSUM_AT, "the fields end before the checksum");
const _: () = assert!(MAGIC.len() + 2 * size_of::<u32>() == 16, "the fields begin after the flags");
const _: () = assert!(BLOB_MIN_BYTES < FIXED_BYTES_END, "a value of a fixed width is no blob");

/// All keys have the same length and so have all values. Records then carry no lengths, and lines
/// hold longer fingerprints.
pub(crate) const FLAG_FIXED: u32 = 1;
/// Records carry a tag, because the table has compressed values, blobs or tombstones.
pub(crate) const FLAG_TAGGED: u32 = 2;
/// This table is a delta: its tombstones hide keys of the generations below.
pub(crate) const FLAG_DELTA: u32 = 4;
const FLAGS_KNOWN: u32 = FLAG_FIXED | FLAG_TAGGED | FLAG_DELTA;
const _: () = assert!(FLAGS_KNOWN.count_ones() == 3, "each flag has a bit of its own");

/// The decoded header. Offsets and lengths are in bytes; offsets count from the start of the file.
///
/// ```text
///   0  magic "CAIRNTBL"      8 version u32      12 flags u32
///  16  table id              24 parent id       32 generation       40 hash seed
///  48  entries               56 tombstones      64 puts
///  72  blob bytes            80 data offset     88 data bytes
///  96  index offset         104 index lines    112 partitions offset
/// 120  partition bits u32   124 compression u32
///                           0 none, 1 zstd, 2 snappy
/// 128  dictionary offset    136 dictionary bytes
/// 144  checksums offset     152 checksum of the topmost checksum page
/// 160  file length
/// 168  key length max       176 value length max
/// 184  key bytes            192 value bytes (as given, before compression)
/// 200  zeros ...
/// 4088 xxh3-64 of the bytes before
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub flags: u32,
    pub id: u64,
    pub parent: u64,
    pub generation: u64,
    pub seed: u64,
    pub entries: u64,
    pub tombstones: u64,
    pub puts: u64,
    pub blob_bytes: u64,
    pub data_offset: u64,
    pub data_bytes: u64,
    pub index_offset: u64,
    pub index_lines: u64,
    pub partitions_offset: u64,
    pub partition_bits: u32,
    pub compression: Format,
    pub dictionary_offset: u64,
    pub dictionary_bytes: u64,
    pub sums_offset: u64,
    pub root_sum: u64,
    pub file_bytes: u64,
    pub key_bytes_max: u64,
    pub value_bytes_max: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
}

/// Returns `bytes` rounded up to whole pages.
pub(crate) fn page_align(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE_BYTES)
}

impl Header {
    /// Returns true if all keys have the same length and all values have the same length.
    pub fn is_fixed(&self) -> bool {
        self.flags & FLAG_FIXED != 0
    }

    /// Returns true if records carry a tag.
    pub fn is_tagged(&self) -> bool {
        self.flags & FLAG_TAGGED != 0
    }

    /// Returns true if this table is a delta over another generation.
    pub fn is_delta(&self) -> bool {
        self.flags & FLAG_DELTA != 0
    }

    /// Returns the number of partitions of the index.
    pub fn partitions(&self) -> u64 {
        debug_assert!(self.partition_bits <= PARTITION_BITS_MAX, "{} bits", self.partition_bits);
        1 << self.partition_bits
    }

    /// Returns the size of the index and the partition table in bytes.
    pub fn index_bytes(&self) -> u64 {
        self.index_lines * LINE_BYTES + self.partitions() * PARTITION_BYTES
    }

    /// Encodes the header page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(PAGE_BYTES as usize);
        page.extend_from_slice(&MAGIC);
        page.extend_from_slice(&VERSION.to_le_bytes());
        page.extend_from_slice(&self.flags.to_le_bytes());
        for word in [
            self.id,
            self.parent,
            self.generation,
            self.seed,
            self.entries,
            self.tombstones,
            self.puts,
            self.blob_bytes,
            self.data_offset,
            self.data_bytes,
            self.index_offset,
            self.index_lines,
            self.partitions_offset,
            u64::from(self.partition_bits) | u64::from(compression_number(self.compression)) << 32,
            self.dictionary_offset,
            self.dictionary_bytes,
            self.sums_offset,
            self.root_sum,
            self.file_bytes,
            self.key_bytes_max,
            self.value_bytes_max,
            self.key_bytes,
            self.value_bytes,
        ] {
            page.extend_from_slice(&word.to_le_bytes());
        }
        debug_assert_eq!(page.len(), 16 + 8 * WORDS, "the fields that `decode` reads");
        debug_assert_eq!(compression_of(compression_number(self.compression)), Some(self.compression));
        page.resize(CHECKSUM_AT, 0);
        let sum = xxh3_64(&page);
        page.extend_from_slice(&sum.to_le_bytes());
        debug_assert_eq!(page.len() as u64, PAGE_BYTES);
        page
    }

    /// Decodes and validates the first page of `file`, whose length is `file_bytes`.
    pub fn decode(file: &Path, page: &[u8], file_bytes: u64) -> Result<Header> {
        // For a file shorter than the magic number, only the existing bytes are compared.
        let begins_like_one = page.iter().zip(&MAGIC).all(|(found, expected)| found == expected);
        if page.is_empty() || !begins_like_one {
            let detail = "does not begin with CAIRNTBL".to_owned();
            return Err(Error::Foreign { file: file.to_owned(), expected: "constant store", detail });
        }
        let page = page.get(..PAGE_BYTES as usize).ok_or_else(|| {
            Error::corruption(file, 0, format!("{file_bytes} bytes long, expected at least {PAGE_BYTES}"))
        })?;
        match word32(page, 8) {
            VERSION => Header::decode_v2(file, page, file_bytes),
            version => {
                let detail = format!(
                    "format version {version}; this build reads version {VERSION}, so rebuild the table"
                );
                Err(Error::Unsupported { file: file.to_owned(), detail })
            }
        }
    }

    fn decode_v2(file: &Path, page: &[u8], file_bytes: u64) -> Result<Header> {
        debug_assert_eq!(page.len() as u64, PAGE_BYTES, "checked by `decode`");
        let found = word64(page, CHECKSUM_AT);
        let expected = xxh3_64(&page[..CHECKSUM_AT]);
        if found != expected {
            let detail = format!("header checksum is {found:016x}, expected {expected:016x}");
            return Err(Error::corruption(file, CHECKSUM_AT as u64, detail));
        }
        let word = |index: usize| word64(page, 16 + 8 * index);
        let compression = word32(page, 124);
        let Some(compression) = compression_of(compression) else {
            let detail = format!("compression {compression} is not known; 0 is none, 1 is zstd, 2 is snappy");
            return Err(Error::Unsupported { file: file.to_owned(), detail });
        };
        let header = Header {
            flags: word32(page, 12),
            id: word(0),
            parent: word(1),
            generation: word(2),
            seed: word(3),
            entries: word(4),
            tombstones: word(5),
            puts: word(6),
            blob_bytes: word(7),
            data_offset: word(8),
            data_bytes: word(9),
            index_offset: word(10),
            index_lines: word(11),
            partitions_offset: word(12),
            partition_bits: word(13) as u32,
            compression,
            dictionary_offset: word(14),
            dictionary_bytes: word(15),
            sums_offset: word(16),
            root_sum: word(17),
            file_bytes: word(18),
            key_bytes_max: word(19),
            value_bytes_max: word(20),
            key_bytes: word(21),
            value_bytes: word(22),
        };
        header.check(file, file_bytes)?;
        Ok(header)
    }

    /// Checks that the sections follow each other without overlap and end with the file. A valid
    /// checksum does not make the header true, because it may be forged, and all later code relies
    /// on these bounds. The writer checks its own header too.
    pub(super) fn check(&self, file: &Path, file_bytes: u64) -> Result<()> {
        let wrong = |offset: u64, detail: String| Err(Error::corruption(file, offset, detail));
        if self.flags & !FLAGS_KNOWN != 0 {
            let detail = format!("flags {:#x} ask for features that this build does not know", self.flags);
            return Err(Error::Unsupported { file: file.to_owned(), detail });
        }
        if self.file_bytes != file_bytes {
            return wrong(
                160,
                format!("the file is {file_bytes} bytes long, but its header says {}", self.file_bytes),
            );
        }
        if self.partition_bits > PARTITION_BITS_MAX {
            return wrong(
                120,
                format!("partition bits {}, at most {PARTITION_BITS_MAX}", self.partition_bits),
            );
        }
        let sections = [
            (80, "data", PAGE_BYTES.checked_add(self.blob_bytes), self.data_offset),
            (96, "index", self.data_offset.checked_add(self.data_bytes), self.index_offset),
            (
                112,
                "partitions",
                self.index_lines
                    .checked_mul(LINE_BYTES)
                    .and_then(|bytes| bytes.checked_add(self.index_offset)),
                self.partitions_offset,
            ),
            (
                128,
                "dictionary",
                self.partitions_offset.checked_add(self.partitions() * PARTITION_BYTES),
                self.dictionary_offset,
            ),
            (144, "checksums", self.dictionary_offset.checked_add(self.dictionary_bytes), self.sums_offset),
        ];
        for (at, name, end_before, start) in sections {
            let expected = end_before.and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
            if expected != Some(start) || start > file_bytes {
                let detail = format!(
                    "section {name} starts at {start}, expected {expected:?} within {file_bytes} bytes"
                );
                return wrong(at, detail);
            }
        }
        if self.id == 0 {
            return wrong(16, "the id is 0, which no table has".to_owned());
        }
        if self.entries.div_ceil(SLOTS as u64) > self.index_lines {
            let detail = format!("{} entries do not fit {} lines of {SLOTS}", self.entries, self.index_lines);
            return wrong(48, detail);
        }
        if self.entries > self.puts || self.tombstones > self.entries {
            let detail =
                format!("{} entries, {} tombstones of {} puts", self.entries, self.tombstones, self.puts);
            return wrong(48, detail);
        }
        if self.dictionary_bytes > 0 && self.compression != Format::Zstd {
            let detail = format!("a zstd dictionary, but the compression is {}", self.compression);
            return wrong(136, detail);
        }
        if self.is_fixed() && self.is_tagged() {
            return wrong(12, "flags say both fixed widths and tagged records".to_owned());
        }
        if self.is_fixed() && self.key_bytes_max.saturating_add(self.value_bytes_max) >= FIXED_BYTES_END {
            let (key, value) = (self.key_bytes_max, self.value_bytes_max);
            let detail =
                format!("fixed widths of {key} and {value} bytes, expected a sum below {FIXED_BYTES_END}");
            return wrong(168, detail);
        }
        Ok(())
    }
}

/// Returns the number that stands for `format` in the header.
fn compression_number(format: Format) -> u32 {
    match format {
        Format::None => 0,
        Format::Zstd => 1,
        Format::Snappy => 2,
    }
}

/// Decodes a number that [`compression_number`] returned.
fn compression_of(number: u32) -> Option<Format> {
    match number {
        0 => Some(Format::None),
        1 => Some(Format::Zstd),
        2 => Some(Format::Snappy),
        _ => None,
    }
}

/// Returns the little-endian u32 at `at`. The caller has checked the length.
pub(crate) fn word32(bytes: &[u8], at: usize) -> u32 {
    debug_assert!(at + 4 <= bytes.len(), "4 bytes at {at} of {}", bytes.len());
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Returns the little-endian u64 at `at`. The caller has checked the length.
pub(crate) fn word64(bytes: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= bytes.len(), "8 bytes at {at} of {}", bytes.len());
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}
