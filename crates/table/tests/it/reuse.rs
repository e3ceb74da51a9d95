//! Transactions that reuse ended ones.

use std::sync::Arc;
use std::time::Duration;

use cairn_table::row::{Type, Value};
use cairn_table::{Canceller, Durability, Error, Isolation, ReusableTransaction, Transaction};

use crate::{Fixture, all, def, get, key, set};

const DURABILITY: Durability = Durability::Buffered;

fn begin(fixture: &Fixture, reusable: Option<ReusableTransaction>, isolation: Isolation) -> Box<Transaction> {
    fixture.db.begin_from(reusable, isolation, &Canceller::new(), None).unwrap()
}

/// Returns an ended transaction that has read a row.
fn reusable(fixture: &Fixture) -> ReusableTransaction {
    let transaction = begin(fixture, None, Isolation::Snapshot);
    let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
    assert_eq!(get(&transaction, &table, 1), Some(10));
    transaction.commit_reusable(DURABILITY, || {}).unwrap().unwrap()
}

/// Goal: a reusable transaction holds back nothing, and the next one sees all commits by then, of
/// rows and tables.
#[test]
fn reusable_transaction_holds_no_snapshot() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let reusable = reusable(&fixture);
    assert_eq!(fixture.db.stats().snapshots, 0);
    fixture.run(|transaction| {
        assert!(set(transaction, &table, 1, 11).unwrap());
        transaction.create_table(def("u", &[("id", Type::Int)], &[0])).unwrap();
    });
    // No version is kept for it.
    assert_eq!(fixture.db.stats().versioned_rows, 0);
    let next = begin(&fixture, Some(reusable), Isolation::Snapshot);
    assert_eq!(get(&next, &table, 1), Some(11));
    assert!(next.view().catalog().table("public", "u").is_some());
    assert_eq!(fixture.db.stats().snapshots, 1);
    // From now on its snapshot stays.
    fixture.run(|transaction| assert!(set(transaction, &table, 1, 12).unwrap()));
    assert_eq!(get(&next, &table, 1), Some(11));
    assert_eq!(fixture.db.stats().versioned_rows, 1);
}

/// Goal: no state of a transaction is left in the next one: changes, savepoints, rolled-back
/// tables, row counts.
#[test]
fn reused_transaction_starts_empty() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let mut first = begin(&fixture, None, Isolation::ReadCommitted);
    first.insert(&table, &[Value::Int(2), Value::Int(20)]).unwrap();
    let savepoint = first.savepoint();
    assert!(set(&mut first, &table, 1, 11).unwrap());
    let reusable = first.commit_reusable(DURABILITY, || {}).unwrap();

    let mut second = begin(&fixture, reusable, Isolation::Snapshot);
    assert!(!second.has_written());
    assert_eq!((second.id(), second.isolation()), (0, Isolation::Snapshot));
    second.create_table(def("u", &[("id", Type::Int)], &[0])).unwrap();
    second.insert(&table, &[Value::Int(3), Value::Int(30)]).unwrap();
    let reusable = second.rollback_reusable().unwrap();
    assert!(reusable.is_some());

    let mut third = begin(&fixture, reusable, Isolation::ReadCommitted);
    assert!(third.view().catalog().table("public", "u").is_none());
    // A savepoint of the first transaction, so there is nothing to undo.
    third.rollback_to(savepoint).unwrap();
    assert!(third.delete(&table, &key(&table, 2)).unwrap());
    let reusable = third.rollback_reusable().unwrap();

    let last = begin(&fixture, reusable, Isolation::ReadCommitted);
    assert_eq!(all(&last, &table, None), ["1,11", "2,20"]);
    assert_eq!(table.rows(), 2);
    drop(last);
    let report = fixture.db.check().unwrap();
    assert_eq!((report.rows, report.lost_pages), (2, 0), "{report:?}");
}

/// Goal: a transaction whose views are still in use cannot be reused, and the views keep seeing the
/// same data.
#[test]
fn views_in_use() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let first = begin(&fixture, None, Isolation::ReadCommitted);
    let view = first.view().clone();
    assert!(first.commit_reusable(DURABILITY, || {}).unwrap().is_none());
    fixture.run(|transaction| assert!(set(transaction, &table, 1, 11).unwrap()));
    let mut row = cairn_table::RowBuf::default();
    assert!(view.get(&table, &key(&table, 1), &mut row).unwrap());
    assert_eq!(row.row(&table).get(1), Value::Int(10));
    drop(view);
    assert_eq!(fixture.db.stats().snapshots, 0);
}

