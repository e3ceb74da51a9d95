//! Options small enough that a few hundred writes flush, compact, rotate and recycle.

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{FifoOptions, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions};
use cairn_kv::{Append, Background, Builder, Compression, Db, FilterKind, KeyspaceOptions, Options};
use cairn_vfs::{Fs, ManualClock, Rng, SeededRng};

use crate::{DIR, KEYSPACES};

/// The options of a store. Each of its two keyspaces has its own strategy.
#[derive(Debug, Clone)]
pub struct Shape {
    pub seed: u64,
    pub strategies: [Kind; 2],
    pub background: Background,
    /// Overrides the size that the seed gives.
    pub memtable_bytes: Option<u64>,
    /// If true, the seed also determines the format of blocks, filters and large values, and the
    /// settings of the strategies.
    pub is_wide: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Leveled,
    Universal,
    Lazy,
    /// With so much room that it drops nothing.
    Fifo,
}

const PAIRS: [[Kind; 2]; 4] = [
    [Kind::Leveled, Kind::Universal],
    [Kind::Lazy, Kind::Leveled],
    [Kind::Universal, Kind::Fifo],
    [Kind::Leveled, Kind::Lazy],
];

impl Shape {
    /// Returns shape `seed`. The pairs of strategies rotate with the seed.
    pub fn new(seed: u64) -> Shape {
        Shape {
            seed,
            strategies: PAIRS[(seed % 4) as usize],
            background: Background::Inline,
            memtable_bytes: None,
            is_wide: false,
        }
    }

    /// Returns any two strategies, with all options drawn.
    pub fn drawn(seed: u64) -> Shape {
        let mut rng = SeededRng::new(seed).fork("strategies");
        let kinds = [Kind::Leveled, Kind::Universal, Kind::Lazy, Kind::Fifo];
        let strategies = [0, 1].map(|_| kinds[rng.below(4) as usize]);
        Shape { strategies, is_wide: true, ..Shape::new(seed) }
    }

    /// Returns a builder of a store with these options on `fs`.
    pub fn builder(&self, fs: Arc<dyn Fs>) -> Builder {
        let options = Options {
            cache_bytes: 64 << 10,
            wal_segment_bytes: 16 << 10,
            background: self.background,
            ..Options::default()
        };
        let mut rng = SeededRng::new(self.seed).fork("shape");
        let mut drawn = self.strategies.map(|kind| keyspace(kind, &mut rng));
        if self.is_wide {
            drawn = drawn.map(|keyspace| widened(keyspace, &mut rng));
        }
        if let Some(bytes) = self.memtable_bytes {
            drawn.iter_mut().for_each(|keyspace| keyspace.memtable_bytes = bytes);
        }
        let [default, other] = drawn;
        Db::builder(DIR)
            .fs(fs)
            .clock(Arc::new(ManualClock::new(Duration::from_secs(1_700_000_000))))
            .seed(self.seed)
            .options(options)
            .default_keyspace(default)
            .keyspace(KEYSPACES[1], other)
    }
}

fn keyspace(kind: Kind, rng: &mut SeededRng) -> KeyspaceOptions {
    let compression =
        [Compression::None, Compression::Lz4, Compression::Zstd { level: 1, dictionary_bytes: 0 }];
    KeyspaceOptions {
        memtable_bytes: 4096 << rng.below(3),
        block_bytes: 512,
        restart_interval: 4,
        compression: vec![compression[rng.below(3) as usize]],
        filter: if rng.chance(0.5) { FilterKind::Bloom } else { FilterKind::Ribbon },
        compaction: strategy(kind),
        merge_operator: Some(Arc::new(Append)),
        ..KeyspaceOptions::default()
    }
}

/// Returns the options with more of them drawn.
fn widened(keyspace: KeyspaceOptions, rng: &mut SeededRng) -> KeyspaceOptions {
    let levels = 2 + rng.below(5) as usize;
    let compaction = match keyspace.compaction {
        StrategyOptions::Leveled(it) => StrategyOptions::Leveled(LeveledOptions { levels, ..it }),
        StrategyOptions::Universal(it) => {
            StrategyOptions::Universal(UniversalOptions { levels, runs: 2 + rng.below(5) as usize, ..it })
        }
        StrategyOptions::LazyLeveled(it) => {
            StrategyOptions::LazyLeveled(LazyOptions { levels, size_ratio: 2 + rng.below(6) as usize, ..it })
        }
        fifo => fifo,
    };
    KeyspaceOptions {
        compaction,
        block_bytes: 256 << rng.below(4),
        restart_interval: 1 + rng.below(16) as u32,
        filter_bits_per_key: rng.below(3) as f64 * 5.0,
        filter_by_level: rng.chance(0.5),
        blob_bytes_min: rng.chance(0.5).then(|| 50 + rng.below(400) as u32),
        blob_garbage_max: 0.1 + rng.below(9) as f64 / 10.0,
        ..keyspace
    }
}

fn strategy(kind: Kind) -> StrategyOptions {
    let table_bytes = 3 << 10;
    match kind {
        Kind::Leveled => StrategyOptions::Leveled(LeveledOptions {
            table_bytes,
            level_zero_runs_min: 2,
            level_zero_runs_max: 4,
            level_zero_bytes: 2 * table_bytes,
            base_bytes: 2 * table_bytes,
            multiplier: 2.0,
            levels: 4,
            parts: 2,
            ..LeveledOptions::default()
        }),
        Kind::Universal => StrategyOptions::Universal(UniversalOptions {
            table_bytes,
            runs: 3,
            levels: 4,
            ..UniversalOptions::default()
        }),
        Kind::Lazy => StrategyOptions::LazyLeveled(LazyOptions {
            table_bytes,
            flush_bytes: table_bytes,
            size_ratio: 2,
            levels: 4,
            ..LazyOptions::default()
        }),
        Kind::Fifo => StrategyOptions::Fifo(FifoOptions { bytes_max: 1 << 40, ..FifoOptions::default() }),
    }
}
