//! Tests of values in blob files.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use cairn_kv::strategy::{LeveledOptions, StrategyOptions};
use cairn_kv::{Append, Background, Compression, Db, KeyspaceOptions, MergeOperator};
use cairn_vfs::fault::{FaultOptions, crash_sweep};
use cairn_vfs::{Fs, MemFs};

const LARGE: usize = 1000;

fn open(fs: &Arc<dyn Fs>) -> Db {
    open_with(fs, LARGE as u32)
}

fn open_with(fs: &Arc<dyn Fs>, blob_bytes_min: u32) -> Db {
    let leveled = LeveledOptions { table_bytes: 4 << 10, base_bytes: 16 << 10, ..LeveledOptions::default() };
    let options = KeyspaceOptions {
        memtable_bytes: 64 << 10,
        compression: vec![Compression::None],
        compaction: StrategyOptions::Leveled(leveled),
        merge_operator: Some(Arc::new(Append)),
        blob_bytes_min: Some(blob_bytes_min),
        blob_garbage_max: 0.5,
        ..KeyspaceOptions::default()
    };
    let builder = Db::builder("/store").fs(Arc::clone(fs)).background(Background::Inline).seed(1);
    builder.default_keyspace(options).open().unwrap()
}

fn value(number: usize, round: usize) -> Vec<u8> {
    let mut value = format!("{number} in round {round} ").into_bytes();
    // Every third value is below the limit.
    value.resize(if number.is_multiple_of(3) { LARGE - 1 } else { LARGE + number }, b'.');
    value
}

fn blob_files(fs: &Arc<dyn Fs>) -> usize {
    let names = fs.read_dir(Path::new("/store")).unwrap();
    names.iter().filter(|name| name.extension().is_some_and(|it| it == "blob")).count()
}

/// Goal: large values are read back from blob files by all kinds of reads, across overwriting,
/// merging, compaction and reopening, and files that have become garbage are removed.
/// Method: rounds of overwriting; all values are read after each; at the end everything is deleted.
#[test]
fn large_values_live_apart_and_garbage_goes() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut db = open(&fs);
    let key = |number: usize| format!("key{number:04}");
    for round in 0..12 {
        for number in 0..200 {
            db.put(key(number), value(number, round)).unwrap();
        }
        db.flush().unwrap();
        db.merge(key(7), "!").unwrap();
        let mut expected: Vec<Vec<u8>> = (0..200).map(|number| value(number, round)).collect();
        expected[7].push(b'!');
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(db.get(key(number)).unwrap().unwrap()[..], expected[..], "{number}");
        }
        let forwards: Vec<_> = db.iter().map(|pair| pair.unwrap().1).collect();
        assert!(forwards == expected);
        let mut backwards: Vec<_> = db.iter().rev().map(|pair| pair.unwrap().1).collect();
        backwards.reverse();
        assert!(backwards == expected);
        if round % 4 == 3 {
            drop(db);
            db = open(&fs);
        }
    }
    db.wait_idle().unwrap();
    let stats = &db.stats().keyspaces[0];
    let live: usize = (0..200).map(|number| value(number, 0).len()).filter(|len| *len >= LARGE).sum();
    assert!(stats.blob_bytes > 0 && blob_files(&fs) > 0);
    assert!(stats.blob_bytes < 4 * live as u64, "{} bytes for {live}: {stats:?}", stats.blob_bytes);
    assert!(
        stats.levels.iter().map(|level| level.bytes).sum::<u64>() < stats.blob_bytes + (200 * LARGE) as u64
    );
    db.delete_range("", "z").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.stats().keyspaces[0].blob_bytes, 0, "{}", db.stats());
    drop(db);
    assert_eq!(blob_files(&fs), 0);
}

/// Goal: a crash leaves no unneeded blob file that is never removed.
/// Method: every crash image of a large value that is written, flushed, deleted and compacted away;
/// where the value is gone, its blob files are gone after one more compaction.
#[test]
fn crashes_leave_no_dead_files() {
    let images = crash_sweep(
        FaultOptions::seeded(2),
        2,
        |machine| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let db = open(&fs);
            db.put("a", value(1, 0)).unwrap();
            db.flush().unwrap();
            db.delete("a").unwrap();
            db.compact_range(..).unwrap();
        },
        |point, image, after| {
            let fs: Arc<dyn Fs> = Arc::new(after);
            let db = open(&fs);
            db.compact_range(..).unwrap();
            let is_there = db.get("a").unwrap().is_some();
            drop(db);
            let context = format!("operation {}, {image:?}", point.operation());
            assert_eq!(blob_files(&fs), usize::from(is_there), "{context}");
        },
    );
    assert!(images > 50, "{images}");
}

