//! Tests of limits set by options: the size of the log, of all memtables together, and the loss in
//! a power failure.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_kv::strategy::{FifoOptions, LeveledOptions, StrategyOptions};
use cairn_kv::{
    Append, Background, CompactionFilter, Db, Durability, FilterDecision, KEY_BYTES_MAX, KeyspaceOptions,
    MergeOperator, Options, VALUE_BYTES_MAX, WriteBatch,
};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{
    CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, ManualClock, MemFs, Operation, SystemClock,
};

/// Returns options for a log of at most four segments of 64 KiB, as far as flushes allow.
fn small_log() -> Options {
    let (wal_segment_bytes, wal_bytes_max) = (64 << 10, 256 << 10);
    Options { wal_segment_bytes, wal_bytes_max, background: Background::Inline, ..Options::default() }
}

/// Returns the number of segments in the log of a store.
fn segments(db: &Db, fs: &Arc<dyn Fs>) -> usize {
    let names = fs.read_dir(db.path()).unwrap();
    names.iter().filter(|name| name.extension().is_some_and(|it| it == "wal")).count()
}

/// Returns the total length of all log files in `/store`, including those kept for reuse.
fn log_bytes(fs: &Arc<dyn Fs>) -> u64 {
    let paths = fs.read_dir(Path::new("/store")).unwrap();
    let of_log = |path: &&PathBuf| path.extension().is_some_and(|it| it == "wal" || it == "free");
    // Files removed meanwhile do not count.
    paths.iter().filter(of_log).filter_map(|path| fs.metadata(path).ok()).map(|file| file.len).sum()
}

/// Goal: a keyspace with a few old writes does not retain the log of a busy one.
/// Method: one write to the first, many to the second; count the log's segments.
#[test]
fn an_idle_keyspace_does_not_hold_the_log() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = small_log();
    let busy = KeyspaceOptions { memtable_bytes: 64 << 10, ..KeyspaceOptions::default() };
    let builder = Db::builder("/store").fs(Arc::clone(&fs)).options(options).seed(1).keyspace("busy", busy);
    let db = builder.open().unwrap();
    db.put("old", "write").unwrap();
    let busy = db.keyspace("busy").unwrap();
    for number in 0..3000u32 {
        busy.put(number.to_be_bytes(), [7; 500]).unwrap();
    }
    assert!(segments(&db, &fs) <= 10, "{} segments of 64 KiB", segments(&db, &fs));
    assert!(db.stats().keyspaces[0].levels.iter().any(|level| level.tables == 1), "{}", db.stats());
    assert_eq!(db.get("old").unwrap().as_deref(), Some(&b"write"[..]));
}

/// Goal: the log stays below its limit although no memtable is full, and nothing in it is retained
/// that no flush would ever release.
/// Method: writes to one large memtable, single and in batches; likewise range deletions that cover
/// no key; count the log's segments.
#[test]
fn the_log_keeps_to_its_limit() {
    for batched in [false, true] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let options = small_log();
        let db = Db::builder("/store").fs(Arc::clone(&fs)).options(options).seed(1).open().unwrap();
        let write = |operation: cairn_kv::Operation<'_>| {
            let mut batch = WriteBatch::new();
            batch.add(db.id(), operation).unwrap();
            db.write(&batch).unwrap();
        };
        let check = || {
            let segments = segments(&db, &fs);
            assert!(segments <= 10, "{segments} segments of 64 KiB, {batched}");
        };
        for _ in 0..100_000 {
            if batched {
                write(cairn_kv::Operation::DeleteRange { start: b"a", end: b"a" });
            } else {
                db.delete_range("a", "a").unwrap();
            }
        }
        db.wait_idle().unwrap();
        check();
        assert_eq!((db.stats().flushes.0, db.stats().last_seqno), (0, 0));
        for number in 0..6000u32 {
            let key = number.to_be_bytes();
            if batched {
                write(cairn_kv::Operation::Put { key: &key, value: &[7; 500] });
            } else {
                db.put(key, [7; 500]).unwrap();
            }
            if number % 1000 == 999 {
                check();
            }
        }
        assert!(db.stats().flushes.0 > 5, "{}", db.stats());
        assert_eq!(db.iter().count(), 6000);
    }
}

/// Goal: a dropped keyspace with writes that are in no table does not retain the log.
/// Method: count the log's segments after an idle moment.
#[test]
fn a_dropped_keyspace_does_not_hold_the_log() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options =
        Options { wal_segment_bytes: 64 << 10, background: Background::Inline, ..Options::default() };
    let db = Db::builder("/store").fs(Arc::clone(&fs)).options(options).seed(1).open().unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
    (0..3000u32).for_each(|number| other.put(number.to_be_bytes(), [7; 500]).unwrap());
    assert!(segments(&db, &fs) > 10, "{}", segments(&db, &fs));
    db.drop_keyspace("other").unwrap();
    db.wait_idle().unwrap();
    assert!(segments(&db, &fs) <= 2, "{}", segments(&db, &fs));
}

