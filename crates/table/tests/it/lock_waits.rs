//! Waits between transactions, and the state that they find afterwards.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use cairn_table::row::{Type, Value};
use cairn_table::schema::ForeignKeyDef;
use cairn_table::{Canceller, Durability, Error, Isolation, Result, Table, TableStatistics, Transaction};

use crate::watch::Watch;
use crate::{Fixture, all, column, def, index, key, set};

/// Goal: a vacuum that has waited for a transaction frees the pages that it leaves once, not twice.
/// Method: a transaction that changes the text of a long row ends while a vacuum waits for it.
#[test]
fn vacuum_frees_pages_once() {
    let (fixture, watch) = Watch::fixture();
    let text = |letter: &str| letter.repeat(20_000);
    let table = fixture.run(|transaction| {
        let table =
            transaction.create_table(def("t", &[("id", Type::Int), ("v", Type::Text)], &[0])).unwrap();
        for id in 0..20 {
            transaction.insert(&table, &[Value::Int(id), Value::Text(&text("a"))]).unwrap();
        }
        table
    });
    let mut writer = fixture.begin();
    for id in [3, 4] {
        let row = [Value::Int(id), Value::Text(&text("b"))];
        assert!(writer.update(&table, &key(&table, id), &row).unwrap());
    }
    assert!(writer.delete(&table, &key(&table, 5)).unwrap());
    let db = fixture.db.clone();
    let vacuum = watch.start(move || db.vacuum());
    writer.commit(Durability::Sync).unwrap();
    vacuum.join().unwrap().unwrap();
    // The next transaction that ends cleans up.
    fixture.run(|transaction| {
        transaction.insert(&table, &[Value::Int(99), Value::Text(&text("c"))]).unwrap();
    });
    let report = fixture.db.check().unwrap();
    assert_eq!((report.rows, report.lost_pages), (20, 0), "{report:?}");
    let letters: String =
        all(&fixture.begin(), &table, None).iter().map(|row| row.chars().last().unwrap()).collect();
    assert_eq!(letters, "aaabbaaaaaaaaaaaaaac");
}

/// Goal: a transaction that gets the schema lock sees everything that the transactions it waited
/// for have committed, so that a new constraint is checked against all rows.
#[test]
fn schema_lock_sees_earlier_commits() {
    let (fixture, watch) = Watch::fixture();
    let table = fixture.pairs(&[(1, 10)]);
    let mut writer = fixture.begin();
    writer.insert(&table, &[Value::Int(2), Value::Int(20)]).unwrap();
    let db = fixture.db.clone();
    let seen = watch.start(move || {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        transaction.create_schema("s").unwrap();
        let table = transaction.view().catalog().table("public", "t").unwrap().clone();
        all(&transaction, &table, None)
    });
    writer.commit(Durability::Buffered).unwrap();
    assert_eq!(seen.join().unwrap(), ["1,10", "2,20"]);
}

/// Goal: two transactions that request the schema and have done nothing yet do not wait for each
/// other, and the second one continues from the result of the first, at each isolation level.
/// Method: both begin before either requests it.
#[test]
fn schema_requests_without_work_do_not_deadlock() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let (fixture, watch) = Watch::fixture();
        fixture.pairs(&[(1, 10)]);
        let mut first = fixture.db.begin(isolation).unwrap();
        let mut second = fixture.db.begin(isolation).unwrap();
        let asks = watch.start(move || {
            first.lock_schema_and_reset()?;
            let table = add_column(&mut first, "x");
            first.insert(&table, &[Value::Int(2), Value::Int(20), Value::Null])?;
            first.commit(Durability::Buffered)
        });
        second.lock_schema_and_reset().unwrap();
        let table = add_column(&mut second, "y");
        assert_eq!(all(&second, &table, None), ["1,10,null,null", "2,20,null,null"], "{isolation:?}");
        second.commit(Durability::Buffered).unwrap();
        asks.join().unwrap().unwrap();
    }
}