/// Goal: a snapshot keeps the blob files that it sees.
/// Method: overwrite everything under a snapshot and compact.
#[test]
fn snapshots_keep_their_values() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    db.put("a", value(1, 0)).unwrap();
    db.flush().unwrap();
    let (snapshot, before) = (db.snapshot(), db.iter());
    db.put("a", value(1, 1)).unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.get_at("a", &snapshot).unwrap().unwrap()[..], value(1, 0)[..]);
    assert_eq!(db.get("a").unwrap().unwrap()[..], value(1, 1)[..]);
    drop(snapshot);
    db.compact_range(..).unwrap();
    // An iterator keeps its own blob files.
    assert_eq!(before.map(Result::unwrap).next().unwrap().1, value(1, 0));
}

/// Goal: empty values survive when everything else is overwritten, even with the smallest limits
/// for blob files.
/// Method: limits of 0 and 1; a value beside an empty one is overwritten, deleted and compacted,
/// and the store reopened.
#[test]
fn empty_values_stay() {
    for bytes_min in [0, 1] {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let db = open_with(&fs, bytes_min);
        db.put("empty", "").unwrap();
        db.put("alone", "").unwrap();
        db.flush().unwrap();
        for round in 0..4 {
            db.put("key", value(1, round)).unwrap();
            db.put("empty", "").unwrap();
            db.flush().unwrap();
            db.delete("key").unwrap();
            db.compact_range(..).unwrap();
            for key in ["empty", "alone"] {
                assert_eq!(db.get(key).unwrap().as_deref(), Some(&b""[..]), "{key}, round {round}");
            }
        }
        drop(db);
        let db = open_with(&fs, bytes_min);
        assert_eq!(db.iter().map(|pair| pair.unwrap().1.len()).collect::<Vec<_>>(), [0, 0]);
        assert!(db.verify().unwrap().is_sound());
    }
}

/// A merge operator that appends, and counts the operands that it was given.
#[derive(Debug, Default)]
struct Counts(std::sync::atomic::AtomicUsize);

impl MergeOperator for Counts {
    fn name(&self) -> &str {
        Append.name()
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.0.fetch_add(operands.len(), std::sync::atomic::Ordering::Relaxed);
        Append.merge(key, base, operands)
    }
}

/// Goal: a compaction merges operands on a value in a blob file like those on any other value, and
/// the old value becomes garbage; a snapshot that sees the value without the operands keeps it.
/// Method: rounds of operands, each in a table of its own; after a compaction no read encounters an
/// operand.
#[test]
fn operands_merge_with_a_value_in_a_blob_file() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let operator = Arc::new(Counts::default());
    let options = KeyspaceOptions {
        merge_operator: Some(operator.clone()),
        blob_bytes_min: Some(LARGE as u32),
        blob_garbage_max: 1.0,
        ..KeyspaceOptions::default()
    };
    let builder = Db::builder("/store").fs(Arc::clone(&fs)).background(Background::Inline).seed(1);
    let db = builder.default_keyspace(options).open().unwrap();
    let mut expected = value(1, 0);
    db.put("key", &expected).unwrap();
    db.put("other", value(4, 0)).unwrap();
    db.flush().unwrap();
    let (snapshot, before) = (db.snapshot(), expected.clone());
    for round in 0..20 {
        let operand = format!("+{round}");
        db.merge("key", &operand).unwrap();
        expected.extend_from_slice(operand.as_bytes());
        db.flush().unwrap();
    }
    let operands_of_a_read = || {
        let count = || operator.0.load(std::sync::atomic::Ordering::Relaxed);
        let before = count();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&expected[..]));
        count() - before
    };
    db.compact_range(..).unwrap();
    assert_eq!(db.get_at("key", &snapshot).unwrap().as_deref(), Some(&before[..]));
    operands_of_a_read();
    drop(snapshot);
    db.compact_range(..).unwrap();
    assert_eq!(operands_of_a_read(), 0, "operands are left over a value in a blob file");
    let stats = &db.stats().keyspaces[0];
    assert!(stats.blob_garbage_bytes >= before.len() as u64, "{stats:?}");
    assert!(db.verify().unwrap().is_sound());
}
