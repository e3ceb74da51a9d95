use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Durability, Error, Isolation, Transaction};

use crate::{Fixture, all, def, get, index, key, set};

/// Goal: rows are inserted and deleted, their own transaction sees this before others do, and they
/// persist across reopening.
#[test]
fn committed_rows_persist() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20), (3, 30)]);
    let mut transaction = fixture.begin();
    assert!(set(&mut transaction, &table, 2, 21).unwrap());
    assert!(transaction.delete(&table, &key(&table, 3)).unwrap());
    transaction.insert(&table, &[Value::Int(4), Value::Int(40)]).unwrap();
    assert_eq!(all(&transaction, &table, None), ["1,10", "2,21", "4,40"]);
    let other = fixture.begin();
    assert_eq!(all(&other, &table, None), ["1,10", "2,20", "3,30"]);
    assert_eq!((get(&other, &table, 3), get(&other, &table, 4)), (Some(30), None));
    transaction.commit(Durability::Sync).unwrap();
    // Read committed, but the statement began earlier.
    assert_eq!(get(&other, &table, 2), Some(20));
    let mut other = other;
    other.begin_statement().unwrap();
    assert_eq!(all(&other, &table, None), ["1,10", "2,21", "4,40"]);
    drop(other);
    drop(table);
    let fixture = fixture.reopen();
    let table = fixture.table("t");
    assert_eq!(all(&fixture.begin(), &table, None), ["1,10", "2,21", "4,40"]);
}

/// Goal: changes that did not commit are gone, both before and after reopening.
#[test]
fn uncommitted_changes_are_undone() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20)]);
    let change = |fixture: &Fixture| {
        let mut transaction = fixture.begin();
        set(&mut transaction, &table, 1, 11).unwrap();
        transaction.delete(&table, &key(&table, 2)).unwrap();
        transaction.insert(&table, &[Value::Int(3), Value::Int(30)]).unwrap();
        transaction
    };
    change(&fixture).rollback().unwrap();
    assert_eq!(all(&fixture.begin(), &table, None), ["1,10", "2,20"]);
    drop(change(&fixture));
    assert_eq!(all(&fixture.begin(), &table, None), ["1,10", "2,20"]);
    fixture.run(|_| ());
    assert_eq!(fixture.db.stats().aborts, 2);
}

/// Goal: rolling back to a savepoint undoes later changes, and can be repeated; rows changed before
/// and after it keep the earlier contents.
#[test]
fn rollback_to_savepoint_undoes_later_changes() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20)]);
    let mut transaction = fixture.begin();
    set(&mut transaction, &table, 1, 11).unwrap();
    let first = transaction.savepoint();
    set(&mut transaction, &table, 1, 12).unwrap();
    transaction.insert(&table, &[Value::Int(3), Value::Int(30)]).unwrap();
    let second = transaction.savepoint();
    transaction.delete(&table, &key(&table, 2)).unwrap();
    set(&mut transaction, &table, 3, 31).unwrap();
    transaction.rollback_to(second).unwrap();
    assert_eq!(all(&transaction, &table, None), ["1,12", "2,20", "3,30"]);
    set(&mut transaction, &table, 3, 32).unwrap();
    transaction.rollback_to(second).unwrap();
    transaction.rollback_to(first).unwrap();
    assert_eq!(all(&transaction, &table, None), ["1,11", "2,20"]);
    assert_eq!(all(&fixture.begin(), &table, None), ["1,10", "2,20"]);
    transaction.commit(Durability::Buffered).unwrap();
    assert_eq!(all(&fixture.begin(), &table, None), ["1,11", "2,20"]);
    fixture.run(|transaction| set(transaction, &table, 1, 1).unwrap());
    fixture.run(|_| ());
    fixture.run(|transaction| set(transaction, &table, 1, 2).unwrap());
    assert_eq!(fixture.db.stats().versioned_rows, 0, "what nobody needs is forgotten");
}

