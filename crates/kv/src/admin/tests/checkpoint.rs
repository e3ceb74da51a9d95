use std::path::Path;
use std::time::Duration;

use cairn_vfs::fault::{FaultOptions, crash_sweep};
use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, ManualClock, MemFs, StdFs};

use super::*;
use crate::batch::Operation;
use crate::{Append, Durability, WriteBatch};

fn open_at(fs: &Arc<dyn Fs>, path: &str) -> Db {
    let options =
        Options { background: Background::Inline, wal_segment_bytes: 64 << 10, ..Options::default() };
    Db::builder(path).fs(Arc::clone(fs)).seed(8).options(options).default_keyspace(small()).open().unwrap()
}

/// Goal: a checkpoint contains everything written before it, whatever its durability and wherever
/// it was then, and nothing written after it; afterwards the copy and the store are independent.
/// Method: tables in several levels, range tombstones, merges and unlogged writes in memtables, a
/// second keyspace; then both are written to and compacted.
#[test]
fn has_everything_before_it() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let with_merge = || KeyspaceOptions { merge_operator: Some(Arc::new(Append)), ..small() };
    let db = open(&fs);
    let other = db.create_keyspace("other", with_merge()).unwrap();
    fill(&db, 0..400, 1);
    db.compact_range(..).unwrap();
    fill(&db, 100..200, 2);
    db.flush().unwrap();
    db.delete_range(key(150), key(160)).unwrap();
    db.put_with(key(401), value(401, 3), Durability::Memory).unwrap();
    other.merge("list", "a").unwrap();
    other.flush().unwrap();
    other.merge("list", "b").unwrap();
    let (here, there) = (pairs(&db), pairs(&other));
    let last = db.checkpoint("/copy").unwrap();
    assert_eq!(last, db.stats().last_seqno);

    fill(&db, 0..400, 4);
    other.merge("list", "c").unwrap();
    db.compact_range(..).unwrap();
    let copy = Db::builder("/copy").fs(Arc::clone(&fs)).default_keyspace(small());
    let copy = copy.keyspace("other", with_merge()).open().unwrap();
    assert!(pairs(&copy) == here);
    assert_eq!(pairs(&copy.keyspace("other").unwrap()), there);
    fill(&copy, 0..50, 5);
    copy.compact_range(..).unwrap();
    assert!(pairs(&copy)[..50] == expected(0..50, 5) && pairs(&copy)[50..] == here[50..]);
    assert!(pairs(&db)[..400] == expected(0..400, 4));
    assert_eq!(db.checkpoint("/copy").unwrap_err().kind(), ErrorKind::Invalid, "it is there");
    assert_eq!(db.checkpoint(STORE).unwrap_err().kind(), ErrorKind::Invalid);
}

/// Goal: while writes continue, a checkpoint contains no partial batch, and everything written
/// before the call.
/// Method: batches that set one number in two keyspaces; checkpoints meanwhile; in each copy the
/// two agree and are at least as new as the writes that had returned.
#[test]
fn while_writes_go_on() {
    use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = small();
    options.memtable_bytes = 8192;
    let threads = builder(&fs).background(Background::Threads(2)).default_keyspace(options.clone());
    let db = threads.open().unwrap();
    let other = db.create_keyspace("other", options).unwrap();
    let (stop, returned) = (AtomicBool::new(false), AtomicU64::new(0));
    cairn_vfs::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1u64.. {
                let (text, filler) = (number.to_string(), vec![7; 200]);
                let mut batch = WriteBatch::new();
                batch.put("number", &text).unwrap();
                batch.put(key(number as u32 % 100), &filler).unwrap();
                batch.add(other.id(), Operation::Put { key: b"number", value: text.as_bytes() }).unwrap();
                db.write(&batch).unwrap();
                returned.store(number, Ordering::SeqCst);
                if stop.load(Ordering::SeqCst) {
                    break;
                }
            }
        });
        for round in 0..12 {
            let at_least = returned.load(Ordering::SeqCst);
            let path = format!("/copy{round}");
            db.checkpoint(&path).unwrap();
            let copy = open_at(&fs, &path);
            let number = |keyspace: &Keyspace| {
                let text = keyspace.get("number").unwrap().map(|text| text.to_vec()).unwrap_or(b"0".to_vec());
                String::from_utf8(text).unwrap().parse::<u64>().unwrap()
            };
            let numbers = (number(&copy), number(&copy.keyspace("other").unwrap()));
            assert!(numbers.0 == numbers.1 && numbers.0 >= at_least, "{numbers:?} {at_least}");
        }
        stop.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
}

