//! Guarantees of the log: no segment is released that is still needed, a change that was not logged
//! does not count as logged, and commits are atomic.

use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Database, Durability, Isolation, Options, Result, RowBuf, Table, Transaction};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, SeededRng};

use super::transactions::{column, key, on};
use super::{rounds, seed};

const ROWS: i32 = 24;

/// Options with the smallest possible segments, and explicit checkpoints only.
fn options() -> Options {
    let mut options = super::transactions::options();
    options.store.frames = 64;
    options.store.log = cairn_wal::Options::default().segment_bytes(8 << 10).window_bytes(4 << 10);
    options.checkpoint_bytes = u64::MAX;
    options
}

fn open(disk: &FaultFs) -> Result<Database> {
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    let mut rng = SeededRng::new(disk.operation_count()).fork("salt");
    Database::open_seeded(&fs, Path::new("/db"), &options(), &mut rng)
}

fn text(letter: &str, len: usize) -> String {
    letter.repeat(len)
}

/// Creates a table of texts, all of one letter and of a given length.
fn filled(disk: &FaultFs, len: usize) -> (Database, Arc<Table>) {
    let db = open(disk).unwrap();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let def = cairn_table::schema::TableDef {
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: vec![column("id", Type::Int), column("v", Type::Text)],
        primary_key: on(0),
        ..Default::default()
    };
    let table = transaction.create_table(def).unwrap();
    for id in 0..ROWS {
        transaction.insert(&table, &[Value::Int(id), Value::Text(&text("a", len))]).unwrap();
    }
    transaction.commit(Durability::Sync).unwrap();
    db.checkpoint().unwrap();
    (db, table)
}

fn table_of(db: &Database) -> Arc<Table> {
    table_of_view(&db.begin(Isolation::Snapshot).unwrap())
}

fn table_of_view(transaction: &Transaction) -> Arc<Table> {
    Arc::clone(transaction.view().catalog().table("public", "t").unwrap())
}

/// Returns the letters of all rows, in order.
fn letters(db: &Database) -> Result<String> {
    let transaction = db.begin(Isolation::Snapshot)?;
    let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
    let mut row = RowBuf::default();
    let letter = |id| {
        assert!(transaction.view().get(&table, &key(&table, id), &mut row)?);
        let Value::Text(text) = row.row(&table).get(1) else { panic!("row {id}") };
        Ok(text.chars().next().unwrap())
    };
    (0..ROWS).map(letter).collect()
}

fn letter(letter: &str) -> String {
    letter.repeat(ROWS as usize)
}

/// Goal: a change that failed before it was logged, was undone and made again, is undone after a
/// crash like any other. Method: fails every operation of a transaction in turn, once; rolls back
/// to a savepoint, or not, and retries; writes all pages; loses power before the commit.
#[test]
fn retried_change_is_undone_after_crash() {
    let mut failures = 0;
    for fault in [Fault::Full, Fault::Io] {
        for index in 0.. {
            // Every other one; in the long form the seed decides which.
            let with_savepoint = (index + rounds(0, seed())).is_multiple_of(2);
            let disk = FaultFs::new(FaultOptions::seeded(1));
            let (db, table) = filled(&disk, 600);
            let before = disk.operation_count();
            disk.inject(Rule::at(before + index, fault));
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            let mut is_over = false;
            'rows: for id in 0..ROWS {
                for attempt in 0..2 {
                    let savepoint = transaction.savepoint();
                    let row = [Value::Int(id), Value::Text(&text("b", 600))];
                    match transaction.update(&table, &key(&table, id), &row) {
                        Ok(_) => break,
                        // The log or the pool has failed permanently.
                        Err(_) if attempt == 1 => break 'rows,
                        Err(_) => failures += 1,
                    }
                    if with_savepoint && transaction.rollback_to(savepoint).is_err() {
                        is_over = true;
                        break 'rows;
                    }
                }
            }
            let is_last = disk.operation_count() - before <= index;
            if !is_over && db.checkpoint().is_ok() {
                // All changes are on disk now, and none are committed.
                for image in [CrashImage::None, CrashImage::All] {
                    let found = letters(&open(&disk.crash_point().image(image)).unwrap()).unwrap();
                    assert_eq!(found, letter("a"), "{fault:?} at {index}, {image}");
                }
            }
            if is_last {
                break;
            }
        }
    }
    println!("{failures} failures");
    assert!(failures > 20, "{failures}");
}