/// Goal: a transaction that has read or changed something, and requests the schema, goes before a
/// waiting one that has not; two that have both are a deadlock, which leaves the one that fails
/// unchanged.
#[test]
fn schema_request_with_snapshot_goes_first() {
    let (fixture, watch) = Watch::fixture();
    let table = fixture.pairs(&[(1, 10)]);
    let mut first = fixture.begin();
    first.insert(&table, &[Value::Int(2), Value::Int(20)]).unwrap();
    let db = fixture.db.clone();
    let later = watch.start(move || {
        let mut later = db.begin(Isolation::ReadCommitted).unwrap();
        later.lock_schema_and_reset()?;
        let columns = find(&later).def().columns.len();
        later.commit(Durability::Buffered).map(|()| columns)
    });
    add_column(&mut first, "x");
    first.commit(Durability::Buffered).unwrap();
    assert_eq!(later.join().unwrap().unwrap(), 3);

    let empty =
        fixture.run(|transaction| transaction.create_table(def("u", &[("id", Type::Int)], &[0])).unwrap());
    let (mut one, mut other) = (fixture.begin(), fixture.begin());
    let table = find(&one);
    for (transaction, id) in [(&mut one, 3), (&mut other, 4)] {
        transaction.insert(&table, &[Value::Int(id), Value::Null, Value::Null]).unwrap();
    }
    let asks = watch.start(move || {
        other.lock_schema_and_reset()?;
        other.commit(Durability::Buffered)
    });
    let told = one.lock_schema();
    assert!(matches!(told, Err(Error::Deadlock { .. })), "{told:?}");
    // Rows are inserted without the schema lock.
    let mut rows = one.bulk_load(&empty).unwrap();
    rows.push(&mut one, &[Value::Int(1)]).unwrap();
    rows.finish(&mut one).unwrap();
    one.commit(Durability::Buffered).unwrap();
    asks.join().unwrap().unwrap();
    let seen = fixture.begin();
    assert_eq!([&table, &empty].map(|table| all(&seen, table, None).len()), [4, 1]);
}

/// Goal: a timeout or a cancellation ends the wait of a transaction that has released its snapshot,
/// and it no longer keeps others waiting.
#[test]
fn cancelled_schema_request_frees_others() {
    let fixture = Fixture::new();
    let table = fixture.pairs(&[(1, 10)]);
    let mut reader = fixture.begin();
    for cancels in [false, true] {
        let canceller = Canceller::new();
        let mut asks = fixture
            .db
            .begin_with(Isolation::Snapshot, &canceller, Some(Duration::from_millis(1)).filter(|_| !cancels))
            .unwrap();
        if cancels {
            canceller.cancel();
        }
        let refused = asks.lock_schema_and_reset();
        assert!(matches!(refused, Err(Error::LockTimeout | Error::Cancelled)), "{refused:?}");
        // A transaction that begins does not wait for it.
        fixture.begin().rollback().unwrap();
        asks.rollback().unwrap();
    }
    reader.insert(&table, &[Value::Int(2), Value::Int(20)]).unwrap();
    reader.commit(Durability::Buffered).unwrap();
    assert_eq!(fixture.db.stats().snapshots, 0);
}

/// Goal: a change that was planned for another definition of its table is refused, and loses
/// nothing.
/// Method: each change that refers to columns or indexes by position, with a version of the table
/// from before another change.
#[test]
fn change_of_stale_definition_is_refused() {
    let fixture = Fixture::new();
    let old = fixture.pairs(&[(1, 10)]);
    fixture.run(|transaction| add_column(transaction, "x"));
    let mut transaction = fixture.begin();
    let statistics = TableStatistics { rows: 1, columns: Vec::new() };
    for refused in [
        transaction.alter_table(&old, old.def().clone(), &[Some(0), Some(1)], &[]).map(|_| ()),
        transaction.create_index(&old, index("t_v", &[1], false)).map(|_| ()),
        transaction.drop_index(&old, 0).map(|_| ()),
        transaction.set_statistics(&old, statistics),
    ] {
        assert!(matches!(&refused, Err(Error::StaleTable { table }) if table == "t"), "{refused:?}");
    }
    assert_eq!(find(&transaction).def().columns.len(), 3);
}

fn find(transaction: &Transaction) -> Arc<Table> {
    Arc::clone(transaction.view().catalog().table("public", "t").unwrap())
}

/// Adds a column to a table.
fn add_column(transaction: &mut Transaction, name: &str) -> Arc<Table> {
    let table = find(transaction);
    let mut def = table.def().clone();
    let old = def.columns.len();
    def.columns.push(column(name, Type::Int));
    let columns: Vec<Option<usize>> = (0..old).map(Some).chain([None]).collect();
    transaction.alter_table(&table, def, &columns, &vec![Value::Null; old + 1]).unwrap()
}

