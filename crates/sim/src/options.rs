//! Options of the store, with RocksDB's names and defaults; Cairn's own come last.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, expect};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The simulated engine, which determines compaction rules, table format and scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// RocksDB.
    #[default]
    Rocksdb,
    /// Cairn's key-value store.
    CairnKv,
}

/// The rules that decide which files are merged, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum CompactionStyle {
    /// One sorted run in each level but the first.
    #[default]
    Leveled,
    /// Sorted runs of similar size are merged.
    Universal,
    /// The oldest files are dropped.
    Fifo,
    /// Cairn only: several runs in the upper levels, one in the last.
    LazyLeveled,
}

/// The order in which files of a full level are compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum CompactionPri {
    /// The largest file first, with extra weight for tombstones.
    ByCompensatedSize,
    /// The file whose newest entry is oldest.
    OldestLargestSeqFirst,
    /// The file whose oldest entry is oldest.
    OldestSmallestSeqFirst,
    /// The file that overlaps least of the next level for its size.
    #[default]
    MinOverlappingRatio,
    /// Files in key order, one after another.
    RoundRobin,
}

/// A codec of data blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard at its default level.
    Zstd,
}

impl Compression {
    /// Returns its name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Options of universal compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UniversalOptions {
    /// Percent by which the next run may exceed the sum so far.
    pub size_ratio: u64,
    /// Minimum number of runs in a merge.
    pub min_merge_width: usize,
    /// Maximum number of runs in a merge.
    pub max_merge_width: usize,
    /// Everything is merged when the newer runs reach this percentage of the oldest.
    pub max_size_amplification_percent: u64,
}

impl Default for UniversalOptions {
    fn default() -> Self {
        UniversalOptions {
            size_ratio: 1,
            min_merge_width: 2,
            max_merge_width: u32::MAX as usize,
            max_size_amplification_percent: 200,
        }
    }
}

/// Options of FIFO compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FifoOptions {
    /// The oldest files are dropped while the total size exceeds this.
    pub max_table_files_size: u64,
    /// Whether small files are merged within level 0.
    pub allow_compaction: bool,
}

impl Default for FifoOptions {
    fn default() -> Self {
        FifoOptions { max_table_files_size: GIB, allow_compaction: false }
    }
}

/// Options of Cairn's `kv` that RocksDB does not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KvOptions {
    /// The number of runs at which level 0 is compacted whatever its size.
    pub level_zero_runs_max: usize,
    /// Bytes of level 0 that make a merge worthwhile.
    pub level_zero_bytes: u64,
    /// Whether upper levels get more filter bits and the last one fewer (Monkey).
    pub filter_by_level: bool,
    /// Lazy leveling: the number of runs of a level that are merged into the next.
    pub size_ratio: usize,
    /// A table file with at least this share of tombstones is compacted before its level is full.
    pub tombstone_ratio: f64,
}

impl Default for KvOptions {
    fn default() -> Self {
        KvOptions {
            level_zero_runs_max: 16,
            level_zero_bytes: GIB,
            filter_by_level: true,
            size_ratio: 4,
            tombstone_ratio: 0.5,
        }
    }
}

