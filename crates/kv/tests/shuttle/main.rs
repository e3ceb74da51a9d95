//! Whole stores under schedules that follow from a seed.
//!
//! `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-kv --test shuttle`, with a target folder of
//! its own; see `testing/schedules.rs` for what that shows and what not. What readers see is
//! replaced in one step (`arc_swap`), and the readers of tables are set as a part of one
//! (`OnceLock`). The parts by themselves: `cargo test -p cairn-kv --lib shuttle`.
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

/// The second keyspace.
const OTHER: &str = "other";

/// Options with which a few writes seal, flush and compact: memtables of the least size are full
/// with their first entry.
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

/// A store of two keyspaces.
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

/// The number that a value begins with; 0 where there is none.
fn number(value: Option<&[u8]>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(*value.first_chunk().expect("eight bytes")))
}