/// Goal: indexes have an entry for each visible row, in order, after all kinds of changes; a row
/// whose key changes moves.
#[test]
fn indexes_match_rows() {
    let fixture = Fixture::new();
    let table = fixture.run(|transaction| {
        let mut def = def("t", &[("id", Type::Int), ("name", Type::Text), ("v", Type::Double)], &[0]);
        def.indexes = vec![index("t_name", &[1], false), index("t_v", &[2], true)];
        let table = transaction.create_table(def).unwrap();
        for (id, name, v) in [(1, "b", 1.5), (2, "a", 2.5), (3, "b", 0.5)] {
            transaction.insert(&table, &[Value::Int(id), Value::Text(name), Value::Double(v)]).unwrap();
        }
        transaction.insert(&table, &[Value::Int(4), Value::Null, Value::Null]).unwrap();
        transaction.insert(&table, &[Value::Int(5), Value::Null, Value::Null]).unwrap();
        table
    });
    let old = fixture.begin();
    let entries = ["2,a", "1,b", "3,b", "4,null", "5,null"];
    assert_eq!(all(&old, &table, Some(0)), entries);
    fixture.run(|transaction| {
        let row = [Value::Int(2), Value::Text("c"), Value::Double(2.5)];
        assert!(transaction.update(&table, &key(&table, 2), &row).unwrap());
        let row = [Value::Int(10), Value::Text("b"), Value::Double(1.5)];
        assert!(transaction.update(&table, &key(&table, 1), &row).unwrap());
        assert!(transaction.delete(&table, &key(&table, 4)).unwrap());
    });
    assert_eq!(all(&old, &table, Some(0)), entries);
    drop(old);
    let now = fixture.begin();
    assert_eq!(all(&now, &table, Some(0)), ["3,b", "10,b", "2,c", "5,null"]);
    assert_eq!(all(&now, &table, Some(1)), ["3", "10", "2", "5"]);
    drop(now);
    // The next transactions remove the ghosts of the former rows.
    fixture.run(|transaction| transaction.delete(&table, &key(&table, 5)).unwrap());
    fixture.run(|transaction| transaction.delete(&table, &key(&table, 3)).unwrap());
    drop(table);
    let fixture = fixture.reopen();
    assert_eq!(all(&fixture.begin(), &fixture.table("t"), Some(0)), ["10,b", "2,c"]);
}

/// Goal: rows longer than a page, and longer than 64 KiB, can be read, changed and deleted, and
/// their pages are reused.
#[test]
fn long_rows_are_stored_and_freed() {
    let fixture = Fixture::new();
    let table = fixture.run(|transaction| {
        transaction.create_table(def("t", &[("id", Type::Int), ("v", Type::Text)], &[0])).unwrap()
    });
    let text = |len: usize| "longer than it looks ".repeat(len / 21 + 1)[..len].to_owned();
    for (id, len) in [(1, 1_400), (2, 20_000), (3, 300_000)] {
        fixture.run(|transaction| {
            transaction.insert(&table, &[Value::Int(id), Value::Text(&text(len))]).unwrap()
        });
    }
    let before = fixture.begin();
    for (id, len) in [(1, 9_000), (2, 10), (3, 250_000)] {
        fixture.run(|transaction| {
            let row = [Value::Int(id), Value::Text(&text(len))];
            assert!(transaction.update(&table, &key(&table, id), &row).unwrap());
        });
    }
    let lengths = |rows: Vec<String>| rows.iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths(all(&before, &table, None)), [1_402, 20_002, 300_002]);
    drop(before);
    let mut transaction = fixture.begin();
    transaction.insert(&table, &[Value::Int(4), Value::Text(&text(500_000))]).unwrap();
    transaction.rollback().unwrap();
    fixture.run(|transaction| transaction.delete(&table, &key(&table, 3)).unwrap());
    fixture.run(|_| ());
    fixture.run(|transaction| transaction.insert(&table, &[Value::Int(9), Value::Null]).unwrap());
    drop(table);
    let fixture = fixture.reopen();
    let table = fixture.table("t");
    assert_eq!(all(&fixture.begin(), &table, None)[0], format!("1,{}", text(9_000)));
    let (pages, free) = fixture.db.pages().unwrap();
    assert!(pages - free < 12, "{free} of {pages} pages are free");
}