/// Options of the store, in bytes and counts. Names and defaults are RocksDB's unless noted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // RocksDB documents its own names; only differences are documented here.
pub struct Options {
    pub engine: Engine,
    /// The major version whose rules apply. 7 stands for 7.8, 8 and above for later ones.
    pub rocksdb_version: u32,
    pub write_buffer_size: u64,
    pub max_write_buffer_number: usize,
    pub min_write_buffer_number_to_merge: usize,
    pub level0_file_num_compaction_trigger: usize,
    pub level0_slowdown_writes_trigger: usize,
    pub level0_stop_writes_trigger: usize,
    pub num_levels: usize,
    pub max_bytes_for_level_base: u64,
    pub max_bytes_for_level_multiplier: f64,
    pub level_compaction_dynamic_level_bytes: bool,
    pub level_compaction_dynamic_file_size: bool,
    pub target_file_size_base: u64,
    pub target_file_size_multiplier: u64,
    /// 0 for 25 times `target_file_size_base`.
    pub max_compaction_bytes: u64,
    /// 0 for no limit.
    pub soft_pending_compaction_bytes_limit: u64,
    /// 0 for no limit.
    pub hard_pending_compaction_bytes_limit: u64,
    pub compaction_style: CompactionStyle,
    pub compaction_pri: CompactionPri,
    pub compaction_options_universal: UniversalOptions,
    pub compaction_options_fifo: FifoOptions,
    /// Seconds; 0 for no limit.
    pub ttl: u64,
    pub disable_auto_compactions: bool,
    pub max_background_jobs: usize,
    pub max_subcompactions: usize,
    /// Bytes a second; 0 for 16 MiB.
    pub delayed_write_rate: u64,
    /// Bytes a second for flushes and compactions, in Cairn for compactions only; 0 for no limit.
    pub rate_limiter_bytes_per_sec: u64,
    pub compression: Compression,
    /// The codec of the last level; `compression` when absent.
    pub bottommost_compression: Option<Compression>,
    /// The codec of each level; the last one applies to all deeper levels. Empty for `compression`.
    pub compression_per_level: Vec<Compression>,
    pub block_size: u64,
    /// Bloom filter bits for each key; 0 for no filter.
    pub bloom_bits_per_key: f64,
    /// Whether the last level goes without filters.
    pub optimize_filters_for_hits: bool,
    /// Bytes.
    pub block_cache_size: u64,
    pub cache_index_and_filter_blocks: bool,
    /// Whether writes go to the log.
    pub wal: bool,
    /// Whether each write waits for a log sync.
    pub wal_sync: bool,
    pub kv: KvOptions,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            engine: Engine::Rocksdb,
            rocksdb_version: 7,
            write_buffer_size: 64 * MIB,
            max_write_buffer_number: 2,
            min_write_buffer_number_to_merge: 1,
            level0_file_num_compaction_trigger: 4,
            level0_slowdown_writes_trigger: 20,
            level0_stop_writes_trigger: 36,
            num_levels: 7,
            max_bytes_for_level_base: 256 * MIB,
            max_bytes_for_level_multiplier: 10.0,
            level_compaction_dynamic_level_bytes: false,
            level_compaction_dynamic_file_size: true,
            target_file_size_base: 64 * MIB,
            target_file_size_multiplier: 1,
            max_compaction_bytes: 0,
            soft_pending_compaction_bytes_limit: 64 * GIB,
            hard_pending_compaction_bytes_limit: 256 * GIB,
            compaction_style: CompactionStyle::Leveled,
            compaction_pri: CompactionPri::MinOverlappingRatio,
            compaction_options_universal: UniversalOptions::default(),
            compaction_options_fifo: FifoOptions::default(),
            ttl: 0,
            disable_auto_compactions: false,
            max_background_jobs: 2,
            max_subcompactions: 1,
            delayed_write_rate: 0,
            rate_limiter_bytes_per_sec: 0,
            compression: Compression::Snappy,
            bottommost_compression: None,
            compression_per_level: Vec::new(),
            block_size: 4096,
            bloom_bits_per_key: 10.0,
            optimize_filters_for_hits: false,
            block_cache_size: 8 * MIB,
            cache_index_and_filter_blocks: false,
            wal: true,
            wal_sync: false,
            kv: KvOptions::default(),
        }
    }
}

/// The largest value of a size option. It keeps sums of a few of them far from overflow.
const BYTES_MAX: u64 = 1 << 50;

impl Options {
    /// Returns the defaults of Cairn's `kv`.
    pub fn cairn_kv() -> Options {
        Options {
            engine: Engine::CairnKv,
            max_write_buffer_number: 5,
            level0_slowdown_writes_trigger: 32,
            level0_stop_writes_trigger: 56,
            compression: Compression::Lz4,
            compression_per_level: vec![Compression::None, Compression::None, Compression::Lz4],
            block_cache_size: 64 * MIB,
            max_subcompactions: 4,
            ..Options::default()
        }
    }

