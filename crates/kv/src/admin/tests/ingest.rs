use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::fault::{Fault, FaultOptions, crash_sweep, fault_sweep};
use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, MemFs, Rng, SeededRng, StdFs};

use super::hook_fs::Hooks;
use super::*;
use crate::batch::DEFAULT;
use crate::strategy::UniversalOptions;
use crate::{Durability, IngestOptions, Snapshot, TableBuilder};

/// The pairs of a store.
type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

const COPY: IngestOptions = IngestOptions { move_files: false };
const MOVE: IngestOptions = IngestOptions { move_files: true };

/// Builds a table of the keys `numbers` with the values of a round. With `deletes`, every fifth key
/// is deleted instead.
fn build(fs: &Arc<dyn Fs>, path: &str, numbers: std::ops::Range<u32>, round: u32, deletes: bool) {
    let mut table = TableBuilder::create_in(fs, path, &small()).unwrap();
    for number in numbers {
        if deletes && number % 5 == 0 {
            table.delete(key(number)).unwrap();
        } else {
            table.put(key(number), value(number, round)).unwrap();
        }
    }
    table.finish().unwrap();
}

/// Returns the number of tables per level.
fn levels(db: &Db) -> Vec<usize> {
    db.stats().keyspaces[0].levels.iter().map(|level| level.tables).collect()
}

/// Goal: ingested entries, including deletions, are newer than memtables and tables written before
/// and older than later writes; earlier snapshots and cursors do not see them; a reopened store
/// does.
/// Method: rounds of writes, ingests and more writes on one range.
#[test]
fn between_older_and_newer() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..200, 1);
    db.compact_range(..).unwrap();
    fill(&db, 50..150, 2);
    let before: Snapshot = db.snapshot();
    let mut cursor = db.cursor().unwrap();
    build(&fs, "/t", 100..250, 3, true);
    db.ingest(&["/t"], &COPY).unwrap();
    assert!(fs.exists(Path::new("/t")).unwrap());
    db.put(key(110), value(110, 4)).unwrap();

    let mut old = expected(0..50, 1);
    old.extend(expected(50..150, 2));
    old.extend(expected(150..200, 1));
    let read: Pairs = db.range_at(.., &before).map(Result::unwrap).collect();
    assert_eq!(read, old);
    assert_eq!(db.get_at(key(120), &before).unwrap().as_deref(), Some(&value(120, 2)[..]));
    assert_eq!(db.get_at(key(240), &before).unwrap(), None);
    cursor.seek(key(249)).unwrap();
    assert!(!cursor.valid());

    let mut new = expected(0..50, 1);
    new.extend(expected(50..100, 2));
    for number in 100..250u32 {
        match number {
            110 => new.push((key(110), value(110, 4))),
            number if number % 5 == 0 => {}
            number => new.push((key(number), value(number, 3))),
        }
    }
    assert_eq!(pairs(&db), new);
    db.compact_range(..).unwrap();
    assert_eq!(pairs(&db), new, "after a compaction");
    assert_eq!(db.range_at(.., &before).map(Result::unwrap).collect::<Pairs>(), old);
    drop((before, cursor, db));
    let db = open(&fs);
    assert_eq!(pairs(&db), new, "after reopening");
    db.compact_range(..).unwrap();
    assert_eq!(pairs(&db), new);
}

/// Goal: ingested entries are newer than a range deletion in the memtable, which has no entry in
/// their range that would show the overlap.
/// Method: a range deletion alone in the memtable, over older tables and over nothing; ranges that
/// only touch the ingested table's.
#[test]
fn over_a_range_deletion_in_the_memtable() {
    for has_older in [true, false] {
        for deleted in [0..100, 15..16, 0..11, 19..40] {
            let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
            let db = open(&fs);
            if has_older {
                fill(&db, 10..20, 1);
                db.compact_range(..).unwrap();
            }
            db.delete_range(key(deleted.start), key(deleted.end)).unwrap();
            build(&fs, "/t", 10..20, 2, false);
            db.ingest(&["/t"], &COPY).unwrap();
            assert_eq!(pairs(&db), expected(10..20, 2), "{deleted:?}");
            for number in 10..20 {
                assert_eq!(
                    db.get(key(number)).unwrap().as_deref(),
                    Some(&value(number, 2)[..]),
                    "{deleted:?}"
                );
            }
            drop(db);
            assert_eq!(pairs(&open(&fs)), expected(10..20, 2), "{deleted:?}, reopened");
        }
    }
}