/// Goal: a crash anywhere leaves the complete copy or none that opens, never damages the store, and
/// the next attempt works.
/// Method: a crash at every operation of a checkpoint.
#[test]
fn crashes() {
    let marks = std::cell::RefCell::new(Vec::new());
    let images = crash_sweep(
        FaultOptions::seeded(9),
        2,
        |machine| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let db = open(&fs);
            fill(&db, 0..60, 1);
            db.flush().unwrap();
            fill(&db, 60..80, 1);
            db.sync().unwrap();
            marks.borrow_mut().push(machine.operation_count());
            db.checkpoint("/copy").unwrap();
            marks.borrow_mut().push(machine.operation_count());
        },
        |point, image, after| {
            let fs: Arc<dyn Fs> = Arc::new(after);
            let passed = marks.borrow().iter().filter(|&&at| at <= point.operation()).count();
            if passed == 0 {
                return;
            }
            let context = format!("operation {}, {image:?}", point.operation());
            let is_there = fs.exists(Path::new("/copy")).unwrap();
            assert!(is_there || passed < 2, "{context}");
            let half = Db::builder("/copy.tmp").fs(Arc::clone(&fs)).create_if_missing(false).open();
            // If the temporary directory opens, it is complete and only the rename is missing.
            if let Ok(whole) = half {
                assert!(pairs(&whole) == expected(0..80, 1), "{context}");
                drop(whole);
                for path in fs.read_dir(Path::new("/copy.tmp")).unwrap() {
                    fs.remove(&path).unwrap();
                }
            }
            let db = open(&fs);
            assert!(pairs(&db) == expected(0..80, 1), "{context}");
            if !is_there {
                db.checkpoint("/copy").unwrap();
            }
            assert!(pairs(&open_at(&fs, "/copy")) == expected(0..80, 1), "{context}");
        },
    );
    assert!(images > 50, "{images}");
}

/// Goal: on a real disk the tables are hard links, which stay when the store is removed.
#[test]
fn links_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let (store, copy) = (dir.path().join("store"), dir.path().join("copy"));
    let db = Db::builder(&store).default_keyspace(small()).open().unwrap();
    fill(&db, 0..500, 1);
    db.compact_range(..).unwrap();
    fill(&db, 500..510, 1);
    db.checkpoint(&copy).unwrap();
    let tables = files(&fs, &store.to_string_lossy(), ".table");
    assert!(tables.len() > 1);
    for table in &tables {
        let other = copy.join(table.file_name().unwrap());
        assert_eq!(fs.metadata(table).unwrap().id, fs.metadata(&other).unwrap().id);
    }
    drop(db);
    for path in fs.read_dir(&store).unwrap() {
        fs.remove(&path).unwrap();
    }
    let copy = Db::builder(&copy).default_keyspace(small()).open().unwrap();
    assert!(pairs(&copy) == expected(0..510, 1));
}

/// Goal: blob files are copied along with the tables that refer to them.
/// Method: a store with large values, some garbage collected; then a checkpoint, a backup, a reader
/// while the writer collects more, and a verification of each.
#[test]
fn blob_files() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = KeyspaceOptions { blob_bytes_min: Some(100), ..small() };
    let builder = |path: &str| {
        let background = Background::Inline;
        Db::builder(path).fs(Arc::clone(&fs)).background(background).default_keyspace(options.clone())
    };
    let db = builder(STORE).open().unwrap();
    let large = |number: u32, round: u32| format!("{number} of {round} ").repeat(40).into_bytes();
    let write = |numbers: std::ops::Range<u32>, round| {
        numbers.for_each(|number| db.put(key(number), large(number, round)).unwrap());
    };
    write(0..200, 1);
    write(0..120, 2);
    db.compact_range(..).unwrap();
    write(0..10, 3);
    assert!(!files(&fs, STORE, ".blob").is_empty());
    let all = pairs(&db);
    let mut reader = builder(STORE).read_only(true).open().unwrap();
    db.checkpoint("/copy").unwrap();
    let backups = crate::Backups::open_in(&fs, "/backups").unwrap();
    backups.create(&db).unwrap();
    backups.restore(None, "/restored").unwrap();
    write(0..200, 4);
    db.compact_range(..).unwrap();
    assert!(pairs(&reader) == all);
    reader.refresh().unwrap();
    assert!(pairs(&reader) == pairs(&db));
    for path in ["/copy", "/restored"] {
        let copy = builder(path).open().unwrap();
        assert!(pairs(&copy) == all, "{path}");
        let report = copy.verify().unwrap();
        assert!(report.is_sound() && report.blobs > 0, "{path}: {report}");
    }
    assert!(backups.verify().unwrap().is_empty());
}

/// Goal: entries expire in a copy as they do in the store.
/// Method: entries in a memtable; a clock that the test moves, then an idle copy.
#[test]
fn entries_expire_in_a_copy() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
    let open = |path: &str| {
        let options = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..small() };
        let builder = Db::builder(path).fs(Arc::clone(&fs)).clock(Arc::clone(&clock) as _).seed(8);
        builder.background(Background::Inline).default_keyspace(options).open().unwrap()
    };
    let db = open(STORE);
    fill(&db, 0..100, 1);
    db.checkpoint("/copy").unwrap();
    let copy = open("/copy");
    assert_eq!((pairs(&copy).len(), entries(&copy)), (100, 100));
    clock.advance(Duration::from_secs(3700));
    copy.wait_idle().unwrap();
    assert_eq!(entries(&copy), 0, "{}", copy.stats());
}
