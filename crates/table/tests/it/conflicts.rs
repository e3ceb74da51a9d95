//! Searches for conflicting rows that do not lock them.

use std::sync::Arc;
use std::time::Duration;

use cairn_table::row::{Type, Value};
use cairn_table::{Canceller, Durability, Error, Isolation, Transaction};

use crate::watch::Watch;
use crate::{Fixture, def, index, key};

fn row(id: i32, v: i32) -> [Value<'static>; 2] {
    [Value::Int(id), Value::Int(v)]
}

/// Begins a transaction that does not wait.
fn hasty(fixture: &Fixture) -> Transaction {
    fixture.db.begin_with(Isolation::ReadCommitted, &Canceller::new(), Some(Duration::ZERO)).unwrap()
}

/// Goal: a conflicting row is not locked: other transactions change it, and find conflicts
/// themselves, without waiting.
#[test]
fn conflicting_row_is_not_locked() {
    let fixture = Fixture::new();
    let table = fixture.run(|transaction| {
        let mut def = def("t", &[("id", Type::Int), ("v", Type::Int)], &[0]);
        def.indexes = vec![index("t_v", &[1], true)];
        let table = transaction.create_table(def).unwrap();
        [1, 2].into_iter().for_each(|id| transaction.insert(&table, &row(id, id)).unwrap());
        table
    });
    let mut first = fixture.begin();
    let mut other = hasty(&fixture);
    for arbiter in [None, Some(0)] {
        for id in [1, 2] {
            assert!(first.has_conflict(&table, arbiter, &row(id, id)).unwrap());
            assert!(other.has_conflict(&table, arbiter, &row(3 - id, 3 - id)).unwrap());
        }
        assert!(!first.has_conflict(&table, arbiter, &row(3, 3)).unwrap());
    }
    assert!(!first.has_written());
    assert!(other.update(&table, &key(&table, 1), &row(1, 7)).unwrap());
    // Until that commits, the row exists for everyone else.
    for arbiter in [None, Some(0)] {
        assert!(first.has_conflict(&table, arbiter, &row(1, 1)).unwrap());
    }
    other.commit(Durability::Buffered).unwrap();
    assert!(!first.has_conflict(&table, Some(0), &row(9, 1)).unwrap());
    // Own rows count at once, and NULL never conflicts.
    first.insert(&table, &row(3, 3)).unwrap();
    assert!(first.has_conflict(&table, None, &[Value::Int(3), Value::Null]).unwrap());
    assert!(!first.has_conflict(&table, Some(0), &[Value::Int(3), Value::Null]).unwrap());
    // Whether another transaction's row will exist is not known yet.
    let mut other = hasty(&fixture);
    let waits = other.has_conflict(&table, None, &[Value::Int(3), Value::Null]);
    assert!(matches!(waits, Err(Error::LockTimeout)), "{waits:?}");
}

/// Goal: a search for a conflict waits for the outcome of a concurrent insert of such a row; a row
/// that the transaction cannot see at its isolation level is an error, as in PostgreSQL.
#[test]
fn conflict_waits_for_concurrent_insert() {
    for commits in [false, true] {
        let (fixture, watch) = Watch::fixture();
        let table = fixture.pairs(&[(1, 1)]);
        let mut sees_nothing = fixture.db.begin(Isolation::Snapshot).unwrap();
        assert!(sees_nothing.has_conflict(&table, None, &row(1, 0)).unwrap());
        let mut puts = fixture.begin();
        puts.insert(&table, &row(2, 2)).unwrap();
        let (db, there) = (fixture.db.clone(), Arc::clone(&table));
        let looks = watch.start(move || {
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            transaction.has_conflict(&there, None, &row(2, 0)).unwrap()
        });
        assert!(!looks.is_finished());
        if commits {
            puts.commit(Durability::Buffered).unwrap();
        } else {
            puts.rollback().unwrap();
        }
        assert_eq!(looks.join().unwrap(), commits);
        let found = sees_nothing.has_conflict(&table, None, &row(2, 0));
        match commits {
            true => assert!(matches!(found, Err(Error::SerializationFailure { .. })), "{found:?}"),
            false => assert!(!found.unwrap()),
        }
    }
}