    /// Checks all options. Errors: the first option that is out of range or contradicts another.
    pub fn check(&self) -> Result<()> {
        self.check_sizes()?;
        self.check_counts()?;
        self.check_style()
    }

    fn check_sizes(&self) -> Result<()> {
        let within = |name: &str, value: u64, least: u64| {
            expect((least..=BYTES_MAX).contains(&value), name, value, &format!("{least} to 2^50 bytes"))
        };
        within("write_buffer_size", self.write_buffer_size, 4096)?;
        within("max_bytes_for_level_base", self.max_bytes_for_level_base, 4096)?;
        within("target_file_size_base", self.target_file_size_base, 4096)?;
        within("max_compaction_bytes", self.max_compaction_bytes, 0)?;
        within("block_size", self.block_size, 256)?;
        expect(self.block_size <= 16 * MIB, "block_size", self.block_size, "at most 16 MiB")?;
        within("block_cache_size", self.block_cache_size, 0)?;
        within("delayed_write_rate", self.delayed_write_rate, 0)?;
        within("rate_limiter_bytes_per_sec", self.rate_limiter_bytes_per_sec, 0)?;
        within("soft_pending_compaction_bytes_limit", self.soft_pending_compaction_bytes_limit, 0)?;
        let (soft, hard) =
            (self.soft_pending_compaction_bytes_limit, self.hard_pending_compaction_bytes_limit);
        within("hard_pending_compaction_bytes_limit", hard, 0)?;
        let name = "hard_pending_compaction_bytes_limit";
        expect(hard == 0 || hard >= soft, name, hard, "at least soft_pending_compaction_bytes_limit, or 0")?;
        let rate = self.rate_limiter_bytes_per_sec;
        expect(rate == 0 || rate >= 1024, "rate_limiter_bytes_per_sec", rate, "0, or at least 1024")
    }

    fn check_counts(&self) -> Result<()> {
        let within = |name: &str, value: usize, least: usize, most: usize| {
            expect((least..=most).contains(&value), name, value, &format!("{least} to {most}"))
        };
        within("max_write_buffer_number", self.max_write_buffer_number, 2, 1000)?;
        let merge = self.min_write_buffer_number_to_merge;
        within("min_write_buffer_number_to_merge", merge, 1, self.max_write_buffer_number - 1)?;
        let trigger = self.level0_file_num_compaction_trigger;
        within("level0_file_num_compaction_trigger", trigger, 1, 1_000_000)?;
        let slowdown = self.level0_slowdown_writes_trigger;
        within("level0_slowdown_writes_trigger", slowdown, trigger, 1_000_000)?;
        within("level0_stop_writes_trigger", self.level0_stop_writes_trigger, slowdown, 1_000_000)?;
        within("num_levels", self.num_levels, 1, 32)?;
        within("max_background_jobs", self.max_background_jobs, 1, 1024)?;
        within("max_subcompactions", self.max_subcompactions, 1, 1024)?;
        let multiplier = self.max_bytes_for_level_multiplier;
        let name = "max_bytes_for_level_multiplier";
        expect((1.0..=1000.0).contains(&multiplier), name, multiplier, "1 to 1000")?;
        let files = self.target_file_size_multiplier;
        expect((1..=100).contains(&files), "target_file_size_multiplier", files, "1 to 100")?;
        let bits = self.bloom_bits_per_key;
        expect(bits == 0.0 || (0.5..=64.0).contains(&bits), "bloom_bits_per_key", bits, "0, or 0.5 to 64")?;
        expect(
            self.compression_per_level.len() <= 32,
            "compression_per_level",
            "too long",
            "at most 32 levels",
        )?;
        expect(self.ttl <= 1 << 32, "ttl", self.ttl, "at most 2^32 seconds")?;
        expect((1..=100).contains(&self.rocksdb_version), "rocksdb_version", self.rocksdb_version, "1 to 100")
    }