/// Goal: range tombstones that all overlap, as left by a queue's consumer, take space in a table
/// proportional to their number, and the view of snapshots does not change.
/// Method: longer and longer ranges from one start, occasional scans, a snapshot in the middle;
/// then a flush.
#[test]
fn range_tombstones_that_overlap() {
    const COUNT: u32 = 1_000;
    // The flushed table must not be compacted before it is inspected.
    let leveled = LeveledOptions { tombstone_ratio: 2.0, ..LeveledOptions::default() };
    let compaction = StrategyOptions::Leveled(leveled);
    let options = KeyspaceOptions { compaction, ..KeyspaceOptions::default() };
    let db = open_inline(&(Arc::new(MemFs::new()) as Arc<dyn Fs>), &options);
    let key = |number: u32| [&b"q/"[..], &number.to_be_bytes()].concat();
    (0..=COUNT).for_each(|number| db.put(key(number), "job").unwrap());
    db.flush().unwrap();
    let mut snapshot = None;
    for number in 1..=COUNT {
        if number % 50 == 1 {
            let (first, _) = db.range(key(0)..).next().unwrap().unwrap();
            assert_eq!(first, key(number - 1));
        }
        db.delete_range("q/", key(number)).unwrap();
        if number == COUNT / 2 {
            snapshot = Some(db.snapshot());
        }
    }
    let before: u64 = db.stats().keyspaces[0].levels.iter().map(|level| level.entries).sum();
    db.flush().unwrap();
    let after: u64 = db.stats().keyspaces[0].levels.iter().map(|level| level.entries).sum();
    assert!(after - before <= 2 * u64::from(COUNT), "{}", after - before);
    let snapshot = snapshot.unwrap();
    assert_eq!((db.iter().count(), db.range_at(.., &snapshot).count()), (1, 1 + COUNT as usize / 2));
    assert_eq!(db.get_at(key(COUNT / 2), &snapshot).unwrap().as_deref(), Some(&b"job"[..]));
    assert_eq!(db.get_at(key(COUNT / 2 - 1), &snapshot).unwrap(), None);
}

/// Goal: options that contradict each other are refused with an error that names them, and values
/// that are clamped are not clamped to nothing.
/// Method: one of each.
#[test]
fn options_that_contradict_themselves() {
    let builder = || Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1);
    let keyspace = KeyspaceOptions::default;
    let refused = [
        ("level_zero_limits", KeyspaceOptions { level_zero_limits: (0, 0), ..keyspace() }),
        ("level_zero_limits", KeyspaceOptions { level_zero_limits: (0, 5), ..keyspace() }),
        ("level_zero_limits", KeyspaceOptions { level_zero_limits: (6, 5), ..keyspace() }),
        ("pending_compaction_limits", KeyspaceOptions { pending_compaction_limits: (0, 0), ..keyspace() }),
        ("pending_compaction_limits", KeyspaceOptions { pending_compaction_limits: (6, 5), ..keyspace() }),
    ];
    for (name, options) in refused {
        let error = builder().default_keyspace(options).open().map(|_| ()).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(name), "{error}");
    }
    let fewer = Options { memtable_bytes_max: Some(0), background: Background::Inline, ..Options::default() };
    let error = builder().options(fewer).open().map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("memtable_bytes_max"), "{error}");
    let error = builder().keyspace("k", keyspace()).keyspace("k", keyspace()).open().map(|_| ()).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("twice"), "{error}");

    let options = Options {
        wal_segment_bytes: 8 << 10,
        // In segments this is one more than 32 bits hold.
        wal_bytes_max: (8 << 10) << 32,
        background: Background::Inline,
        ..Options::default()
    };
    let db = builder().options(options).open().unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
    other.put("old", "write").unwrap();
    (0..1000u32).for_each(|number| db.put(number.to_be_bytes(), [7; 500]).unwrap());
    db.flush().unwrap();
    assert_eq!(db.stats().flushes.0, 1, "{}", db.stats());
}

/// Goal: an infinite sync interval works, and ends with the store.
/// Method: such a store; a clock on which time has passed.
#[test]
fn an_interval_without_end() {
    let clock = Arc::new(ManualClock::new(Duration::ZERO));
    clock.advance(Duration::from_secs(1));
    let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).clock(clock).seed(1);
    let db = builder.background(Background::Threads(1)).sync_interval(Duration::MAX).open().unwrap();
    for _ in 0..10 {
        db.put("key", "value").unwrap();
        db.flush().unwrap();
    }
    db.wait_idle().unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// Goal: an open store with little data takes little space. An idle store with everything in tables
