//! Foreign keys and statements of several changes: only the state after the last change counts.

use std::cell::Cell;
use std::sync::Arc;

use cairn_table::row::{Type, Value};
use cairn_table::schema::{ForeignKeyDef, Referential};
use cairn_table::{
    Canceller, Database, Durability, Error, Isolation, OwnedValue, Result, Rules, Table, Transaction,
};

use crate::watch::Watch;
use crate::{Fixture, all, def, index, key};

/// Creates a table of nodes that reference one another, `id` and `parent`.
fn nodes(fixture: &Fixture, name: &str, action: Referential) -> Arc<Table> {
    fixture.run(|transaction| {
        let mut nodes = def(name, &[("id", Type::Int), ("parent", Type::Int)], &[0]);
        nodes.indexes = vec![index(&format!("{name}_parent"), &[1], false)];
        nodes.foreign_keys = vec![refers(&format!("{name}_fkey"), 0, action)];
        transaction.create_table(nodes).unwrap()
    })
}

fn refers(name: &str, table: u32, action: Referential) -> ForeignKeyDef {
    ForeignKeyDef {
        name: name.to_owned(),
        columns: vec![1],
        table,
        references: vec![0],
        on_delete: action,
        on_update: action,
    }
}

fn row(id: i32, parent: Option<i32>) -> [Value<'static>; 2] {
    [Value::Int(id), parent.map_or(Value::Null, Value::Int)]
}

fn insert(transaction: &mut Transaction, table: &Arc<Table>, id: i32, parent: i32) -> Result<()> {
    transaction.insert(table, &row(id, Some(parent)))
}

fn refused<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::ForeignKeyViolation { .. })), "{result:?}");
}

/// Goal: a cascade may be longer than any stack. Method: a chain of 30,000 rows, the first of which
/// is deleted; a thread has room for some thousand calls.
#[test]
fn cascade_is_not_bounded_by_stack() {
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::Cascade);
    fixture.run(|transaction| {
        transaction.insert(&nodes, &row(0, None)).unwrap();
        (1..30_000).for_each(|id| insert(transaction, &nodes, id, id - 1).unwrap());
        transaction.insert(&nodes, &row(-1, None)).unwrap();
    });
    fixture.run(|transaction| assert!(transaction.delete(&nodes, &key(&nodes, 0)).unwrap()));
    assert_eq!(all(&fixture.begin(), &nodes, None), ["-1,null"]);
    assert_eq!(fixture.db.check().unwrap().rows, 1);
}

/// Goal: a cascade can be cancelled.
#[test]
fn cascade_can_be_cancelled() {
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::Cascade);
    fixture.run(|transaction| {
        transaction.insert(&nodes, &row(0, None)).unwrap();
        (1..10).for_each(|id| insert(transaction, &nodes, id, id - 1).unwrap());
    });
    let canceller = Canceller::new();
    let mut transaction = fixture.db.begin_with(Isolation::ReadCommitted, &canceller, None).unwrap();
    transaction.begin_changes();
    assert!(transaction.delete(&nodes, &key(&nodes, 0)).unwrap());
    canceller.cancel();
    let stopped = transaction.end_changes();
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    canceller.reset();
    // The commit does the remaining work.
    transaction.commit(Durability::Buffered).unwrap();
    assert!(all(&fixture.begin(), &nodes, None).is_empty());
}

/// Goal: within a statement, rows may reference rows that are inserted later, and may be deleted
/// before those that reference them; a change that is a statement of its own may not. Method: two
/// rows that reference each other, with each action that refuses.
#[test]
fn statement_may_reference_later_rows() {
    let fixture = Fixture::new();
    for (name, action) in [("a", Referential::NoAction), ("b", Referential::Restrict)] {
        let nodes = nodes(&fixture, name, action);
        fixture.run(|transaction| refused(insert(transaction, &nodes, 1, 2)));
        fixture.run(|transaction| {
            transaction.begin_changes();
            insert(transaction, &nodes, 1, 2).unwrap();
            insert(transaction, &nodes, 2, 1).unwrap();
            transaction.end_changes().unwrap();
        });
        assert_eq!(all(&fixture.begin(), &nodes, None), ["1,2", "2,1"]);
        let mut alone = fixture.begin();
        refused(alone.delete(&nodes, &key(&nodes, 1)));
        alone.rollback().unwrap();
        fixture.run(|transaction| {
            transaction.begin_changes();
            assert!(transaction.delete(&nodes, &key(&nodes, 1)).unwrap());
            assert!(transaction.delete(&nodes, &key(&nodes, 2)).unwrap());
            transaction.end_changes().unwrap();
        });
        assert!(all(&fixture.begin(), &nodes, None).is_empty());
    }
}

