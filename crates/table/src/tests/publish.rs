use std::sync::mpsc;

use cairn_vfs::sync::Arc;
use cairn_vfs::thread;

use super::{database, def};
use crate::catalog::Table;
use crate::row::Value;
use crate::schema::{ForeignKeyDef, IndexDef};
use crate::transaction::Transaction;
use crate::view::RowBuf;
use crate::{Durability, Error, Isolation, Result, hook};

/// Goal: a referenced row cannot be deleted at the moment when the transaction with the reference
/// has ended but is not visible yet. Method: the thread that makes the commit visible stops in
/// between, until another thread has deleted the row or waits.
#[test]
fn unpublished_commit_still_holds_its_locks() {
    let db = database();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let parents = transaction.create_table(def("parents")).unwrap();
    let mut children = def("children");
    children.foreign_keys = vec![ForeignKeyDef {
        name: "children_fkey".to_owned(),
        columns: vec![1],
        table: parents.id(),
        references: vec![0],
        on_delete: Default::default(),
        on_update: Default::default(),
    }];
    let children = transaction.create_table(children).unwrap();
    transaction.insert(&parents, &[Value::Int(1), Value::Int(0)]).unwrap();
    transaction.commit(Durability::Buffered).unwrap();

    let mut refers = db.begin(Isolation::ReadCommitted).unwrap();
    refers.insert(&children, &[Value::Int(10), Value::Int(1)]).unwrap();
    let (done, removed) = mpsc::channel();
    let other = db.clone();
    hook::set(move |place| {
        if place != "between a commit's end and its being seen" {
            return;
        }
        let (db, parents, done) = (other.clone(), Arc::clone(&parents), done.clone());
        let (stopped, stops) = mpsc::channel();
        // Not joined here, because it may wait for this thread.
        let _ = thread::spawn("removes", move || {
            let waits = stopped.clone();
            hook::set(move |place| {
                if place == "waits for a lock" {
                    let _ = waits.send(());
                }
            });
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            let mut key = Vec::new();
            assert!(parents.key_format().encode(&[Value::Int(1)], &mut key));
            let result = transaction.delete(&parents, &key);
            let _ = stopped.send(());
            let _ = done.send(result);
        })
        .unwrap();
        stops.recv().unwrap();
    });
    refers.commit(Durability::Buffered).unwrap();
    hook::clear();
    let result = removed.recv().unwrap();
    assert!(matches!(result, Err(Error::ForeignKeyViolation { .. })), "{result:?}");
}

/// The action of another thread on row 1 of a table, between the end of a commit and its
/// visibility. Returns the value that it finds once it has the row, to be compared with the value
/// that its next statement sees.
type Work = fn(&mut Transaction, &Arc<Table>) -> Result<Option<i32>>;

fn values(id: i32, v: i32) -> [Value<'static>; 2] {
    [Value::Int(id), Value::Int(v)]
}

fn key(table: &Table) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(1)], &mut key));
    key
}

fn locked(transaction: &mut Transaction, table: &Arc<Table>) -> Result<Option<i32>> {
    let mut row = RowBuf::default();
    let is_there = transaction.lock(table, &key(table), &mut row)?;
    Ok(is_there.then(|| number(&row, table)))
}

/// Like `locked`, but retries instead of waiting.
fn tried(transaction: &mut Transaction, table: &Arc<Table>) -> Result<Option<i32>> {
    let mut row = RowBuf::default();
    loop {
        match transaction.try_lock(table, &key(table), &mut row)? {
            Some(is_there) => return Ok(is_there.then(|| number(&row, table))),
            // The holder is in the middle of its commit.
            None => hook::at("waits for a lock"),
        }
        cairn_vfs::thread::yield_now();
    }
}

/// Returns the value of the conflicting row in a unique index, under that row's lock.
fn conflicting(transaction: &mut Transaction, table: &Arc<Table>) -> Result<Option<i32>> {
    let found = transaction.conflict(table, Some(0), &values(9, 1))?;
    Ok(found.map(|_| 1))
}

fn number(row: &RowBuf, table: &Table) -> i32 {
    match row.row(table).get(1) {
        Value::Int(v) => v,
        other => panic!("{other:?}"),
    }
}

/// Goal: a transaction that gets a row because its last owner has ended finds the same contents as
/// its next statement sees; otherwise an update could be lost. Method: the last owner changes the
/// row, deletes it, or changes it to another value, and the thread that makes its end visible stops
/// in between, until another thread has the row or waits for it. The other thread locks the row,
/// tries to, or looks for a conflict with a new row.
#[test]
fn row_of_unpublished_commit_waits() {
    let changes: [fn(&mut Transaction, &Arc<Table>); 3] = [
        |transaction, table| _ = transaction.update(table, &key(table), &values(1, 8)).unwrap(),
        |transaction, table| _ = transaction.delete(table, &key(table)).unwrap(),
        |transaction, table| _ = transaction.update(table, &key(table), &values(1, 1)).unwrap(),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let works: [(&str, Work); 3] =
            [("locks", locked), ("tries to lock", tried), ("looks for conflicts", conflicting)];
        for (name, work) in works {
            let (found, seen) = beside_a_commit(change, work);
            // The conflict is with a row of value 1.
            let expected = if name == "looks for conflicts" { seen.filter(|&v| v == 1) } else { seen };
            assert_eq!(found, expected, "change {at}, and then another one {name}");
        }
    }
}

/// Returns the value that a thread finds under a lock that it gets during a commit, and the value
/// that its next statement sees.
fn beside_a_commit(change: fn(&mut Transaction, &Arc<Table>), work: Work) -> (Option<i32>, Option<i32>) {
    let db = database();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let mut def = def("t");
    def.indexes = vec![IndexDef {
        name: "t_v".to_owned(),
        columns: super::on(1),
        unique: true,
        include: vec![],
        is_constraint: false,
    }];
    let table = transaction.create_table(def).unwrap();
    transaction.insert(&table, &values(1, 7)).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    let mut owner = db.begin(Isolation::ReadCommitted).unwrap();
    change(&mut owner, &table);
    let (done, ended) = mpsc::channel();
    let (other, there) = (db.clone(), Arc::clone(&table));
    hook::set(move |place| {
        if place != "between a commit's end and its being seen" {
            return;
        }
        let (db, table, done) = (other.clone(), Arc::clone(&there), done.clone());
        let (stopped, stops) = mpsc::channel();
        // Not joined here, because it may wait for this thread.
        let _ = thread::spawn("wants the row", move || {
            let waits = stopped.clone();
            hook::set(move |place| {
                if place == "waits for a lock" {
                    let _ = waits.send(());
                }
            });
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            let found = work(&mut transaction, &table);
            let _ = stopped.send(());
            transaction.begin_statement().unwrap();
            let view = transaction.view();
            let mut record = RowBuf::default();
            let is_there = view.get(&table, &key(&table), &mut record).unwrap();
            let _ = done.send((found, is_there.then(|| number(&record, &table))));
        })
        .unwrap();
        stops.recv().unwrap();
    });
    owner.commit(Durability::Buffered).unwrap();
    hook::clear();
    let (found, seen) = ended.recv().unwrap();
    (found.unwrap(), seen)
}