/// Goal: a transaction that waits to begin, because the schema is being changed, can be cancelled.
#[test]
fn waiting_to_begin_can_be_cancelled() {
    let (fixture, watch) = Watch::fixture();
    let mut changes = fixture.begin();
    changes.create_schema("s").unwrap();
    let canceller = Canceller::new();
    let (db, own) = (fixture.db.clone(), canceller.clone());
    let begins = watch
        .start(move || db.begin_with(Isolation::Snapshot, &own, Some(Duration::from_secs(3600))).map(|_| ()));
    canceller.cancel();
    // It keeps checking while it waits.
    let looks = watch.looks(&begins);
    watch.until_waits(begins.thread().id(), looks + 3);
    let is_over = begins.is_finished();
    drop(changes);
    let begun = begins.join().unwrap();
    assert!(matches!(begun, Err(Error::Cancelled)), "{begun:?}, over before the change: {is_over}");
}

/// Creates parents with the keys 1 and 2, and children that reference them.
fn family(fixture: &Fixture) -> (Arc<Table>, Arc<Table>) {
    let parents = fixture.pairs(&[(1, 1), (2, 2)]);
    let children = fixture.run(|transaction| {
        let mut children = def("children", &[("id", Type::Int), ("parent", Type::Int)], &[0]);
        children.foreign_keys = vec![ForeignKeyDef {
            name: "children_fkey".to_owned(),
            columns: vec![1],
            table: parents.id(),
            references: vec![0],
            on_delete: Default::default(),
            on_update: Default::default(),
        }];
        transaction.create_table(children).unwrap()
    });
    (parents, children)
}

fn refer(transaction: &mut Transaction, children: &Arc<Table>, id: i32) -> Result<()> {
    transaction.insert(children, &[Value::Int(id), Value::Int(1)])
}

/// Goal: a transaction that waits for all references to a row to end is not starved by new ones.
/// Method: one transaction that references the row, one that deletes it, and a later one that
/// references it.
#[test]
fn exclusive_request_is_not_starved() {
    let (fixture, watch) = Watch::fixture();
    let (parents, children) = family(&fixture);
    let mut first = fixture.begin();
    refer(&mut first, &children, 10).unwrap();
    let db = fixture.db.clone();
    let removes = watch.start(move || {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        transaction.delete(&parents, &key(&parents, 1))?;
        transaction.commit(Durability::Buffered)
    });
    // A transaction that already shares the key does not wait for the deletion.
    refer(&mut first, &children, 11).unwrap();
    let (db, table) = (fixture.db.clone(), Arc::clone(&children));
    let later = watch.start(move || {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        refer(&mut transaction, &table, 12)?;
        transaction.commit(Durability::Buffered)
    });
    first.rollback().unwrap();
    removes.join().unwrap().unwrap();
    let refused = later.join().unwrap();
    assert!(matches!(refused, Err(Error::ForeignKeyViolation { .. })), "{refused:?}");
}

/// Goal: a transaction that gives up waiting for references no longer blocks new ones.
#[test]
fn cancelled_request_blocks_nobody() {
    let (fixture, watch) = Watch::fixture();
    let (parents, children) = family(&fixture);
    let mut first = fixture.begin();
    refer(&mut first, &children, 10).unwrap();
    let canceller = Canceller::new();
    let (db, own) = (fixture.db.clone(), canceller.clone());
    let (given_up, goes_on) = (mpsc::channel(), mpsc::channel::<()>());
    let removes = watch.start(move || {
        let mut transaction =
            db.begin_with(Isolation::ReadCommitted, &own, Some(Duration::from_secs(3600))).unwrap();
        let removed = transaction.delete(&parents, &key(&parents, 1));
        own.reset();
        given_up.0.send(removed).unwrap();
        // The transaction continues with other work.
        goes_on.1.recv().unwrap();
        transaction.commit(Durability::Buffered)
    });
    canceller.cancel();
    let removed = given_up.1.recv().unwrap();
    assert!(matches!(removed, Err(Error::Cancelled)), "{removed:?}");
    // On this thread, which would wait forever.
    fixture.run(|transaction| refer(transaction, &children, 11).unwrap());
    goes_on.0.send(()).unwrap();
    removes.join().unwrap().unwrap();
}

/// Goal: a transaction that has given up waiting for a row is not part of a deadlock. Method: one
/// requests another's row and is cancelled; then the other requests a row of the first one, and
/// gets it when that ends.
#[test]
fn cancelled_request_is_not_in_deadlock() {
    let (fixture, watch) = Watch::fixture();
    let table = fixture.pairs(&[(1, 1), (2, 2)]);
    let mut other = fixture.begin();
    assert!(set(&mut other, &table, 1, 10).unwrap());
    let canceller = Canceller::new();
    let mut first = fixture.db.begin_with(Isolation::ReadCommitted, &canceller, None).unwrap();
    assert!(set(&mut first, &table, 2, 20).unwrap());
    canceller.cancel();
    let refused = set(&mut first, &table, 1, 11);
    assert!(matches!(refused, Err(Error::Cancelled)), "{refused:?}");
    canceller.reset();
    let rows = Arc::clone(&table);
    let asks = watch.start(move || {
        assert!(set(&mut other, &rows, 2, 21)?);
        other.commit(Durability::Buffered)
    });
    first.rollback().unwrap();
    asks.join().unwrap().unwrap();
    assert_eq!(all(&fixture.begin(), &table, None).len(), 2);
}