/// Goal: rows of a statement that a foreign key would change are changed by the statement itself;
/// afterwards the action applies only to those it has left.
#[test]
fn statement_changes_rows_before_actions() {
    let fixture = Fixture::new();
    let gone = nodes(&fixture, "a", Referential::Cascade);
    let empty = nodes(&fixture, "b", Referential::SetNull);
    for nodes in [&gone, &empty] {
        fixture.run(|transaction| {
            transaction.insert(nodes, &row(1, None)).unwrap();
            [2, 3].into_iter().for_each(|id| insert(transaction, nodes, id, 1).unwrap());
            transaction.begin_changes();
            for id in [1, 2] {
                assert!(transaction.delete(nodes, &key(nodes, id)).unwrap(), "{id}");
            }
            assert_eq!(all(transaction, nodes, None), ["3,1"]);
            transaction.end_changes().unwrap();
        });
    }
    assert!(all(&fixture.begin(), &gone, None).is_empty());
    assert_eq!(all(&fixture.begin(), &empty, None), ["3,null"]);
}

/// Goal: rows that reference a key that one row gives up and another one takes remain valid, unless
/// the foreign key says RESTRICT.
#[test]
fn reused_key_keeps_references_valid() {
    let fixture = Fixture::new();
    let parents = fixture.pairs(&[(1, 0), (2, 0)]);
    for (name, action) in [("a", Referential::NoAction), ("b", Referential::Restrict)] {
        let children = fixture.run(|transaction| {
            let mut children = def(name, &[("id", Type::Int), ("parent", Type::Int)], &[0]);
            children.foreign_keys = vec![refers(&format!("{name}_fkey"), parents.id(), action)];
            let children = transaction.create_table(children).unwrap();
            insert(transaction, &children, 10, 1).unwrap();
            children
        });
        let mut transaction = fixture.begin();
        transaction.begin_changes();
        for id in [1, 2] {
            let moved = transaction.update(&parents, &key(&parents, id), &row(id - 1, None));
            assert!(moved.unwrap());
        }
        match action {
            Referential::NoAction => transaction.end_changes().unwrap(),
            _ => refused(transaction.end_changes()),
        }
        transaction.rollback().unwrap();
        fixture.run(|transaction| {
            assert!(transaction.delete(&children, &key(&children, 10)).unwrap());
            transaction.drop_table(&children).unwrap();
        });
    }
}

/// Goal: references hold when keys change meanwhile, both for rows that follow and for rows still
/// to be checked.
#[test]
fn references_hold_when_keys_change() {
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::Cascade);
    fixture.run(|transaction| {
        transaction.insert(&nodes, &row(3, None)).unwrap();
        [1, 2].into_iter().for_each(|id| insert(transaction, &nodes, id, 3).unwrap());
    });
    fixture.run(|transaction| {
        transaction.begin_changes();
        for (id, parent) in [(1, Some(3)), (2, Some(3)), (3, None)] {
            assert!(transaction.update(&nodes, &key(&nodes, id), &row(id + 10, parent)).unwrap());
        }
        transaction.end_changes().unwrap();
    });
    assert_eq!(all(&fixture.begin(), &nodes, None), ["11,13", "12,13", "13,null"]);
    let mut transaction = fixture.begin();
    transaction.begin_changes();
    insert(&mut transaction, &nodes, 1, 99).unwrap();
    assert!(transaction.update(&nodes, &key(&nodes, 1), &row(5, Some(99))).unwrap());
    let error = transaction.end_changes().unwrap_err();
    let Error::ForeignKeyViolation { detail, .. } = error else { panic!("{error:?}") };
    assert_eq!(detail, "Key (parent)=(99) is not present in table \"n\".");
    transaction.rollback().unwrap();
    // A row that was deleted, or references another row, no longer needs the check.
    fixture.run(|transaction| {
        transaction.begin_changes();
        [1, 2].into_iter().for_each(|id| insert(transaction, &nodes, id, 99).unwrap());
        assert!(transaction.delete(&nodes, &key(&nodes, 1)).unwrap());
        assert!(transaction.update(&nodes, &key(&nodes, 2), &row(2, Some(13))).unwrap());
        transaction.end_changes().unwrap();
    });
    assert_eq!(all(&fixture.begin(), &nodes, None), ["2,13", "11,13", "12,13", "13,null"]);
}

