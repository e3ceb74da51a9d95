//! Tests of disks that are full, have space again, or are emptied by the store itself.

use cairn_kv::{Background, Error, KeyspaceOptions};
use cairn_vfs::{CrashImage, FaultOptions, Rng, SeededRng};

use super::workload::{Mix, Step};
use super::*;

/// Practically unlimited space, on a disk that tracks allocations.
const ENDLESS: Option<u64> = Some(1 << 40);

/// Fills the disk and lifts the limit, repeatedly. Returns how often the store reported the full
/// disk. It must never have to be reopened to continue.
fn fill_and_lift(shape: &Shape, rounds: u64) -> u64 {
    let mut rng = SeededRng::new(shape.seed).fork("quota");
    let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut run =
        Run::new(&fs, shape, State::default(), Mix::Logged, SeededRng::new(shape.seed).fork("full"));
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    let mut told = 0;
    for round in 0..rounds {
        let context = format!("shape {}, round {round}", shape.seed);
        fs.set_quota(Some(fs.used_bytes() + rng.below(16) * 4096));
        for _ in 0..120 {
            let before = run.history.commits.len();
            let Err(error) = run.step() else { continue };
            assert!(error.is_full(), "{context}: {error}");
            told += 1;
            if run.db.is_none() {
                // When even the reserve is used up, a store cannot be opened on a full disk; the
                // attempt changes nothing in it.
                fs.set_quota(ENDLESS);
                run.open().unwrap();
            }
            // The write is there completely or not at all.
            let found = scan(run.db()).unwrap();
            if found != run.model {
                let commit = run.history.commits[before].clone();
                commit.changes.iter().for_each(|(keyspace, change)| run.model[*keyspace].apply(change));
                assert!(found == run.model, "{context}");
            } else if run.history.commits.len() > before {
                run.history.forget_last();
            }
            run.assert_reads(&context);
            break;
        }
        fs.set_quota(ENDLESS);
        // Without reopening the store.
        let write = Step::Write(
            vec![(0, Change::Put(b"room".to_vec(), round.to_be_bytes().to_vec()))],
            cairn_kv::Durability::Sync,
        );
        run.perform(write).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.perform(Step::Flush(0)).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.perform(Step::Flush(1)).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.db().wait_idle().unwrap();
        if shape.background == Background::Inline {
            assert_no_leaks(&fs, run.db(), &context);
        }
        if round % 8 == 0 {
            let accepted = run.history.accepted(fs.operation_count() + 1, None);
            for image in [CrashImage::None, CrashImage::Random(round)] {
                let disk = fs.crash_point().image(image);
                crash::check(
                    &disk,
                    &Shape { background: Background::Inline, ..shape.clone() },
                    &run.history,
                    &accepted,
                    5,
                    &context,
                );
            }
            run.perform(Step::Reopen).unwrap();
            let model = run.model.clone();
            run = run.begin_again(model);
        }
    }
    told
}

/// Goal: a full disk loses nothing acknowledged and leaves no garbage, and the store continues by
/// itself when there is space.
/// Method: quotas of a few pages above the current usage, filled by the usual steps, then lifted.
#[test]
fn full_disks_that_lift() {
    let own = seed(8);
    let mut told = 0;
    for round in 0..4 {
        told += fill_and_lift(&Shape::new(own.wrapping_add(round)), rounds(50, 1250));
    }
    println!("full disks: 200 rounds or more, told {told} times");
    assert!(told > 120, "{told}");
}

/// Goal: the same holds with background threads, where a thread encounters the full disk: nothing
/// waits forever, and writers get the error.
/// Method: as above; the scheduler determines the order of events, the checks are the same.
#[test]
fn full_disks_with_threads() {
    let shape = Shape { background: Background::Threads(2), ..Shape::new(seed(9)) };
    let told = fill_and_lift(&shape, rounds(25, 1000));
    println!("full disks with threads: told {told} times");
    assert!(told > 8, "{told}");
}

