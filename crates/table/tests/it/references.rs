//! Foreign keys under concurrent changes.

use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::schema::{ColumnType, ForeignKeyDef, Referential};
use cairn_table::{Durability, Error, Isolation, Result, RowBuf, Table, Transaction};

use crate::watch::Watch;
use crate::{Fixture, all, column, def, get, index, key, set};

fn refers(name: &str, to: &Table, column: usize, action: Referential) -> ForeignKeyDef {
    ForeignKeyDef {
        name: name.to_owned(),
        columns: vec![1],
        table: to.id(),
        references: vec![column],
        on_delete: action,
        on_update: action,
    }
}

/// Creates a table of parents with a unique number besides their keys, and one of children that
/// reference one of these columns.
fn family(fixture: &Fixture, to: usize, action: Referential) -> (Arc<Table>, Arc<Table>) {
    fixture.run(|transaction| {
        let mut parents = def("parents", &[("id", Type::Int), ("number", Type::Int)], &[0]);
        parents.indexes = vec![index("parents_number", &[1], true)];
        let parents = transaction.create_table(parents).unwrap();
        let mut children = def("children", &[("id", Type::Int), ("parent", Type::Int)], &[0]);
        children.foreign_keys = vec![refers("children_fkey", &parents, to, action)];
        let children = transaction.create_table(children).unwrap();
        (parents, children)
    })
}

fn row(id: i32, value: i32) -> [Value<'static>; 2] {
    [Value::Int(id), Value::Int(value)]
}

type Makes = fn(&mut Transaction, &Arc<Table>) -> Result<()>;

/// Ways in which a parent becomes `(7, 7)` in a transaction that has not ended.
const MAKES: [Makes; 3] = [
    |transaction, parents| transaction.insert(parents, &row(7, 7)),
    |transaction, parents| transaction.update(parents, &key(parents, 1), &row(7, 7)).map(|_| ()),
    |transaction, parents| {
        transaction.insert(parents, &row(7, 8))?;
        transaction.update(parents, &key(parents, 7), &row(7, 7)).map(|_| ())
    },
];

/// Goal: a reference to a row that another transaction is inserting waits for whether that commits,
/// and never relies on a row that is undone. Method: parents made in each way, referenced by
/// primary key and by a unique index, that commit or not while a child waits.
#[test]
fn reference_to_uncommitted_row_waits() {
    for to in [0, 1] {
        for makes in MAKES {
            for commits in [false, true] {
                let (fixture, watch) = Watch::fixture();
                let (parents, children) = family(&fixture, to, Referential::Restrict);
                fixture.run(|transaction| transaction.insert(&parents, &row(1, 1)).unwrap());
                let mut parent = fixture.begin();
                makes(&mut parent, &parents).unwrap();
                let (db, table) = (fixture.db.clone(), Arc::clone(&children));
                let child = watch.start(move || {
                    let mut transaction = db.begin(Isolation::ReadCommitted)?;
                    transaction.insert(&table, &row(10, 7))?;
                    transaction.commit(Durability::Buffered)
                });
                if commits {
                    parent.commit(Durability::Buffered).unwrap();
                } else {
                    parent.rollback().unwrap();
                }
                let inserted = child.join().unwrap();
                match commits {
                    true => inserted.unwrap(),
                    false => assert!(
                        matches!(inserted, Err(Error::ForeignKeyViolation { .. })),
                        "column {to}: {inserted:?}"
                    ),
                }
                assert_eq!(all(&fixture.begin(), &children, None).len(), usize::from(commits));
            }
        }
    }
}

/// Goal: a reference to a row of which others change another column does not wait.
#[test]
fn reference_does_not_wait_for_other_columns() {
    let fixture = Fixture::new();
    let (parents, children) = family(&fixture, 0, Referential::Restrict);
    fixture.run(|transaction| transaction.insert(&parents, &row(7, 1)).unwrap());
    let mut parent = fixture.begin();
    assert!(set(&mut parent, &parents, 7, 2).unwrap());
    // On this thread, which would wait forever.
    fixture.run(|transaction| transaction.insert(&children, &row(10, 7)).unwrap());
    // Own parents exist at once, and are gone at once.
    let savepoint = parent.savepoint();
    parent.insert(&parents, &row(8, 8)).unwrap();
    parent.insert(&children, &row(11, 8)).unwrap();
    parent.rollback_to(savepoint).unwrap();
    let error = parent.insert(&children, &row(11, 8)).unwrap_err();
    assert!(matches!(error, Error::ForeignKeyViolation { .. }), "{error:?}");
}