/// Goal: a serializable transaction validates its own reads, not those of the transaction it
/// reuses.
#[test]
fn reused_transaction_has_own_read_set() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20)]);
    let first = begin(&fixture, None, Isolation::Serializable);
    assert_eq!(get(&first, &table, 1), Some(10));
    let reusable = first.commit_reusable(DURABILITY, || {}).unwrap();
    let mut second = begin(&fixture, reusable, Isolation::Serializable);
    fixture.run(|transaction| assert!(set(transaction, &table, 1, 11).unwrap()));
    assert!(set(&mut second, &table, 2, 21).unwrap());
    let reusable = second.commit_reusable(DURABILITY, || {}).unwrap();
    let mut third = begin(&fixture, reusable, Isolation::Serializable);
    assert_eq!(get(&third, &table, 1), Some(11));
    fixture.run(|transaction| assert!(set(transaction, &table, 1, 12).unwrap()));
    assert!(set(&mut third, &table, 2, 22).unwrap());
    let ended = third.commit_reusable(DURABILITY, || {});
    assert!(matches!(ended, Err(Error::SerializationFailure { .. })), "{ended:?}");
    assert_eq!(all(&fixture.begin(), &table, None), ["1,12", "2,21"]);
}

/// Goal: each transaction is stopped by its own canceller, and a transaction is not reused by
/// another database.
#[test]
fn another_canceller_and_database() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    let table = fixture.pairs(&[(1, 10)]);
    let there = other.pairs(&[(1, 70)]);
    let (first, second) = (Canceller::new(), Canceller::new());
    let begun = fixture.db.begin_from(None, Isolation::Snapshot, &first, None).unwrap();
    let reusable = begun.commit_reusable(DURABILITY, || {}).unwrap();
    first.cancel();
    let begun = fixture.db.begin_from(reusable, Isolation::Snapshot, &second, None).unwrap();
    assert!(!begun.canceller().is_cancelled());
    assert_eq!(get(&begun, &table, 1), Some(10));
    let reusable = begun.commit_reusable(DURABILITY, || {}).unwrap();
    let begun = begin(&other, reusable, Isolation::Snapshot);
    assert_eq!(get(&begun, &there, 1), Some(70));
    assert_eq!(fixture.db.stats().snapshots, 0);
}

/// Goal: a transaction that can only be rolled back holds back nothing once its views are no longer
/// in use. Method: a view that outlives its purpose, as in a task of a query that was stopped.
#[test]
fn abandoned_with_views() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let mut transaction = begin(&fixture, None, Isolation::ReadCommitted);
    assert!(set(&mut transaction, &table, 1, 11).unwrap());
    let view = transaction.view().clone();
    transaction.abandon().unwrap();
    assert_eq!(fixture.db.stats().snapshots, 1);
    drop(view);
    assert_eq!(fixture.db.stats().snapshots, 0);
    // The transaction has not ended, and can still be reused.
    let reusable = transaction.rollback_reusable().unwrap();
    let next = begin(&fixture, reusable, Isolation::ReadCommitted);
    assert_eq!(get(&next, &table, 1), Some(10));
    assert_eq!(fixture.db.stats().snapshots, 1);
}

/// Goal: a transaction that holds the schema and cannot commit is told before others begin, so that
/// its caller can undo effects outside the tables. Method: a serializable transaction that has read
/// data changed by another, and a third one that tries to begin at that moment.
#[test]
fn failed_commit_still_holds_locks_in_callback() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let mut transaction = begin(&fixture, None, Isolation::Serializable);
    assert_eq!(get(&transaction, &table, 1), Some(10));
    fixture.run(|other| assert!(set(other, &table, 1, 11).unwrap()));
    transaction.create_schema("s").unwrap();
    let mut heard = Vec::new();
    let refused = transaction.commit_reusable(DURABILITY, || {
        let limit = Some(Duration::from_millis(1));
        let begun = fixture.db.begin_with(Isolation::Snapshot, &Canceller::new(), limit);
        heard.push(matches!(begun, Err(Error::LockTimeout)));
    });
    assert!(matches!(refused, Err(Error::SerializationFailure { .. })), "{refused:?}");
    assert_eq!(heard, [true]);
    fixture.begin().rollback().unwrap();
}