/// Goal: a deadlock through the second of two references is detected when it closes, and not only
/// when the first one ends.
#[test]
fn deadlock_through_second_share_is_detected() {
    let (fixture, watch) = Watch::fixture();
    let (parents, children) = family(&fixture);
    let mut first = fixture.begin();
    refer(&mut first, &children, 10).unwrap();
    let mut second = fixture.begin();
    refer(&mut second, &children, 11).unwrap();
    let (db, table) = (fixture.db.clone(), Arc::clone(&parents));
    let removes = watch.start(move || {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        assert!(set(&mut transaction, &table, 2, 22).unwrap());
        transaction.delete(&table, &key(&table, 1))
    });
    let table = Arc::clone(&parents);
    let closes = watch.start(move || {
        let wanted = set(&mut second, &table, 2, 23);
        second.rollback().unwrap();
        wanted
    });
    first.rollback().unwrap();
    let (removed, wanted) = (removes.join().unwrap(), closes.join().unwrap());
    assert!(matches!(wanted, Err(Error::Deadlock { .. })), "{wanted:?}, {removed:?}");
    assert!(removed.unwrap());
    assert_eq!(fixture.db.stats().deadlocks, 1);
}

/// Goal: two transactions that share a row and both request it exclusively are a deadlock; so are
/// three that wait for each other in turn, and one that requests the schema and waits for others.
/// One of them fails, and the others continue.
#[test]
fn deadlocks_of_every_kind_are_detected() {
    let (fixture, watch) = Watch::fixture();
    let (parents, children) = family(&fixture);
    // Both reference a row, and try to delete it.
    let mut one = fixture.begin();
    refer(&mut one, &children, 10).unwrap();
    let mut other = fixture.begin();
    refer(&mut other, &children, 11).unwrap();
    let table = Arc::clone(&parents);
    let waits = watch.start(move || {
        let removed = other.delete(&table, &key(&table, 1));
        other.rollback().unwrap();
        removed
    });
    let closed = one.delete(&parents, &key(&parents, 1));
    assert!(matches!(closed, Err(Error::Deadlock { .. })), "{closed:?}");
    one.rollback().unwrap();
    // It continues until its own reference stops it.
    let refused = waits.join().unwrap();
    assert!(matches!(refused, Err(Error::ForeignKeyViolation { .. })), "{refused:?}");
    assert_eq!(fixture.db.stats().deadlocks, 1);

    // Three in turn: each holds a row and requests the next one's.
    let rows = fixture.run(|transaction| {
        let rows =
            transaction.create_table(def("rows", &[("id", Type::Int), ("v", Type::Int)], &[0])).unwrap();
        (0..3).for_each(|id| transaction.insert(&rows, &[Value::Int(id), Value::Int(0)]).unwrap());
        rows
    });
    let mut three: Vec<_> = (0..3).map(|_| fixture.begin()).collect();
    for (id, transaction) in (0..3).zip(&mut three) {
        assert!(set(transaction, &rows, id, 1).unwrap());
    }
    let mut last = three.pop().unwrap();
    let waiting: Vec<_> = (0..2)
        .zip(three)
        .rev()
        .map(|(id, mut transaction)| {
            let rows = Arc::clone(&rows);
            watch.start(move || {
                assert!(set(&mut transaction, &rows, id + 1, 2).unwrap());
                transaction.commit(Durability::Buffered)
            })
        })
        .collect();
    let Err(Error::Deadlock { detail }) = set(&mut last, &rows, 0, 2) else { panic!() };
    assert_eq!(detail.matches("->").count(), 3, "{detail}");
    last.rollback().unwrap();
    waiting.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    assert_eq!(all(&fixture.begin(), &rows, None), ["0,1", "1,2", "2,2"]);
    assert_eq!(fixture.db.stats().deadlocks, 2);

    // One waits for all others to end, to change the schema, and one of these requests a row that
    // it holds.
    let mut changes = fixture.begin();
    assert!(set(&mut changes, &rows, 0, 5).unwrap());
    let mut runs = fixture.begin();
    let schema = watch.start(move || {
        changes.create_schema("s")?;
        changes.commit(Durability::Buffered)
    });
    let closed = set(&mut runs, &rows, 0, 6);
    assert!(matches!(closed, Err(Error::Deadlock { .. })), "{closed:?}");
    runs.rollback().unwrap();
    schema.join().unwrap().unwrap();
    // And in reverse: it would wait for one that waits for it.
    let mut changes = fixture.begin();
    assert!(set(&mut changes, &rows, 0, 7).unwrap());
    let mut runs = fixture.begin();
    let table = Arc::clone(&rows);
    let waits = watch.start(move || {
        let wanted = set(&mut runs, &table, 0, 8);
        runs.rollback().unwrap();
        wanted
    });
    let closed = changes.create_schema("again");
    assert!(matches!(closed, Err(Error::Deadlock { .. })), "{closed:?}");
    changes.rollback().unwrap();
    assert!(waits.join().unwrap().unwrap());
    assert_eq!(fixture.db.stats().deadlocks, 4);
}