/// Goal: with read committed, a row is left alone if its reference changes while the removal of its
/// parent waits for it. Method: deletions and key changes of a parent, with each action that
/// changes children, concurrent with an update of the child.
#[test]
fn moved_child_is_left_alone() {
    for action in [Referential::Cascade, Referential::SetNull] {
        for removes in [true, false] {
            let (fixture, watch) = Watch::fixture();
            let (parents, children) = family(&fixture, 0, action);
            fixture.run(|transaction| {
                [1, 2].into_iter().for_each(|id| transaction.insert(&parents, &row(id, id)).unwrap());
                [10, 11].into_iter().for_each(|id| transaction.insert(&children, &row(id, 1)).unwrap());
            });
            let mut leaves = fixture.begin();
            assert!(set(&mut leaves, &children, 10, 2).unwrap());
            let (db, table) = (fixture.db.clone(), Arc::clone(&parents));
            let change = watch.start(move || {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                let done = match removes {
                    true => transaction.delete(&table, &key(&table, 1)),
                    false => transaction.update(&table, &key(&table, 1), &row(3, 3)),
                };
                assert!(done.unwrap());
                transaction.commit(Durability::Buffered).unwrap();
            });
            leaves.commit(Durability::Buffered).unwrap();
            change.join().unwrap();
            let followed = match (action, removes) {
                (Referential::Cascade, true) => vec!["10,2"],
                (Referential::Cascade, false) => vec!["10,2", "11,3"],
                _ => vec!["10,2", "11,null"],
            };
            assert_eq!(all(&fixture.begin(), &children, None), followed, "{action:?} {removes}");
        }
    }
}

/// Goal: inserting a reference and deleting its target wait for each other: a parent is deleted
/// after an earlier child, or not at all. Method: both orders, on two threads.
#[test]
fn reference_and_delete_wait_for_each_other() {
    for child_first in [true, false] {
        let (fixture, watch) = Watch::fixture();
        let (parents, children) = family(&fixture, 0, Referential::Restrict);
        fixture.run(|transaction| transaction.insert(&parents, &row(1, 1)).unwrap());
        let refer =
            |transaction: &mut Transaction, children: &Arc<Table>| transaction.insert(children, &row(10, 1));
        let remove = |transaction: &mut Transaction, parents: &Arc<Table>| {
            transaction.delete(parents, &key(parents, 1)).map(|there| assert!(there))
        };
        let mut first = fixture.begin();
        let (db, parents_there, children_there) =
            (fixture.db.clone(), Arc::clone(&parents), Arc::clone(&children));
        if child_first {
            refer(&mut first, &children).unwrap();
        } else {
            remove(&mut first, &parents).unwrap();
        }
        let second = watch.start(move || {
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            match child_first {
                true => remove(&mut transaction, &parents_there)?,
                false => refer(&mut transaction, &children_there)?,
            }
            transaction.commit(Durability::Buffered)
        });
        assert!(!second.is_finished());
        first.commit(Durability::Buffered).unwrap();
        let refused = second.join().unwrap();
        assert!(matches!(refused, Err(Error::ForeignKeyViolation { .. })), "{child_first}: {refused:?}");
        let left =
            (all(&fixture.begin(), &parents, None).len(), all(&fixture.begin(), &children, None).len());
        assert_eq!(left, if child_first { (1, 1) } else { (0, 0) });
    }
}

fn tree(fixture: &Fixture, name: &str, action: Referential) -> Arc<Table> {
    fixture.run(|transaction| {
        let mut nodes = def(name, &[("id", Type::Int), ("parent", Type::Int)], &[0]);
        nodes.foreign_keys = vec![ForeignKeyDef {
            name: format!("{name}_fkey"),
            columns: vec![1],
            table: 0,
            references: vec![0],
            on_delete: action,
            on_update: action,
        }];
        let nodes = transaction.create_table(nodes).unwrap();
        transaction.insert(&nodes, &row(1, 1)).unwrap();
        transaction.insert(&nodes, &row(2, 1)).unwrap();
        transaction.insert(&nodes, &row(3, 3)).unwrap();
        nodes
    })
}