/// releases its log, whichever keyspace had the last write; killing the process then loses nothing.
/// Method: sizes of the log's files, copies of the directory.
#[test]
fn the_log_of_an_idle_store_is_small() {
    for background in [Background::Inline, Background::Threads(2)] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let options = Options { background, ..Options::default() };
        let builder = || {
            let other = KeyspaceOptions::default();
            Db::builder("/store")
                .fs(Arc::clone(&fs))
                .options(options.clone())
                .seed(1)
                .keyspace("other", other)
        };
        let db = builder().open().unwrap();
        let log_bytes = || log_bytes(&fs);
        db.put("key", "value").unwrap();
        assert!(log_bytes() <= 1 << 20, "{}", log_bytes());
        let mut count = 0u32;
        for _ in 0..3 {
            for _ in 0..40_000 {
                db.put(count.to_be_bytes(), [7; 1000]).unwrap();
                count += 1;
            }
            assert!(log_bytes() > 32 << 20, "it had grown: {}", log_bytes());
            db.keyspace("other").unwrap().put("count", count.to_be_bytes()).unwrap();
            db.flush().unwrap();
            db.keyspace("other").unwrap().flush().unwrap();
            db.wait_idle().unwrap();
            assert!(log_bytes() <= 1 << 20, "{}", log_bytes());
            // A reader finds the state that a killed process would leave.
            let reader = builder().read_only(true).open().unwrap();
            assert_eq!(reader.range(..).count(), count as usize + 1);
            let other = reader.keyspace("other").unwrap();
            assert_eq!(other.get("count").unwrap().unwrap().as_ref(), count.to_be_bytes());
        }
        drop(db);
        assert_eq!(builder().open().unwrap().range(..).count(), count as usize + 1);
    }
}

/// Goal: parts of its log that an idle store failed to release, or had no time for, are released
/// the next time.
/// Method: each removal of a file fails in turn.
#[test]
fn a_log_that_was_not_given_back_is_later() {
    let mut failed = 0;
    loop {
        let fs = Arc::new(FaultFs::new(FaultOptions::seeded(7)));
        let builder = Db::builder("/store").fs(Arc::clone(&fs) as Arc<dyn Fs>).seed(1);
        let db = builder.background(Background::Inline).open().unwrap();
        for number in 0..3000u32 {
            db.put(number.to_be_bytes(), [7; 1000]).unwrap();
        }
        db.flush().unwrap();
        let disk: Arc<dyn Fs> = Arc::clone(&fs) as _;
        let log_bytes = || log_bytes(&disk);
        assert!(log_bytes() > 1 << 20, "it had grown: {}", log_bytes());
        let removed = fs.operation_count_of(Operation::Remove);
        fs.inject(Rule::nth(Operation::Remove, removed + failed, Fault::Io));
        db.wait_idle().unwrap();
        if fs.injected_count() == 0 {
            break;
        }
        failed += 1;
        db.wait_idle().unwrap();
        assert!(log_bytes() <= 1 << 20, "{} after removal {failed} failed", log_bytes());
    }
    assert!(failed > 0);
}

/// Goal: memtables of many keyspaces together stay below their common limit.
/// Method: writes to ten keyspaces, none of which reaches its own limit.
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

/// Goal: with a sync interval, buffered writes become durable by themselves.
/// Method: write, wait for the sync that the file system counts, and cut the power.
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

/// Goal: writers never stop if no compaction would let them continue, and are not slowed down for
/// runs that their strategy never merges.
/// Method: a strategy that merges nothing, and limits below the threshold of a strategy, with more
/// flushes than the limits allow. If the store stops its writers, the test does not end.
#[test]
fn limits_that_no_compaction_meets() {
    let fifo = StrategyOptions::Fifo(FifoOptions::default());
    for (compaction, level_zero_limits) in [(fifo.clone(), (32, 56)), (StrategyOptions::default(), (1, 2))] {
        let merges = compaction != fifo;
        let options = KeyspaceOptions { compaction, level_zero_limits, ..KeyspaceOptions::default() };
        let builder = Db::builder("/store").fs(Arc::new(MemFs::new())).default_keyspace(options).seed(1);
        let db = builder.background(Background::Threads(2)).open().unwrap();
        for number in 0..60u32 {
            db.put(number.to_be_bytes(), "value").unwrap();
            db.flush().unwrap();
        }
        assert_eq!(db.iter().count(), 60);
        assert!(merges || db.stats().stalls.level_zero.is_zero(), "{:?}", db.stats().stalls);
    }
}

/// Longer than a value may be, and than a table can store.
const TOO_LONG: usize = 512 << 20;

fn open_inline(fs: &Arc<dyn Fs>, options: &KeyspaceOptions) -> Db {
    let builder = Db::builder("/store").fs(Arc::clone(fs)).background(Background::Inline).seed(1);
    builder.default_keyspace(options.clone()).open().unwrap()
}

