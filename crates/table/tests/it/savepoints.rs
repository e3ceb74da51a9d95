//! Schema changes that are rolled back to a savepoint.

use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::{Durability, Error, Table, Transaction};

use crate::{Fixture, all, get, index, key};

type Change = fn(&mut Transaction, &Arc<Table>);

/// Changes that drop trees of a table.
const CHANGES: [(&str, Change); 5] = [
    ("drop", |transaction, table| transaction.drop_table(table).unwrap()),
    ("truncate", |transaction, table| _ = transaction.truncate(table).unwrap()),
    ("drop index", |transaction, table| _ = transaction.drop_index(table, 0).unwrap()),
    ("alter", |transaction, table| {
        let mut def = table.def().clone();
        def.columns.push(crate::column("more", Type::Int));
        let fill = [Value::Null, Value::Null, Value::Int(1)];
        let columns = [Some(0), Some(1), None];
        _ = transaction.alter_table(table, def, &columns, &fill).unwrap();
    }),
    ("drop and make", |transaction, table| {
        transaction.drop_table(table).unwrap();
        _ = transaction.create_table(table.def().clone()).unwrap();
    }),
];

/// Goal: trees that a schema change would have dropped still exist after the change was rolled back
/// and its transaction committed: now, and after reopening. Method: each such change, in one
/// savepoint, in two, and rolled back twice.
#[test]
fn rolled_back_schema_change_keeps_trees() {
    for (name, change) in CHANGES {
        for times in 1..=2 {
            let (fixture, table) = Fixture::indexed(2_000);
            fixture.run(|transaction| {
                let savepoint = transaction.savepoint();
                for _ in 0..times {
                    change(transaction, &table);
                    transaction.rollback_to(savepoint).unwrap();
                }
                transaction.insert(&table, &[Value::Int(5_000), Value::Int(1)]).unwrap();
            });
            drop(table);
            let fixture = fixture.reopen();
            let report = fixture.db.check().unwrap_or_else(|error| panic!("{name} x {times}: {error}"));
            assert_eq!((report.rows, report.entries), (2_001, 2_001), "{name} x {times}");
            // New rows get pages of their own.
            let table = fixture.table("t");
            fixture.run(|transaction| {
                for id in 6_000..8_000 {
                    transaction.insert(&table, &[Value::Int(id), Value::Int(0)]).unwrap();
                }
            });
            assert_eq!(all(&fixture.begin(), &table, None).len(), 4_001);
            assert_eq!(fixture.db.check().unwrap().rows, 4_001, "{name} x {times}");
        }
    }
}

/// Goal: trees dropped by a commit, and trees that were created and rolled back, are freed: after
/// the commit, and by the next opening if the commit was the last.
#[test]
fn dropped_trees_are_freed() {
    for (name, change) in CHANGES {
        let (fixture, table) = Fixture::indexed(2_000);
        fixture.run(|transaction| {
            let savepoint = transaction.savepoint();
            change(transaction, &table);
            transaction.rollback_to(savepoint).unwrap();
            change(transaction, &table);
        });
        drop(table);
        fixture.run(|transaction| transaction.create_schema("s").unwrap());
        let report = fixture.db.check().unwrap();
        assert_eq!(report.lost_pages, 0, "{name}: {report:?}");
        let after = fixture.reopen().db.check().unwrap();
        assert_eq!(
            (after.rows, after.used_pages, after.lost_pages),
            (report.rows, report.used_pages, 0),
            "{name}"
        );
    }
}

/// Goal: a table that was looked up before a schema rollback or change is refused, because its
/// trees may have been reused.
#[test]
fn stale_table_is_refused() {
    let is_stale = |result: cairn_table::Result<()>| {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::StaleTable { table } if table == "t"), "{error:?}");
    };
    let refused = |transaction: &mut Transaction, table: &Arc<Table>| {
        let row = [Value::Int(9_999), Value::Int(0)];
        is_stale(transaction.insert(table, &row));
        is_stale(transaction.update(table, &key(table, 1), &row).map(|_| ()));
        is_stale(transaction.delete(table, &key(table, 1)).map(|_| ()));
        is_stale(transaction.lock(table, &key(table, 1), &mut Default::default()).map(|_| ()));
        is_stale(transaction.conflict(table, None, &row).map(|_| ()));
        is_stale(transaction.has_conflict(table, None, &row).map(|_| ()));
        is_stale(transaction.bulk_insert(table).and_then(|mut bulk| bulk.push(&row)));
    };
    let (fixture, table) = Fixture::indexed(2_000);
    let mut transaction = fixture.begin();
    let indexed = transaction.create_index(&table, index("t_more", &[1], false)).unwrap();
    // The former version of the table lacks the index.
    refused(&mut transaction, &table);
    transaction.insert(&indexed, &[Value::Int(5_000), Value::Int(0)]).unwrap();
    transaction.rollback().unwrap();
    let mut transaction = fixture.begin();
    refused(&mut transaction, &indexed);
    let savepoint = transaction.savepoint();
    let emptied = transaction.truncate(&table).unwrap();
    transaction.insert(&emptied, &[Value::Int(1), Value::Int(1)]).unwrap();
    refused(&mut transaction, &table);
    transaction.rollback_to(savepoint).unwrap();
    refused(&mut transaction, &emptied);
    transaction.insert(&table, &[Value::Int(5_000), Value::Int(7)]).unwrap();
    transaction.commit(cairn_table::Durability::Buffered).unwrap();
    assert_eq!(get(&fixture.begin(), &table, 5_000), Some(7));
    // Statistics do not change the layout of rows.
    fixture.run(|transaction| {
        transaction
            .set_statistics(&table, cairn_table::TableStatistics { rows: 1, columns: Vec::new() })
            .unwrap();
    });
    fixture.run(|transaction| transaction.insert(&table, &[Value::Int(5_001), Value::Int(7)]).unwrap());
    assert_eq!(fixture.db.check().unwrap().rows, 2_002);
}

/// Goal: a bulk load that was begun after a savepoint cannot continue after a rollback to it,
/// because its trees are dropped with the transaction.
#[test]
fn rolled_back_load_cannot_continue() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[]);
    let mut transaction = fixture.begin();
    let savepoint = transaction.savepoint();
    let mut load = transaction.bulk_load(&table).unwrap();
    load.push(&mut transaction, &[Value::Int(1), Value::Int(1)]).unwrap();
    transaction.rollback_to(savepoint).unwrap();
    let pushed = load.push(&mut transaction, &[Value::Int(2), Value::Int(2)]);
    assert!(matches!(pushed, Err(Error::Invalid { .. })), "{pushed:?}");
    assert!(matches!(load.finish(&mut transaction), Err(Error::Invalid { .. })));
    transaction.insert(&table, &[Value::Int(3), Value::Int(3)]).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    fixture.run(|transaction| transaction.insert(&table, &[Value::Int(4), Value::Int(4)]).unwrap());
    assert_eq!(all(&fixture.begin(), &table, None), ["3,3", "4,4"]);
    assert_eq!(fixture.db.check().unwrap().lost_pages, 0);
}
