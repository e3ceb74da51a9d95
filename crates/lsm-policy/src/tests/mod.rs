//! Tests of the strategies.

use cairn_vfs::{Rng, SeededRng};

use crate::LevelTargets;
use crate::bytes::*;

mod properties;
mod rules;
mod tree;

use tree::{ENTRY_BYTES, Tree};

/// Returns options with small tables and levels, so that a few hundred flushes fill several levels.
fn leveled() -> LeveledOptions {
    LeveledOptions {
        table_bytes: 20 * ENTRY_BYTES,
        level_zero_runs_min: 2,
        level_zero_runs_max: 4,
        level_zero_bytes: 80 * ENTRY_BYTES,
        base_bytes: 60 * ENTRY_BYTES,
        ..LeveledOptions::default()
    }
}

fn lazy() -> LazyOptions {
    LazyOptions {
        table_bytes: 20 * ENTRY_BYTES,
        flush_bytes: 20 * ENTRY_BYTES,
        size_ratio: 3,
        ..LazyOptions::default()
    }
}

fn universal() -> UniversalOptions {
    UniversalOptions { table_bytes: 20 * ENTRY_BYTES, ..UniversalOptions::default() }
}

/// Returns the strategies that keep all data.
fn merging() -> Vec<Box<dyn Strategy>> {
    let all = [
        StrategyOptions::Leveled(leveled()),
        StrategyOptions::LazyLeveled(lazy()),
        StrategyOptions::Universal(universal()),
        StrategyOptions::Universal(UniversalOptions {
            merge_runs_max: 3,
            size_ratio_percent: 50,
            ..universal()
        }),
    ];
    all.iter().map(|options| Box::new(options.build().unwrap()) as Box<dyn Strategy>).collect()
}

/// Returns a random strategy with random settings that keeps all data.
fn drawn(rng: &mut SeededRng) -> Box<dyn Strategy> {
    let levels = 2 + rng.below(6) as usize;
    let options = match rng.below(4) {
        0 => StrategyOptions::Leveled(LeveledOptions {
            level_zero_runs_min: 1 + rng.below(4) as usize,
            level_zero_runs_max: 4 + rng.below(6) as usize,
            multiplier: 2.0 + rng.below(6) as f64,
            levels,
            parts: 1 + rng.below(4) as usize,
            ..leveled()
        }),
        1 => StrategyOptions::LazyLeveled(LazyOptions {
            size_ratio: 2 + rng.below(7) as usize,
            levels,
            ..lazy()
        }),
        2 => StrategyOptions::Universal(UniversalOptions {
            runs: 2 + rng.below(6) as usize,
            size_ratio_percent: [0, 1, 50, 300][rng.below(4) as usize],
            merge_runs_min: 2 + rng.below(2) as usize,
            merge_runs_max: [3, 5, usize::MAX][rng.below(3) as usize],
            space_amplification_percent: [30, 200, 2000][rng.below(3) as usize],
            levels,
            ..universal()
        }),
        // With room for everything: it drops nothing, and leaves the tree unchanged.
        _ => StrategyOptions::Fifo(FifoOptions { bytes_max: u64::MAX, ttl_secs: None }),
    };
    Box::new(options.build().unwrap()) as Box<dyn Strategy>
}

fn seed() -> u64 {
    let seed = std::env::var("CAIRN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    seed
}

fn rounds(few: u64) -> u64 {
    if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { few * 20 } else { few }
}

/// Flushes random keys of `0..keys`, `tombstones` percent of them deletions.
fn random_flush(tree: &mut Tree, rng: &mut SeededRng, keys: u64, tombstones: u64) {
    let count = 1 + rng.below(20);
    let drawn: Vec<_> = (0..count).map(|_| (rng.below(keys) as u16, rng.below(100) < tombstones)).collect();
    tree.flush(drawn);
}
