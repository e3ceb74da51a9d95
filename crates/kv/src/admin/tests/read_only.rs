use std::path::Path;

use cairn_vfs::fault::FaultOptions;
use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, FaultFs, Fs, MemFs, Operation, StdFs};

use super::hook_fs::Hooks;
use super::*;
use crate::{AddU64, IngestOptions, TableBuilder, WriteBatch};

fn open_reader(fs: &Arc<dyn Fs>) -> Db {
    builder(fs).read_only(true).open().unwrap()
}

/// Goal: a reader shows the state at its opening, from tables and log, and after a refresh the
/// current state; snapshots and cursors obtained before keep their state, even after the writer has
/// deleted the files.
/// Method: a writer that compacts everything away in between.
#[test]
fn catches_up() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let writer = open(&fs);
    fill(&writer, 0..300, 1);
    writer.flush().unwrap();
    fill(&writer, 300..310, 1);
    let mut reader = open_reader(&fs);
    let old = reader.clone();
    let mut cursor = reader.cursor().unwrap();
    fill(&writer, 0..310, 2);
    let made = writer.create_keyspace("made", small()).unwrap();
    made.put("a", "b").unwrap();
    writer.compact_range(..).unwrap();
    for db in [&reader, &old] {
        assert!(pairs(db) == expected(0..310, 1));
    }
    reader.refresh().unwrap();
    assert!(pairs(&reader) == expected(0..310, 2));
    assert_eq!(pairs(&reader.keyspace("made").unwrap()).len(), 1);
    cursor.seek_first().unwrap();
    for number in 0..310 {
        assert_eq!((cursor.key(), cursor.value()), (&key(number)[..], &value(number, 1)[..]));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid() && pairs(&old) == expected(0..310, 1));
    writer.drop_keyspace("made").unwrap();
    reader.refresh().unwrap();
    assert!(reader.keyspace("made").is_none());
    let error = writer.clone().refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(reader.put("a", "b").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(reader.flush().unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(reader.create_keyspace("x", small()).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(pairs(&writer) == expected(0..310, 2), "the writer has its files");
}

/// Goal: a refresh opens a keyspace with the caller's options and those stored now, not those
/// stored before.
/// Method: the writer recreates a keyspace with a time to live, and opens another with a merge
/// operator, which is also in the reader's default options.
#[test]
fn keyspaces_that_the_writer_changes() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let with_sum = || KeyspaceOptions { merge_operator: Some(Arc::new(AddU64)), ..small() };
    let writer = open(&fs);
    writer.create_keyspace("users", small()).unwrap();
    writer.create_keyspace("counts", small()).unwrap();
    let mut reader = builder(&fs).default_keyspace(with_sum()).read_only(true).open().unwrap();
    writer.drop_keyspace("users").unwrap();
    let ttl = Some(std::time::Duration::from_secs(60));
    let users = writer.create_keyspace("users", KeyspaceOptions { ttl, ..small() }).unwrap();
    users.put("ada", "1815").unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.keyspace("users").unwrap().get("ada").unwrap().as_deref(), Some(&b"1815"[..]));
    drop((users, writer));

    let writer = builder(&fs).keyspace("counts", with_sum()).open().unwrap();
    let counts = writer.keyspace("counts").unwrap();
    for _ in 0..2 {
        counts.merge("visits", 3u64.to_le_bytes()).unwrap();
    }
    reader.refresh().unwrap();
    let visits = reader.keyspace("counts").unwrap().get("visits").unwrap();
    assert_eq!(visits.as_deref(), Some(&6u64.to_le_bytes()[..]));
}

/// Goal: a reader shows no write without everything the writer did before it, whether the log
/// records it or only the manifest.
/// Method: between a reader's reads of the manifest and of the log, the writer ingests a table,
/// creates a keyspace, or drops one, and then writes to the log.
#[test]
fn writers_between_manifest_and_log() {
    type Work = fn(&Arc<dyn Fs>, &Db);
    let works: [Work; 3] = [
        |fs, writer| {
            let mut table = TableBuilder::create_in(fs, "/outside", &small()).unwrap();
            table.put(key(1), value(1, 1)).unwrap();
            table.finish().unwrap();
            writer.ingest(&["/outside"], &IngestOptions::default()).unwrap();
        },
        |_, writer| {
            let made = writer.create_keyspace("made", small()).unwrap();
            let mut batch = WriteBatch::new();
            for keyspace in [writer.id(), made.id()] {
                batch.add(keyspace, crate::Operation::Put { key: b"both", value: b"" }).unwrap();
            }
            writer.write(&batch).unwrap();
        },
        |_, writer| writer.drop_keyspace("users").unwrap(),
    ];
    let shown = |db: &Db| -> Vec<Pairs> { db.keyspaces().iter().map(pairs).collect() };
    for work in works {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let hooks = Hooks::default();
        let writer = open(&fs);
        writer.create_keyspace("users", small()).unwrap().put("ada", "1815").unwrap();
        // Flushed first, because the work would flush the default keyspace if a segment existed for
        // it alone. The unflushed write then keeps the start of the log where it is, so that a
        // changed start cannot be what reveals the work to the reader.
        writer.put("zeroth", "").unwrap();
        writer.flush().unwrap();
        writer.put("first", "").unwrap();
        let before = shown(&writer);
        let at_work = (Arc::clone(&fs), writer.clone());
        hooks.before_open(".wal", move || {
            work(&at_work.0, &at_work.1);
            at_work.1.put("later", "").unwrap();
        });
        let reader = open_reader(&hooks.over(&fs));
        assert_eq!(hooks.left(), 0);
        let (found, after) = (shown(&reader), shown(&writer));
        assert!(found == before || found == after, "{found:?}, before {before:?}, after {after:?}");
    }
}

