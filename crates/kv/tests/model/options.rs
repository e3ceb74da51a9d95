//! Options drawn from a seed, small enough that little data makes many tables and levels.

use std::sync::Arc;

use cairn_kv::strategy::{FifoOptions, LazyOptions, LeveledOptions, StrategyOptions, UniversalOptions};
use cairn_kv::{Append, Background, Builder, Compression, FilterKind, KeyspaceOptions, Options};
use cairn_vfs::{Rng, SeededRng};

/// Returns the options of the store `seed` at its `open`th opening, all redrawn each time:
/// strategy, settings, compression, blobs, filters, blocks. Equal numbers give equal options.
pub fn swarm(seed: u64, open: u64, builder: Builder) -> Builder {
    let mut rng = SeededRng::new(seed ^ open << 32).fork("options");
    let rng = &mut rng;
    let keyspace = keyspace(rng);
    let threads = rng.chance(0.3);
    let options = Options {
        cache_bytes: if rng.chance(0.3) { 0 } else { 1 << (12 + rng.below(10)) },
        wal_segment_bytes: 64 << 10,
        background: if threads { Background::Threads(2) } else { Background::Inline },
        ..Options::default()
    };
    // If `other` is not named, it keeps its strategy and takes its merge operator from the default
    // keyspace, whose options are therefore always given.
    let builder = builder.options(options);
    if open > 0 && rng.chance(0.2) {
        return builder.keyspace("other", keyspace).default_keyspace(self::keyspace(rng));
    }
    builder.default_keyspace(keyspace)
}

fn strategy(rng: &mut SeededRng) -> StrategyOptions {
    let table_bytes = 1 << (11 + rng.below(4));
    let levels = 2 + rng.below(6) as usize;
    match rng.below(7) {
        0..2 => StrategyOptions::Leveled(LeveledOptions {
            table_bytes,
            level_zero_runs_min: 1 + rng.below(4) as usize,
            level_zero_runs_max: 5 + rng.below(4) as usize,
            level_zero_bytes: 4 * table_bytes,
            base_bytes: 4 * table_bytes,
            multiplier: 2.0 + rng.below(4) as f64,
            levels,
            parts: 1 + rng.below(4) as usize,
            ..LeveledOptions::default()
        }),
        2..4 => StrategyOptions::Universal(UniversalOptions {
            table_bytes,
            runs: 2 + rng.below(5) as usize,
            size_ratio_percent: [0, 1, 50][rng.below(3) as usize],
            merge_runs_max: [3, usize::MAX][rng.below(2) as usize],
            levels,
            ..UniversalOptions::default()
        }),
        4..6 => StrategyOptions::LazyLeveled(LazyOptions {
            table_bytes,
            flush_bytes: table_bytes,
            size_ratio: 2 + rng.below(7) as usize,
            levels,
            ..LazyOptions::default()
        }),
        // With so much room that it drops nothing.
        _ => StrategyOptions::Fifo(FifoOptions { bytes_max: 1 << 40, ..FifoOptions::default() }),
    }
}

pub fn keyspace(rng: &mut SeededRng) -> KeyspaceOptions {
    let compressions = [
        Compression::None,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd { level: 1, dictionary_bytes: 0 },
        Compression::Zstd { level: 1, dictionary_bytes: 1024 },
    ];
    KeyspaceOptions {
        memtable_bytes: 4096 << rng.below(5),
        block_bytes: 256 << rng.below(5),
        restart_interval: 1 + rng.below(20) as u32,
        compression: vec![compressions[rng.below(5) as usize], compressions[rng.below(5) as usize]],
        filter: if rng.chance(0.5) { FilterKind::Bloom } else { FilterKind::Ribbon },
        filter_bits_per_key: rng.below(3) as f64 * 5.0,
        filter_by_level: rng.chance(0.5),
        compaction: strategy(rng),
        blob_bytes_min: rng.chance(0.4).then(|| 30 + rng.below(100) as u32),
        blob_garbage_max: 0.1 + rng.below(9) as f64 / 10.0,
        merge_operator: Some(Arc::new(Append)),
        ..KeyspaceOptions::default()
    }
}
