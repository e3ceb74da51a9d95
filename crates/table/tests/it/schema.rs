use cairn_table::row::{Type, Value};
use cairn_table::schema::ViewDef;
use cairn_table::{ColumnStatistics, TableStatistics};

use crate::{Fixture, all, column, def, index, key};

/// Goal: tables, indexes, views and namespaces are created, changed and dropped transactionally,
/// and persist across reopening.
#[test]
fn schema_changes_are_transactional() {
    let fixture = made_and_changed();
    let fixture = fixture.reopen();
    let table = fixture.table("renamed");
    assert_eq!(table.statistics().unwrap().columns[0].distinct, 3);
    assert_eq!((table.rows(), all(&fixture.begin(), &table, Some(0)).len()), (3, 3));
    assert!(fixture.begin().view().catalog().view("other", "v").is_some());
    fixture.run(|transaction| transaction.drop_index(&table, 0).unwrap());
    fixture.run(|transaction| transaction.truncate(&table).unwrap());
    assert!(all(&fixture.begin(), &fixture.table("renamed"), None).is_empty());
    fixture.run(|transaction| {
        transaction.drop_view("other", "v").unwrap();
        transaction.drop_schema("other").unwrap();
        transaction.drop_table(&table).unwrap();
    });
    drop(table);
    fixture.run(|_| ());
    fixture.pairs(&[(1, 1)]);
    let fixture = fixture.reopen();
    assert_eq!(fixture.begin().view().catalog().tables().count(), 1);
    let (pages, free) = fixture.db.pages().unwrap();
    assert!(pages - free <= 4, "{free} of {pages} pages are free");
}

fn made_and_changed() -> Fixture {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 30), (2, 20), (3, 10)]);
    let mut transaction = fixture.begin();
    transaction.create_index(&table, index("t_v", &[1], true)).unwrap();
    transaction.rollback().unwrap();
    assert!(fixture.table("t").def().indexes.is_empty());
    let table =
        fixture.run(|transaction| transaction.create_index(&table, index("t_v", &[1], true)).unwrap());
    assert_eq!(all(&fixture.begin(), &table, Some(0)), ["3,10", "2,20", "1,30"]);
    let table = fixture.run(|transaction| {
        let mut def = table.def().clone();
        def.name = "renamed".to_owned();
        def.columns.insert(1, column("new", Type::Text));
        def.indexes[0].columns[0].column = 2;
        let columns = [Some(0), None, Some(1)];
        let fill = [Value::Null, Value::Text("filled"), Value::Null];
        transaction.alter_table(&table, def, &columns, &fill).unwrap()
    });
    assert_eq!(all(&fixture.begin(), &table, None), ["1,filled,30", "2,filled,20", "3,filled,10"]);
    fixture.run(|transaction| {
        transaction.create_schema("other").unwrap();
        let query = "SELECT 1".to_owned();
        let view = ViewDef { schema: "other".to_owned(), name: "v".to_owned(), columns: Vec::new(), query };
        transaction.create_view(view.clone(), false).unwrap();
        assert_eq!(
            transaction.create_view(view.clone(), false).unwrap_err().to_string(),
            "relation \"v\" already exists"
        );
        transaction.create_view(view, true).unwrap();
        let column =
            ColumnStatistics { distinct: 3, min: Some(Value::Int(1).into()), ..ColumnStatistics::default() };
        let columns = vec![column, ColumnStatistics::default(), ColumnStatistics::default()];
        transaction.set_statistics(&table, TableStatistics { rows: 3, columns }).unwrap();
    });
    fixture
}

