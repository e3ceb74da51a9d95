//! The header of an index (`.spi`).
//!
//! ```text
//!   0 magic 8f 31 11 9a      4 major = 1            8 minor = 1             12 log's identifier
//!  16 hash seed       u32   20 data_end      u64   28 key_bytes_max   u64   36 value_bytes_max u64
//!  44 puts            u64   52 garbage_bytes u64   60 entries         u64   68 address_bytes   u32
//!  72 hash_bytes      u32   76 capacity      u64   84 displacement_max u64  92 entry_bits      u32
//!  96 collisions      u64  104 displacement_total u64                      112 slots
//! ```
//!
//! An index covers exactly the first `data_end` bytes of its log. If the log has grown since, the
//! index shows its earlier state.

use std::num::NonZeroU64;
use std::path::Path;

use cairn_vfs::File;

use super::bytes::{FieldWriter, u32_at, u64_at};
use super::log_header::{LOG_HEADER_BYTES, LogHeader, check_magic};
use crate::{Error, Result};

/// The size of an index's header in bytes, and the offset of its first slot.
pub(super) const INDEX_HEADER_BYTES: usize = 112;
const _: () = assert!(INDEX_HEADER_BYTES == 8 * 4 + 10 * 8, "eight words of 4 bytes and ten of 8");

pub(super) const MAGIC: u32 = 0x9a11_318f;
const LOG_MAGIC: u32 = 0x49b3_9c95;
const MAJOR: u32 = 1;
const MINOR: u32 = 1;
/// The maximum of `entry_bits`. More would leave no room for positions, and no block has that many
/// entries.
pub(super) const ENTRY_BITS_MAX: u32 = 31;

/// The decoded header of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexHeader {
    /// The identifier of the log it belongs to.
    pub identifier: u32,
    /// The seed of the hash function.
    pub seed: u32,
    /// The log's `data_end` when it was indexed.
    pub data_end: u64,
    /// Length of the longest key put into the log until then, in bytes.
    pub key_bytes_max: u64,
    /// Length of the longest value put into the log until then, in bytes.
    pub value_bytes_max: u64,
    /// Number of PUT records in the log until then.
    pub puts: u64,
    /// Size of the overwritten and deleted records before compression, in bytes. The C library also
    /// counts the DELETE records themselves.
    pub garbage_bytes: u64,
    /// Number of live keys.
    pub entries: u64,
    /// Width of an address in a slot: 4 or 8.
    pub address_bytes: u32,
    /// Width of a hash in a slot: 4 or 8.
    pub hash_bytes: u32,
    /// Number of slots.
    pub capacity: NonZeroU64,
    /// The maximum distance of an entry from its home slot, in slots.
    pub displacement_max: u64,
    /// Number of low bits of an address that hold the record's number within its block.
    pub entry_bits: u32,
    /// Number of pairs of neighbouring slots with equal hashes.
    pub collisions: u64,
    /// Sum of the distances of all entries from their home slots.
    pub displacement_total: u64,
}

impl IndexHeader {
    pub(super) fn encode(&self) -> [u8; INDEX_HEADER_BYTES] {
        FieldWriter::new()
            .u32(MAGIC)
            .u32(MAJOR)
            .u32(MINOR)
            .u32(self.identifier)
            .u32(self.seed)
            .u64(self.data_end)
            .u64(self.key_bytes_max)
            .u64(self.value_bytes_max)
            .u64(self.puts)
            .u64(self.garbage_bytes)
            .u64(self.entries)
            .u32(self.address_bytes)
            .u32(self.hash_bytes)
            .u64(self.capacity.get())
            .u64(self.displacement_max)
            .u32(self.entry_bits)
            .u64(self.collisions)
            .u64(self.displacement_total)
            .finish()
    }

