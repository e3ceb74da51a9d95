//! Tests of the strategies.

use cairn_vfs::{Rng, SeededRng};

use super::leveled::targets::Targets;
use super::*;

mod properties;
mod rules;
mod tree;

use tree::{ENTRY_BYTES, Tree};

/// Small tables and levels, so that a few hundred flushes fill several levels.
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

/// The strategies that keep all data.
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
    all.iter().map(|options| options.build().unwrap()).collect()
}

fn seed() -> u64 {
    let seed = std::env::var("CAIRN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    seed
}

fn rounds(few: u64) -> u64 {
    if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { few * 20 } else { few }
}

/// A flush of random keys of `0..keys`, `tombstones` of a hundred of them deletions.
fn random_flush(tree: &mut Tree, rng: &mut SeededRng, keys: u64, tombstones: u64) {
    let count = 1 + rng.below(20);
    let drawn: Vec<_> = (0..count).map(|_| (rng.below(keys) as u16, rng.below(100) < tombstones)).collect();
    tree.flush(drawn);
}
