//! The header of a log (`.spl`).
//!
//! ```text
//!  0 magic 95 9c b3 49    4 major = 1             8 minor = 0           12 identifier
//! 16 puts          u64   24 deletes       u64    32 data_end     u64   40 key_bytes_max u64
//! 48 value_bytes_max u64 56 delete_bytes  u64    64 compression  u32   68 block_bytes   u32
//! 72 put_bytes     u64   80 block_entries_max u32                      84 records
//! ```
//!
//! `data_end` is the commit marker: bytes after it do not count. The header is rewritten in place
//! at every flush. It lies within the first 512 bytes of the file, so a write of it is one sector
//! on the medium, and devices write sectors atomically. This is the only protection against a torn
//! header; the file itself has none.

use std::path::Path;

use cairn_codec::compress::{Format, expansion_max};
use cairn_vfs::File;

use super::bytes::{FieldWriter, u32_at, u64_at};
use super::record::RecordHead;
use crate::{Error, Result};

/// The size of a log's header in bytes, and the offset of its first record.
pub(super) const LOG_HEADER_BYTES: usize = 84;
const _: () =
    assert!(LOG_HEADER_BYTES == 7 * size_of::<u32>() + 7 * size_of::<u64>(), "the sum of its fields");

const MAGIC: u32 = 0x49b3_9c95;
const INDEX_MAGIC: u32 = super::index_header::MAGIC;
const MAJOR: u32 = 1;
const MINOR: u32 = 0;

/// Number of attempts to read a header that changes meanwhile.
const READ_ATTEMPTS: usize = 8;

/// The smallest block that Sparkey's own writers accept: both lengths of a record must fit into one
/// block.
pub(super) const BLOCK_BYTES_MIN: u32 = 10;
/// The largest block that Sparkey's own command line accepts. Bounds the memory that a reader needs
/// for a block.
pub(super) const BLOCK_BYTES_MAX: u32 = 1 << 30;
/// Java reads the length of a key plus one into a signed integer, and refuses files with longer
/// keys.
pub(super) const KEY_BYTES_MAX: u64 = i32::MAX as u64 - 1;

/// Size of the smallest record: two lengths of one byte each.
const RECORD_BYTES_MIN: u64 = 2;

const _: () = assert!(LOG_HEADER_BYTES <= 512, "the header must lie within one sector");
const _: () = assert!(KEY_BYTES_MAX + 1 == i32::MAX as u64, "the length that Java adds one to");

/// The decoded header of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogHeader {
    /// A random number that the indexes of the log carry too.
    pub identifier: u32,
    /// Number of PUT records ever appended, overwritten ones included.
    pub puts: u64,
    /// Number of DELETE records ever appended.
    pub deletes: u64,
    /// Offset just past the last committed byte.
    pub data_end: u64,
    /// Length of the longest key ever put, in bytes.
    pub key_bytes_max: u64,
    /// Length of the longest value ever put, in bytes.
    pub value_bytes_max: u64,
    /// Total size of all DELETE records before compression, in bytes.
    pub delete_bytes: u64,
    /// The compression of the blocks.
    pub compression: Format,
    /// Maximum size of a block before compression, in bytes. Has no meaning in an uncompressed log.
    pub block_bytes: u32,
    /// Total size of all PUT records before compression, in bytes.
    pub put_bytes: u64,
    /// Maximum number of records that start in one block. 0 or 1 in an uncompressed log, depending
    /// on the writer.
    pub block_entries_max: u32,
}

impl LogHeader {
    /// Creates the header of an empty log.
    pub(super) fn new(identifier: u32, compression: Format, block_bytes: u32) -> Self {
        LogHeader {
            identifier,
            puts: 0,
            deletes: 0,
            data_end: LOG_HEADER_BYTES as u64,
            key_bytes_max: 0,
            value_bytes_max: 0,
            delete_bytes: 0,
            compression,
            block_bytes,
            put_bytes: 0,
            block_entries_max: 0,
        }
    }