/// Goal: a bulk load goes to the last level and is not compacted; overlapping tables stay above.
/// Method: loads into an empty store, beside the data, over it.
#[test]
fn as_deep_as_it_can() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    build(&fs, "/a", 0..100, 1, false);
    build(&fs, "/c", 200..300, 1, false);
    db.ingest(&["/c", "/a"], &MOVE).unwrap();
    assert!(!fs.exists(Path::new("/a")).unwrap() && !fs.exists(Path::new("/c")).unwrap());
    assert_eq!(levels(&db), [0, 0, 0, 2]);
    build(&fs, "/b", 100..200, 1, false);
    fill(&db, 300..310, 1);
    db.ingest(&["/b"], &MOVE).unwrap();
    assert_eq!(levels(&db)[3], 3, "between the two");
    build(&fs, "/d", 150..160, 2, false);
    db.ingest(&["/d"], &MOVE).unwrap();
    let mut all = expected(0..150, 1);
    all.extend(expected(150..160, 2));
    all.extend(expected(160..310, 1));
    assert_eq!(pairs(&db), all);
    assert_eq!(db.stats().compactions.0, 0);
}

/// Goal: a file that is not a table from a builder is refused and leaves nothing behind.
/// Method: a table of the store, a cut and a flipped file, two that overlap, one that does not
/// exist; then the directory is as before.
#[test]
fn refused() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..100, 1);
    db.flush().unwrap();
    let own = files(&fs, STORE, ".table");
    build(&fs, "/a", 0..100, 2, false);
    build(&fs, "/b", 99..120, 2, false);
    let mut bytes = contents(&fs, Path::new("/a"));
    write_file(&fs, Path::new("/cut"), &bytes[..bytes.len() - 1]);
    bytes[100] ^= 4;
    write_file(&fs, Path::new("/flipped"), &bytes);
    let own_path = own[0].to_string_lossy().into_owned();
    let kinds = [
        (vec![own_path.as_str()], ErrorKind::Invalid),
        (vec!["/a", "/b"], ErrorKind::Invalid),
        (vec!["/b", "/cut"], ErrorKind::Corruption),
        (vec!["/flipped"], ErrorKind::Corruption),
        (vec!["/nothing"], ErrorKind::NotFound),
    ];
    for (paths, kind) in kinds {
        assert_eq!(db.ingest(&paths, &MOVE).unwrap_err().kind(), kind, "{paths:?}");
    }
    db.ingest::<&str>(&[], &COPY).unwrap();
    assert_eq!(files(&fs, STORE, ".table"), own);
    assert_eq!(pairs(&db), expected(0..100, 1));

    let mut table = db.table_builder("/order").unwrap();
    table.put("b", "1").unwrap();
    for key in ["a", "b"] {
        assert_eq!(table.put(key, "2").unwrap_err().kind(), ErrorKind::Invalid, "{key}");
    }
    drop(table);
    assert!(!fs.exists(Path::new("/order")).unwrap(), "unfinished files go");
    assert_eq!(db.table_builder("/none").unwrap().finish().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(db.table_builder("/a").unwrap_err().kind(), ErrorKind::Conflict);
}

