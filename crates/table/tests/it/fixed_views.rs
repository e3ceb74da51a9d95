//! Views that are fixed while their transaction continues.

use std::ops::Bound;
use std::sync::Arc;

use cairn_table::row::Value;
use cairn_table::{Direction, Table, View};

use crate::{Fixture, key};

/// Returns the rows that a view sees, in primary key order.
fn seen(view: &View, table: &Arc<Table>) -> Vec<(i32, i32)> {
    let range = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = view.scan(table, None, range, Direction::Forward).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = scan.next().unwrap() {
        match (row.get(0), row.get(1)) {
            (Value::Int(id), Value::Int(v)) => rows.push((id, v)),
            other => panic!("{other:?}"),
        }
    }
    rows
}

/// Goal: a fixed view sees the changes that its transaction had made when the view was cloned, and
/// no later changes or rollbacks; the transaction itself sees everything. Method: rows inserted,
/// changed and deleted before and after, once and twice, by a transaction that had written before
/// and by one that had not, with a rollback to a savepoint.
#[test]
fn fixed_view_sees_no_later_changes() {
    for has_written in [false, true] {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 10), (2, 20), (3, 30), (4, 40)]);
        let mut transaction = fixture.begin();
        if has_written {
            transaction.update(&table, &key(&table, 1), &[Value::Int(1), Value::Int(11)]).unwrap();
            transaction.delete(&table, &key(&table, 2)).unwrap();
            transaction.insert(&table, &[Value::Int(5), Value::Int(50)]).unwrap();
        }
        transaction.fix_view();
        let fixed = transaction.view().clone();
        transaction.unfix_view();
        let before = seen(transaction.view(), &table);
        assert_eq!(seen(&fixed, &table), before);
        for round in 0..2 {
            transaction.update(&table, &key(&table, 1), &[Value::Int(1), Value::Int(99 + round)]).unwrap();
            transaction.update(&table, &key(&table, 4), &[Value::Int(4), Value::Int(98)]).unwrap();
        }
        transaction.delete(&table, &key(&table, 3)).unwrap();
        transaction.insert(&table, &[Value::Int(6), Value::Int(60)]).unwrap();
        if has_written {
            transaction.delete(&table, &key(&table, 5)).unwrap();
            transaction.insert(&table, &[Value::Int(2), Value::Int(22)]).unwrap();
        }
        assert_eq!(seen(&fixed, &table), before);
        let now = seen(transaction.view(), &table);
        assert!(now.contains(&(1, 100)) && now.contains(&(6, 60)) && !now.contains(&(3, 30)), "{now:?}");
        let savepoint = transaction.savepoint();
        transaction.update(&table, &key(&table, 1), &[Value::Int(1), Value::Int(7)]).unwrap();
        transaction.delete(&table, &key(&table, 4)).unwrap();
        transaction.rollback_to(savepoint).unwrap();
        assert_eq!(seen(&fixed, &table), before);
        assert_eq!(seen(transaction.view(), &table), now);
        // A view fixed later sees rolled-back rows as they were before.
        transaction.fix_view();
        let later = transaction.view().clone();
        transaction.unfix_view();
        transaction.update(&table, &key(&table, 1), &[Value::Int(1), Value::Int(8)]).unwrap();
        assert_eq!(seen(&later, &table), now);
        drop((fixed, later));
        transaction.rollback().unwrap();
    }
}
