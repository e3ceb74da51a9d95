//! Options of a store and its keyspaces.

use std::time::Duration;

use cairn_vfs::sync::Arc;

use crate::compaction::strategy::StrategyOptions;
use crate::compaction::stream::CompactionFilter;
use crate::events::EventListener;
use crate::merge_operator::MergeOperator;
use crate::open_files::OPEN_FILES_MIN;
use crate::table::{Compression, PrefixExtractor};
use crate::{Error, Result};
use cairn_codec::filter::{FilterKind, FilterPolicy};

const MIB: u64 = 1 << 20;

/// With less, the first few entries would fill a memtable.
const MEMTABLE_BYTES_MIN: u64 = 4096;

/// The point at which a write counts as done. It has the same meaning for every engine in Cairn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Durability {
    /// In memory: lost with the process unless it was flushed. Writes no log.
    Memory,
    /// Handed to the kernel: survives the end of the process but not a power loss. The default, as
    /// in RocksDB and LevelDB.
    #[default]
    Buffered,
    /// On stable storage when the call returns.
    Sync,
}

/// The threads that run flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// This many background threads, started with the store. At least 1.
    Threads(usize),
    /// The thread whose write makes a flush or compaction due runs it before the write returns. The
    /// same writes then always produce the same files. Intended for tests, simulations and programs
    /// that must not start threads.
    Inline,
}

/// Options of a store. Use [`crate::Db::builder`] to build them.
#[derive(Debug, Clone)]
pub struct Options {
    /// Creates the store if it does not exist. Default: true.
    pub create_if_missing: bool,
    /// Fails with [`Error::Invalid`] if the store already exists. Default: false.
    pub error_if_exists: bool,
    /// Opens the store without writing anything, with or without a concurrent writer, and shows it
    /// as of the open. Default: false.
    pub read_only: bool,
    /// Memory for cached blocks of tables, shared by all keyspaces. Default: 64 MiB.
    pub cache_bytes: u64,
    /// Durability of writes that do not specify one. Default: [`Durability::Buffered`].
    pub durability: Durability,
    /// Interval at which a background thread syncs the log. It bounds how many `Buffered` writes a
    /// power loss can take. Default: `None`, never.
    pub sync_interval: Option<Duration>,
    /// Maximum size of a log segment. The first segments are smaller, so that a small store has a
    /// small log. Default: 16 MiB.
    pub wal_segment_bytes: u64,
    /// Size of the log beyond which the keyspaces whose unflushed writes retain it are flushed.
    /// Default: 1 GiB.
    pub wal_bytes_max: u64,
    /// Total memory of the active memtables beyond which the largest is flushed. Sealed memtables
    /// that await their flush are not counted. At least 4096. Default: `None`, only the limit of
    /// each keyspace applies.
    pub memtable_bytes_max: Option<u64>,
    /// The threads that run background work. Default: one thread per processor, at least 2.
    pub background: Background,
    /// Maximum write rate of compactions in bytes per second. Default: `None`, no limit. Flushes
    /// are not limited, because writers wait for them.
    pub rate_limit_bytes: Option<u64>,
    /// All reads of tables, including lookups, bypass the page cache; give its memory to
    /// `cache_bytes` instead. Writes, the log and blob files still go through the page cache. Reads
    /// fail with `Unsupported` on a file system without direct I/O. Default: false.
    pub direct_io: bool,
    /// Maximum number of open table and blob files. Beyond it the least recently read files are
    /// closed, and the next read of such a file costs an open. At least 8. The log, the manifest
    /// and the output of flushes and compactions come on top, about twenty descriptors. Default:
    /// `None`, three quarters of the process's limit at the time of the open (`ulimit -n`), and at
    /// most 65,536.
    pub open_files_max: Option<usize>,
    /// Receives flushes, compactions, stalls and failures. Default: none.
    pub listener: Option<Arc<dyn EventListener>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            cache_bytes: 64 * MIB,
            durability: Durability::Buffered,
            sync_interval: None,
            wal_segment_bytes: 16 * MIB,
            wal_bytes_max: 1024 * MIB,
            memtable_bytes_max: None,
            background: Background::Threads(cairn_vfs::thread::available_parallelism().max(2)),
            rate_limit_bytes: None,
            direct_io: false,
            open_files_max: None,
            listener: None,
        }
    }
}