/// Goal: a transaction that changes more rows than fit in the pool commits or is undone like any
/// other.
/// Method: 40 frames, 40,000 rows in random order.
#[test]
fn transaction_larger_than_pool() {
    let fixture = Fixture::with(|options| options.store.frames = 40);
    let table = fixture.pairs(&[]);
    for commits in [false, true] {
        let mut transaction = fixture.db.begin(Isolation::Snapshot).unwrap();
        for id in 0..40_000 {
            let id = id * 7919 % 40_000;
            transaction.insert(&table, &[Value::Int(id), Value::Int(-id)]).unwrap();
        }
        assert_eq!(all(&fixture.begin(), &table, None).len(), 0);
        let (pages, _) = fixture.db.pages().unwrap();
        assert!(pages > 3 * 40, "{pages} pages are no more than a pool of 40 frames has");
        if commits {
            transaction.commit(Durability::Sync).unwrap();
        } else {
            transaction.rollback().unwrap();
        }
    }
    assert_eq!(all(&fixture.begin(), &table, None).len(), 40_000);
    assert_eq!(fixture.table("t").rows(), 40_000);
    let error = fixture.begin().insert(&table, &[Value::Int(5), Value::Null]).unwrap_err();
    assert!(matches!(error, Error::UniqueViolation { ref key, .. } if key == "(id)=(5)"), "{error:?}");
}

/// Goal: rows without a primary key get numbers that no row has, or has had while still visible to
/// a snapshot, also after reopening. Method: inserts, between which the last row is deleted while a
/// snapshot sees it.
#[test]
fn row_numbers_are_not_reused() {
    let fixture = Fixture::new();
    let insert = |fixture: &Fixture, range: std::ops::Range<i32>| {
        let table = fixture.table("t");
        fixture.run(|transaction| {
            range.for_each(|v| transaction.insert(&table, &[Value::Int(v)]).unwrap());
        });
    };
    let seen = |transaction: &Transaction| {
        let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
        all(transaction, &table, None)
    };
    fixture.run(|transaction| transaction.create_table(def("t", &[("v", Type::Int)], &[])).unwrap());
    insert(&fixture, 0..3);
    let fixture = fixture.reopen();
    insert(&fixture, 3..5);
    assert_eq!(seen(&fixture.begin()), ["0", "1", "2", "3", "4"]);
    let fixture = fixture.reopen();
    let watcher = fixture.db.begin(Isolation::Snapshot).unwrap();
    assert_eq!(seen(&watcher).len(), 5);
    let table = fixture.table("t");
    fixture.run(|transaction| {
        let mut key = Vec::new();
        assert!(table.key_format().encode(&[Value::BigInt(5)], &mut key));
        assert!(transaction.delete(&table, &key).unwrap());
    });
    drop(table);
    insert(&fixture, 5..7);
    assert_eq!(seen(&fixture.begin()), ["0", "1", "2", "3", "5", "6"]);
    assert_eq!(seen(&watcher), ["0", "1", "2", "3", "4"]);
    drop(watcher);
    assert_eq!(fixture.db.check().unwrap().rows, 6);
}

/// Goal: an index that covers a column has the row's exact value, even if an update compares as
/// equal.
/// Method: a zero that changes its sign, in the key and among the included columns, compared with
/// the table's row.
#[test]
fn index_keeps_sign_of_zero() {
    let fixture = Fixture::new();
    let table = fixture.run(|transaction| {
        let columns = [("id", Type::Int), ("a", Type::Real), ("b", Type::Double)];
        let mut def = def("t", &columns, &[0]);
        def.indexes = vec![index("t_ab", &[1, 2], false), index("t_id", &[0], false)];
        def.indexes[1].include = vec![1, 2];
        transaction.create_table(def).unwrap()
    });
    let row = |a: f32, b: f64| [Value::Int(1), Value::Real(a), Value::Double(b)];
    fixture.run(|transaction| transaction.insert(&table, &row(-0.0, -0.0)).unwrap());
    for (a, b) in [(-0.0, 0.0), (0.0, -0.0), (0.0, 0.0), (-0.0, -0.0)] {
        fixture.run(|transaction| assert!(transaction.update(&table, &key(&table, 1), &row(a, b)).unwrap()));
        let transaction = fixture.begin();
        let [stored] = &all(&transaction, &table, None)[..] else { panic!("one row") };
        assert_eq!(all(&transaction, &table, Some(1)), [stored.as_str()]);
        let fresh = Fixture::new();
        let other = fresh.run(|transaction| {
            let other = transaction.create_table(table.def().clone()).unwrap();
            transaction.insert(&other, &row(a, b)).unwrap();
            other
        });
        for index in [0, 1] {
            let expected = all(&fresh.begin(), &other, Some(index));
            assert_eq!(all(&transaction, &table, Some(index)), expected, "index {index}, {a} and {b}");
        }
        // The check waits for readers.
        drop(transaction);
        assert_eq!(fixture.db.check().unwrap().entries, 2);
    }
}
