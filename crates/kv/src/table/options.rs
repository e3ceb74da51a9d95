//! Options of tables.

use cairn_codec::filter::FilterPolicy;

use crate::file::TableMeta;
use crate::kind::Seqno;
use crate::{Error, Result};

/// The compression of a table's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4. The default, because decompression costs less than the space it saves in the kernel's
    /// cache and on the device.
    #[default]
    Lz4,
    /// Snappy.
    Snappy,
    /// zstd, with a dictionary per table if the table is large enough to train one.
    Zstd {
        /// The compression level, -7 to 22.
        level: i32,
        /// The largest size of the dictionary; 0 for none.
        dictionary_bytes: u32,
    },
}

/// Options for writing a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableOptions {
    /// A data block is closed before it would exceed this size. 4 KiB by default. A point lookup
    /// reads one data block.
    pub block_bytes: usize,
    /// As `block_bytes`, for index partitions. 4 KiB by default.
    pub partition_bytes: usize,
    /// Entries from one restart to the next. 8 by default: a lookup then skips 4 entries on
    /// average; 16 saves some space.
    pub restart_interval: u32,
    /// Compression of data blocks and index partitions. A block that would save less than an eighth
    /// is stored uncompressed.
    pub compression: Compression,
    /// The filters, over whole keys and, with an extractor, over prefixes. `None` writes none.
    pub filter: Option<FilterPolicy>,
    /// The extractor for prefixes of keys.
    pub prefix: Option<PrefixExtractor>,
    /// For [`TableMeta::oldest_secs`](crate::file::TableMeta::oldest_secs).
    pub oldest_secs: u64,
    /// For [`TableMeta::newest_secs`](crate::file::TableMeta::newest_secs).
    pub newest_secs: u64,
    /// For [`Properties::flushed_seqno`](super::properties::Properties::flushed_seqno).
    pub flushed_seqno: Seqno,
    /// Id and name of the keyspace, for repairs.
    pub keyspace: Option<(u32, String)>,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            block_bytes: 4 << 10,
            partition_bytes: 4 << 10,
            restart_interval: 8,
            compression: Compression::default(),
            filter: Some(FilterPolicy::bloom(10.0)),
            prefix: None,
            oldest_secs: 0,
            newest_secs: 0,
            flushed_seqno: 0,
            keyspace: None,
        }
    }
}

impl TableOptions {
    /// Checks the options.
    ///
    /// Errors: [`Error::Invalid`] with the name of the option that is out of range.
    pub(crate) fn check(&self) -> Result<()> {
        let sizes = 256..=16 << 20;
        for (name, bytes) in [("block_bytes", self.block_bytes), ("partition_bytes", self.partition_bytes)] {
            if !sizes.contains(&bytes) {
                let (low, high) = sizes.into_inner();
                return Err(Error::invalid(format!("{name} is {bytes}, expected {low} to {high}")));
            }
        }
        if !(1..=1024).contains(&self.restart_interval) {
            let what = format!("restart_interval is {}, expected 1 to 1024", self.restart_interval);
            return Err(Error::invalid(what));
        }
        if let Some(policy) = self.filter {
            policy.check().map_err(|error| Error::invalid(error.to_string()))?;
        }
        match (self.compression, self.prefix) {
            (Compression::Zstd { dictionary_bytes, .. }, _) if dictionary_bytes > 1 << 20 => {
                Err(Error::invalid(format!("dictionary_bytes is {dictionary_bytes}, expected at most 1 MiB")))
            }
            (_, Some(PrefixExtractor::Fixed(0))) => Err(Error::invalid("a prefix has at least 1 byte")),
            _ => Ok(()),
        }
    }
}

/// Extracts the prefix of a key, for filters that are checked for whole groups of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefixExtractor {
    /// The first bytes of a key, this many. Shorter keys have no prefix.
    Fixed(u32),
    /// Everything up to and including the first occurrence of this byte. Keys without it have no
    /// prefix.
    UpTo(u8),
}

impl PrefixExtractor {
    /// Returns the prefix of `key`, if it has one.
    #[inline]
    pub(crate) fn prefix_of(self, key: &[u8]) -> Option<&[u8]> {
        match self {
            PrefixExtractor::Fixed(len) => key.get(..len as usize),
            PrefixExtractor::UpTo(delimiter) => {
                key.iter().position(|byte| *byte == delimiter).map(|at| &key[..=at])
            }
        }
    }
}

/// Options for opening a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpenOptions {
    /// Reads all index and filter partitions at once and keeps them in memory, for the upper
    /// levels, which every lookup reads. They count as pinned in the cache. If the cache has no
    /// room for them, they are cached like others.
    pub pin: bool,
    /// Reads bypass the kernel's page cache (`O_DIRECT`), which is useful with a large block cache.
    pub direct: bool,
    /// Accepts a table whose number differs from the one in its name, because it was written
    /// elsewhere and ingested.
    pub foreign: bool,
    /// The sequence number of all entries, replacing the 0 in the file; 0 for a table whose entries
    /// have their own.
    pub seqno: Seqno,
    /// The identity of the table, to be checked.
    pub expected: Option<Expected>,
}

/// The identity of a table according to the manifest: its length and the checksum in its footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The length of the file.
    pub bytes: u64,
    /// The checksum in the footer, which covers the whole file; 0 if the manifest does not have it.
    pub footer: u64,
}

impl Expected {
    /// Returns the identity of the table described by `meta`.
    pub(crate) fn of(meta: &TableMeta) -> Option<Expected> {
        Some(Expected { bytes: meta.bytes, footer: meta.footer })
    }
}

/// Options of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorOptions {
    /// The lower bound, inclusive.
    pub lower: Option<Vec<u8>>,
    /// The upper bound, exclusive.
    pub upper: Option<Vec<u8>>,
    /// Restricts the cursor to keys with this prefix, and checks the prefix filter first if the
    /// table has one for such prefixes.
    pub prefix: Option<Vec<u8>>,
    /// Caches blocks that were not in the cache. Off for compactions and backups. Default: on.
    pub fill_cache: bool,
    /// The most bytes to read at once when blocks are read sequentially. The read-ahead begins with
    /// 16 KiB and doubles. 0 reads block by block. Default: 256 KiB.
    pub readahead_bytes: usize,
}

impl Default for CursorOptions {
    fn default() -> Self {
        CursorOptions { lower: None, upper: None, prefix: None, fill_cache: true, readahead_bytes: 256 << 10 }
    }
}