/// Goal: all interfaces refuse a value that no table can store, wherever it would be stored, and
/// the store remains usable.
/// Method: half a GiB of zeros that nothing reads.
#[test]
fn values_that_are_too_long() {
    let long = vec![0; TOO_LONG];
    assert!(long.len() > VALUE_BYTES_MAX);
    for blob_bytes_min in [None, Some(1)] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let merge_operator: Option<Arc<dyn MergeOperator>> = Some(Arc::new(Append));
        let options = KeyspaceOptions { blob_bytes_min, merge_operator, ..KeyspaceOptions::default() };
        let db = open_inline(&fs, &options);
        let mut transaction = db.transaction();
        let refused = [
            db.put("key", &long),
            db.merge("key", &long),
            WriteBatch::new().put("key", &long),
            transaction.put(&db, "key", &long),
            db.table_builder("/table").unwrap().put("key", &long),
        ];
        for (at, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid, "{at}");
        }
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
}

/// Goal: the longest key with the longest value can be flushed, compacted, read and recovered, with
/// every compression that is the default of some level, in tables and in blob files.
/// Method: the long form uses the real length, which takes some GiB of memory; the short form 8
/// MiB.
#[test]
fn the_longest_value() {
    let soaks = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let bytes = if soaks { VALUE_BYTES_MAX } else { 8 << 20 };
    for (blob_bytes_min, ttl) in [(None, None), (Some(1), None), (None, Some(Duration::from_secs(1_000_000)))]
    {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        // Not flushed automatically, because the log must restore it.
        let memtable_bytes = 4 << 30;
        let options = KeyspaceOptions { memtable_bytes, blob_bytes_min, ttl, ..KeyspaceOptions::default() };
        let (key, mut value) = (vec![7; KEY_BYTES_MAX], vec![0; bytes]);
        value.chunks_mut(4096).zip(0u32..).for_each(|(chunk, at)| chunk[0] = at as u8);
        let check = |db: &Db| assert!(db.get(&key).unwrap().as_deref() == Some(&value[..]));
        let db = open_inline(&fs, &options);
        db.put("small", "value").unwrap();
        db.put(&key, &value).unwrap();
        check(&db);
        drop(db);
        let db = open_inline(&fs, &options);
        db.flush().unwrap();
        check(&db);
        db.put("small", "newer").unwrap();
        db.compact_range(..).unwrap();
        check(&db);
        drop(db);
        check(&open_inline(&fs, &options));
    }
}

/// A merge operator and filter that make the values of `big` and `filtered` too long.
#[derive(Debug)]
struct Inflate;

impl Inflate {
    /// Untouched zero pages take no memory.
    fn too_long() -> Vec<u8> {
        vec![0; TOO_LONG]
    }
}

impl MergeOperator for Inflate {
    fn name(&self) -> &str {
        "inflate"
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        if key == b"big" { Ok(Inflate::too_long()) } else { Append.merge(key, base, operands) }
    }

    fn merge_operands(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        if key == b"big" { Some(Inflate::too_long()) } else { Append.merge_operands(key, operands) }
    }
}

impl CompactionFilter for Inflate {
    fn name(&self) -> &str {
        "inflate"
    }

    fn filter(&self, _: usize, key: &[u8], _: &[u8]) -> FilterDecision {
        if key == b"filtered" { FilterDecision::Change(Inflate::too_long()) } else { FilterDecision::Keep }
    }
}

/// Goal: operands whose result exceeds the value limit stay operands, and a value that a filter
/// makes too long stays unchanged; flushes, compactions and recovery continue, in tables and with
/// blob files.
/// Method: an operator and a filter that produce too long values for two keys; without and with a
/// base.
#[test]
fn merges_that_are_too_long() {
    for blob_bytes_min in [None, Some(1)] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let options = KeyspaceOptions {
            blob_bytes_min,
            merge_operator: Some(Arc::new(Inflate)),
            compaction_filter: Some(Arc::new(Inflate)),
            ..KeyspaceOptions::default()
        };
        let mut db = open_inline(&fs, &options);
        db.put("filtered", "value").unwrap();
        db.merge("big", "1").unwrap();
        db.merge("big", "2").unwrap();
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        db.put("big", "base").unwrap();
        for round in 0..2 {
            db.merge("big", "3").unwrap();
            db.merge("small", "x").unwrap();
            db.merge("small", "x").unwrap();
            db.compact_range(..).unwrap();
            assert_eq!(db.get("big").unwrap().unwrap().len(), TOO_LONG);
            assert_eq!(db.get("small").unwrap().unwrap().len(), 2 * (round + 1));
            assert_eq!(db.get("filtered").unwrap().as_deref(), Some(&b"value"[..]));
            drop(db);
            db = open_inline(&fs, &options);
        }
    }
}
