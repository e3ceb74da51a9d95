//! Tests of whole stores under deterministic, seeded schedules.
//!
//! `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-kv --test shuttle`, with a target folder of
//! its own; `testing/schedules.rs` describes the scope of these tests. They treat replacing the
//! view of readers (`arc_swap`), and setting the readers of tables (`OnceLock`), as single steps.
//! To test the parts alone: `cargo test -p cairn-kv --lib shuttle`.
#![cfg(cairn_shuttle)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Background, Builder, Compression, Db, Durability, KeyspaceOptions, Options};
use cairn_vfs::{Fs, ManualClock, MemFs, thread};

mod admin;
mod durable;
mod reads;
#[path = "../../../../testing/schedules.rs"]
mod schedules;
mod stalls;
mod transactions;

use schedules::explore;

const DIR: &str = "store";

/// The name of the second keyspace.
const OTHER: &str = "other";

/// Returns options with which a few writes seal, flush and compact: memtables of the smallest size
/// are full after their first entry.
fn keyspace() -> KeyspaceOptions {
    let leveled = LeveledOptions {
        table_bytes: 1 << 10,
        level_zero_runs_min: 2,
        level_zero_runs_max: 3,
        level_zero_bytes: 2 << 10,
        base_bytes: 2 << 10,
        multiplier: 2.0,
        levels: 3,
        ..LeveledOptions::default()
    };
    KeyspaceOptions {
        memtable_bytes: 4096,
        block_bytes: 256,
        restart_interval: 4,
        compression: vec![Compression::None],
        compaction: StrategyOptions::Leveled(leveled),
        ..KeyspaceOptions::default()
    }
}

fn options(threads: usize) -> Options {
    let background = if threads == 0 { Background::Inline } else { Background::Threads(threads) };
    Options { cache_bytes: 4 << 10, wal_segment_bytes: 8 << 10, background, ..Options::default() }
}

/// Returns a builder of a store with two keyspaces.
fn builder(fs: &Arc<dyn Fs>, threads: usize, keyspace: &KeyspaceOptions) -> Builder {
    Db::builder(DIR)
        .fs(Arc::clone(fs))
        .clock(Arc::new(ManualClock::new(Duration::from_secs(1_700_000_000))))
        .seed(1)
        .options(options(threads))
        .default_keyspace(keyspace.clone())
        .keyspace(OTHER, keyspace.clone())
}

fn memory() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

/// Returns the number with which a value begins; 0 without a value.
fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(*value.first_chunk().expect("eight bytes")))
}