/// Goal: a commit that is visible, but may be lost in a power loss, is lost as a whole. Method: a
/// transaction over several segments, with all its pages written; a commit that is not synced; a
/// checkpoint with nothing to write; power loss.
#[test]
fn non_durable_commit_is_lost_as_a_whole() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let (db, table) = filled(&disk, 600);
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    for id in 0..ROWS {
        let row = [Value::Int(id), Value::Text(&text("b", 600))];
        assert!(transaction.update(&table, &key(&table, id), &row).unwrap());
    }
    db.checkpoint().unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    let before = disk.operation_count();
    disk.capture_crash_points();
    db.checkpoint().unwrap();
    let after = disk.operation_count();
    let mut found = Vec::new();
    for point in disk.take_crash_points() {
        for (image, crashed) in point.images(20) {
            let context = format!("{image} at {} of {before}..{after}", point.operation());
            let letters = open(&crashed).and_then(|db| letters(&db));
            let letters = letters.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(letters == letter("a") || letters == letter("b"), "{context}: {letters}");
            found.push(letters.starts_with('b'));
        }
    }
    // A checkpoint makes the log durable up to its end.
    assert_eq!((found.first(), found.last()), (Some(&false), Some(&true)));
}

/// The number of long rows in [`failed_commit_is_not_visible`]: they take more pages than there are
/// frames.
const LONG_ROWS: i32 = 6;

fn make_long(db: &Database, table: &Arc<Table>, letter: &str) -> Result<cairn_table::Transaction> {
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    for id in 0..LONG_ROWS {
        let row = [Value::Int(id), Value::Text(&text(letter, 5_000))];
        assert!(transaction.update(table, &key(table, id), &row)?);
    }
    Ok(transaction)
}

/// Checks the result of a commit, and continues. Errors: the failures reported after the commit.
fn after_a_commit(db: &Database, table: &Arc<Table>, context: &str) -> Result<()> {
    let expected = format!("{}{}", text("b", LONG_ROWS as usize), text("a", (ROWS - LONG_ROWS) as usize));
    assert_eq!(letters(db)?, expected, "{context}");
    let mut transaction = db.begin(Isolation::ReadCommitted)?;
    transaction.insert(table, &[Value::Int(ROWS), Value::Text("")])?;
    transaction.commit(Durability::Sync)?;
    let stats = db.stats();
    assert_eq!((stats.ended, stats.versioned_rows), (0, 0), "{context}");
    Ok(())
}

/// Goal: a commit that returns an error has not become visible, and a visible one returns no error;
/// freeing that remains is done later. Method: fails every operation of a commit in turn, once: the
/// sync, freeing the pages of old values after it, and the checkpoint that is due then.
#[test]
fn failed_commit_is_not_visible() {
    let (mut seen, mut failed, mut behind) = (0, 0, 0);
    for (fault, due) in [(Fault::Io, false), (Fault::Full, false), (Fault::Io, true), (Fault::Full, true)] {
        for index in 0.. {
            let context = format!("{fault:?} at {index}, with a checkpoint: {due}");
            let disk = FaultFs::new(FaultOptions::seeded(1));
            drop(filled(&disk, 20));
            let mut options = options();
            options.store.frames = 12;
            options.checkpoint_bytes = if due { 1 } else { u64::MAX };
            let fs: Arc<dyn Fs> = Arc::new(disk.clone());
            let db = Database::open_seeded(&fs, Path::new("/db"), &options, &mut SeededRng::new(3)).unwrap();
            let table = table_of(&db);
            make_long(&db, &table, "a").unwrap().commit(Durability::Sync).unwrap();
            let transaction = make_long(&db, &table, "b").unwrap();
            let before = disk.operation_count();
            disk.inject(Rule::at(before + index, fault));
            let committed = transaction.commit(Durability::Sync);
            let is_last = disk.operation_count() - before <= index;
            disk.clear_rules();
            let went_on = || -> Result<()> {
                after_a_commit(&db, &table, &context)?;
                assert_eq!(db.check()?.lost_pages, 0, "{context}");
                Ok(())
            };
            match committed.map(|()| went_on()) {
                Ok(Ok(())) => seen += 1,
                Ok(Err(error)) => {
                    behind += 1;
                    let is_failure = matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
                    assert!(is_failure, "{context}: {error}");
                    let db = open(&disk.crash(CrashImage::None)).unwrap();
                    after_a_commit(&db, &table_of(&db), &context).unwrap();
                }
                Err(error) => {
                    failed += 1;
                    let begun = db.begin(Isolation::ReadCommitted);
                    assert!(begun.is_err(), "{context}: it went on after {error}");
                }
            }
            if is_last {
                break;
            }
        }
    }
    println!("{seen} commits, {failed} failures, {behind} failures behind a commit");
    assert!(seen > 20 && failed > 4 && behind > 4);
}