impl Options {
    /// Checks the options. Errors: [`Error::Invalid`] naming the option and the expected values.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(what));
        if self.background == Background::Threads(0) {
            return refuse("background: 0 threads, expected at least 1, or Background::Inline".to_owned());
        }
        if !(8 << 10..=1 << 31).contains(&self.wal_segment_bytes) {
            return refuse(format!("wal_segment_bytes: {}, expected 8 KiB to 2 GiB", self.wal_segment_bytes));
        }
        if let Some(bytes) = self.memtable_bytes_max.filter(|bytes| *bytes < MEMTABLE_BYTES_MIN) {
            return refuse(format!("memtable_bytes_max: {bytes}, expected at least {MEMTABLE_BYTES_MIN}"));
        }
        if let Some(files) = self.open_files_max.filter(|files| *files < OPEN_FILES_MIN) {
            return refuse(format!("open_files_max: {files}, expected at least {OPEN_FILES_MIN}"));
        }
        if self.sync_interval.is_some() && self.background == Background::Inline {
            return refuse("sync_interval: needs a thread, and background is Inline".to_owned());
        }
        if self.sync_interval.is_some_and(|interval| interval.is_zero()) {
            return refuse(
                "sync_interval: 0, expected more than 0; Durability::Sync syncs each write".to_owned(),
            );
        }
        if self.read_only && self.error_if_exists {
            return refuse("read_only and error_if_exists contradict each other".to_owned());
        }
        if self.rate_limit_bytes.is_some_and(|bytes| bytes < 64 << 10) {
            return refuse("rate_limit_bytes: expected at least 64 KiB a second".to_owned());
        }
        Ok(())
    }
}

/// Options of a keyspace. Those that determine the meaning of stored bytes (the merge operator's
/// name, the TTL) are stored with the keyspace and checked when it is opened again. The others may
/// change from open to open.
#[derive(Debug, Clone)]
pub struct KeyspaceOptions {
    /// Size in bytes at which a memtable is sealed and flushed. Default: 64 MiB.
    pub memtable_bytes: u64,
    /// Number of sealed memtables waiting for their flush at which writes stop. Default: 4.
    pub sealed_memtables_max: usize,
    /// Target size of data blocks before compression. Default: 4 KiB.
    pub block_bytes: u32,
    /// Entries between two restart points of a block. Default: 16.
    pub restart_interval: u32,
    /// Compression of blocks, by level. The last element applies to all deeper levels. Default:
    /// none in levels 0 and 1, lz4 below.
    pub compression: Vec<Compression>,
    /// The kind of filter. Default: Bloom.
    pub filter: FilterKind,
    /// Filter bits per key, on average over the levels: 0 for no filter, or 0.5 to 32. Default: 10.
    pub filter_bits_per_key: f64,
    /// Gives upper levels more filter bits and the last level fewer, with the same memory in total
    /// (Dayan et al., Monkey, SIGMOD 2017). Default: true.
    pub filter_by_level: bool,
    /// Extracts key prefixes that are also added to the filters, for scans of one prefix. Default:
    /// none.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// The compaction strategy. Default: leveled.
    pub compaction: StrategyOptions,
    /// Number of sorted runs in level 0 at which writers are slowed down (at least 1), and at which
    /// they stop (at least as many). Default: 32 and 56; the leveled strategy lets sixteen
    /// accumulate.
    pub level_zero_limits: (usize, usize),
    /// Bytes waiting for compaction at which writers are slowed down (at least 1), and at which
    /// they stop (at least as many). Default: 64 and 256 GiB, as in RocksDB.
    pub pending_compaction_limits: (u64, u64),
    /// Combines `merge` operands. The store keeps the name of the first operator with which the
    /// keyspace is opened for writing. From then on an operator of another name is refused, and
    /// merged entries cannot be read without an operator. Default: none.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Decides in compactions whether entries are kept, changed or dropped. Default: none.
    pub compaction_filter: Option<Arc<dyn CompactionFilter>>,
    /// Age at which entries expire: reads do not see them, and compactions remove them. Fixed when
    /// the keyspace is created. Default: none.
    pub ttl: Option<Duration>,
    /// Size in bytes from which values are stored in blob files, so that compactions need not copy
    /// them. Empty values never are. Default: none.
    pub blob_bytes_min: Option<u32>,
    /// Share of garbage at which a blob file is rewritten. Default: 0.25.
    pub blob_garbage_max: f64,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        KeyspaceOptions {
            memtable_bytes: 64 * MIB,
            sealed_memtables_max: 4,
            block_bytes: 4096,
            restart_interval: 16,
            compression: vec![Compression::None, Compression::None, Compression::Lz4],
            filter: FilterKind::Bloom,
            filter_bits_per_key: 10.0,
            filter_by_level: true,
            prefix_extractor: None,
            compaction: StrategyOptions::default(),
            level_zero_limits: (32, 56),
            pending_compaction_limits: (64 << 30, 256 << 30),
            merge_operator: None,
            compaction_filter: None,
            ttl: None,
            blob_bytes_min: None,
            blob_garbage_max: 0.25,
        }
    }
}