/// Goal: a store's own tables cannot be ingested again: old values would become the newest, and a
/// move would take the file away from the store.
/// Method: tables of the last level, whose sequence numbers are 0, and one that was ingested, by
/// their names and as copies; the store is unchanged, also after it is reopened.
#[test]
fn own_tables() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = open(&fs);
    fill(&db, 0..100, 1);
    db.compact_range(..).unwrap();
    let own = files(&fs, STORE, ".table");
    build(&fs, "/t", 200..210, 1, false);
    db.ingest(&["/t"], &MOVE).unwrap();
    let ingested = files(&fs, STORE, ".table").pop().unwrap();
    assert!(!own.contains(&ingested));
    fill(&db, 0..100, 2);
    let all = pairs(&db);
    write_file(&fs, Path::new("/copy"), &contents(&fs, &own[0]));
    for path in [own[0].as_path(), &ingested, Path::new("/copy")] {
        for options in [MOVE, COPY] {
            let refused = db.ingest(&[path], &options).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{}: {refused}", path.display());
        }
    }
    assert!(pairs(&db) == all);
    drop(db);
    assert!(pairs(&open(&fs)) == all);
}

/// Goal: ingests, interleaved with writes, range deletions, flushes and compactions, behave like
/// batches, and snapshots do not change.
/// Method: random steps against a map, over several seeds and strategies.
#[test]
fn against_a_map() {
    for seed in 0..9u64 {
        let mut rng = SeededRng::new(seed);
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut keyspace = small();
        keyspace.memtable_bytes = 4096;
        if seed % 3 == 1 {
            let universal = crate::strategy::UniversalOptions {
                table_bytes: 2048,
                runs: 3,
                levels: 4,
                ..Default::default()
            };
            keyspace.compaction = StrategyOptions::Universal(universal);
        }
        if seed % 3 == 2 {
            let lazy = crate::strategy::LazyOptions {
                table_bytes: 2048,
                flush_bytes: 2048,
                size_ratio: 2,
                levels: 4,
                ..Default::default()
            };
            keyspace.compaction = StrategyOptions::LazyLeveled(lazy);
        }
        let mut db = builder(&fs).default_keyspace(keyspace.clone()).open().unwrap();
        let mut model = BTreeMap::new();
        let mut snapshots: Vec<(Snapshot, Contents)> = Vec::new();
        for round in 0..250u32 {
            let from = rng.below(300) as u32;
            match rng.below(20) {
                0..=9 => {
                    for number in from..from + rng.below(20) as u32 {
                        db.put(key(number), value(number, round)).unwrap();
                        model.insert(key(number), value(number, round));
                    }
                }
                10 => {
                    db.delete_range(key(from), key(from + 20)).unwrap();
                    model.retain(|found: &Vec<u8>, _| *found < key(from) || *found >= key(from + 20));
                }
                11 => db.flush().unwrap(),
                12 => db.compact_range(key(from)..key(from + 50)).unwrap(),
                13 => snapshots.push((db.snapshot(), model.clone())),
                14 => _ = snapshots.pop(),
                15 if rng.chance(0.2) => {
                    snapshots.clear();
                    drop(db);
                    db = builder(&fs).default_keyspace(keyspace.clone()).open().unwrap();
                }
                _ => {
                    let width = 1 + rng.below(30) as u32;
                    let deletes = rng.chance(0.5);
                    build(&fs, "/one", from..from + width, round, deletes);
                    build(&fs, "/two", from + width..from + 2 * width, round, deletes);
                    db.ingest(&["/one", "/two"], &MOVE).unwrap();
                    for number in from..from + 2 * width {
                        match deletes && number % 5 == 0 {
                            true => _ = model.remove(&key(number)),
                            false => _ = model.insert(key(number), value(number, round)),
                        }
                    }
                }
            }
            let number = rng.below(350) as u32;
            let found = db.get(key(number)).unwrap();
            assert_eq!(
                found.as_deref(),
                model.get(&key(number)).map(Vec::as_slice),
                "seed {seed} round {round}"
            );
            if round % 60 == 59 {
                let report = db.verify().unwrap();
                assert!(report.is_sound(), "seed {seed} round {round}: {report}");
            }
            if round % 40 == 39 {
                assert!(pairs(&db).into_iter().eq(model.clone()), "seed {seed} round {round}");
                for (snapshot, model) in &snapshots {
                    let found = db.range_at(.., snapshot).map(Result::unwrap);
                    assert!(found.eq(model.clone()), "seed {seed} round {round}, snapshot");
                }
            }
        }
    }
}

