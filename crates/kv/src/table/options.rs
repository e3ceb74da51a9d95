//! What can be chosen about tables.

use cairn_codec::filter::FilterPolicy;

use crate::file::TableMeta;
use crate::kind::Seqno;
use crate::{Error, Result};

/// How the blocks of a table are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: the default, since reading it back costs less than what it saves in the cache of the
    /// kernel and on the device.
    #[default]
    Lz4,
    /// Snappy.
    Snappy,
    /// zstd, with a dictionary for each table where it is long enough to train one.
    Zstd {
        /// zstd's level, -7 to 22.
        level: i32,
        /// The most bytes of the dictionary; 0 does without.
        dictionary_bytes: u32,
    },
}

/// How a table is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableOptions {
    /// A data block is closed before it would exceed this. 4 KiB by default: what a point lookup
    /// reads.
    pub block_bytes: usize,
    /// As `block_bytes`, for index partitions. 4 KiB by default.
    pub partition_bytes: usize,
    /// Entries from one restart to the next. 8 by default: a lookup passes 4 entries on average; 16
    /// saves some space.
    pub restart_interval: u32,
    /// Compression of data blocks and index partitions. A block that would save less than an eighth
    /// is stored as it is.
    pub compression: Compression,
    /// Filters over whole keys, and over prefixes if there is an extractor. `None` writes none.
    pub filter: Option<FilterPolicy>,
    /// What the prefix of a key is.
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
    /// Errors: [`Error::Invalid`] naming the option that is out of range.
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

/// What of a key is its prefix, for filters that are asked for whole groups of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefixExtractor {
    /// The first so many bytes. Shorter keys have none.
    Fixed(u32),
    /// Everything up to and including the first of this byte. Keys without it have none.
    UpTo(u8),
}

impl PrefixExtractor {
    /// The prefix of `key`, if it has one.
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

/// How a table is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpenOptions {
    /// Reads all index and filter partitions now and keeps them: for the upper levels, which every
    /// lookup asks. They count as pinned in the cache; where that has no room for them, they are
    /// cached as others are.
    pub pin: bool,
    /// Reads past the kernel's page cache (`O_DIRECT`), which makes sense with a block cache that
    /// is large.
    pub direct: bool,
    /// Takes a table whose number is not that of its name: one that was written elsewhere and
    /// ingested.
    pub foreign: bool,
    /// The sequence number of all entries, instead of the 0 that they have in the file; 0 for a
    /// table whose entries have their own.
    pub seqno: Seqno,
    /// Which table it has to be.
    pub expected: Option<Expected>,
}

/// What the manifest knows of a table, by its length and its last bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Length of the file.
    pub bytes: u64,
    /// The checksum in the footer, which stands for the whole file; 0 where the manifest has none.
    pub footer: u64,
}

impl Expected {
    /// Of the table that the manifest describes so.
    pub(crate) fn of(meta: &TableMeta) -> Option<Expected> {
        Some(Expected { bytes: meta.bytes, footer: meta.footer })
    }
}

/// How a cursor reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorOptions {
    /// The first key that may be shown.
    pub lower: Option<Vec<u8>>,
    /// The first key that may no longer be shown.
    pub upper: Option<Vec<u8>>,
    /// Shows only keys that begin so, and asks the prefix filter first where the table has one for
    /// such a prefix.
    pub prefix: Option<Vec<u8>>,
    /// Whether blocks that were not in the cache are put there. Off for compactions and backups.
    /// Default: on.
    pub fill_cache: bool,
    /// The most bytes to read at once when blocks are read one after the other; it begins with 16
    /// KiB and doubles. 0 reads block by block. Default: 256 KiB.
    pub readahead_bytes: usize,
}

impl Default for CursorOptions {
    fn default() -> Self {
        CursorOptions { lower: None, upper: None, prefix: None, fill_cache: true, readahead_bytes: 256 << 10 }
    }
}
