//! Settings of the strategies.

use std::fmt;

const MIB: u64 = 1 << 20;

/// How the tables of a keyspace are compacted.
#[derive(Debug, Clone, PartialEq)]
pub enum StrategyOptions {
    /// One sorted run in each level but the first: least space, fast reads. The default.
    Leveled(LeveledOptions),
    /// Runs of similar size are merged: fewest writes, up to twice the space.
    Universal(UniversalOptions),
    /// The oldest tables are removed; nothing is merged.
    Fifo(FifoOptions),
    /// Several runs in each level but the last (Dayan and Idreos, *Dostoevsky*, SIGMOD 2018).
    LazyLeveled(LazyOptions),
}

impl Default for StrategyOptions {
    fn default() -> Self {
        StrategyOptions::Leveled(LeveledOptions::default())
    }
}

impl StrategyOptions {
    /// Checks the settings.
    ///
    /// Errors: [`InvalidOption`].
    pub fn check(&self) -> Result<(), InvalidOption> {
        let common = |table_bytes: u64, levels: usize| {
            expect(table_bytes > 0, "table_bytes", table_bytes, "more than 0")?;
            expect((2..=LEVELS_MAX).contains(&levels), "levels", levels, "2 to 32")
        };
        // Infinity switches a rule off. NaN would as well, but it is not equal to itself, so stored
        // options would differ from the given ones.
        let ratio = |value: f64, name: &'static str| expect(!value.is_nan(), name, value, "a number");
        match self {
            StrategyOptions::Leveled(it) => {
                common(it.table_bytes, it.levels)?;
                ratio(it.tombstone_ratio, "tombstone_ratio")?;
                ratio(it.idle_space_ratio, "idle_space_ratio")?;
                let (min, max) = (it.level_zero_runs_min, it.level_zero_runs_max);
                expect(min > 0, "level_zero_runs_min", min, "more than 0")?;
                expect(max >= min, "level_zero_runs_max", max, "at least level_zero_runs_min")?;
                expect(it.level_zero_bytes > 0, "level_zero_bytes", it.level_zero_bytes, "more than 0")?;
                expect(
                    it.multiplier >= 2.0 && it.multiplier <= 1000.0,
                    "multiplier",
                    it.multiplier,
                    "2 to 1000",
                )
            }
            StrategyOptions::Universal(it) => {
                common(it.table_bytes, it.levels)?;
                expect(it.runs >= 2, "runs", it.runs, "at least 2")?;
                expect(it.merge_runs_min >= 2, "merge_runs_min", it.merge_runs_min, "at least 2")?;
                let (max, min) = (it.merge_runs_max, it.merge_runs_min);
                expect(max >= min, "merge_runs_max", max, "at least merge_runs_min")
            }
            StrategyOptions::Fifo(it) => expect(it.bytes_max > 0, "bytes_max", it.bytes_max, "more than 0"),
            StrategyOptions::LazyLeveled(it) => {
                common(it.table_bytes, it.levels)?;
                ratio(it.tombstone_ratio, "tombstone_ratio")?;
                ratio(it.idle_space_ratio, "idle_space_ratio")?;
                expect(it.flush_bytes > 0, "flush_bytes", it.flush_bytes, "more than 0")?;
                expect((2..=1000).contains(&it.size_ratio), "size_ratio", it.size_ratio, "2 to 1000")
            }
        }
    }
}

/// The number of levels that the manifest supports.
const LEVELS_MAX: usize = 32;

const _: () = assert!(LEVELS_MAX >= 2, "level 0, and one to merge it into");

/// A setting with a value that no policy can work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOption {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: &'static str,
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, expected {}", self.name, self.value, self.expected)
    }
}

impl std::error::Error for InvalidOption {}

fn expect(
    holds: bool,
    name: &'static str,
    value: impl fmt::Display,
    expected: &'static str,
) -> Result<(), InvalidOption> {
    if holds { Ok(()) } else { Err(InvalidOption { name, value: value.to_string(), expected }) }
}

/// Settings of [`Leveled`](crate::Leveled).
#[derive(Debug, Clone, PartialEq)]
pub struct LeveledOptions {
    /// Approximate maximal size of a table. Default: 64 MiB.
    pub table_bytes: u64,
    /// Level 0 is compacted from this many runs on, provided that its size reaches that of the last
    /// level or [`LeveledOptions::level_zero_bytes`], whichever is less. Default: 4, as in RocksDB.
    pub level_zero_runs_min: usize,
    /// Level 0 is compacted from this many runs on in any case. Default: 16. Each merge rewrites
    /// the level below, so merging four times as much of level 0 at a time costs a quarter of those
    /// writes; in exchange, lookups check a few more filters.
    pub level_zero_runs_max: usize,
    /// The bytes in level 0 that make a merge worthwhile. Default: 1 GiB, sixteen memtables of 64
    /// MiB.
    pub level_zero_bytes: u64,
    /// The smallest target size of the base level, into which level 0 is merged. Default: 256 MiB.
    pub base_bytes: u64,
    /// A level has at most this many times the size of the one above. Default: 10. Smaller ratios
    /// are used where they cost fewer writes.
    pub multiplier: f64,
    /// Number of levels, including level 0. Default: 7.
    pub levels: usize,
    /// A table with at least this share of tombstones is compacted before its level is full.
    /// Default: 0.5.
    pub tombstone_ratio: f64,
    /// A table is rewritten when one of its entries has been expired for this long, in seconds.
    /// Default: one hour.
    pub expired_secs: u64,
    /// Tables whose oldest entry is older than this, in seconds, are merged down to the last level.
    /// Default: never.
    pub age_secs: Option<u64>,
    /// When the store is idle, levels are merged down until those above the last have at most this
    /// share of the last level's bytes. Default: 0.2; infinity turns it off.
    pub idle_space_ratio: f64,
    /// A job is split into at most this many parts that can run in parallel. Default: 4.
    pub parts: usize,
}