/// Goal: after a crash anywhere, either all or none of the files of an ingest are in the store, and
/// no synced write is lost.
/// Method: a crash at every operation of writes, an ingest of two tables over them and one more
/// write.
#[test]
fn crashes() {
    for options in [COPY, MOVE] {
        let marks = std::cell::RefCell::new(Vec::new());
        let images = crash_sweep(
            FaultOptions::seeded(5),
            2,
            |machine| {
                let fs: Arc<dyn Fs> = Arc::new(machine.clone());
                let mark = || marks.borrow_mut().push(machine.operation_count());
                let db = open(&fs);
                fill(&db, 0..20, 1);
                db.sync().unwrap();
                mark();
                build(&fs, "/one", 10..30, 2, false);
                build(&fs, "/two", 30..50, 2, false);
                db.ingest(&["/one", "/two"], &options).unwrap();
                mark();
                db.put_with(key(15), value(15, 3), Durability::Sync).unwrap();
                mark();
            },
            |point, image, after| {
                let fs: Arc<dyn Fs> = Arc::new(after);
                let passed = marks.borrow().iter().filter(|&&at| at <= point.operation()).count();
                if passed == 0 {
                    return;
                }
                let db = open(&fs);
                let found = pairs(&db);
                let mut ingested = expected(0..10, 1);
                ingested.extend(expected(10..50, 2));
                let mut last = ingested.clone();
                last[15].1 = value(15, 3);
                let states = [expected(0..20, 1), ingested, last];
                let which = states.iter().position(|state| *state == found);
                let context = format!("{options:?}, operation {}, {image:?}: {which:?}", point.operation());
                assert!(which.is_some_and(|which| which + 1 >= passed), "{context}");
            },
        );
        assert!(images > 100, "{images}");
    }
}

/// Goal: a table's place depends on the levels at the moment of the choice, even when a compaction
/// has just ended.
/// Method: three runs with keys on both sides of the ingested table. Just before its place is
/// chosen, while a concurrent write is flushed, a compaction merges the three runs into one table.
#[test]
fn beside_a_compaction_that_ends() {
    let memory: Arc<dyn Fs> = Arc::new(MemFs::new());
    let hooks = Hooks::default();
    let fs = hooks.over(&memory);
    let universal =
        UniversalOptions { runs: 2, size_ratio_percent: 1000, levels: 4, ..UniversalOptions::default() };
    let options = KeyspaceOptions { compaction: StrategyOptions::Universal(universal), ..small() };
    let db = builder(&fs).default_keyspace(options).open().unwrap();
    let (inner, keyspace) = (Arc::clone(&db.core.inner), db.core.inner.keyspace(DEFAULT).unwrap());
    let pause = inner.background.pause(keyspace.id);
    for numbers in [[0, 20], [60, 80]] {
        numbers.iter().for_each(|&number| db.put(key(number), value(number, 1)).unwrap());
        db.flush().unwrap();
    }
    db.put(key(40), value(40, 1)).unwrap();
    build(&fs, "/one", 40..41, 3, false);
    build(&fs, "/two", 50..51, 3, false);
    // The hooks fire when the tables are copied, when the memtable is flushed, and when the writes
    // made during that flush are flushed.
    hooks.before_open(".table", || {});
    hooks.before_open(".table", || {});
    let writer = db.clone();
    hooks.before_open(".table", move || writer.put(key(40), value(40, 2)).unwrap());
    let (inner, keyspace) = (Arc::clone(&inner), Arc::clone(&keyspace));
    hooks.before_open(".table", move || {
        let claimed = inner.claim_compaction(&keyspace).unwrap();
        inner.compact(&keyspace, claimed).unwrap();
    });
    db.ingest(&["/one", "/two"], &COPY).unwrap();
    assert_eq!(hooks.left(), 0);
    drop(pause);
    db.put(key(90), value(90, 4)).unwrap();
    db.wait_idle().unwrap();
    let all = [(0, 1), (20, 1), (40, 3), (50, 3), (60, 1), (80, 1), (90, 4)];
    assert_eq!(pairs(&db), all.map(|(number, round)| (key(number), value(number, round))));
    assert!(db.verify().unwrap().is_sound());
}