    fn check_style(&self) -> Result<()> {
        let universal = &self.compaction_options_universal;
        let name = "compaction_options_universal.min_merge_width";
        expect(universal.min_merge_width >= 2, name, universal.min_merge_width, "at least 2")?;
        let name = "compaction_options_universal.max_merge_width";
        let (most, least) = (universal.max_merge_width, universal.min_merge_width);
        expect(most >= least, name, most, "at least min_merge_width")?;
        let name = "compaction_options_universal.size_ratio";
        expect(universal.size_ratio <= 100_000, name, universal.size_ratio, "at most 100000 percent")?;
        let bytes = self.compaction_options_fifo.max_table_files_size;
        let name = "compaction_options_fifo.max_table_files_size";
        expect((1..=BYTES_MAX).contains(&bytes), name, bytes, "1 to 2^50 bytes")?;
        expect((2..=1000).contains(&self.kv.size_ratio), "kv.size_ratio", self.kv.size_ratio, "2 to 1000")?;
        let runs = self.kv.level_zero_runs_max;
        expect((1..=1_000_000).contains(&runs), "kv.level_zero_runs_max", runs, "1 to 1000000")?;
        expect(self.kv.level_zero_bytes > 0, "kv.level_zero_bytes", 0, "more than 0")?;
        let ratio = self.kv.tombstone_ratio;
        expect(ratio > 0.0 && ratio <= 10.0, "kv.tombstone_ratio", ratio, "above 0, at most 10")?;
        let is_lazy = self.compaction_style == CompactionStyle::LazyLeveled;
        if is_lazy && self.engine == Engine::Rocksdb {
            return Err(Error::option(
                "compaction_style",
                "lazy_leveled",
                "a style of RocksDB, or engine cairn_kv",
            ));
        }
        let levels = if self.compaction_style == CompactionStyle::Fifo { 1 } else { 2 };
        expect(
            self.num_levels >= levels,
            "num_levels",
            self.num_levels,
            "at least 2 for this compaction_style",
        )
    }

    /// Returns `max_compaction_bytes`, or its default when 0.
    pub fn compaction_bytes_max(&self) -> u64 {
        if self.max_compaction_bytes == 0 {
            25 * self.target_file_size_base
        } else {
            self.max_compaction_bytes
        }
    }

    /// Whether `compaction_pri` orders the files of a level by sequence number.
    pub fn goes_by_seq(&self) -> bool {
        let priority = self.compaction_pri;
        matches!(priority, CompactionPri::OldestLargestSeqFirst | CompactionPri::OldestSmallestSeqFirst)
    }

    /// Returns the target size of files in a level. `base` is the level that level 0 is merged
    /// into, from which RocksDB counts levels when their sizes are dynamic.
    pub fn target_file_size(&self, level: usize, base: usize) -> u64 {
        if self.engine == Engine::CairnKv || self.compaction_style == CompactionStyle::Fifo {
            return self.target_file_size_base;
        }
        let is_leveled = self.compaction_style == CompactionStyle::Leveled;
        if !is_leveled && level == 0 {
            return u64::MAX;
        }
        let is_dynamic = is_leveled && self.level_compaction_dynamic_level_bytes && level >= base;
        let place = if is_dynamic { level - base } else { level };
        let factor = self.target_file_size_multiplier.saturating_pow(place.saturating_sub(1) as u32);
        self.target_file_size_base.saturating_mul(factor)
    }

    /// Whether files of leveled trees end at file boundaries of the next level. Before RocksDB 9
    /// this depends on an option; since then it is always so.
    pub fn aligns_files(&self) -> bool {
        let is_rocksdb = self.engine == Engine::Rocksdb && self.compaction_style == CompactionStyle::Leveled;
        is_rocksdb && (self.level_compaction_dynamic_file_size || self.rocksdb_version >= 9)
    }