impl Default for LeveledOptions {
    fn default() -> Self {
        LeveledOptions {
            table_bytes: 64 * MIB,
            level_zero_runs_min: 4,
            level_zero_runs_max: 16,
            level_zero_bytes: 1024 * MIB,
            base_bytes: 256 * MIB,
            multiplier: 10.0,
            levels: 7,
            tombstone_ratio: 0.5,
            expired_secs: 3600,
            age_secs: None,
            idle_space_ratio: 0.2,
            parts: 4,
        }
    }
}

/// Settings of [`Universal`](crate::Universal).
#[derive(Debug, Clone, PartialEq)]
pub struct UniversalOptions {
    /// Approximate maximal size of a table. Default: 64 MiB.
    pub table_bytes: u64,
    /// Merging begins at this number of runs. Default: 4.
    pub runs: usize,
    /// A run is merged with the newer runs before it if it is at most this many percent larger than
    /// all of them together. Default: 1.
    pub size_ratio_percent: u64,
    /// The smallest number of runs in a merge by size. Default: 2.
    pub merge_runs_min: usize,
    /// The largest number of runs in a merge. Default: no limit.
    pub merge_runs_max: usize,
    /// Everything is merged when the newer runs together exceed this many percent of the oldest.
    /// Default: 200.
    pub space_amplification_percent: u64,
    /// Number of levels, including level 0. Merged runs are placed in the lower levels. Default: 7.
    pub levels: usize,
    /// A table is rewritten when one of its entries has been expired for this long, in seconds.
    /// Default: one hour.
    pub expired_secs: u64,
    /// A job is split into at most this many parts that can run in parallel. Default: 4.
    pub parts: usize,
}

impl Default for UniversalOptions {
    fn default() -> Self {
        UniversalOptions {
            table_bytes: 64 * MIB,
            runs: 4,
            size_ratio_percent: 1,
            merge_runs_min: 2,
            merge_runs_max: usize::MAX,
            space_amplification_percent: 200,
            levels: 7,
            expired_secs: 3600,
            parts: 4,
        }
    }
}

/// Settings of [`Fifo`](crate::Fifo).
#[derive(Debug, Clone, PartialEq)]
pub struct FifoOptions {
    /// The oldest tables are removed while the total size exceeds this many bytes. Default: 1 GiB.
    pub bytes_max: u64,
    /// Tables whose newest entry is older than this, in seconds, are removed, once all tables
    /// before them are removed too. Default: never.
    pub ttl_secs: Option<u64>,
}

impl Default for FifoOptions {
    fn default() -> Self {
        FifoOptions { bytes_max: 1 << 30, ttl_secs: None }
    }
}

/// Settings of [`LazyLeveled`](crate::LazyLeveled).
#[derive(Debug, Clone, PartialEq)]
pub struct LazyOptions {
    /// Approximate maximal size of a table. Default: 64 MiB.
    pub table_bytes: u64,
    /// Size of a flush, from which the number of levels is derived. Default: 64 MiB.
    pub flush_bytes: u64,
    /// Number of runs of a level that are merged into one of the next, which is also the growth
    /// factor of the levels. Default: 4.
    pub size_ratio: usize,
    /// Number of levels, including level 0. Default: 7.
    pub levels: usize,
    /// As [`LeveledOptions::tombstone_ratio`].
    pub tombstone_ratio: f64,
    /// As [`LeveledOptions::expired_secs`].
    pub expired_secs: u64,
    /// As [`LeveledOptions::idle_space_ratio`].
    pub idle_space_ratio: f64,
    /// A job is split into at most this many parts that can run in parallel. Default: 4.
    pub parts: usize,
}

impl Default for LazyOptions {
    fn default() -> Self {
        LazyOptions {
            table_bytes: 64 * MIB,
            flush_bytes: 64 * MIB,
            size_ratio: 4,
            levels: 7,
            tombstone_ratio: 0.5,
            expired_secs: 3600,
            idle_space_ratio: 0.2,
            parts: 4,
        }
    }
}