/// Goal: a failed ingest changes nothing visible and returns an error; if only the disk was full,
/// the store keeps working.
/// Method: every operation of the ingest fails once, with an I/O error and with a full disk; then
/// read and reopen.
#[test]
fn failures() {
    for fault in [Fault::Io, Fault::Full] {
        let struck = fault_sweep(&FaultOptions::seeded(6), fault, false, |machine, index| {
            let fs: Arc<dyn Fs> = Arc::new(machine.clone());
            let old = expected(0..20, 1);
            let mut new = expected(0..10, 1);
            new.extend(expected(10..30, 2));
            let run = || -> crate::Result<bool> {
                let db = builder(&fs).open()?;
                for (key, value) in &old {
                    db.put_with(key, value, Durability::Sync)?;
                }
                let mut table = TableBuilder::create_in(&fs, "/one", &small())?;
                for number in 10..30 {
                    table.put(key(number), value(number, 2))?;
                }
                table.finish()?;
                let done = db.ingest(&["/one"], &MOVE);
                let found = db.iter().collect::<crate::Result<Pairs>>();
                if let Ok(found) = found {
                    let expected = if done.is_ok() { &new } else { &old };
                    assert!(found == *expected, "{index}: {} entries, {done:?}", found.len());
                }
                done.map(|()| true)
            };
            let done = run();
            if let Ok(db) = builder(&fs).open() {
                // The one fault may strike here.
                let read = || db.iter().collect::<crate::Result<Pairs>>();
                let found = read().or_else(|_| read()).unwrap();
                let is_whole = found == new || (done.is_err() && (found == old || found.len() < old.len()));
                assert!(is_whole, "{index}: {done:?} {}", found.len());
            }
        });
        assert!(struck > 20, "{struck}");
    }
}

