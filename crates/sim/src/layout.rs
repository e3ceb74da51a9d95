//! Sizes of entries in a table file: the bytes that keys and values take on disk.
//!
//! ```text
//! data block   entries: 3 lengths, unshared part of the internal key (key + 8), value;
//!              restarts;  trailer
//! filter       bits for each key
//! index        one entry for each block: a short separator and the block's handle
//! ```
//! This is RocksDB's block-based table; Cairn's table files have less overhead for each entry.

use crate::config::Workload;
use crate::options::{Engine, Options};

/// Bytes of sequence number and kind in an internal key.
const INTERNAL_BYTES: f64 = 8.0;
/// Entries from one restart point, which stores a whole key, to the next.
const RESTART_INTERVAL: f64 = 16.0;
/// Bytes of a block's checksum and compression type in RocksDB.
const TRAILER_BYTES: f64 = 5.0;
/// RocksDB may end a block early once it has this share of its size.
const BLOCK_DEVIATION: f64 = 0.9;
/// Bytes of an index partition in Cairn's `kv`.
pub const PARTITION_BYTES: f64 = 4096.0;
/// Bytes of properties, metaindex and footer.
const FILE_BYTES: f64 = 1000.0;

/// The bytes that an entry takes in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntryBytes {
    /// Uncompressed data block bytes of a put.
    pub data: f64,
    /// Uncompressed data block bytes of a tombstone.
    pub tombstone_data: f64,
    /// Bytes in filter and index, which are not compressed.
    pub meta: f64,
    /// Bytes in the index only.
    pub index: f64,
    /// Entries in a data block.
    pub per_block: f64,
}

impl EntryBytes {
    /// Returns the bytes of a put after compression by `ratio`.
    pub fn put(&self, ratio: f64) -> f64 {
        self.data * effective(ratio) + self.meta
    }

    /// Returns the bytes of a tombstone after compression by `ratio`.
    pub fn tombstone(&self, ratio: f64) -> f64 {
        self.tombstone_data * effective(ratio) + self.meta
    }
}

/// Returns the effective ratio: a block that shrinks by less than an eighth is stored uncompressed.
fn effective(ratio: f64) -> f64 {
    if ratio > 0.875 { 1.0 } else { ratio }
}

/// Returns the bytes of an empty file.
pub fn file_bytes() -> f64 {
    FILE_BYTES
}

/// Returns the bytes of a varint.
pub fn varint_bytes(value: u64) -> f64 {
    f64::from((64 - value.max(1).leading_zeros()).div_ceil(7))
}

/// Returns the mean number of bytes at the end of a key that differ from a neighbour `gap` keys
/// away. A digit differs when the number above it changes.
fn unshared_bytes(workload: &Workload, gap: f64) -> f64 {
    let radix = workload.key_radix as f64;
    let mut sum = 0.0;
    let mut step = 1.0;
    while sum < workload.key_bytes as f64 && gap / step > 1e-6 {
        sum += (gap / step).min(1.0);
        step *= radix;
    }
    sum.min(workload.key_bytes as f64)
}

/// Overhead of a block of Cairn's `kv`: the frame header, and the block trailer.
const FRAME_BYTES: f64 = 20.0;
const KV_TRAILER_BYTES: f64 = 24.0;
/// Header and offset of a restart point in Cairn's `kv`, and entries from one to the next.
const KV_RESTART_BYTES: f64 = 8.0;
const KV_RESTART_INTERVAL: f64 = 8.0;
/// A block handle in Cairn's index: offset, length and ordinal.
const KV_HANDLE_BYTES: f64 = 16.0;

/// Returns the bytes of an entry's sequence number in a file of Cairn's `kv` that spans `writes`
/// writes. A block stores its lowest number once, and each entry a varint of the distance to it and
/// two bits of kind.
pub fn number_bytes(writes: f64) -> f64 {
    varint_bytes((writes.max(1.0) as u64).saturating_mul(4))
}