/// Goal: operations that would have to wait for space return an error instead: `flush`,
/// `compact_range`, opening.
/// Method: a disk without a free page.
#[test]
fn nobody_waits_for_room() {
    let shape = Shape::new(seed(10));
    let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut run = Run::new(&fs, &shape, State::default(), Mix::Logged, SeededRng::new(shape.seed));
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    run.steps(150).unwrap();
    run.perform(Step::Write(
        vec![(0, Change::Put(b"new".to_vec(), b"value".to_vec()))],
        cairn_kv::Durability::Buffered,
    ))
    .unwrap();
    // Less than the current usage, so that not even the store's reserve is of any use.
    fs.set_quota(Some(0));
    for _ in 0..3 {
        let errors: [Error; 2] =
            [run.keyspace(0).flush().unwrap_err(), run.keyspace(0).compact_range(..).unwrap_err()];
        for error in errors {
            assert!(error.is_full(), "{error}");
        }
        run.assert_reads("on a full disk");
    }
    let before = names(&fs);
    run.close();
    for _ in 0..3 {
        let error = open(&fs, &shape).unwrap_err();
        assert!(error.is_full(), "{error}");
    }
    fs.set_quota(ENDLESS);
    run.open().unwrap();
    run.assert_reads("after the disk was full");
    run.keyspace(0).flush().unwrap();
    assert_no_leaks(&fs, run.db(), "after the disk was full");
    assert!(names(&fs).len() <= before.len() + 6, "{before:?} {:?}", names(&fs));
}

/// Goal: a store that has filled its disk can still be opened, read, verified and emptied. Only
/// operations that add data fail, with the full disk's error, and they work again when there is
/// space.
/// Method: a quota that is filled; the store is reopened several times and emptied by single
/// deletions, a batch of them, a range and a keyspace, repeatedly.
#[test]
fn a_full_store_can_be_emptied() {
    for background in [Background::Inline, Background::Threads(2)] {
        let fs = FaultFs::new(FaultOptions::seeded(seed(11)));
        let arc: Arc<dyn Fs> = Arc::new(fs.clone());
        fs.set_quota(Some(6 << 20));
        let keyspace = KeyspaceOptions {
            memtable_bytes: 128 << 10,
            compression: vec![cairn_kv::Compression::None],
            ..KeyspaceOptions::default()
        };
        let open = |read_only: bool| {
            let options = cairn_kv::Options { background, read_only, ..cairn_kv::Options::default() };
            let builder = Db::builder(DIR).fs(Arc::clone(&arc)).seed(1).options(options);
            builder.default_keyspace(keyspace.clone()).keyspace("other", keyspace.clone()).open()
        };
        let key = |number: u32| number.to_be_bytes();
        let count = |db: &Db| {
            db.iter().filter(|pair| pair.as_ref().is_ok_and(|(_, value)| value.len() <= 1000)).count()
        };
        let mut db = open(false).unwrap();
        for round in 0..4 {
            let context = format!("{background:?}, round {round}");
            let other = db.keyspace("other").unwrap();
            (0..100).for_each(|number| other.put(key(number), [7; 1000]).unwrap());
            drop(other);
            let (mut written, mut before) = (0, u32::MAX);
            // Closing releases the log's space, so several openings are needed until nothing more
            // fits.
            for _ in 0..40 {
                let mut refused = 0;
                while refused < 50 {
                    match db.put(key(written), [round as u8; 1000]) {
                        Ok(()) => (written, refused) = (written + 1, 0),
                        Err(error) => {
                            assert!(error.is_full(), "{context}: {error}");
                            refused += 1;
                        }
                    }
                }
                if std::mem::replace(&mut before, written) == written {
                    break;
                }
                drop(db);
                db = open(false).unwrap_or_else(|error| panic!("{context}, filling: {error}"));
            }
            assert!(written > 1000 && before == written, "{context}: {written}");
            for opening in 0..3 {
                drop(db);
                db = open(false).unwrap_or_else(|error| panic!("{context}, opening {opening}: {error}"));
                assert_eq!(count(&db) as u32, written, "{context}");
                assert!(db.verify().unwrap().is_sound());
                assert!(db.put(key(0), [1; 1000]).unwrap_err().is_full(), "{context}");
                assert!(db.put("new", [1; 1000]).unwrap_err().is_full(), "{context}");
                assert_eq!(count(&open(true).unwrap()) as u32, written, "{context}");
            }
            (0..5).for_each(|number| db.delete(key(number)).unwrap());
            let mut batch = cairn_kv::WriteBatch::new();
            (5..10).for_each(|number| batch.delete(key(number)).unwrap());
            db.write(&batch).unwrap();
            assert_eq!(count(&db) as u32, written - 10, "{context}");
            db.delete_range(key(20), key(u32::MAX)).unwrap();
            db.compact_range(..).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(count(&db), 10, "{context}");
            db.drop_keyspace("other").unwrap();
            db.put("again", "there is room").unwrap();
            db.delete("again").unwrap();
            db.wait_idle().unwrap();
            drop(db);
            db = open(false).unwrap();
            assert_eq!(count(&db), 10, "{context}");
        }
    }
}