/// Goal: a reader writes, removes and locks nothing.
/// Method: count those operations over an open, reads, a refresh and the close.
#[test]
fn touches_nothing() {
    let machine = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(machine.clone());
    let writer = open(&fs);
    fill(&writer, 0..500, 1);
    writer.compact_range(key(0)..key(100)).unwrap();
    use Operation::*;
    let changes = [Write, SetLen, Allocate, SyncData, SyncDir, Rename, Remove, Link, CreateDir, Lock];
    let counts = || changes.map(|operation| machine.operation_count_of(operation));
    let before = counts();
    let mut reader = open_reader(&fs);
    assert_eq!(pairs(&reader).len(), 500);
    assert_eq!(counts(), before);
    fill(&writer, 500..600, 1);
    writer.compact_range(..).unwrap();
    let before = counts();
    reader.refresh().unwrap();
    assert_eq!(pairs(&reader).len(), 600);
    drop(reader);
    assert_eq!(counts(), before);
    let missing = Db::builder("/nothing").fs(Arc::clone(&fs)).read_only(true).open().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(!fs.exists(Path::new("/nothing")).unwrap());
}

/// Goal: a table that is really missing is reported as damage, without retries.
#[test]
fn missing_table() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let writer = open(&fs);
    fill(&writer, 0..50, 1);
    writer.flush().unwrap();
    fs.remove(&files(&fs, STORE, ".table")[0]).unwrap();
    assert_eq!(builder(&fs).read_only(true).open().unwrap_err().kind(), ErrorKind::Corruption);
}

/// Goal: readers that open and refresh beside a busy writer see a state that existed: at least
/// everything returned before, and no partial batch.
/// Method: a writer sets all of ten keys to one number at a time, with memtables and segments so
/// small that files come and go all the time; on a real disk and in memory. It writes a burst per
/// refresh, because no reader keeps up forever with a writer that releases a segment every few
/// milliseconds.
#[test]
fn beside_a_busy_writer() {
    const BURST: u32 = 500;
    use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let disks: [(Arc<dyn Fs>, &Path); 2] =
        [(Arc::new(MemFs::new()), Path::new(STORE)), (Arc::new(StdFs::new()), &store)];
    for (fs, path) in disks {
        let mut keyspace = small();
        keyspace.memtable_bytes = 8192;
        let options =
            Options { background: Background::Threads(2), wal_segment_bytes: 64 << 10, ..Options::default() };
        let builder = || {
            Db::builder(path).fs(Arc::clone(&fs)).options(options.clone()).default_keyspace(keyspace.clone())
        };
        let writer = builder().open().unwrap();
        let (stop, returned, allowed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(1));
        cairn_vfs::thread::scope(|scope| {
            // Stops the writer even when a check fails.
            let end = OnDrop(&stop);
            let thread = scope.spawn(|| {
                for round in 1.. {
                    while allowed.load(Ordering::SeqCst) < round {
                        if stop.load(Ordering::SeqCst) {
                            return;
                        }
                        cairn_vfs::thread::yield_now();
                    }
                    let mut batch = crate::WriteBatch::new();
                    for number in 0..10 {
                        batch.put(key(number), format!("{round} {}", "x".repeat(50))).unwrap();
                    }
                    writer.write(&batch).unwrap();
                    returned.store(round, Ordering::SeqCst);
                }
            });
            let check = |db: &Db, at_least: u32| {
                let rounds: Vec<u32> = pairs(db)
                    .into_iter()
                    .map(|(_, value)| {
                        String::from_utf8(value).unwrap().split(' ').next().unwrap().parse().unwrap()
                    })
                    .collect();
                let is_one = rounds.iter().all(|round| *round == rounds[0]);
                let is_new = rounds.first().copied().unwrap_or(0) >= at_least;
                assert!(is_one && is_new && (rounds.len() == 10 || at_least == 0), "{rounds:?} {at_least}");
            };
            while returned.load(Ordering::SeqCst) == 0 {
                cairn_vfs::thread::yield_now();
            }
            let mut at_least = returned.load(Ordering::SeqCst);
            allowed.fetch_add(BURST, Ordering::SeqCst);
            let mut reader = builder().read_only(true).open().unwrap();
            for _ in 0..40 {
                check(&reader, at_least);
                at_least = returned.load(Ordering::SeqCst);
                allowed.fetch_add(BURST, Ordering::SeqCst);
                match reader.refresh() {
                    Ok(()) => {}
                    Err(error) => {
                        // The writer may be too fast. The reader then keeps its old state, and the
                        // next refresh works.
                        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                        at_least = 0;
                    }
                }
            }
            drop(end);
            thread.join().unwrap();
            reader.refresh().unwrap();
            check(&reader, returned.load(Ordering::SeqCst));
        });
    }
}

/// Sets a flag when dropped.
struct OnDrop<'a>(&'a cairn_vfs::sync::atomic::AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, cairn_vfs::sync::atomic::Ordering::SeqCst);
    }
}