/// Returns the bytes of entries in a file of Cairn's `kv`, see `docs/src/formats/sstable.md`. A
/// block stores the common prefix of its keys once, and the length of its values once if all are
/// equal. `numbers` is the size of sequence number and kind in each entry.
pub fn kv_entry_bytes(
    workload: &Workload,
    options: &Options,
    gap: f64,
    filter_bits: f64,
    numbers: f64,
) -> EntryBytes {
    let (key, value) = (workload.key_bytes as f64, workload.value_bytes as f64);
    let differing = unshared_bytes(workload, gap);
    let next = 1.0 + numbers + differing + value;
    // The writer cuts a block by an estimate that knows neither the common prefix of its keys nor
    // whether its values have one length.
    let estimated = 3.0 + numbers + differing + value;
    let (mut count, mut size) = (1.0f64, KV_TRAILER_BYTES + KV_RESTART_BYTES + 3.0 + key + value);
    // BOUND: a block of 16 MiB has fewer entries than this.
    while count < 4e6 && size + differing + value + 4.0 <= options.block_size as f64 {
        let is_restart = count % KV_RESTART_INTERVAL == 0.0;
        let more = unshared_bytes(workload, gap * count) - differing + KV_RESTART_BYTES;
        size += estimated + if is_restart { more } else { 0.0 };
        count += 1.0;
    }
    let suffix = unshared_bytes(workload, gap * (count - 1.0)).max(differing.min(key));
    let restarts = (count / KV_RESTART_INTERVAL).ceil();
    let around =
        FRAME_BYTES + KV_TRAILER_BYTES + (key - suffix) + restarts * (KV_RESTART_BYTES + suffix - differing);
    let data = next + around / count;
    let separator = (unshared_bytes(workload, gap * count) - differing + 1.0).clamp(1.0, key);
    let index = (1.0 + separator + KV_RESTART_BYTES + KV_HANDLE_BYTES) / count;
    EntryBytes {
        data,
        tombstone_data: data - value,
        meta: index + filter_bits / 8.0,
        index,
        per_block: count,
    }
}

/// Returns the bytes of entries in a file whose neighbouring keys are `gap` keys apart and whose
/// filter has `filter_bits` bits for each key. For Cairn's `kv`, the file is taken to have no older
/// data below.
pub fn entry_bytes(workload: &Workload, options: &Options, gap: f64, filter_bits: f64) -> EntryBytes {
    if options.engine == Engine::CairnKv {
        return kv_entry_bytes(workload, options, gap, filter_bits, 0.0);
    }
    let key = workload.key_bytes as f64 + INTERNAL_BYTES;
    let value = workload.value_bytes as f64;
    let differing = unshared_bytes(workload, gap);
    let unshared = differing + INTERNAL_BYTES;
    let lengths = 2.0 + varint_bytes(workload.value_bytes);
    let block = options.block_size as f64;
    // Mean over a restart interval; a block shorter than one also stores its first key whole.
    let first = lengths + key + value;
    let next = lengths + unshared + value;
    let full = block_entries(first, next, block);
    let restarts = (full / RESTART_INTERVAL).ceil();
    let overhead = restarts * 4.0 + 4.0 + TRAILER_BYTES;
    let data = (restarts * first + (full - restarts) * next + overhead) / full;
    let index = separator_bytes(workload, differing) + HANDLE_BYTES;
    let tombstone_data = data - value;
    let index = index / full;
    EntryBytes { data, tombstone_data, meta: index + filter_bits / 8.0, index, per_block: full }
}

/// Returns the number of entries in a block.
fn block_entries(first: f64, next: f64, block: f64) -> f64 {
    let mut count: f64 = 1.0;
    let mut size = first + 8.0;
    // BOUND: a block of 16 MiB has fewer entries than this.
    while count < 4e6 && size < block {
        let is_whole = count % RESTART_INTERVAL == 0.0;
        let entry = if is_whole { first + 4.0 } else { next };
        if size + entry > block && size > block * BLOCK_DEVIATION {
            break;
        }
        size += entry;
        count += 1.0;
    }
    count
}

/// Returns the length of a separator: the shortest key between two blocks ends after the first byte
/// that differs.
fn separator_bytes(workload: &Workload, differing: f64) -> f64 {
    (workload.key_bytes as f64 - differing + 1.0).clamp(1.0, workload.key_bytes as f64)
}

