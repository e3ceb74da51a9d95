//! What options bound: the log, all memtables together, what a power loss takes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{FifoOptions, StrategyOptions};
use cairn_kv::{Background, Db, Durability, KeyspaceOptions, Options};
use cairn_vfs::{CrashImage, FaultFs, FaultOptions, Fs, MemFs, Operation, SystemClock};

/// Goal: a keyspace with a few old writes does not keep the log of a busy one. Method: one write to the first, many to the second;
/// the log's segments are counted.
#[test]
fn an_idle_keyspace_does_not_hold_the_log() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = Options {
        wal_segment_bytes: 64 << 10,
        wal_bytes_max: 256 << 10,
        background: Background::Inline,
        ..Options::default()
    };
    let busy = KeyspaceOptions { memtable_bytes: 64 << 10, ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(&fs)).options(options).seed(1).keyspace("busy", busy);
    let db = builder.open().unwrap();
    db.put("old", "write").unwrap();
    let busy = db.keyspace("busy").unwrap();
    for number in 0..3000u32 {
        busy.put(number.to_be_bytes(), [7; 500]).unwrap();
    }
    let names = fs.read_dir(db.path()).unwrap();
    let segments = names.iter().filter(|name| name.extension().is_some_and(|it| it == "wal")).count();
    assert!(segments <= 10, "{segments} segments of 64 KiB");
    assert!(db.stats().keyspaces[0].levels.iter().any(|level| level.tables == 1), "{}", db.stats());
    assert_eq!(db.get("old").unwrap().as_deref(), Some(&b"write"[..]));
}

/// Goal: memtables of many keyspaces stay below their common limit. Method: writes to ten keyspaces, none of which reaches its own.
#[test]
fn memtables_share_a_limit() {
    let options =
        Options { memtable_bytes_max: Some(1 << 20), background: Background::Inline, ..Options::default() };
    let mut builder = Db::builder("/store").fs(Arc::new(MemFs::new())).options(options).seed(1);
    for number in 0..10 {
        builder = builder.keyspace(format!("k{number}"), KeyspaceOptions::default());
    }
    let db = builder.open().unwrap();
    for number in 0..20_000u32 {
        let keyspace = db.keyspace(&format!("k{}", number % 10)).unwrap();
        keyspace.put(number.to_be_bytes(), [7; 100]).unwrap();
        let stats = db.stats();
        let bytes: u64 = stats.keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum();
        assert!(bytes <= (1 << 20) + (256 << 10), "{bytes}");
    }
    assert!(db.stats().flushes.0 > 0);
}

/// Goal: with an interval, buffered writes become durable by themselves. Method: write, wait for the sync that the file system
/// counts, pull the plug.
#[test]
fn an_interval_syncs_the_log() {
    let faults = Arc::new(FaultFs::new(FaultOptions::seeded(1)));
    let fs: Arc<dyn Fs> = Arc::clone(&faults) as Arc<dyn Fs>;
    let builder =
        Db::builder("/store").fs(fs).clock(Arc::new(SystemClock::new())).durability(Durability::Buffered);
    let db =
        builder.background(Background::Threads(1)).sync_interval(Duration::from_millis(1)).open().unwrap();
    db.put("a", "1").unwrap();
    // The next sync may have begun before the write; the one after it has not.
    let syncs = || faults.operation_count_of(Operation::SyncData);
    let before = syncs();
    db.put("b", "2").unwrap();
    while syncs() < before + 1 {
        cairn_vfs::thread::yield_now();
    }
    let before = syncs();
    db.put("c", "3").unwrap();
    while syncs() < before + 1 {
        cairn_vfs::thread::yield_now();
    }
    let image = faults.crash(CrashImage::None);
    let db = Db::builder("/store").fs(Arc::new(image)).background(Background::Inline).open().unwrap();
    assert_eq!(db.get("a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Goal: writers never stop where no compaction will let them go on. Method: a strategy that merges nothing, and limits below
/// what a strategy begins at, with more flushes than the limits allow. A store that stops its writers does not end here.
#[test]
fn limits_that_no_compaction_meets() {
    let fifo = StrategyOptions::Fifo(FifoOptions::default());
    for (compaction, level_zero_limits) in [(fifo, (32, 56)), (StrategyOptions::default(), (1, 2))] {
        let options = KeyspaceOptions { compaction, level_zero_limits, ..KeyspaceOptions::default() };
        let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).default_keyspace(options).seed(1);
        let db = builder.background(Background::Threads(2)).open().unwrap();
        for number in 0..60u32 {
            db.put(number.to_be_bytes(), "value").unwrap();
            db.flush().unwrap();
        }
        assert_eq!(db.iter().count(), 60);
    }
}