/// Goal: ingested entries expire like others, and a keyspace refuses tables whose values it would
/// misread.
/// Method: a keyspace with a time to live and one without, tables of both, and a clock.
#[test]
fn expiring_keyspaces() {
    use std::time::Duration;
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let clock = Arc::new(cairn_vfs::ManualClock::new(Duration::from_secs(1000)));
    let db = builder(&fs).clock(clock.clone()).open().unwrap();
    let ttl = KeyspaceOptions { ttl: Some(Duration::from_secs(60)), ..small() };
    let expiring = db.create_keyspace("expiring", ttl).unwrap();
    for (path, keyspace) in [("/expires", &expiring), ("/stays", &*db)] {
        let mut table = keyspace.table_builder(path).unwrap();
        table.put("a", "1").unwrap();
        table.finish().unwrap();
    }
    assert_eq!(db.ingest(&["/expires"], &COPY).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(expiring.ingest(&["/stays"], &COPY).unwrap_err().kind(), ErrorKind::Invalid);
    db.ingest(&["/stays"], &COPY).unwrap();
    expiring.ingest(&["/expires"], &COPY).unwrap();
    clock.advance(Duration::from_secs(59));
    assert_eq!(expiring.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    clock.advance(Duration::from_secs(1));
    assert_eq!(expiring.get("a").unwrap(), None);
    assert!(pairs(&expiring).is_empty() && pairs(&db).len() == 1);
}

/// Goal: a full disk fails an ingest and nothing else; once there is space again, the ingest works.
/// Method: a quota that is reached during the ingest.
#[test]
fn full_disk() {
    let machine = cairn_vfs::FaultFs::new(FaultOptions::seeded(8));
    let fs: Arc<dyn Fs> = Arc::new(machine.clone());
    let db = open(&fs);
    fill(&db, 0..20, 1);
    build(&fs, "/one", 10..400, 2, false);
    let tables = files(&fs, STORE, ".table");
    machine.set_quota(Some(0));
    let error = db.ingest(&["/one"], &COPY).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(pairs(&db) == expected(0..20, 1));
    machine.set_quota(None);
    assert_eq!(files(&fs, STORE, ".table"), tables);
    db.ingest(&["/one"], &COPY).unwrap();
    let mut all = expected(0..10, 1);
    all.extend(expected(10..400, 2));
    assert!(pairs(&db) == all);
}

/// Goal: on a real disk a moved file is the same inode, and a copied one is not.
/// Method: compare inodes.
#[test]
fn links_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let db = Db::builder(dir.path().join("store")).default_keyspace(small()).open().unwrap();
    for (options, same) in [(COPY, false), (MOVE, true)] {
        let path = dir.path().join("t");
        let name = path.to_string_lossy().into_owned();
        build(&fs, &name, 0..50, 1, false);
        let id = fs.metadata(&path).unwrap().id;
        db.ingest(&[&path], &options).unwrap();
        let tables = files(&fs, &dir.path().join("store").to_string_lossy(), ".table");
        assert_eq!(tables.iter().any(|table| fs.metadata(table).unwrap().id == id), same);
        assert_eq!(fs.exists(&path).unwrap(), !same);
        if !same {
            fs.remove(&path).unwrap();
        }
        assert_eq!(pairs(&db), expected(0..50, 1));
    }
}

/// Goal: while ingests run beside writers of the same keys, readers see each table completely or
/// not at all, and nothing hangs.
/// Method: a writer cycles over the keys, each ingest writes one round number to all keys of
/// another range in one table, and a reader reads all of them at once.
#[test]
fn beside_writers() {
    use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = builder(&fs).background(Background::Threads(2)).open().unwrap();
    let stop = AtomicBool::new(false);
    cairn_vfs::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::SeqCst) {
                round += 1;
                fill(&db, 0..200, round);
            }
        });
        let reader = scope.spawn(|| {
            let keys: Vec<_> = (1000..1010).map(key).collect();
            while !stop.load(Ordering::SeqCst) {
                let found = db.multi_get(&keys).unwrap();
                let tail = |at: usize| {
                    let text = String::from_utf8(found[at].as_deref().unwrap_or_default().to_vec()).unwrap();
                    text.split(" of ").nth(1).and_then(|rest| rest.split(' ').nth(1)).unwrap_or("").to_owned()
                };
                let rounds: Vec<String> = (0..10).map(tail).collect();
                assert!(rounds.iter().all(|round| *round == rounds[0]), "{rounds:?}");
            }
        });
        for round in 0..30 {
            let mut table = TableBuilder::create_in(&fs, "/t", &small()).unwrap();
            table.put(key(100), value(100, round)).unwrap();
            for number in 1000..1010 {
                table.put(key(number), value(number, round)).unwrap();
            }
            table.finish().unwrap();
            db.ingest(&["/t"], &MOVE).unwrap();
            assert_eq!(db.get(key(1005)).unwrap().as_deref(), Some(&value(1005, round)[..]));
        }
        stop.store(true, Ordering::SeqCst);
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

/// Goal: a memtable that an ingestion replaces no longer counts towards the memory of all
/// memtables. Method: a store with a budget; an ingestion beside the memtable's keys and one among
/// them.
#[test]
fn a_replaced_memtable_leaves_the_budget() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let options = crate::Options {
        background: crate::Background::Inline,
        memtable_bytes_max: Some(1 << 20),
        ..crate::Options::default()
    };
    let db = crate::Db::builder(STORE).fs(Arc::clone(&fs)).options(options).open().unwrap();
    let budget = db.core.inner.budget.as_ref().unwrap();
    build(&fs, "/t", 100..110, 1, false);
    for number in [500, 105] {
        db.put(key(number), value(number, 2)).unwrap();
        assert_eq!(budget.largest(), Some(DEFAULT), "the memtable with key {number}");
        db.ingest(&["/t"], &COPY).unwrap();
        assert_eq!(budget.largest(), None, "the fresh memtable");
    }
}