/// Goal: nothing commits that was not checked, or failed its check; after a rollback to before the
/// statement, the transaction can continue.
#[test]
fn unchecked_work_does_not_commit() {
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::NoAction);
    fixture.run(|transaction| transaction.insert(&nodes, &row(1, None)).unwrap());
    fixture.run(|transaction| insert(transaction, &nodes, 2, 1).unwrap());
    let breaks: [fn(&mut Transaction, &Arc<Table>); 2] = [
        |transaction, nodes| insert(transaction, nodes, 3, 99).unwrap(),
        |transaction, nodes| assert!(transaction.delete(nodes, &key(nodes, 1)).unwrap()),
    ];
    for change in breaks {
        for ends in [false, true] {
            let mut transaction = fixture.begin();
            transaction.begin_changes();
            change(&mut transaction, &nodes);
            if ends {
                refused(transaction.end_changes());
            }
            refused(transaction.commit(Durability::Buffered));
            // A schema change ends the statement too.
            let mut transaction = fixture.begin();
            transaction.begin_changes();
            change(&mut transaction, &nodes);
            refused(transaction.create_schema("s"));
        }
        fixture.run(|transaction| {
            let savepoint = transaction.savepoint();
            transaction.begin_changes();
            change(transaction, &nodes);
            refused(transaction.end_changes());
            transaction.rollback_to(savepoint).unwrap();
            // Each change is a statement of its own again.
            refused(insert(transaction, &nodes, 3, 99));
            transaction.rollback_to(savepoint).unwrap();
        });
        assert_eq!(all(&fixture.begin(), &nodes, None), ["1,null", "2,1"]);
    }
}

/// Goal: rolling back to a savepoint between the changes of a statement drops exactly the work
/// noted since; it is refused once the statement has ended, because the work noted before is gone
/// then.
#[test]
fn rollback_within_statement_drops_later_work() {
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::NoAction);
    fixture.run(|transaction| {
        transaction.begin_changes();
        insert(transaction, &nodes, 1, 2).unwrap();
        let savepoint = transaction.savepoint();
        insert(transaction, &nodes, 3, 99).unwrap();
        transaction.rollback_to(savepoint).unwrap();
        insert(transaction, &nodes, 2, 1).unwrap();
        transaction.end_changes().unwrap();
        let refused = transaction.rollback_to(savepoint).unwrap_err();
        assert!(matches!(refused, Error::Invalid { .. }), "{refused:?}");
    });
    assert_eq!(all(&fixture.begin(), &nodes, None), ["1,2", "2,1"]);
    let mut transaction = fixture.begin();
    transaction.begin_changes();
    insert(&mut transaction, &nodes, 4, 99).unwrap();
    let savepoint = transaction.savepoint();
    transaction.rollback_to(savepoint).unwrap();
    refused(transaction.end_changes());
}

/// Goal: the state that a statement finds at its end holds until its transaction ends, and so does
/// the work that is pending: others that would delete such rows, or reference them, wait. Method: a
/// row references one that another transaction inserts afterwards, and that a third one then tries
/// to delete; a row is deleted, and another transaction tries to reference it before the end of the
/// statement.
#[test]
fn others_wait_for_checked_state() {
    let (fixture, watch) = Watch::fixture();
    let nodes = nodes(&fixture, "n", Referential::NoAction);
    let other = |work: fn(&mut Transaction, &Arc<Table>) -> Result<()>| {
        let (db, nodes): (Database, _) = (fixture.db.clone(), Arc::clone(&nodes));
        watch.start(move || {
            let mut transaction = db.begin(Isolation::ReadCommitted)?;
            work(&mut transaction, &nodes)?;
            transaction.commit(Durability::Buffered)
        })
    };
    let mut first = fixture.begin();
    first.begin_changes();
    insert(&mut first, &nodes, 1, 2).unwrap();
    let puts = other(|transaction, nodes| transaction.insert(nodes, &row(2, None)));
    puts.join().unwrap().unwrap();
    first.end_changes().unwrap();
    let removes =
        other(|transaction, nodes| transaction.delete(nodes, &key(nodes, 2)).map(|found| assert!(found)));
    assert!(!removes.is_finished());
    first.commit(Durability::Buffered).unwrap();
    refused(removes.join().unwrap());
    assert_eq!(all(&fixture.begin(), &nodes, None), ["1,2", "2,null"]);

    let mut first = fixture.begin();
    first.begin_changes();
    assert!(first.delete(&nodes, &key(&nodes, 2)).unwrap());
    let refers = other(|transaction, nodes| insert(transaction, nodes, 3, 2));
    assert!(!refers.is_finished());
    assert!(first.delete(&nodes, &key(&nodes, 1)).unwrap());
    first.end_changes().unwrap();
    first.commit(Durability::Buffered).unwrap();
    refused(refers.join().unwrap());
    assert!(all(&fixture.begin(), &nodes, None).is_empty());
}

/// Rules that provide a default parent, and refuse another one.
#[derive(Debug)]
struct Parents {
    default: Value<'static>,
    refused: i32,
}

impl Rules for Parents {
    fn default_of(&self, _: &Table, _: usize) -> Result<OwnedValue, Refusal> {
        Ok(self.default.into())
    }