/// Returns the probability that a lookup of an absent key reads two blocks of a file whose keys are
/// `gap` apart.
///
/// The index ends a block at a short separator, which lies between its last key and the next
/// block's first key. A lookup of a key between the last key and the separator reads this block,
/// finds its end, and continues in the next.
pub fn second_block(workload: &Workload, gap: f64, per_block: f64) -> f64 {
    const PARTS: u32 = 32;
    if gap <= 1.0 {
        // Every key is present.
        return 0.0;
    }
    let radix = workload.key_radix as f64;
    let (mut before, mut all) = (0.0, 0.0);
    for part in 0..PARTS {
        // Gaps of uniform keys are exponentially distributed. This is the middle of each of 32
        // equal parts of that distribution.
        let step = -gap * (1.0 - (f64::from(part) + 0.5) / f64::from(PARTS)).ln();
        if step <= 1.0 {
            continue;
        }
        // The separator is the first multiple within the gap of the largest power of the radix that
        // has one there.
        let power = radix.powi(step.log(radix) as i32);
        let is_next_power = (step / (power * radix)).min(1.0);
        before += is_next_power * (step - 1.0) / 2.0 + (1.0 - is_next_power) * (power - 1.0) / 2.0;
        all += step - 1.0;
    }
    // One gap for each block lies between blocks.
    if all > 0.0 { before / all / per_block.max(1.0) } else { 0.0 }
}

/// Lengths, handle and restart of an index entry in RocksDB.
const HANDLE_BYTES: f64 = 2.0 + 6.0 + 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a record has the size that RocksDB stores. Method: the 1028 bytes measured for a table
    /// of 16-byte keys, 1000-byte values and a filter of 10 bits.
    #[test]
    fn a_record_has_the_measured_size() {
        let workload = Workload { key_radix: 16, ..Workload::default() };
        let options = Options::default();
        let bytes = entry_bytes(&workload, &options, 1.0, 10.0);
        assert_eq!(bytes.per_block, 4.0);
        assert!((bytes.put(1.0) - 1028.0).abs() < 6.0, "{bytes:?} {}", bytes.put(1.0));
        assert!(bytes.tombstone(1.0) < 50.0);
        assert!(bytes.put(0.5) < 540.0);
        assert_eq!(bytes.put(0.9), bytes.put(1.0));
    }

    /// Goal: the probability of a second block is plausible for absent keys between two blocks.
    /// Method: bounds by hand. A gap below the radix has a separator of its own only if a multiple
    /// of ten lies in it; wide gaps are split in the middle or earlier; blocks of many entries have
    /// few such gaps.
    #[test]
    fn separators_split_gaps() {
        let workload = Workload::default();
        let share = |gap: f64| second_block(&workload, gap, 1.0);
        assert_eq!(share(0.5), 0.0);
        for gap in [5.0, 50.0, 133.0, 5000.0] {
            assert!(share(gap) > 0.15 && share(gap) < 0.5, "{gap}: {}", share(gap));
        }
        assert!((second_block(&workload, 50.0, 4.0) * 4.0 - share(50.0)).abs() < 1e-12);
    }

    /// Goal: keys of sparse files share shorter prefixes. Method: gaps of one and of a million
    /// keys.
    #[test]
    fn gaps_cost_prefix() {
        let workload = Workload::default();
        let options = Options::default();
        let dense = entry_bytes(&workload, &options, 1.0, 0.0).put(1.0);
        let sparse = entry_bytes(&workload, &options, 1e6, 0.0).put(1.0);
        assert!(sparse > dense + 2.0 && sparse < dense + 7.0, "{dense} {sparse}");
    }

    /// Goal: an entry in the last level of Cairn's `kv` has one byte of overhead, plus its share of
    /// the block's. Method: 100-byte values of dense keys by hand: 38 entries a block, each with
    /// one or two digits of its key; and the bytes that sequence numbers add in upper levels.
    #[test]
    fn small_entries_of_kv_are_small() {
        let workload = Workload { value_bytes: 100, ..Workload::default() };
        let options = Options::cairn_kv();
        let bytes = entry_bytes(&workload, &options, 1.0, 0.0);
        assert!((36.0..=39.0).contains(&bytes.per_block), "{bytes:?}");
        assert!((bytes.data - (1.0 + 1.1 + 100.0 + 2.6)).abs() < 0.5, "{bytes:?}");
        assert!(bytes.index < 0.8, "{bytes:?}");
        let rocksdb = entry_bytes(&workload, &Options::default(), 1.0, 0.0);
        assert!(rocksdb.put(1.0) > bytes.put(1.0) + 7.0, "{rocksdb:?}");
        assert_eq!([number_bytes(1.0), number_bytes(1000.0), number_bytes(1e6)], [1.0, 2.0, 4.0]);
        let above = kv_entry_bytes(&workload, &options, 8.0, 0.0, number_bytes(1e6));
        assert!(above.data > bytes.data + 4.0 && above.data < bytes.data + 6.0, "{above:?}");
    }
}