/// Goal: a row that references itself can be deleted, and can change its key if it keeps
/// referencing itself; for a row that others reference, the action applies.
#[test]
fn self_referencing_rows() {
    let fixture = Fixture::new();
    for (name, action) in
        [("a", Referential::Restrict), ("b", Referential::Cascade), ("c", Referential::SetNull)]
    {
        let nodes = tree(&fixture, name, action);
        fixture
            .run(|transaction| assert!(transaction.delete(&nodes, &key(&nodes, 3)).unwrap(), "{action:?}"));
        assert_eq!(get(&fixture.begin(), &nodes, 3), None);
        fixture.run(|transaction| transaction.insert(&nodes, &row(3, 3)).unwrap());
        fixture.run(|transaction| {
            assert!(transaction.update(&nodes, &key(&nodes, 3), &row(4, 4)).unwrap(), "{action:?}");
        });
        assert_eq!(get(&fixture.begin(), &nodes, 4), Some(4));
        // The row would reference its former key.
        let mut transaction = fixture.begin();
        let moved = transaction.update(&nodes, &key(&nodes, 4), &row(5, 4));
        match action {
            Referential::Restrict => {
                assert!(matches!(moved, Err(Error::ForeignKeyViolation { .. })), "{moved:?}");
            }
            _ => {
                assert!(moved.unwrap());
                let expected = if action == Referential::Cascade { "5,5" } else { "5,null" };
                assert_eq!(all(&transaction, &nodes, None).last().unwrap(), expected);
            }
        }
        transaction.rollback().unwrap();
        let mut transaction = fixture.begin();
        let gone = transaction.delete(&nodes, &key(&nodes, 1));
        let rows = || all(&transaction, &nodes, None);
        match action {
            Referential::Restrict => {
                assert!(matches!(gone, Err(Error::ForeignKeyViolation { .. })), "{gone:?}");
            }
            Referential::Cascade => assert_eq!((gone.unwrap(), rows()), (true, vec!["4,4".to_owned()])),
            _ => assert_eq!((gone.unwrap(), rows()), (true, vec!["2,null".to_owned(), "4,4".to_owned()])),
        }
    }
}

/// Goal: a foreign key between columns of different types is refused when it is declared, whether
/// they differ in type or in scale.
#[test]
fn foreign_key_types_must_match() {
    let fixture = Fixture::new();
    let kinds: [ColumnType; 5] = [
        Type::Int.into(),
        Type::BigInt.into(),
        Type::Text.into(),
        ColumnType::decimal(10, 2),
        ColumnType::decimal(12, 4),
    ];
    for (at, parent) in kinds.iter().enumerate() {
        for (other, child) in kinds.iter().enumerate() {
            let mut transaction = fixture.begin();
            let mut parents = def("parents", &[], &[0]);
            parents.columns = vec![column("id", parent.clone())];
            let parents = transaction.create_table(parents).unwrap();
            let mut children = def("children", &[("id", Type::Int)], &[0]);
            children.columns.push(column("parent", child.clone()));
            children.foreign_keys = vec![refers("children_fkey", &parents, 0, Referential::Cascade)];
            let made = transaction.create_table(children);
            if at == other || (parent.kind.is_integer() && child.kind.is_integer()) {
                made.unwrap();
            } else {
                let error = made.unwrap_err();
                assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
                assert!(error.to_string().contains("children_fkey"), "{error}");
            }
        }
    }
    // More digits before the decimal point, or a greater maximum length, do not change the values.
    let mut transaction = fixture.begin();
    let mut parents = def("parents", &[], &[0]);
    parents.columns = vec![column("id", ColumnType::decimal(12, 2))];
    let parents = transaction.create_table(parents).unwrap();
    let mut children = def("children", &[("id", Type::Int)], &[0]);
    children.columns.push(column("parent", ColumnType::decimal(10, 2)));
    children.foreign_keys = vec![refers("children_fkey", &parents, 0, Referential::Cascade)];
    transaction.create_table(children).unwrap();
}

/// Goal: a child that was locked, and then changed by a change of its parent, is deleted in its
/// current version: with its current index entry, and restored by a rollback. Method: locks it,
/// deletes the parent, deletes it; commits or rolls back.
#[test]
fn locked_child_is_deleted_in_current_version() {
    for commits in [false, true] {
        let fixture = Fixture::new();
        let (parents, children) = family(&fixture, 0, Referential::SetNull);
        let children = fixture.run(|transaction| {
            transaction.create_index(&children, index("children_parent", &[1], false)).unwrap()
        });
        fixture.run(|transaction| {
            transaction.insert(&parents, &row(7, 7)).unwrap();
            transaction.insert(&children, &row(10, 7)).unwrap();
        });
        let mut transaction = fixture.begin();
        assert!(transaction.lock(&children, &key(&children, 10), &mut RowBuf::default()).unwrap());
        assert!(transaction.delete(&parents, &key(&parents, 7)).unwrap());
        assert!(transaction.delete(&children, &key(&children, 10)).unwrap());
        let left = if commits {
            transaction.commit(Durability::Buffered).unwrap();
            None
        } else {
            transaction.rollback().unwrap();
            Some(7)
        };
        assert_eq!(get(&fixture.begin(), &children, 10), left);
        fixture.db.check().unwrap();
    }
}