/// Goal: rows inserted in bulk, in order or not, are the same as those inserted one by one;
/// duplicate keys are refused.
#[test]
fn bulk_rows_equal_single_rows() {
    let fixture = Fixture::new();
    for ordered in [true, false] {
        let name = if ordered { "a" } else { "b" };
        let id = |at: i32| if ordered { at } else { at * 7919 % 30_000 };
        let table = fixture.run(|transaction| {
            let mut def = def(name, &[("id", Type::Int), ("v", Type::Text)], &[0]);
            def.indexes = vec![index(&format!("{name}_v"), &[1], false)];
            let table = transaction.create_table(def).unwrap();
            let mut bulk = transaction.bulk_insert(&table).unwrap();
            for at in 0..30_000 {
                let text = format!("value {}", id(at) % 100);
                bulk.push(&[Value::Int(id(at)), Value::Text(&text)]).unwrap();
            }
            assert_eq!(bulk.finish().unwrap(), 30_000);
            table
        });
        let table = fixture.table(table.def().name.as_str());
        let rows = all(&fixture.begin(), &table, None);
        assert_eq!((rows.len(), &*rows[0], &*rows[29_999]), (30_000, "0,value 0", "29999,value 99"));
        assert_eq!(all(&fixture.begin(), &table, Some(0))[300], "1,value 1");
        fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, 100)).unwrap()));
        fixture.run(|transaction| {
            let mut bulk = transaction.bulk_insert(&table).unwrap();
            bulk.push(&[Value::Int(100), Value::Null]).unwrap();
            assert_eq!(bulk.finish().unwrap(), 1);
        });
        assert_eq!(all(&fixture.begin(), &table, Some(0)).len(), 30_000);
    }
    let mut transaction = fixture.begin();
    let table = transaction.create_table(def("c", &[("id", Type::Int)], &[0])).unwrap();
    let mut bulk = transaction.bulk_insert(&table).unwrap();
    for id in [1, 3, 2, 3] {
        bulk.push(&[Value::Int(id)]).unwrap();
    }
    assert_eq!(
        bulk.finish().unwrap_err().to_string(),
        "duplicate key value violates unique constraint \"c_pkey\""
    );
}

/// Goal: trees are built from keys of several columns, whatever prefix adjacent keys share. Method:
/// rows with little besides their key, so that nodes end at every kind of boundary, with keys that
/// grow by one, by hundreds and by jumps.
#[test]
fn bulk_with_long_keys() {
    for step in [1_i64, 3, 257, 65_537] {
        let fixture = Fixture::new();
        let table = fixture.run(|transaction| {
            let columns = [("a", Type::BigInt), ("b", Type::Int), ("c", Type::Text)];
            transaction.create_table(def("t", &columns, &[0, 2, 1])).unwrap()
        });
        let rows = 40_000_i64;
        let mut transaction = fixture.begin();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        for at in 0..rows {
            let text = "abc".repeat((at % 7) as usize) + &format!("{:03}", at % 11);
            let (a, b) = (at / 4 * step, (at % 4) as i32);
            bulk.push(&[Value::BigInt(a), Value::Int(b), Value::Text(&text)]).unwrap();
        }
        assert_eq!(bulk.finish().unwrap(), rows as u64);
        transaction.commit(cairn_table::Durability::Buffered).unwrap();
        assert_eq!(fixture.db.check().unwrap().rows, rows as u64, "step {step}");
    }
}

/// Goal: statistics of a table last as long as its rows, in memory and on disk. Method: changes
/// that keep the rows, and then one that truncates the table; each also after reopening.
#[test]
fn statistics_last_as_long_as_rows() {
    let mut fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10), (2, 20)]);
    fixture.run(|transaction| {
        let columns = vec![ColumnStatistics { distinct: 2, ..ColumnStatistics::default() }; 2];
        transaction.set_statistics(&table, TableStatistics { rows: 2, columns }).unwrap();
    });
    drop(table);
    let known = |fixture: &Fixture| fixture.table("t").statistics().map(|found| found.columns[1].distinct);
    for step in 0..4 {
        let table = fixture.table("t");
        fixture.run(|transaction| match step {
            0 => _ = transaction.create_index(&table, index("t_v", &[1], false)).unwrap(),
            1 => {
                let def = table.def().clone();
                _ = transaction.alter_table(&table, def, &[Some(0), Some(1)], &[Value::Null; 2]).unwrap();
            }
            2 => _ = transaction.drop_index(&table, 0).unwrap(),
            _ => _ = transaction.truncate(&table).unwrap(),
        });
        drop(table);
        let expected = (step < 3).then_some(2);
        assert_eq!(known(&fixture), expected, "{step}");
        fixture = fixture.reopen();
        assert_eq!(known(&fixture), expected, "{step}, opened again");
    }
    assert_eq!(fixture.table("t").rows(), 0);
}
