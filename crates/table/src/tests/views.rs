use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use cairn_vfs::sync::Arc;

use super::{database, def};
use crate::row::Value;
use crate::{Database, Durability, Error, Isolation, Table, Transaction, hook};

fn begin(db: &Database) -> Transaction {
    db.begin(Isolation::ReadCommitted).unwrap()
}

/// Creates a table with one row.
fn filled(db: &Database) -> Arc<Table> {
    let mut transaction = begin(db);
    let table = transaction.create_table(def("t")).unwrap();
    transaction.insert(&table, &[Value::Int(1), Value::Int(0)]).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    table
}

fn set(transaction: &mut Transaction, table: &Arc<Table>, v: i32) {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(1)], &mut key));
    assert!(transaction.update(table, &key, &[Value::Int(1), Value::Int(v)]).unwrap());
}

/// Goal: a schema change waits for all other transactions, even if a view of its own is dropped
/// meanwhile. Method: a view of an earlier statement is dropped once the wait has begun, while
/// another transaction stays: the wait must time out.
#[test]
fn snapshots_of_others_are_not_counted_as_own() {
    let db = database();
    let table = filled(&db);
    let mut one = begin(&db);
    let mut earlier = vec![one.view().clone()];
    let mut third = begin(&db);
    set(&mut third, &table, 1);
    third.commit(Durability::Buffered).unwrap();
    one.begin_statement().unwrap();
    let other = begin(&db);
    assert_eq!(db.stats().snapshots, 3);
    one.set_lock_timeout(Some(Duration::from_millis(50)));
    let came = Rc::new(Cell::new(false));
    let by = Rc::clone(&came);
    hook::set(move |place| {
        if place == "waits for all" {
            earlier.clear();
            by.set(true);
        }
    });
    let made = one.create_table(def("u"));
    hook::clear();
    assert!(matches!(made, Err(Error::LockTimeout)), "{made:?}");
    assert!(came.get());
    // Without other transactions there is nothing to wait for.
    drop(other);
    one.create_table(def("u")).unwrap();
}

/// Goal: rows have versions for fixed views that still exist, and for no others. Method: a row that
/// is changed repeatedly, with views dropped before each change, with one that stays, and with one
/// per change.
#[test]
fn versions_exist_only_for_fixed_views() {
    let db = database();
    let table = filled(&db);
    for (stays, each, expected) in [(false, false, 1), (true, false, 2), (false, true, 50), (true, true, 50)]
    {
        let mut transaction = begin(&db);
        set(&mut transaction, &table, 100);
        let versions = Rc::new(Cell::new(1));
        let count = Rc::clone(&versions);
        hook::set(move |place| count.set(count.get() + usize::from(place == "keeps a version")));
        let mut kept = Vec::new();
        for round in 1..50 {
            transaction.fix_view();
            let view = transaction.view().clone();
            transaction.unfix_view();
            if each || stays && round == 1 {
                kept.push(view);
            } else {
                drop(view);
            }
            set(&mut transaction, &table, round);
        }
        hook::clear();
        assert_eq!(versions.get(), expected, "{stays} {each}");
        drop(kept);
        transaction.rollback().unwrap();
    }
}
