//! Rows that are locked first and changed later: the change applies to the current row, whatever
//! the transaction does to it in between.

use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Canceller, Durability, Isolation, RowBuf, Table, Transaction};

use crate::{Fixture, all, get, key, set};

/// An action of a transaction between locking row 1 and deleting it.
type Between = fn(&mut Transaction, &Arc<Table>);

const BETWEEN: [(&str, Between); 7] = [
    ("nothing", |_, _| {}),
    ("changes it", |transaction, table| assert!(set(transaction, table, 1, 77).unwrap())),
    ("changes it twice", |transaction, table| {
        assert!(set(transaction, table, 1, 77).unwrap());
        assert!(set(transaction, table, 1, 78).unwrap());
    }),
    ("changes it and takes that back", |transaction, table| {
        let savepoint = transaction.savepoint();
        assert!(set(transaction, table, 1, 77).unwrap());
        transaction.rollback_to(savepoint).unwrap();
    }),
    ("locks it changed, and takes that back", |transaction, table| {
        let savepoint = transaction.savepoint();
        assert!(set(transaction, table, 1, 77).unwrap());
        lock(transaction, table, 1);
        transaction.rollback_to(savepoint).unwrap();
    }),
    ("deletes it and puts another one there", |transaction, table| {
        assert!(transaction.delete(table, &key(table, 1)).unwrap());
        transaction.insert(table, &[Value::Int(1), Value::Int(79)]).unwrap();
    }),
    ("locks and changes another one", |transaction, table| {
        lock(transaction, table, 2);
        assert!(set(transaction, table, 2, 80).unwrap());
    }),
];

fn lock(transaction: &mut Transaction, table: &Arc<Table>, id: i32) {
    assert!(transaction.lock(table, &key(table, id), &mut RowBuf::default()).unwrap());
}

/// Goal: a row that was locked and then changed or deleted has the right index entries, is seen
/// unchanged by others, and is restored by a rollback. Method: each possible action on the row in
/// between, in the same transaction; then a deletion or an update; then a commit or a rollback, and
/// reopening.
#[test]
fn changed_locked_row_has_correct_entries() {
    for (name, between) in BETWEEN {
        for (deletes, ends) in [(true, "commit"), (true, "rollback"), (false, "commit"), (false, "rollback")]
        {
            let (fixture, table) = Fixture::indexed(10);
            let before = all(&fixture.begin(), &table, None);
            let mut transaction = fixture.begin();
            lock(&mut transaction, &table, 1);
            between(&mut transaction, &table);
            if deletes {
                assert!(transaction.delete(&table, &key(&table, 1)).unwrap());
                assert_eq!(get(&transaction, &table, 1), None, "{name}");
                assert!(!transaction.delete(&table, &key(&table, 1)).unwrap(), "{name}");
            } else {
                assert!(set(&mut transaction, &table, 1, 100).unwrap());
                assert_eq!(get(&transaction, &table, 1), Some(100), "{name}");
            }
            assert_eq!(all(&fixture.begin(), &table, None), before, "{name}: seen by others");
            if ends == "commit" {
                transaction.commit(Durability::Sync).unwrap();
            } else {
                transaction.rollback().unwrap();
            }
            let now = if ends == "rollback" { Some(-1) } else { (!deletes).then_some(100) };
            assert_eq!(get(&fixture.begin(), &table, 1), now, "{name}, {ends}");
            fixture.db.check().unwrap_or_else(|error| panic!("{name}, {ends}: {error}"));
            drop(table);
            let fixture = fixture.reopen();
            assert_eq!(get(&fixture.begin(), &fixture.table("t"), 1), now, "{name}, {ends}, reopened");
            fixture.db.check().unwrap_or_else(|error| panic!("{name}, {ends}: {error}"));
        }
    }
}

/// Goal: the remembered row does not outlive its transaction: the next one, which reuses it, sees
/// later changes of others to the row.
#[test]
fn locked_row_is_not_kept_for_next_transaction() {
    let (fixture, table) = Fixture::indexed(10);
    let mut transaction = Box::new(fixture.begin());
    lock(&mut transaction, &table, 1);
    let reusable = transaction.commit_reusable(Durability::Sync, || ()).unwrap();
    assert!(reusable.is_some());
    fixture.run(|transaction| assert!(set(transaction, &table, 1, 50).unwrap()));
    let mut next =
        fixture.db.begin_from(reusable, Isolation::ReadCommitted, &Canceller::new(), None).unwrap();
    assert!(next.delete(&table, &key(&table, 1)).unwrap());
    next.rollback().unwrap();
    assert_eq!(get(&fixture.begin(), &table, 1), Some(50));
    fixture.db.check().unwrap();
}
