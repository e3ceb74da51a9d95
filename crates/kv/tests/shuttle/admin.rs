//! Keyspaces that are created and dropped, ingested tables, and copies, concurrent with everything
//! else.

use std::path::Path;

use cairn_kv::{Error, IngestOptions, Operation, TableBuilder, WriteBatch};
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

use super::*;

fn build(fs: &Arc<dyn Fs>, path: &str, keys: &[&str], round: u64) {
    let mut table = TableBuilder::create_in(fs, path, &keyspace()).unwrap();
    keys.iter().for_each(|key| table.put(key, round.to_be_bytes()).unwrap());
    table.finish().unwrap();
}

/// Goal: a table is ingested atomically, between older and newer writes of the same keys, and no
/// write is lost.
/// Method: a writer continues with one of the table's keys and with keys of its own, a reader takes
/// snapshots: all keys of the table appear together, and the writer's key never goes back.
#[test]
fn ingest_beside_writers() {
    explore(200, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        build(&fs, "/outside", &["a", "k", "z"], 1000);
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || db.ingest(&["/outside"], &IngestOptions::default()).unwrap());
            scope.spawn(move || {
                for round in 1..=3u64 {
                    db.put("k", round.to_be_bytes()).unwrap();
                    db.put(format!("own {round}"), round.to_be_bytes()).unwrap();
                }
            });
            scope.spawn(move || {
                for _ in 0..2 {
                    let snapshot = db.snapshot();
                    let found =
                        ["a", "k", "z"].map(|key| number(db.get_at(key, &snapshot).unwrap().as_deref()));
                    assert!(found[0] == found[2] && (found[0] == 0 || found[0] == 1000), "{found:?}");
                    assert!(found[0] == 1000 || found[1] != 1000, "{found:?}");
                    let again = db.range_at(.., &snapshot).map(Result::unwrap);
                    let again = again.filter(|(key, _)| key.len() == 1).count();
                    assert_eq!(again, found.iter().filter(|number| **number > 0).count());
                }
            });
        });
        let found = ["a", "k", "z"].map(|key| number(db.get(key).unwrap().as_deref()));
        assert!(found[0] == 1000 && found[2] == 1000 && [3, 1000].contains(&found[1]), "{found:?}");
        assert_eq!(db.prefix("own ").count(), 3);
    });
}

/// Goal: the same in a short run without flushes: a write that already has its sequence number when
/// the table is ingested is not lost.
/// Method: one concurrent write of another key.
#[test]
fn ingest_beside_a_write() {
    for has_memtable in [false, true] {
        explore(1_000, move || {
            let fs = memory();
            let options = KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() };
            let db = builder(&fs, 0, &options).open().unwrap();
            build(&fs, "/outside", &["a", "z"], 1000);
            if has_memtable {
                db.put("before", "value").unwrap();
            }
            thread::scope(|scope| {
                scope.spawn(|| db.ingest(&["/outside"], &IngestOptions::default()).unwrap());
                scope.spawn(|| {
                    db.put("own", "value").unwrap();
                    assert!(db.get("own").unwrap().is_some());
                });
            });
            assert_eq!(db.iter().count(), 3 + usize::from(has_memtable));
        });
    }
}

/// Goal: a snapshot sees exactly the writes up to its sequence number, even one taken when a table
/// is in the store but its number not yet visible; and nothing waits forever, whatever is compacted
/// meanwhile.
/// Method: a table over an older entry; a thread that keeps the background threads looking for
/// work, one that compacts, and one that takes snapshots repeatedly. The critical moment is two
/// steps long; `src/db/compact/tests.rs` reaches it deterministically.
#[test]
fn ingest_beside_compactions() {
    explore(500, || {
        let fs = memory();
        let options = KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() };
        let db = builder(&fs, 2, &options).open().unwrap();
        db.put("k", 1u64.to_be_bytes()).unwrap();
        db.flush().unwrap();
        build(&fs, "/outside", &["k"], 1000);
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || db.ingest(&["/outside"], &IngestOptions::default()).unwrap());
            scope.spawn(move || {
                let other = db.keyspace(OTHER).unwrap();
                for round in 0..2u64 {
                    other.put("k", round.to_be_bytes()).unwrap();
                    other.flush().unwrap();
                }
                db.compact_range(..).unwrap();
            });
            scope.spawn(move || {
                for _ in 0..3 {
                    let snapshot = db.snapshot();
                    let found = || number(db.get_at("k", &snapshot).unwrap().as_deref());
                    let first = found();
                    thread::yield_now();
                    assert!(first == found() && [1, 1000].contains(&first), "{first}, then {}", found());
                }
            });
        });
        assert_eq!(number(db.get("k").unwrap().as_deref()), 1000);
    });
}

/// Goal: an error during ingestion blocks nothing forever: writers and background threads end or
/// get an error.
/// Method: each sync of an ingestion fails in turn, with a writer whose memtables are flushed
/// meanwhile.
#[test]
fn ingest_that_fails() {
    use cairn_vfs::fault::{Fault, FaultFs, FaultOptions, Rule};
    use cairn_vfs::{ErrorKind, Operation};
    for nth in 0..6 {
        explore(150, move || {
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            let db = builder(&fs, 2, &keyspace()).open().unwrap();
            build(&fs, "/outside", &["a", "z"], 1000);
            db.put("before", "value").unwrap();
            let may_fail = |result: cairn_kv::Result<()>| {
                if let Err(error) = result {
                    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{error}");
                }
            };
            let first = disk.operation_count_of(Operation::SyncData);
            disk.inject(Rule::nth(Operation::SyncData, first + nth, Fault::Io));
            thread::scope(|scope| {
                scope.spawn(|| may_fail(db.ingest(&["/outside"], &IngestOptions::default())));
                scope.spawn(|| (0..2u8).for_each(|at| may_fail(db.put([at], "value"))));
            });
            may_fail(db.wait_idle());
        });
    }
}