impl KeyspaceOptions {
    /// Checks the options. Errors: [`Error::Invalid`] naming the option and the expected values.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::invalid(what));
        if self.memtable_bytes < MEMTABLE_BYTES_MIN {
            let bytes = self.memtable_bytes;
            return refuse(format!("memtable_bytes: {bytes}, expected at least {MEMTABLE_BYTES_MIN}"));
        }
        if self.sealed_memtables_max == 0 {
            return refuse("sealed_memtables_max: 0, expected at least 1".to_owned());
        }
        if !(256..=1 << 20).contains(&self.block_bytes) {
            return refuse(format!("block_bytes: {}, expected 256 to 1 MiB", self.block_bytes));
        }
        if !(1..=256).contains(&self.restart_interval) {
            return refuse(format!("restart_interval: {}, expected 1 to 256", self.restart_interval));
        }
        if self.compression.is_empty() {
            return refuse("compression: empty, expected at least one level".to_owned());
        }
        if self.filter_bits_per_key != 0.0 && !(0.5..=32.0).contains(&self.filter_bits_per_key) {
            return refuse(format!(
                "filter_bits_per_key: {}, expected 0, or 0.5 to 32",
                self.filter_bits_per_key
            ));
        }
        // A limit of 0 would slow down writers to an empty store.
        let (slow, stop) = self.level_zero_limits;
        if slow == 0 || slow > stop {
            return refuse(format!("level_zero_limits: {slow} and {stop}, expected 1 <= slow <= stop"));
        }
        let (slow, stop) = self.pending_compaction_limits;
        if slow == 0 || slow > stop {
            return refuse(format!(
                "pending_compaction_limits: {slow} and {stop}, expected 1 <= slow <= stop"
            ));
        }
        if !(0.01..=1.0).contains(&self.blob_garbage_max) {
            return refuse(format!("blob_garbage_max: {}, expected 0.01 to 1", self.blob_garbage_max));
        }
        if self.ttl.is_some_and(|ttl| ttl.as_secs() == 0) {
            return refuse("ttl: less than a second, expected at least one".to_owned());
        }
        if self.ttl.is_some() && self.merge_operator.is_some() {
            return refuse(
                "ttl and merge_operator exclude each other: operands have no timestamp".to_owned(),
            );
        }
        if self.ttl.is_some() && self.blob_bytes_min.is_some() {
            return refuse(
                "ttl and blob_bytes_min exclude each other: compactions cannot see the age of values in blob files".to_owned(),
            );
        }
        Ok(())
    }

    /// Returns the filter policy for tables in `level` of a tree whose last level is `last`.
    ///
    /// If levels grow tenfold, a given amount of memory yields the fewest false positives when each
    /// level up has a tenth of the false-positive rate of the one below (Monkey). That takes ln(10)
    /// / ln(2)^2 = 4.8 more bits per key per level. The last level holds nine tenths of the keys
    /// and pays for this with about half a bit per key.
    pub(crate) fn filter_at(&self, level: usize, last: usize) -> Option<FilterPolicy> {
        const BITS_A_LEVEL: f64 = 4.8;
        const BITS_MAX: f64 = 24.0;
        let average = self.filter_bits_per_key;
        if average <= 0.0 {
            return None;
        }
        let above = last.saturating_sub(level) as f64;
        let bits = if self.filter_by_level && last > 0 {
            (average - BITS_A_LEVEL / 9.0 + above * BITS_A_LEVEL).clamp(1.0, BITS_MAX.max(average))
        } else {
            average
        };
        debug_assert!((0.5..=32.0).contains(&bits), "{bits} bits a key, of {average} on average");
        Some(FilterPolicy { kind: self.filter, bits_per_key: bits })
    }

    /// Returns the compression of blocks in `level`.
    pub(crate) fn compression_at(&self, level: usize) -> Compression {
        debug_assert!(!self.compression.is_empty(), "the options were not checked");
        let at = level.min(self.compression.len().saturating_sub(1));
        self.compression.get(at).copied().unwrap_or(Compression::None)
    }
}

/// Options of a read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Keeps the blocks read in the cache. Default: true. Set it to false for scans over more data
    /// than the cache holds.
    pub fill_cache: bool,
    /// Maximum number of bytes that a scan reads at once. The scan starts with 16 KiB and doubles.
    /// 0 reads block by block. Default: 256 KiB.
    pub readahead_bytes: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { fill_cache: true, readahead_bytes: 256 << 10 }
    }
}