    fn check(&self, _: &Table, values: &[Value<'_>]) -> Result<(), Refusal> {
        match values[1] == Value::Int(self.refused) {
            true => Err(Arc::new(Error::Invalid { what: "not this one".to_owned() })),
            false => Ok(()),
        }
    }
}

type Refusal = Arc<dyn std::error::Error + Send + Sync>;

/// Goal: the caller that ends a statement decides which changed rows are allowed, and provides
/// default values. Method: each action, with rules that allow the row and rules that do not; a
/// default that does not exist, and one that is the deleted row; without rules the default is NULL.
#[test]
fn rules_apply_to_rows_changed_by_actions() {
    for (action, default, then) in [
        (Referential::SetDefault, Value::Int(2), Some("5,2")),
        (Referential::SetDefault, Value::Null, Some("5,null")),
        (Referential::SetDefault, Value::Int(9), None),
        (Referential::SetDefault, Value::Int(1), None),
        (Referential::SetNull, Value::Int(2), Some("5,null")),
        (Referential::Cascade, Value::Int(2), Some("5,7")),
    ] {
        let fixture = Fixture::new();
        let nodes = nodes(&fixture, "n", action);
        fixture.run(|transaction| {
            [(1, None), (2, None), (5, Some(1))]
                .into_iter()
                .for_each(|(id, parent)| transaction.insert(&nodes, &row(id, parent)).unwrap());
        });
        let change = |rules: &dyn Rules| {
            let mut transaction = fixture.begin();
            transaction.begin_changes();
            let one = key(&nodes, 1);
            match action {
                Referential::Cascade => transaction.update(&nodes, &one, &row(7, None)).map(|_| ()),
                _ => transaction.delete(&nodes, &one).map(|_| ()),
            }?;
            transaction.end_changes_by(rules)?;
            let rows = all(&transaction, &nodes, None);
            transaction.rollback()?;
            Ok::<_, Error>(rows)
        };
        let changed = change(&Parents { default, refused: 0 });
        match then {
            Some(then) => assert!(changed.unwrap().contains(&then.to_owned()), "{action:?} {then}"),
            None => refused(changed),
        }
        if let Some(new) = then.and_then(|then| then.split(',').nth(1)?.parse().ok()) {
            let error = change(&Parents { default, refused: new }).unwrap_err();
            assert!(matches!(error, Error::Refused { .. }), "{error:?}");
            assert_eq!(error.to_string(), "not this one");
        }
        assert_eq!(all(&fixture.begin(), &nodes, None), ["1,null", "2,null", "5,1"]);
    }
    let fixture = Fixture::new();
    let nodes = nodes(&fixture, "n", Referential::SetDefault);
    fixture.run(|transaction| {
        transaction.insert(&nodes, &row(1, None)).unwrap();
        insert(transaction, &nodes, 5, 1).unwrap();
        assert!(transaction.delete(&nodes, &key(&nodes, 1)).unwrap());
    });
    assert_eq!(all(&fixture.begin(), &nodes, None), ["5,null"]);
}

/// Rules that cancel the statement once they have been asked about `after` rows.
#[derive(Debug)]
struct Stops {
    canceller: Canceller,
    after: u32,
    asked: Cell<u32>,
}

impl Rules for Stops {
    fn default_of(&self, _: &Table, _: usize) -> Result<OwnedValue, Refusal> {
        Ok(Value::Null.into())
    }

    fn check(&self, _: &Table, _: &[Value<'_>]) -> Result<(), Refusal> {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() == self.after {
            self.canceller.cancel();
        }
        Ok(())
    }
}

/// Goal: a statement that is cancelled while foreign keys change rows ends with the current row.
/// Method: very many rows reference one, and the rules cancel at the hundredth.
#[test]
fn referential_actions_can_be_cancelled() {
    let fixture = Fixture::new();
    for (name, action) in [("a", Referential::Cascade), ("b", Referential::SetNull)] {
        let nodes = nodes(&fixture, name, action);
        fixture.run(|transaction| {
            transaction.insert(&nodes, &row(0, None)).unwrap();
            (1..1_000).for_each(|id| insert(transaction, &nodes, id, 0).unwrap());
        });
        let canceller = Canceller::new();
        let mut transaction = fixture.db.begin_with(Isolation::ReadCommitted, &canceller, None).unwrap();
        transaction.begin_changes();
        let root = key(&nodes, 0);
        assert!(match action {
            Referential::Cascade => transaction.update(&nodes, &root, &row(-1, None)).unwrap(),
            _ => transaction.delete(&nodes, &root).unwrap(),
        });
        let stops = Stops { canceller: canceller.clone(), after: 100, asked: Cell::new(0) };
        let stopped = transaction.end_changes_by(&stops);
        assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
        assert_eq!(stops.asked.get(), 100);
        transaction.rollback().unwrap();
        let rows = all(&fixture.begin(), &nodes, None);
        assert_eq!((rows.len(), rows.iter().filter(|row| row.ends_with(",0")).count()), (1_000, 999));
    }
}