    /// Reads and validates the header of an open index.
    pub(super) fn read(file: &dyn File) -> Result<Self> {
        let (path, len) = (file.path(), file.len()?);
        if len < INDEX_HEADER_BYTES as u64 {
            let detail = format!(
                "an index begins with {INDEX_HEADER_BYTES} bytes of header, the file has {len} bytes"
            );
            return Err(Error::corruption(path, 0, detail));
        }
        let mut bytes = [0; INDEX_HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        IndexHeader::decode(path, &bytes, len)
    }

    /// Decodes a header and checks everything that can be checked without the log and the slots.
    pub(super) fn decode(path: &Path, bytes: &[u8; INDEX_HEADER_BYTES], file_bytes: u64) -> Result<Self> {
        check_magic(path, u32_at(bytes, 0), MAGIC, LOG_MAGIC, ["Sparkey index", "Sparkey log"])?;
        let (major, minor) = (u32_at(bytes, 4), u32_at(bytes, 8));
        if major != MAJOR || minor > MINOR {
            let detail =
                format!("index version {major}.{minor}; {MAJOR}.0 and {MAJOR}.{MINOR} are supported");
            return Err(Error::Unsupported { file: path.to_owned(), detail });
        }
        let Some(capacity) = NonZeroU64::new(u64_at(bytes, 76)) else {
            return Err(Error::corruption(path, 76, "capacity is 0, expected at least 1"));
        };
        let header = IndexHeader {
            identifier: u32_at(bytes, 12),
            seed: u32_at(bytes, 16),
            data_end: u64_at(bytes, 20),
            key_bytes_max: u64_at(bytes, 28),
            value_bytes_max: u64_at(bytes, 36),
            puts: u64_at(bytes, 44),
            garbage_bytes: u64_at(bytes, 52),
            entries: u64_at(bytes, 60),
            address_bytes: u32_at(bytes, 68),
            hash_bytes: u32_at(bytes, 72),
            capacity,
            displacement_max: u64_at(bytes, 84),
            entry_bits: u32_at(bytes, 92),
            collisions: u64_at(bytes, 96),
            displacement_total: u64_at(bytes, 104),
        };
        header.check(path, file_bytes)?;
        Ok(header)
    }

    fn check(&self, path: &Path, file_bytes: u64) -> Result<()> {
        let wrong = |offset, detail: String| Err(Error::corruption(path, offset, detail));
        for (offset, name, bytes) in [(68, "address", self.address_bytes), (72, "hash", self.hash_bytes)] {
            if bytes != 4 && bytes != 8 {
                return wrong(offset, format!("{name} size is {bytes} bytes, expected 4 or 8"));
            }
        }
        if self.file_bytes() != Some(file_bytes) {
            let expected = self.file_bytes().map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
            return wrong(
                76,
                format!("{} slots need a file of {expected} bytes, it has {file_bytes}", self.capacity),
            );
        }
        if self.data_end < LOG_HEADER_BYTES as u64 {
            return wrong(20, format!("data_end is {}, expected at least {LOG_HEADER_BYTES}", self.data_end));
        }
        if self.entry_bits > ENTRY_BITS_MAX {
            return wrong(92, format!("{} entry bits, expected at most {ENTRY_BITS_MAX}", self.entry_bits));
        }
        let most = self.puts.min(self.capacity.get());
        if self.entries > most {
            return wrong(60, format!("{} entries, at most {most} fit the puts and the slots", self.entries));
        }
        for (offset, name, count) in
            [(84, "largest displacement", self.displacement_max), (96, "collision count", self.collisions)]
        {
            if count > self.entries {
                return wrong(
                    offset,
                    format!("{name} is {count}, expected at most the {} entries", self.entries),
                );
            }
        }
        Ok(())
    }

    /// Checks that this index, read from `path`, was built from the log with the header `log`.
    pub(super) fn check_log(&self, path: &Path, log: &LogHeader, log_path: &Path) -> Result<()> {
        let fields = [
            ("data_end", self.data_end, log.data_end),
            ("longest key", self.key_bytes_max, log.key_bytes_max),
            ("longest value", self.value_bytes_max, log.value_bytes_max),
            ("number of puts", self.puts, log.puts),
        ];
        let detail = if self.identifier != log.identifier {
            format!(
                "identifier {:#010x} in the index, {:#010x} in the log; `cairn hash index` rebuilds the index",
                self.identifier, log.identifier
            )
        } else if let Some((name, index, log)) = fields.iter().find(|(_, index, log)| index > log) {
            format!("{name} is {index} in the index, but {log} in the log, which only ever grows")
        } else if self.data_end == log.data_end
            && let Some((name, index, log)) = fields.iter().find(|(_, index, log)| index != log)
        {
            format!(
                "{name} is {index} in the index but {log} in the log, although the index covers the whole log"
            )
        } else {
            return self.check_garbage(path, log);
        };
        Err(Error::Mismatch { file: path.to_owned(), other: log_path.to_owned(), detail })
    }

    /// Checks that the overwritten and deleted records can have the size in the header. Their exact
    /// size is known only after all of them were read.
    fn check_garbage(&self, path: &Path, log: &LogHeader) -> Result<()> {
        debug_assert!(self.entries <= self.puts, "{} entries of {} puts", self.entries, self.puts);
        let dead = self.puts - self.entries;
        // A live record has at least two bytes, and so has a dead one. The C library also counts
        // DELETE records. If it changes the size of the hashes, it counts everything that it
        // counted before a second time.
        let once = (log.put_bytes + log.delete_bytes).saturating_sub(2 * self.entries);
        let (least, most) = (2 * dead, once.saturating_mul(2));
        if (least..=most).contains(&self.garbage_bytes) {
            return Ok(());
        }
        let detail = format!(
            "{} bytes of garbage, expected {least} to {most} for {dead} dead records",
            self.garbage_bytes
        );
        Err(Error::corruption(path, 52, detail))
    }

    /// Returns the size of a slot in bytes.
    pub(super) fn slot_bytes(&self) -> u64 {
        u64::from(self.hash_bytes + self.address_bytes)
    }

    /// Returns the size of the file in bytes, unless it overflows.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.capacity.get().checked_mul(self.slot_bytes())?.checked_add(INDEX_HEADER_BYTES as u64)
    }

    /// Returns the file offset of slot number `slot`.
    pub(super) fn slot_offset(&self, slot: u64) -> u64 {
        debug_assert!(slot < self.capacity.get(), "slot {slot} of {}", self.capacity);
        INDEX_HEADER_BYTES as u64 + slot * self.slot_bytes()
    }

    /// Splits an address into the position in the log and the record's number within its block.
    #[inline]
    pub(super) fn split(&self, address: u64) -> (u64, u64) {
        debug_assert!(self.entry_bits <= ENTRY_BITS_MAX, "{} entry bits", self.entry_bits);
        (address >> self.entry_bits, address & ((1 << self.entry_bits) - 1))
    }
}
