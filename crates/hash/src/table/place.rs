//! Maps a hash to its place: the partition, the line within it, and the fingerprint within the
//! line.
//!
//! The three are consecutive digits of the hash, the most significant first. Entries sorted by hash
//! are therefore sorted by all three.
//!
//! ```text
//! digits   = hash rotated left by the partition bits      the partition number in the lowest bits
//! product  = digits * home lines of the partition         128 bits
//! home     = upper half of the product                    line within the partition
//! fingerprint = top 18 bits of the lower half
//! ```

use std::path::Path;

use super::format::{Header, PARTITION_BITS_MAX, PARTITION_BYTES, word32, word64};
use crate::{Error, Result};

const _: () = assert!(PARTITION_BYTES as usize == 3 * size_of::<u64>() + 2 * size_of::<u32>());
const _: () = assert!(1 << PARTITION_BITS_MAX == u8::MAX as usize + 1, "a u8 selects a partition");

/// The lines and records of one partition of the hash space.
///
/// ```text
/// 0 first line u64 | 8 home lines u32 | 12 tail lines u32 | 16 data start u64 | 24 data bytes u64
/// ```
/// Lines `[first, first + homes)` are home lines. The tail lines after them take the entries that
/// the last home lines could not hold. The data start is an offset in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    pub first_line: u64,
    pub home_lines: u32,
    pub tail_lines: u32,
    pub data_start: u64,
    pub data_bytes: u64,
}

impl Partition {
    /// Encodes the partition entry.
    pub fn encode(&self) -> [u8; PARTITION_BYTES as usize] {
        let mut bytes = [0; PARTITION_BYTES as usize];
        bytes[..8].copy_from_slice(&self.first_line.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.home_lines.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.tail_lines.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.data_start.to_le_bytes());
        bytes[24..].copy_from_slice(&self.data_bytes.to_le_bytes());
        debug_assert!(
            (word64(&bytes, 0), word64(&bytes, 16), word64(&bytes, 24))
                == (self.first_line, self.data_start, self.data_bytes)
                && (word32(&bytes, 8), word32(&bytes, 12)) == (self.home_lines, self.tail_lines),
            "decoded as it is encoded: {self:?}"
        );
        bytes
    }
}

/// The partitions of a table. Maps a hash to its place in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partitions {
    bits: u32,
    /// Number of partitions minus one.
    last: u8,
    /// Always 256 entries, so that indexing with a u8 needs no bounds check. The unused entries
    /// have no lines.
    all: Box<[Partition; 1 << PARTITION_BITS_MAX]>,
}

impl Default for Partitions {
    fn default() -> Self {
        Partitions { bits: 0, last: 0, all: Box::new([Partition::default(); 1 << PARTITION_BITS_MAX]) }
    }
}

impl Partitions {
    /// Returns the partitions in order.
    pub fn as_slice(&self) -> &[Partition] {
        debug_assert_eq!(usize::from(self.last) + 1, 1 << self.bits, "a power of two");
        &self.all[..=usize::from(self.last)]
    }

    /// Returns the partition of `hash` and the place within it.
    #[inline(always)]
    pub fn find(&self, hash: u64) -> (&Partition, Place) {
        let digits = hash.rotate_left(self.bits);
        let partition = &self.all[usize::from(digits as u8 & self.last)];
        debug_assert!(partition.home_lines > 0, "a partition that `decode` has read");
        debug_assert_eq!(usize::from(digits as u8 & self.last), partition_of(hash, self.bits), "as written");
        (partition, Place::new(digits, partition.home_lines))
    }

