//! What others leave behind: ghosts of rows, and files.

use std::path::Path;
use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Durability, Error, RowBuf, Table};
use cairn_vfs::{OpenOptions, Rng, SeededRng};

use crate::{Fixture, all, get, key, set};

fn delete(fixture: &Fixture, table: &Arc<Table>, id: i32) {
    fixture.run(|transaction| assert!(transaction.delete(table, &key(table, id)).unwrap()));
}

/// Goal: what is left of a deleted row goes in the end, also when somebody had its key in the moment in which it was to go, and gave it up. Method: with the row put in
/// again by a transaction that is undone, or commits; a vacuum counts what is left.
#[test]
fn ghosts_whose_key_somebody_has() {
    for commits in [false, true] {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 1), (5, 5)]);
        let old = fixture.begin();
        delete(&fixture, &table, 5);
        let mut claims = fixture.begin();
        claims.insert(&table, &[Value::Int(5), Value::Int(6)]).unwrap();
        drop(old);
        // It is to go now, and cannot.
        delete(&fixture, &table, 1);
        if commits {
            claims.commit(Durability::Buffered).unwrap();
        } else {
            claims.rollback().unwrap();
        }
        (10..14).for_each(|id| {
            fixture.run(|transaction| transaction.insert(&table, &[Value::Int(id), Value::Null]).unwrap());
        });
        assert_eq!(get(&fixture.begin(), &table, 5), commits.then_some(6));
        assert_eq!(fixture.db.stats().versioned_rows, 0);
        assert_eq!(fixture.db.vacuum().unwrap().ghosts, 0, "commits: {commits}");
        assert_eq!(get(&fixture.begin(), &table, 5), commits.then_some(6));
    }
}

/// Goal: rows that were locked and not changed are let go of, whatever else of the table was changed between the locks. Method: two locked, the first one changed, and the other way round; nothing is kept in the end.
#[test]
fn rows_that_were_only_locked() {
    for changed in [1, 2] {
        let (fixture, table) = Fixture::indexed(4);
        fixture.run(|transaction| {
            let mut row = RowBuf::default();
            for id in [1, 2] {
                assert!(transaction.lock(&table, &key(&table, id), &mut row).unwrap());
            }
            assert!(set(transaction, &table, changed, 7).unwrap());
        });
        fixture.run(|transaction| transaction.insert(&table, &[Value::Int(9), Value::Null]).unwrap());
        assert_eq!(fixture.db.stats().versioned_rows, 0, "of {changed}");
    }
}

/// Goal: nothing is left of deleted rows, and no row is lost, when four threads take rows out and put them in again, and undo half of it. Method: all go through the same keys in the same order, so that
/// the last who had a key comes to it close behind the one before; twenty times, as a thread that is late once makes the rest of a turn harmless. Each state is read with an index and without, and a vacuum
/// counts ghosts.
#[test]
fn ghosts_that_come_back() {
    const KEYS: i32 = 150;
    for turn in 0..20 {
        let (fixture, table) = Fixture::indexed(KEYS);
        cairn_vfs::thread::scope(|scope| {
            for thread in 0..4 {
                let (fixture, table) = (&fixture, &table);
                scope.spawn(move || {
                    let mut rng = SeededRng::new(4 * turn + thread);
                    for id in 0..KEYS {
                        let mut transaction = fixture.begin();
                        if !transaction.delete(table, &key(table, id)).unwrap() {
                            transaction.insert(table, &[Value::Int(id), Value::Int(id * 10)]).unwrap();
                        }
                        match rng.chance(0.5) {
                            true => transaction.commit(Durability::Buffered).unwrap(),
                            false => transaction.rollback().unwrap(),
                        }
                    }
                });
            }
        });
        let rows = all(&fixture.begin(), &table, None);
        assert_eq!(all(&fixture.begin(), &table, Some(0)).len(), rows.len(), "turn {turn}");
        assert_eq!(fixture.db.vacuum().unwrap().ghosts, 0, "turn {turn}");
        assert_eq!(fixture.db.stats().versioned_rows, 0, "turn {turn}");
        assert_eq!(fixture.db.check().unwrap().rows, rows.len() as u64, "turn {turn}");
    }
}

/// Goal: ghosts of a life that ended while somebody could still see what they were are gone in the next one; rows that took their places, and trees that took those of
/// their tables, are not touched.
#[test]
fn ghosts_of_an_earlier_life() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 1), (2, 2), (3, 3), (4, 4)]);
    let gone = fixture.run(|transaction| {
        let def = cairn_table::schema::TableDef { name: "gone".to_owned(), ..table.def().clone() };
        let gone = transaction.create_table(def).unwrap();
        transaction.insert(&gone, &[Value::Int(9), Value::Int(9)]).unwrap();
        gone
    });
    let old = fixture.begin();
    [1, 2, 3].into_iter().for_each(|id| delete(&fixture, &table, id));
    delete(&fixture, &gone, 9);
    fixture.run(|transaction| transaction.insert(&table, &[Value::Int(2), Value::Int(22)]).unwrap());
    drop((table, gone));
    // Nobody cleans up any more.
    let Fixture { fs, db } = fixture;
    drop((old, db));
    let fixture = Fixture { db: crate::open(&fs), fs };
    assert_eq!(all(&fixture.begin(), &fixture.table("t"), None), ["2,22", "4,4"]);
    assert_eq!(fixture.db.vacuum().unwrap().ghosts, 0);
    assert_eq!(fixture.db.check().unwrap().rows, 2);
}

/// Goal: a backup does not take files for its own that somebody else has left: a log beside its path would be replayed into the copy. What a failed backup has left of
/// its own does not stand in the way.
#[test]
fn backups_beside_other_files() {
    let fixture = Fixture::new();
    fixture.pairs(&[(1, 1)]);
    let to = Path::new("/db/copy");
    for left in ["/db/copy", "/db/copy-pages", "/db/copy-log/000001.wal"] {
        let left = Path::new(left);
        fixture.fs.create_dir_all(left.parent().unwrap()).unwrap();
        drop(fixture.fs.open(left, OpenOptions::create()).unwrap());
        let error = fixture.db.backup(&fixture.fs, to).unwrap_err();
        let is_named = matches!(&error, Error::AlreadyExists { name, .. } if Path::new(name) == left);
        assert!(is_named, "{error}");
        assert!(fixture.fs.exists(left).unwrap(), "it is not the backup's to remove");
        fixture.fs.remove(left).unwrap();
    }
    fixture.db.backup(&fixture.fs, to).unwrap();
}