/// Goal: the changes of a nested transaction persist at once whatever happens to the outer one,
/// release their locks, and are undone if they fail; at every isolation level.
#[test]
fn autonomous_transaction_persists_independently() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let fixture = Fixture::new();
        let table = fixture.pairs(&[(1, 1), (2, 2)]);
        let mut first = fixture.db.begin(isolation).unwrap();
        assert!(set(&mut first, &table, 1, 10).unwrap());
        // A strict lock of this row would find that it was changed since the snapshot.
        fixture.run(|transaction| assert!(set(transaction, &table, 2, 20).unwrap()));
        let found = first.autonomous(|other| {
            assert_eq!(crate::get(other, &table, 1), Some(1));
            set(other, &table, 2, 21)
        });
        assert!(found.unwrap());
        // On this thread, which would wait forever.
        fixture.run(|transaction| assert!(set(transaction, &table, 2, 22).unwrap()));
        let failed: Result<()> = first.autonomous(|other| {
            assert!(set(other, &table, 2, 23).unwrap());
            Err(Error::Cancelled)
        });
        assert!(matches!(failed, Err(Error::Cancelled)), "{failed:?}");
        let own = first.autonomous(|other| set(other, &table, 1, 11));
        assert!(matches!(own, Err(Error::Deadlock { .. })), "{own:?}");
        first.rollback().unwrap();
        assert_eq!(all(&fixture.begin(), &table, None), ["1,1", "2,22"]);
    }
}

/// Goal: a deadlock through a transaction and a nested one is detected when it closes, whichever of
/// them closes it.
#[test]
fn deadlock_through_autonomous_transaction_is_detected() {
    for beside_first in [false, true] {
        let (fixture, watch) = Watch::fixture();
        let table = fixture.pairs(&[(1, 1), (2, 2)]);
        let (mut first, mut second) = (fixture.begin(), fixture.begin());
        assert!(set(&mut first, &table, 1, 10).unwrap());
        assert!(set(&mut second, &table, 2, 20).unwrap());
        let there = Arc::clone(&table);
        let beside = move |mut first: Transaction| {
            let done = first.autonomous(|other| set(other, &there, 2, 11));
            first.rollback().unwrap();
            done
        };
        let there = Arc::clone(&table);
        let plain = move |mut second: Transaction| {
            let done = set(&mut second, &there, 1, 21);
            second.rollback().unwrap();
            done
        };
        let (waits, closes) = match beside_first {
            true => (watch.start(move || beside(first)), plain(second)),
            false => (watch.start(move || plain(second)), beside(first)),
        };
        assert!(matches!(closes, Err(Error::Deadlock { .. })), "{closes:?}");
        assert!(waits.join().unwrap().unwrap());
        assert_eq!(fixture.db.stats().deadlocks, 1);
    }
}

/// Goal: a nested transaction does not wait for a schema change that waits for the outer one.
#[test]
fn autonomous_transaction_does_not_wait_for_schema() {
    let (fixture, watch) = Watch::fixture();
    let table = fixture.pairs(&[(1, 1)]);
    let mut first = fixture.begin();
    let db = fixture.db.clone();
    let changes = watch.start(move || {
        let mut changes = db.begin(Isolation::ReadCommitted)?;
        changes.create_schema("s")?;
        changes.commit(Durability::Buffered)
    });
    assert!(first.autonomous(|other| set(other, &table, 1, 2)).unwrap());
    first.commit(Durability::Buffered).unwrap();
    changes.join().unwrap().unwrap();
    assert_eq!(all(&fixture.begin(), &table, None), ["1,2"]);
}