/// Goal: a referenced table can get other rows and types, as long as the foreign keys remain valid.
/// Method: a key of another width, with its rows, after reopening; a text; without the key; a
/// definition with more columns; and all of this rolled back.
#[test]
fn referenced_table_can_be_replaced() {
    let fixture = Fixture::new();
    let (parents, children) = family(&fixture, 0, Referential::NoAction);
    let def = parents.def().clone();
    let with = |kind: Type| {
        let mut def = def.clone();
        def.columns[0].kind = kind.into();
        def
    };
    let before = all(&fixture.begin(), &parents, None);
    let mut transaction = fixture.begin();
    let refused = transaction.bulk_replace(&parents, with(Type::Text)).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    let mut keyless = with(Type::BigInt);
    keyless.primary_key.clear();
    let refused = transaction.bulk_replace(&parents, keyless).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    let mut wider = with(Type::BigInt);
    wider.columns.push(column("more", Type::Int));
    let refused = transaction.bulk_replace(&parents, wider).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    transaction.bulk_replace(&parents, with(Type::BigInt)).unwrap().finish().unwrap();
    transaction.rollback().unwrap();
    assert_eq!(all(&fixture.begin(), &parents, None), before);
    fixture.run(|transaction| {
        let mut rows = transaction.bulk_replace(&parents, with(Type::BigInt)).unwrap();
        for id in 1..=5_000 {
            rows.push(&[Value::BigInt(id), Value::Int(id as i32)]).unwrap();
        }
        assert_eq!(rows.finish().unwrap(), 5_000);
    });
    drop((parents, children));
    let fixture = fixture.reopen();
    let (parents, children) = (fixture.table("parents"), fixture.table("children"));
    assert_eq!(all(&fixture.begin(), &parents, None).len(), 5_000);
    let mut transaction = fixture.begin();
    let row = |parent| [Value::Int(1_000), Value::Int(parent)];
    assert!(matches!(
        transaction.insert(&children, &row(5_001)).unwrap_err(),
        Error::ForeignKeyViolation { .. }
    ));
    transaction.insert(&children, &row(5_000)).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
}

/// A change of the child `(10, 1)` by a transaction that has not ended.
type Leaves = fn(&mut Transaction, &Arc<Table>);

/// Ways in which a child may be removed or locked.
const LEAVES: [Leaves; 4] = [
    |transaction, children| assert!(transaction.delete(children, &key(children, 10)).unwrap()),
    // Its key and its reference change.
    |transaction, children| {
        assert!(transaction.update(children, &key(children, 10), &row(12, 2)).unwrap());
    },
    // Locked first, to be deleted later.
    |transaction, children| {
        let mut record = RowBuf::default();
        assert!(transaction.lock(children, &key(children, 10), &mut record).unwrap());
    },
    // Its unique column changes.
    |transaction, children| {
        assert!(transaction.update(children, &key(children, 10), &row(10, 2)).unwrap());
    },
];