    /// Decodes the partitions of a table and checks them against its header: they must be
    /// consecutive and cover all lines and all data.
    pub fn decode(file: &Path, header: &Header, bytes: &[u8]) -> Result<Partitions> {
        let mut partitions = Partitions {
            bits: header.partition_bits,
            last: (header.partitions() - 1) as u8,
            ..Partitions::default()
        };
        debug_assert_eq!(bytes.len() as u64, header.partitions() * PARTITION_BYTES);
        let mut found = 0;
        let (mut line, mut data) = (0u64, header.data_offset);
        let entries = bytes.chunks_exact(PARTITION_BYTES as usize).take(header.partitions() as usize);
        for (index, (entry, to)) in entries.zip(partitions.all.iter_mut()).enumerate() {
            let partition = Partition {
                first_line: word64(entry, 0),
                home_lines: word32(entry, 8),
                tail_lines: word32(entry, 12),
                data_start: word64(entry, 16),
                data_bytes: word64(entry, 24),
            };
            let at = header.partitions_offset + index as u64 * PARTITION_BYTES;
            if partition.first_line != line || partition.data_start != data || partition.home_lines == 0 {
                let detail = format!(
                    "partition {index} has {} home lines from line {} and data from {}, expected at least one from line {line} and data from {data}",
                    partition.home_lines, partition.first_line, partition.data_start
                );
                return Err(Error::corruption(file, at, detail));
            }
            // A builder does not fill the home lines completely, so the entries that they pass on
            // never need as many lines again.
            if partition.tail_lines > partition.home_lines {
                let detail = format!(
                    "partition {index} has {} tail lines, expected at most its {} home lines",
                    partition.tail_lines, partition.home_lines
                );
                return Err(Error::corruption(file, at, detail));
            }
            line += u64::from(partition.home_lines) + u64::from(partition.tail_lines);
            data = data.saturating_add(partition.data_bytes);
            *to = partition;
            found += 1;
        }
        if found != header.partitions()
            || line != header.index_lines
            || data != header.data_offset + header.data_bytes
        {
            let detail = format!(
                "{found} partitions with {line} lines and data up to {data}, but the header says {} with {} up to {}",
                header.partitions(),
                header.index_lines,
                header.data_offset + header.data_bytes
            );
            return Err(Error::corruption(file, header.partitions_offset, detail));
        }
        Ok(partitions)
    }
}

/// The place of a hash within its partition: the home line and the fingerprint.
///
/// Both are consecutive digits of the hash, so entries sorted by hash are sorted by both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The home line, relative to the first line of the partition.
    pub home: u32,
    /// Tells entries of one home line apart.
    pub fingerprint: Fingerprint,
}

impl Place {
    /// Computes the place of a hash in a partition with `home_lines` home lines, by multiply-shift
    /// instead of a division. `digits` is the hash rotated left by the partition bits.
    #[inline(always)]
    pub fn new(digits: u64, home_lines: u32) -> Place {
        let product = u128::from(digits) * u128::from(home_lines);
        debug_assert!(product >> 64 < u128::from(home_lines), "home within {home_lines} lines");
        Place { home: (product >> 64) as u32, fingerprint: Fingerprint::new(product as u64) }
    }
}

/// Eighteen bits of a hash, the most significant digit first: `quarter (2) | first (8) | second
/// (8)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint(u32);

impl Fingerprint {
    /// Takes the fingerprint from the digits after the home line, the most significant first.
    #[inline(always)]
    pub fn new(digits: u64) -> Fingerprint {
        Fingerprint((digits >> 46) as u32)
    }

    /// Returns the first two bits.
    #[inline(always)]
    pub fn quarter(self) -> u32 {
        self.0 >> 16
    }

    /// Returns the eight bits after the quarter.
    #[inline(always)]
    pub fn first(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns the last eight bits, which only lines of fixed widths store.
    #[inline(always)]
    pub fn second(self) -> u8 {
        self.0 as u8
    }

    /// Returns the ten bits that a line of varying widths stores.
    pub fn first_ten(self) -> u32 {
        self.0 >> 8
    }
}

/// Returns the number of the partition of `hash` among `1 << partition_bits`.
#[inline]
pub(crate) fn partition_of(hash: u64, partition_bits: u32) -> usize {
    debug_assert!(partition_bits <= PARTITION_BITS_MAX, "{partition_bits} bits");
    (hash.rotate_left(partition_bits) & ((1 << partition_bits) - 1)) as usize
}