    /// Returns the codec of a file written to `level`. `is_last` says that nothing lies below, and
    /// `base` is the level that level 0 is merged into.
    pub fn compression_at(&self, level: usize, base: usize, is_last: bool) -> Compression {
        if let (Some(bottom), true) = (self.bottommost_compression, is_last && level > 0) {
            return bottom;
        }
        let list = &self.compression_per_level;
        let Some(deepest) = list.len().checked_sub(1) else { return self.compression };
        // RocksDB counts from the base level when level sizes are dynamic.
        let is_dynamic = self.level_compaction_dynamic_level_bytes && self.engine == Engine::Rocksdb;
        let at = if is_dynamic && level > 0 { (level + 1).saturating_sub(base).max(1) } else { level };
        list.get(at.min(deepest)).copied().unwrap_or(self.compression)
    }

    /// Returns the initial delayed write rate, bytes a second.
    pub fn delayed_rate(&self) -> f64 {
        match (self.delayed_write_rate, self.rate_limiter_bytes_per_sec) {
            (0, 0) => (16 * MIB) as f64,
            (0, limit) => limit as f64,
            (rate, _) => rate as f64,
        }
    }

    /// Returns the filter bits for each key in files of `level`, when the deepest level with data
    /// is `last`.
    pub fn filter_bits(&self, level: usize, last: usize) -> f64 {
        /// ln(10) / ln(2)^2: the bits that divide the false positive rate of a level by ten.
        const BITS_A_LEVEL: f64 = 4.8;
        let bits = self.bloom_bits_per_key;
        if bits <= 0.0 {
            return 0.0;
        }
        match self.engine {
            Engine::Rocksdb if self.optimize_filters_for_hits && level >= last && level > 0 => 0.0,
            Engine::CairnKv if self.kv.filter_by_level && last > 0 => {
                let above = last.saturating_sub(level) as f64;
                (bits - BITS_A_LEVEL / 9.0 + above * BITS_A_LEVEL).clamp(1.0, bits.max(24.0))
            }
            _ => bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: files of deeper levels are larger by the multiplier, counted from the base level when
    /// sizes are dynamic. Method: RocksDB's rule by hand, by which the base level and the one below
    /// it have the base size.
    #[test]
    fn file_sizes_count_from_the_base_level() {
        let options = Options { target_file_size_multiplier: 2, ..Options::default() };
        let sizes = |options: &Options, base: usize| -> Vec<u64> {
            (1..7)
                .map(|level| options.target_file_size(level, base) / options.target_file_size_base)
                .collect()
        };
        assert_eq!(sizes(&options, 1), [1, 2, 4, 8, 16, 32]);
        let dynamic = Options { level_compaction_dynamic_level_bytes: true, ..options.clone() };
        // Levels above the base level do not count, because nothing is written there.
        assert_eq!(sizes(&dynamic, 4).get(3..), Some(&[1, 1, 2][..]));
        assert_eq!(sizes(&dynamic, 6).get(5..), Some(&[1][..]));
        let universal = Options { compaction_style: CompactionStyle::Universal, ..options };
        assert_eq!(universal.target_file_size(0, 1), u64::MAX);
        assert_eq!(sizes(&universal, 1).last(), Some(&32));
        assert_eq!(sizes(&Options { target_file_size_multiplier: 2, ..Options::cairn_kv() }, 1), [1; 6]);
    }

    /// Goal: since version 9, RocksDB ignores the option that turns aligned files off. Method: both
    /// values, several versions and styles.
    #[test]
    fn files_are_always_aligned_since_version_9() {
        let aligned = |rocksdb_version: u32, level_compaction_dynamic_file_size: bool| {
            Options { rocksdb_version, level_compaction_dynamic_file_size, ..Options::default() }
                .aligns_files()
        };
        assert_eq!([aligned(7, true), aligned(7, false)], [true, false]);
        assert_eq!([aligned(8, true), aligned(8, false)], [true, false]);
        assert_eq!([aligned(9, true), aligned(11, false)], [true, true]);
        assert!(
            !Options { compaction_style: CompactionStyle::Universal, ..Options::default() }.aligns_files()
        );
        assert!(!Options::cairn_kv().aligns_files());
    }
}