    pub(super) fn encode(&self) -> [u8; LOG_HEADER_BYTES] {
        let compression = match self.compression {
            Format::None => 0,
            Format::Snappy => 1,
            Format::Zstd => 2,
        };
        FieldWriter::new()
            .u32(MAGIC)
            .u32(MAJOR)
            .u32(MINOR)
            .u32(self.identifier)
            .u64(self.puts)
            .u64(self.deletes)
            .u64(self.data_end)
            .u64(self.key_bytes_max)
            .u64(self.value_bytes_max)
            .u64(self.delete_bytes)
            .u32(compression)
            .u32(self.block_bytes)
            .u64(self.put_bytes)
            .u32(self.block_entries_max)
            .finish()
    }

    /// Reads and validates the header of an open log.
    pub(super) fn read(file: &dyn File) -> Result<Self> {
        let (path, len) = (file.path(), file.len()?);
        if len < LOG_HEADER_BYTES as u64 {
            let detail =
                format!("a log begins with {LOG_HEADER_BYTES} bytes of header, the file has {len} bytes");
            return Err(Error::corruption(path, 0, detail));
        }
        let mut bytes = [0; LOG_HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        // A writer may be rewriting the header meanwhile. If two reads agree, a torn read is very
        // unlikely.
        for _ in 0..READ_ATTEMPTS {
            let before = std::mem::replace(&mut bytes, [0; LOG_HEADER_BYTES]);
            file.read_exact_at(&mut bytes, 0)?;
            if bytes == before {
                break;
            }
        }
        // The file may have grown together with its header.
        LogHeader::decode(path, &bytes, len.max(file.len()?))
    }

    /// Decodes a header and checks everything that can be checked without reading records.
    pub(super) fn decode(path: &Path, bytes: &[u8; LOG_HEADER_BYTES], file_bytes: u64) -> Result<Self> {
        check_magic(path, u32_at(bytes, 0), MAGIC, INDEX_MAGIC, ["Sparkey log", "Sparkey index"])?;
        let (major, minor) = (u32_at(bytes, 4), u32_at(bytes, 8));
        if major != MAJOR || minor > MINOR {
            let detail = format!("log version {major}.{minor}; {MAJOR}.{MINOR} is supported");
            return Err(Error::Unsupported { file: path.to_owned(), detail });
        }
        let compression = match u32_at(bytes, 64) {
            0 => Format::None,
            1 => Format::Snappy,
            2 => Format::Zstd,
            other => {
                let detail = format!("compression {other}; 0 (none), 1 (snappy) and 2 (zstd) are known");
                return Err(Error::Unsupported { file: path.to_owned(), detail });
            }
        };
        let header = LogHeader {
            identifier: u32_at(bytes, 12),
            puts: u64_at(bytes, 16),
            deletes: u64_at(bytes, 24),
            data_end: u64_at(bytes, 32),
            key_bytes_max: u64_at(bytes, 40),
            value_bytes_max: u64_at(bytes, 48),
            delete_bytes: u64_at(bytes, 56),
            compression,
            block_bytes: u32_at(bytes, 68),
            put_bytes: u64_at(bytes, 72),
            block_entries_max: u32_at(bytes, 80),
        };
        header.check(path, file_bytes)?;
        Ok(header)
    }

    /// Checks the fields against each other and the length of the file.
    pub(super) fn check(&self, path: &Path, file_bytes: u64) -> Result<()> {
        let wrong = |offset, detail: String| Err(Error::corruption(path, offset, detail));
        if self.data_end < LOG_HEADER_BYTES as u64 || self.data_end > file_bytes {
            let range = format!("{LOG_HEADER_BYTES}..={file_bytes}, the length of the file");
            return wrong(32, format!("data_end is {}, expected {range}", self.data_end));
        }
        let block_range = BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX;
        if self.compression != Format::None && !block_range.contains(&self.block_bytes) {
            return wrong(68, format!("block size is {}, expected {block_range:?}", self.block_bytes));
        }
        let most = self.records_max();
        for (offset, name, count) in [(16, "puts", self.puts), (24, "deletes", self.deletes)] {
            if count > most {
                return wrong(
                    offset,
                    format!("{count} {name} cannot fit, the data holds at most {most} records"),
                );
            }
        }
        for (offset, name, bytes) in [
            (40, "longest key", self.key_bytes_max),
            (48, "longest value", self.value_bytes_max),
            (56, "size of the deletes", self.delete_bytes),
            (72, "size of the puts", self.put_bytes),
        ] {
            if bytes > self.expanded_bytes_max() {
                return wrong(offset, format!("{name} is {bytes} bytes, more than the data can hold"));
            }
        }
        if self.block_entries_max > BLOCK_BYTES_MAX {
            return wrong(
                80,
                format!("{} entries per block, expected at most {BLOCK_BYTES_MAX}", self.block_entries_max),
            );
        }
        self.check_sums(path)
    }

    /// Checks the fields against each other. All writers keep them consistent, and most flipped
    /// bits do not.
    fn check_sums(&self, path: &Path) -> Result<()> {
        let wrong = |offset, detail: String| Err(Error::corruption(path, offset, detail));
        for (offset, name, count, bytes) in
            [(16, "puts", self.puts, self.put_bytes), (24, "deletes", self.deletes, self.delete_bytes)]
        {
            if (count == 0) != (bytes == 0) || count > bytes / RECORD_BYTES_MIN {
                return wrong(offset, format!("{count} {name} of {bytes} bytes"));
            }
        }
        // Saturating: each length is below the maximum expanded size, but their sum may overflow.
        let longest = self.key_bytes_max.saturating_add(self.value_bytes_max);
        let longest_record = RecordHead::put(self.key_bytes_max, self.value_bytes_max).record_bytes();
        let least = if self.puts == 0 { longest } else { longest.saturating_add(RECORD_BYTES_MIN) };
        if least > self.put_bytes || self.put_bytes > self.puts.saturating_mul(longest_record) {
            let detail = format!(
                "{} puts of {} bytes, the longest key {} and the longest value {}",
                self.puts, self.put_bytes, self.key_bytes_max, self.value_bytes_max
            );
            return wrong(72, detail);
        }
        let records = self.data_end - LOG_HEADER_BYTES as u64;
        if self.compression == Format::None && self.put_bytes.checked_add(self.delete_bytes) != Some(records)
        {
            let detail = format!(
                "{} bytes of puts and {} of deletes, but {records} bytes of records",
                self.put_bytes, self.delete_bytes
            );
            return wrong(72, detail);
        }
        Ok(())
    }

    /// Returns the maximum size of the records before compression.
    pub(super) fn expanded_bytes_max(&self) -> u64 {
        let stored = self.data_end - LOG_HEADER_BYTES as u64;
        expansion_max(self.compression, usize::try_from(stored).unwrap_or(usize::MAX))
    }

    /// Returns the maximum number of records that the data can hold.
    fn records_max(&self) -> u64 {
        self.expanded_bytes_max() / RECORD_BYTES_MIN
    }
}

/// Distinguishes a file of the expected type from the other Sparkey type and from foreign files.
pub(super) fn check_magic(
    path: &Path,
    found: u32,
    wanted: u32,
    other: u32,
    kinds: [&'static str; 2],
) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    // A crash may keep the length of a log that was being created, and lose its bytes.
    if found == 0 {
        return Err(Error::corruption(path, 0, format!("begins with zeros, expected {wanted:#010x}")));
    }
    let [expected, other_kind] = kinds;
    let detail = if found == other {
        format!("begins like a {other_kind}")
    } else {
        format!("begins with {found:#010x}, not with {wanted:#010x}")
    };
    Err(Error::Foreign { file: path.to_owned(), expected, detail })
}
