use cairn_table::Error;
use cairn_table::row::{Type, Value};
use cairn_table::schema::{ColumnType, ForeignKeyDef, Referential};

use crate::{Fixture, all, column, def, index, key};

/// Goal: rows that violate a constraint are refused, with an error that names the constraint, the
/// table and the values, and leave no trace.
#[test]
fn constraint_violations_are_refused() {
    let fixture = Fixture::new();
    let table = fixture.run(|transaction| {
        let mut def = def("t", &[("id", Type::Int), ("code", Type::Text)], &[0]);
        def.columns[1].nullable = false;
        def.columns.push(column("short", ColumnType::varchar(3)));
        def.columns.push(column("amount", ColumnType::decimal(4, 2)));
        def.indexes = vec![index("t_code", &[1], true)];
        let table = transaction.create_table(def).unwrap();
        let row = [Value::Int(1), Value::Text("x"), Value::Text("äöü"), Value::Decimal(9_999)];
        transaction.insert(&table, &row).unwrap();
        table
    });
    let tries = [
        (
            [Value::Int(1), Value::Text("y"), Value::Null, Value::Null],
            "duplicate key value violates unique constraint \"t_pkey\"",
        ),
        (
            [Value::Int(2), Value::Text("x"), Value::Null, Value::Null],
            "duplicate key value violates unique constraint \"t_code\"",
        ),
        (
            [Value::Int(2), Value::Null, Value::Null, Value::Null],
            "null value in column \"code\" of relation \"t\" violates not-null constraint",
        ),
        (
            [Value::Null, Value::Text("z"), Value::Null, Value::Null],
            "null value in column \"id\" of relation \"t\" violates not-null constraint",
        ),
        (
            [Value::Int(2), Value::Text("y"), Value::Text("abcd"), Value::Null],
            "value too long for type varchar(3) in column \"short\"",
        ),
        (
            [Value::Int(2), Value::Text("y"), Value::Null, Value::Decimal(10_000)],
            "numeric field overflow in column \"amount\" of type decimal(4,2)",
        ),
        (
            [Value::Int(2), Value::Text("y"), Value::Int(3), Value::Null],
            "column \"short\" is of type varchar(3), but the value 3 is not",
        ),
        (
            [Value::Int(2), Value::Text("\0"), Value::Null, Value::Null],
            "column \"code\" is of type text, but a text cannot have a zero byte",
        ),
    ];
    for (row, message) in tries {
        let mut transaction = fixture.begin();
        let savepoint = transaction.savepoint();
        assert_eq!(transaction.insert(&table, &row).unwrap_err().to_string(), message);
        transaction.rollback_to(savepoint).unwrap();
        let row = [Value::Int(3), Value::Text("w"), Value::Null, Value::Null];
        transaction.insert(&table, &row).unwrap();
        assert_eq!(
            transaction.update(&table, &key(&table, 3), &tries[1].0).unwrap_err().to_string(),
            tries[1].1
        );
        transaction.rollback().unwrap();
    }
    assert_eq!(all(&fixture.begin(), &table, None), ["1,x,äöü,9999"]);
}

/// Goal: foreign keys keep rows from being deleted, or change the referencing rows, as declared.
/// For concurrent changes see `references.rs`.
#[test]
fn foreign_keys_restrict_or_apply_actions() {
    let fixture = Fixture::new();
    let actions = [Referential::NoAction, Referential::Cascade, Referential::SetNull];
    let parent = fixture.pairs(&[(1, 0), (2, 0), (3, 0), (4, 0)]);
    let children: Vec<_> = actions
        .iter()
        .enumerate()
        .map(|(at, &action)| {
            fixture.run(|transaction| {
                let mut def = def(&format!("c{at}"), &[("id", Type::Int), ("parent", Type::Int)], &[0]);
                def.foreign_keys.push(ForeignKeyDef {
                    name: format!("c{at}_parent_fkey"),
                    columns: vec![1],
                    table: parent.id(),
                    references: vec![0],
                    on_delete: action,
                    on_update: action,
                });
                if at == 1 {
                    def.indexes.push(index("c1_parent", &[1], false));
                }
                let table = transaction.create_table(def).unwrap();
                let refers = |id: i32, to: Value<'static>| [Value::Int(id), to];
                transaction.insert(&table, &refers(10, Value::Int(at as i32 + 1))).unwrap();
                transaction.insert(&table, &refers(11, Value::Null)).unwrap();
                table
            })
        })
        .collect();
    let mut transaction = fixture.begin();
    let error = transaction.insert(&children[0], &[Value::Int(1), Value::Int(99)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "insert or update on table \"c0\" violates foreign key constraint \"c0_parent_fkey\""
    );
    let Error::ForeignKeyViolation { detail, .. } = error else { panic!() };
    assert_eq!(detail, "Key (parent)=(99) is not present in table \"t\".");
    let savepoint = transaction.savepoint();
    let error = transaction.delete(&parent, &key(&parent, 1)).unwrap_err();
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(
        error.to_string(),
        "update or delete on table \"t\" violates foreign key constraint \"c0_parent_fkey\" on table \"c0\""
    );
    assert!(transaction.drop_table(&parent).unwrap_err().to_string().contains("depend on it"));
    transaction.rollback().unwrap();
    // Other columns may change.
    fixture.run(|transaction| {
        transaction.update(&parent, &key(&parent, 1), &[Value::Int(1), Value::Int(7)]).unwrap()
    });
    fixture.run(|transaction| {
        assert!(transaction.update(&parent, &key(&parent, 2), &[Value::Int(20), Value::Int(0)]).unwrap());
        assert!(transaction.update(&parent, &key(&parent, 3), &[Value::Int(30), Value::Int(0)]).unwrap());
    });
    let rows = |at: usize| all(&fixture.begin(), &children[at], None);
    assert_eq!(
        (rows(1), rows(2)),
        (vec!["10,20".into(), "11,null".into()], vec!["10,null".into(), "11,null".into()])
    );
    fixture.run(|transaction| assert!(transaction.delete(&parent, &key(&parent, 20)).unwrap()));
    assert_eq!(rows(1), ["11,null"]);
    assert_eq!(all(&fixture.begin(), &children[1], Some(0)), ["11,null"]);
}