/// Goal: on a full disk, a checkpoint releases log, which frees space, and does not need space
/// first.
/// Method: a log of many segments that one transaction needs; a quota that is used up; the
/// transaction ends.
#[test]
fn checkpoint_on_full_disk_releases_log() {
    // A limit from the start makes the disk account for allocated space.
    let disk = FaultFs::new(FaultOptions { quota_bytes: Some(1 << 30), ..FaultOptions::seeded(1) });
    let (db, table) = filled(&disk, 600);
    let begin = || db.begin(Isolation::ReadCommitted).unwrap();
    let mut oldest = begin();
    assert!(oldest.update(&table, &key(&table, 0), &[Value::Int(0), Value::Text("c")]).unwrap());
    for letter in ["b", "c", "b", "c", "b"] {
        let mut transaction = begin();
        for id in 1..ROWS {
            let row = [Value::Int(id), Value::Text(&text(letter, 600))];
            assert!(transaction.update(&table, &key(&table, id), &row).unwrap());
        }
        transaction.commit(Durability::Sync).unwrap();
    }
    db.checkpoint().unwrap();
    let segments = || {
        let names = disk.read_dir(Path::new("/db-log")).unwrap();
        names.iter().filter(|name| name.extension().is_some_and(|end| end == "wal")).count()
    };
    assert!(segments() > 10, "{}", segments());
    disk.set_quota(Some(disk.used_bytes()));
    oldest.rollback().unwrap();
    let given = db.checkpoint();
    assert!(segments() < 4, "{} after {given:?}", segments());
    given.unwrap();
    // There is space again.
    let mut transaction = begin();
    for id in 0..ROWS {
        let row = [Value::Int(id), Value::Text(&text("d", 600))];
        assert!(transaction.update(&table, &key(&table, id), &row).unwrap());
    }
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(letters(&db).unwrap(), letter("d"));
}

/// Goal: a vacuum on a full disk, where the log cannot be released, does not truncate pages that
/// the log has changes of, because the next opening would replay them. Method: dropped pages
/// precede others that were changed since the last checkpoint; then a vacuum with little space,
/// more each time, until there is enough.
#[test]
fn vacuum_on_full_disk_keeps_pages_of_the_log() {
    let mut uncut = 0;
    for room in 0..200 {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let fs: Arc<dyn Fs> = Arc::new(disk.clone());
        let mut options = options();
        options.store.log = cairn_wal::Options::default()
            .segment_bytes(256 << 10)
            .first_segment_bytes(256 << 10)
            .window_bytes(16 << 10)
            .recycled_max(0);
        let open = || Database::open_seeded(&fs, Path::new("/db"), &options, &mut SeededRng::new(room));
        let db = open().unwrap();
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let def = |name: &str| cairn_table::schema::TableDef {
            schema: "public".to_owned(),
            name: name.to_owned(),
            columns: vec![column("id", Type::Int), column("v", Type::Text)],
            primary_key: on(0),
            ..Default::default()
        };
        for name in ["gone", "t"] {
            let table = transaction.create_table(def(name)).unwrap();
            for id in 0..ROWS {
                transaction.insert(&table, &[Value::Int(id), Value::Text(&text("a", 600))]).unwrap();
            }
        }
        transaction.commit(Durability::Sync).unwrap();
        db.checkpoint().unwrap();
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let gone = Arc::clone(transaction.view().catalog().table("public", "gone").unwrap());
        transaction.drop_table(&gone).unwrap();
        let table = table_of_view(&transaction);
        for id in 0..ROWS {
            let row = [Value::Int(id), Value::Text(&text("b", 600))];
            assert!(transaction.update(&table, &key(&table, id), &row).unwrap());
        }
        transaction.commit(Durability::Sync).unwrap();
        drop((table, gone));
        disk.set_quota(Some(disk.used_bytes() + room * 4096));
        let done = db.vacuum();
        disk.set_quota(None);
        drop(db);
        let db = open().unwrap_or_else(|error| panic!("room for {room} pages, {done:?}: {error}"));
        assert_eq!(letters(&db).unwrap(), letter("b"));
        db.check().unwrap();
        let Ok(done) = done else { continue };
        if done.pages_after < done.pages_before {
            break;
        }
        uncut += 1;
        let again = db.vacuum().unwrap();
        drop(db);
        assert_eq!(
            disk.bytes_of(Path::new("/db")).unwrap().len() as u64,
            u64::from(again.pages_after) * 4096
        );
    }
    assert!(uncut > 0);
}
