//! Leftovers: ghosts of rows, and files.

use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Durability, Error, RowBuf, Table, Transaction};
use cairn_vfs::{OpenOptions, Rng, SeededRng};

use crate::{Fixture, all, column, def, get, index, key, set};

fn delete(fixture: &Fixture, table: &Arc<Table>, id: i32) {
    fixture.run(|transaction| assert!(transaction.delete(table, &key(table, id)).unwrap()));
}

/// Goal: the ghost of a deleted row is removed eventually, even if another transaction held its key
/// at the moment of its removal and then gave it up. Method: the row is inserted again by a
/// transaction that is undone, or commits; a vacuum counts the remaining ghosts.
#[test]
fn ghost_with_claimed_key_is_removed_later() {
    for commits in [false, true] {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 1), (5, 5)]);
        let old = fixture.begin();
        delete(&fixture, &table, 5);
        let mut claims = fixture.begin();
        claims.insert(&table, &[Value::Int(5), Value::Int(6)]).unwrap();
        drop(old);
        // The ghost is due for removal now, but its key is claimed.
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

/// Goal: rows that were locked and not changed are released, regardless of which rows of the table
/// were changed in between. Method: two rows are locked, and the first one is changed, or the
/// second; nothing is kept in the end.
#[test]
fn locked_rows_are_released() {
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

/// Goal: no ghosts remain, and no row is lost, when four threads delete rows and insert them again,
/// and undo half of that. Method: all threads visit the same keys in the same order, so that each
/// follows closely behind the previous holder of a key; twenty times, because one late thread makes
/// the rest of a turn harmless. Each state is read with and without an index, and a vacuum counts
/// ghosts.
#[test]
fn no_ghosts_remain_after_reinserts() {
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

/// Goal: ghosts left by an earlier process, closed while a snapshot could still see their rows, are
/// gone after reopening; rows that took their places, and trees that took the pages of their
/// tables, are not affected.
#[test]
fn ghosts_of_former_process_are_removed() {
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
    // From here on no transaction cleans up.
    let Fixture { fs, db } = fixture;
    drop((old, db));
    let fixture = Fixture { db: crate::open(&fs), fs };
    assert_eq!(all(&fixture.begin(), &fixture.table("t"), None), ["2,22", "4,4"]);
    assert_eq!(fixture.db.vacuum().unwrap().ghosts, 0);
    assert_eq!(fixture.db.check().unwrap().rows, 2);
}

/// Goal: a backup does not adopt existing files of others: a log beside its path would be replayed
/// into the copy. Remains of an earlier failed backup are not in the way.
#[test]
fn backup_refuses_existing_files() {
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

/// Creates a table with an index and long rows, some of them changed later, and some inserted one
/// by one.
fn with_long_rows(transaction: &mut Transaction, name: &str) -> Arc<Table> {
    let mut def = def(name, &[("id", Type::Int), ("v", Type::Text)], &[0]);
    def.indexes = vec![index(&format!("{name}_id"), &[0], false)];
    let table = transaction.create_table(def).unwrap();
    let text = "long ".repeat(4_000);
    let mut bulk = transaction.bulk_insert(&table).unwrap();
    (0..5).for_each(|id| bulk.push(&[Value::Int(id), Value::Text(&text)]).unwrap());
    bulk.finish().unwrap();
    let table = Arc::clone(transaction.view().catalog().table("public", name).unwrap());
    (5..9).for_each(|id| transaction.insert(&table, &[Value::Int(id), Value::Text(&text)]).unwrap());
    let row = [Value::Int(3), Value::Text(&text[5..])];
    assert!(transaction.update(&table, &key(&table, 3), &row).unwrap());
    table
}

/// Goal: when a table is dropped, or its rows are replaced, the pages of its long rows are freed,
/// each of them once. Method: tables that are dropped, truncated and rewritten, created by this
/// transaction or an earlier one; committed, rolled back to a savepoint, or undone, and then
/// reused; checks for lost pages, and for pages used twice.
#[test]
fn pages_of_long_rows_are_freed_once() {
    let change = |transaction: &mut Transaction, how: usize| {
        let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
        match how {
            0 => transaction.drop_table(&table).unwrap(),
            1 => _ = transaction.truncate(&table).unwrap(),
            2 => {
                let mut def = table.def().clone();
                def.columns.push(column("w", Type::Int));
                let columns = [Some(0), Some(1), None];
                _ = transaction.alter_table(&table, def, &columns, &[Value::Null; 3]).unwrap();
            }
            _ => {
                let mut bulk = transaction.bulk_replace(&table, table.def().clone()).unwrap();
                bulk.push(&[Value::Int(1), Value::Text(&"short ".repeat(4_000))]).unwrap();
                bulk.finish().unwrap();
            }
        }
    };
    for how in 0..4 {
        for (of_this, end) in [(false, 0), (false, 1), (false, 2), (true, 0), (true, 1), (true, 2), (true, 3)]
        {
            let fixture = Fixture::new();
            if !of_this {
                fixture.run(|transaction| with_long_rows(transaction, "t"));
            }
            let mut transaction = fixture.begin();
            let first = transaction.savepoint();
            if of_this {
                with_long_rows(&mut transaction, "t");
            }
            let second = transaction.savepoint();
            change(&mut transaction, how);
            match end {
                0 => transaction.commit(Durability::Buffered).unwrap(),
                1 => transaction.rollback().unwrap(),
                _ => {
                    transaction.rollback_to(if end == 2 { second } else { first }).unwrap();
                    with_long_rows(&mut transaction, "other");
                    transaction.commit(Durability::Buffered).unwrap();
                }
            }
            fixture.run(|transaction| with_long_rows(transaction, "more"));
            let report = fixture.db.check().unwrap_or_else(|error| panic!("{how} {of_this} {end}: {error}"));
            assert_eq!(report.lost_pages, 0, "{how} {of_this} {end}: {report:?}");
        }
    }
}
