//! Whole databases under schedules that follow from a seed.
//!
//! `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-table --test shuttle`, with a separate
//! target directory. See `testing/schedules.rs` for the scope and the limits of these tests.
#![cfg(cairn_shuttle)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

#[path = "../../../testing/schedules.rs"]
mod schedules;

use std::ops::Bound;
use std::path::Path;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ForeignKeyDef, IndexDef, KeyColumn, Referential, TableDef};
use cairn_table::{Database, Direction, Durability, Error, Isolation, Options, RowBuf, Table, Transaction};
use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, MemFs, SeededRng, thread};

use schedules::explore;

fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

/// Defines a table of two integers: a key, and one with an index.
fn def(name: &str, unique: bool) -> TableDef {
    let column = |name: &str| ColumnDef {
        name: name.to_owned(),
        kind: Type::Int.into(),
        nullable: true,
        default: None,
        identity: None,
    };
    let index =
        IndexDef { name: format!("{name}_v"), columns: on(1), include: vec![], unique, is_constraint: false };
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: vec![column("id"), column("v")],
        primary_key: on(0),
        indexes: vec![index],
        ..TableDef::default()
    }
}

fn database() -> Database {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = Options::default();
    options.store.page_size = 4 << 10;
    options.store.frames = 32;
    options.store.background = false;
    Database::open_seeded(&fs, Path::new("test.db"), &options, &mut SeededRng::new(7)).unwrap()
}

fn row(id: i32, v: i32) -> [Value<'static>; 2] {
    [Value::Int(id), Value::Int(v)]
}

fn key(table: &Table, id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(id)], &mut key));
    key
}

fn number(row: &RowBuf, table: &Table) -> i32 {
    match row.row(table).get(1) {
        Value::Int(v) => v,
        other => panic!("{other:?}"),
    }
}

fn seen(transaction: &Transaction, table: &Table, id: i32) -> Option<i32> {
    let mut row = RowBuf::default();
    let is_there = transaction.view().get(table, &key(table, id), &mut row).unwrap();
    is_there.then(|| number(&row, table))
}

fn count(transaction: &Transaction, table: &Arc<Table>) -> usize {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = transaction.view().scan(table, None, everything, Direction::Forward).unwrap();
    let mut count = 0;
    while scan.next().unwrap().is_some() {
        count += 1;
    }
    count
}

fn begin(db: &Database) -> Transaction {
    db.begin(Isolation::ReadCommitted).unwrap()
}

/// Creates a database with a table that has some rows.
fn with_rows(unique: bool, rows: &[(i32, i32)]) -> (Database, Arc<Table>) {
    let db = database();
    let mut transaction = begin(&db);
    let table = transaction.create_table(def("t", unique)).unwrap();
    rows.iter().for_each(|&(id, v)| transaction.insert(&table, &row(id, v)).unwrap());
    transaction.commit(Durability::Buffered).unwrap();
    (db, table)
}

/// Goal: no update is lost with read committed, and a locked row has the contents that the next
/// statement sees. Method: threads that lock a row, read it in a statement of their own, and
/// increment its number; one of them is undone and retries.
#[test]
fn locked_rows_are_seen() {
    explore(1_000, || {
        let (db, table) = with_rows(false, &[(1, 0)]);
        let raise = |undoes: bool| {
            let mut transaction = begin(&db);
            let mut record = RowBuf::default();
            assert!(transaction.lock(&table, &key(&table, 1), &mut record).unwrap());
            let locked = number(&record, &table);
            transaction.begin_statement().unwrap();
            assert_eq!(seen(&transaction, &table, 1), Some(locked));
            assert!(transaction.update(&table, &key(&table, 1), &row(1, locked + 1)).unwrap());
            match undoes {
                true => transaction.rollback().unwrap(),
                false => transaction.commit(Durability::Buffered).unwrap(),
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| raise(false));
            scope.spawn(|| raise(false));
            scope.spawn(|| {
                raise(true);
                raise(false);
            });
        });
        assert_eq!(seen(&begin(&db), &table, 1), Some(3));
    });
}

/// Goal: a transaction that finds no conflict, because the conflicting row was deleted, does not
/// see that row afterwards. Method: one thread deletes a row, another one inserts a row with the
/// same unique number and scans the table.
#[test]
fn insert_in_place_of_deleted_row_sees_only_itself() {
    explore(1_000, || {
        let (db, table) = with_rows(true, &[(1, 7)]);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut transaction = begin(&db);
                match transaction.delete(&table, &key(&table, 1)) {
                    Ok(true) => transaction.commit(Durability::Buffered).unwrap(),
                    other => assert!(matches!(other, Err(Error::Deadlock { .. })), "{other:?}"),
                }
            });
            scope.spawn(|| {
                let mut transaction = begin(&db);
                match transaction.conflict(&table, Some(0), &row(2, 7)) {
                    Ok(Some(_)) => transaction.rollback().unwrap(),
                    Ok(None) => {
                        transaction.insert(&table, &row(2, 7)).unwrap();
                        transaction.begin_statement().unwrap();
                        assert_eq!(count(&transaction, &table), 1);
                        transaction.commit(Durability::Buffered).unwrap();
                    }
                    // It holds the index entry and requests the row, which the other one holds.
                    other => assert!(matches!(other, Err(Error::Deadlock { .. })), "{other:?}"),
                }
            });
        });
        let transaction = begin(&db);
        assert!(count(&transaction, &table) <= 1);
    });
}

/// Goal: a parent and its child deleted by two transactions leave no orphaned child, and deleting
/// the parent is refused only while the child exists. Method: one thread deletes the child, another
/// one the parent; a third one inserts a child.
#[test]
fn concurrent_deletes_leave_no_orphan() {
    explore(700, || {
        let db = database();
        let mut transaction = begin(&db);
        let parents = transaction.create_table(def("parents", false)).unwrap();
        let mut children = def("children", false);
        children.foreign_keys = vec![ForeignKeyDef {
            name: "children_fkey".to_owned(),
            columns: vec![1],
            table: parents.id(),
            references: vec![0],
            on_delete: Referential::NoAction,
            on_update: Referential::NoAction,
        }];
        let children = transaction.create_table(children).unwrap();
        transaction.insert(&parents, &row(1, 0)).unwrap();
        transaction.insert(&children, &row(10, 1)).unwrap();
        transaction.commit(Durability::Buffered).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut transaction = begin(&db);
                assert!(transaction.delete(&children, &key(&children, 10)).unwrap());
                transaction.commit(Durability::Buffered).unwrap();
            });
            scope.spawn(|| {
                let mut transaction = begin(&db);
                match transaction.delete(&parents, &key(&parents, 1)) {
                    Ok(_) => transaction.commit(Durability::Buffered).unwrap(),
                    Err(Error::ForeignKeyViolation { .. }) => transaction.rollback().unwrap(),
                    Err(other) => panic!("{other}"),
                }
            });
            scope.spawn(|| {
                let mut transaction = begin(&db);
                match transaction.insert(&children, &row(11, 1)) {
                    Ok(()) => transaction.commit(Durability::Buffered).unwrap(),
                    Err(Error::ForeignKeyViolation { .. }) => transaction.rollback().unwrap(),
                    Err(other) => panic!("{other}"),
                }
            });
        });
        let transaction = begin(&db);
        let (parent, alone) = (seen(&transaction, &parents, 1), count(&transaction, &children));
        assert_eq!(seen(&transaction, &children, 10), None);
        assert!(parent.is_some() || alone == 0, "{alone} children without a parent");
    });
}