/// Goal: removing a row, or its key, waits for the transaction that is removing the last row which
/// references it, as in PostgreSQL, and is refused only if that one is undone. Method: each way of
/// removing the child, with an index on its column and without, and of removing the parent; commits
/// and rollbacks.
#[test]
fn delete_waits_for_child_being_deleted() {
    for action in [Referential::NoAction, Referential::Restrict] {
        for (way, leave) in LEAVES.into_iter().enumerate() {
            for (commits, removes) in [(true, true), (true, false), (false, true), (false, false)] {
                let context = format!("{action:?}, way {way}, commits: {commits}, removes: {removes}");
                let (fixture, watch) = Watch::fixture();
                let (parents, children) = family(&fixture, 0, action);
                // If the parent is updated and its key is the primary key, the child's column has
                // no index, so the table is scanned.
                let indexed = way == 3 || removes;
                let children = fixture.run(|transaction| {
                    [1, 2].into_iter().for_each(|id| transaction.insert(&parents, &row(id, id)).unwrap());
                    transaction.insert(&children, &row(10, 1)).unwrap();
                    if indexed {
                        let by = index("children_parent", &[1], way == 3);
                        return transaction.create_index(&children, by).unwrap();
                    }
                    Arc::clone(&children)
                });
                let mut leaves = fixture.begin();
                leave(&mut leaves, &children);
                let (db, table) = (fixture.db.clone(), Arc::clone(&parents));
                let parent = watch.start(move || {
                    let mut transaction = db.begin(Isolation::ReadCommitted)?;
                    match removes {
                        true => transaction.delete(&table, &key(&table, 1))?,
                        false => transaction.update(&table, &key(&table, 1), &row(3, 1))?,
                    };
                    transaction.commit(Durability::Buffered)
                });
                assert!(!parent.is_finished(), "{context}");
                if commits {
                    if way == 2 {
                        assert!(leaves.delete(&children, &key(&children, 10)).unwrap());
                    }
                    leaves.commit(Durability::Buffered).unwrap();
                    parent.join().unwrap().unwrap_or_else(|error| panic!("{context}: {error}"));
                } else {
                    leaves.rollback().unwrap();
                    let refused = parent.join().unwrap();
                    assert!(
                        matches!(refused, Err(Error::ForeignKeyViolation { .. })),
                        "{context}: {refused:?}"
                    );
                }
                fixture.db.check().unwrap();
            }
        }
    }
}

/// Goal: a child that stays, though its other columns are being changed, is no reason to wait;
/// neither is one of two children. Method: on one thread, which would wait forever.
#[test]
fn delete_does_not_wait_for_child_that_stays() {
    let fixture = Fixture::new();
    let (parents, children) = family(&fixture, 0, Referential::NoAction);
    fixture.run(|transaction| {
        [1, 2].into_iter().for_each(|id| transaction.insert(&parents, &row(id, id)).unwrap());
        [10, 11].into_iter().for_each(|id| transaction.insert(&children, &row(id, 1)).unwrap());
    });
    let refused = |what: &str| {
        let mut transaction = fixture.begin();
        let refused = transaction.delete(&parents, &key(&parents, 1));
        assert!(matches!(refused, Err(Error::ForeignKeyViolation { .. })), "{what}: {refused:?}");
    };
    let mut other = fixture.begin();
    // Once that commits, it references another row; it is refused now, as in PostgreSQL.
    assert!(set(&mut other, &children, 10, 2).unwrap());
    refused("its reference is changed");
    other.rollback().unwrap();
    let mut other = fixture.begin();
    assert!(other.delete(&children, &key(&children, 11)).unwrap());
    refused("another one stays");
    // Children that this transaction has deleted are gone at once.
    let mut own = fixture.begin();
    own.begin_changes();
    assert!(own.delete(&children, &key(&children, 10)).unwrap());
    other.commit(Durability::Buffered).unwrap();
    assert!(own.delete(&parents, &key(&parents, 1)).unwrap());
    own.end_changes().unwrap();
    own.commit(Durability::Buffered).unwrap();
    fixture.db.check().unwrap();
}

/// Goal: a transaction with a single snapshot that waits for the deletion of a child fails with a
/// serialization failure, as in PostgreSQL; two that wait for each other are a deadlock.
#[test]
fn delete_waiting_for_child_fails_to_serialize() {
    for level in [Isolation::Snapshot, Isolation::Serializable] {
        let (fixture, watch) = Watch::fixture();
        let (parents, children) = family(&fixture, 0, Referential::NoAction);
        fixture.run(|transaction| {
            transaction.insert(&parents, &row(1, 1)).unwrap();
            transaction.insert(&children, &row(10, 1)).unwrap();
        });
        let mut leaves = fixture.begin();
        assert!(leaves.delete(&children, &key(&children, 10)).unwrap());
        let (db, table) = (fixture.db.clone(), Arc::clone(&parents));
        let parent = watch.start(move || db.begin(level)?.delete(&table, &key(&table, 1)));
        assert!(!parent.is_finished());
        // The other transaction holds the parent's key and waits for this one.
        let circle = leaves.insert(&children, &row(11, 1));
        assert!(matches!(circle, Err(Error::Deadlock { .. })), "{level:?}: {circle:?}");
        leaves.commit(Durability::Buffered).unwrap();
        let failed = parent.join().unwrap();
        assert!(matches!(failed, Err(Error::SerializationFailure { .. })), "{level:?}: {failed:?}");
    }
}