/// Goal: keyspaces are created and dropped concurrently with writers, flushes and compactions:
/// writers to a dropped one get an error, batches over it and another keyspace go to both or
/// neither, and no thread waits forever.
/// Method: a writer, a thread that drops, and a thread that creates; the store is reopened.
#[test]
fn keyspaces_come_and_go() {
    explore(200, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        let (other, written) = (db.keyspace(OTHER).unwrap(), AtomicU64::new(0));
        thread::scope(|scope| {
            let (db, other, written) = (&db, &other, &written);
            scope.spawn(move || {
                for round in 1..=3u64 {
                    let mut batch = WriteBatch::new();
                    batch.put("key", round.to_be_bytes()).unwrap();
                    batch
                        .add(other.id(), Operation::Put { key: b"key", value: &round.to_be_bytes() })
                        .unwrap();
                    match db.write(&batch) {
                        Ok(()) => written.store(round, Ordering::Release),
                        Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
                    }
                }
                let flushed = other.flush();
                assert!(flushed.is_ok() || matches!(flushed, Err(Error::NotFound { .. })), "{flushed:?}");
            });
            scope.spawn(move || db.drop_keyspace(OTHER).unwrap());
            scope.spawn(move || {
                let new = db.create_keyspace("new", keyspace()).unwrap();
                new.put("key", "value").unwrap();
            });
        });
        assert_eq!(number(db.get("key").unwrap().as_deref()), written.load(Ordering::Acquire));
        drop((other, db));
        let open = Db::builder(DIR).fs(fs).seed(2).options(options(0)).default_keyspace(keyspace());
        let db = open.open().unwrap();
        assert_eq!(number(db.get("key").unwrap().as_deref()), written.load(Ordering::Acquire));
        assert_eq!(db.keyspace("new").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
        assert!(db.keyspace(OTHER).is_none());
    });
}

/// Goal: a keyspace can be written to as soon as it can be found.
/// Method: one thread creates it, another writes as soon as it exists.
#[test]
fn a_keyspace_that_is_being_made() {
    explore(500, || {
        let fs = memory();
        let db = builder(&fs, 0, &keyspace()).open().unwrap();
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || drop(db.create_keyspace("new", keyspace()).unwrap()));
            scope.spawn(move || {
                for _ in 0..100 {
                    if let Some(new) = db.keyspace("new") {
                        return new.put("key", "value").unwrap();
                    }
                    thread::yield_now();
                }
            });
        });
        assert!(db.keyspace("new").is_some());
    });
}

/// Goal: a copy has everything that returned before the call and no partial batch, whatever else
/// runs.
/// Method: a writer of batches over both keyspaces, with flushes and compactions; the copy is
/// opened.
#[test]
fn checkpoints() {
    explore(150, || {
        let fs = memory();
        let (db, written) = (builder(&fs, 2, &keyspace()).open().unwrap(), AtomicU64::new(0));
        thread::scope(|scope| {
            let (db, written) = (&db, &written);
            scope.spawn(move || {
                for round in 1..=3u64 {
                    let mut batch = WriteBatch::new();
                    for keyspace in db.keyspaces() {
                        let put = Operation::Put { key: b"key", value: &round.to_be_bytes() };
                        batch.add(keyspace.id(), put).unwrap();
                    }
                    db.write(&batch).unwrap();
                    written.store(round, Ordering::Release);
                }
            });
            let fs = &fs;
            scope.spawn(move || {
                let before = written.load(Ordering::Acquire);
                db.checkpoint("/copy").unwrap();
                let copy = Db::builder(Path::new("/copy")).fs(Arc::clone(fs)).seed(3).options(options(0));
                let copy = copy.default_keyspace(keyspace()).open().unwrap();
                let found: Vec<_> = copy
                    .keyspaces()
                    .iter()
                    .map(|keyspace| number(keyspace.get("key").unwrap().as_deref()))
                    .collect();
                assert!(found[0] == found[1] && found[0] >= before, "{found:?}, written {before}");
            });
        });
    });
}

/// Goal: collecting blob files, ingesting a table and creating a keyspace wait for each other in
/// one direction only, so they cannot deadlock.
/// Method: at the same time, large values are overwritten so that blob files become garbage, a
/// table is ingested, and a keyspace is created.
#[test]
fn blobs_ingest_and_a_keyspace() {
    explore(300, || {
        let fs = memory();
        let options = KeyspaceOptions { blob_bytes_min: Some(32), blob_garbage_max: 0.01, ..keyspace() };
        let db = builder(&fs, 2, &options).open().unwrap();
        build(&fs, "/outside", &["x", "y"], 7);
        let large = |round: u8| [round; 64];
        db.put("key", large(1)).unwrap();
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || {
                (2..=4u8).for_each(|round| db.put("key", large(round)).unwrap());
                db.compact_range(..).unwrap();
            });
            scope.spawn(move || db.ingest(&["/outside"], &IngestOptions::default()).unwrap());
            scope.spawn(move || drop(db.create_keyspace("new", keyspace()).unwrap()));
        });
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&large(4)[..]));
        assert_eq!(number(db.get("x").unwrap().as_deref()), 7);
    });
}
