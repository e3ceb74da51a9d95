use std::sync::mpsc;

use cairn_vfs::sync::Arc;
use cairn_vfs::thread;

use super::{database, def};
use crate::row::Value;
use crate::schema::ForeignKeyDef;
use crate::{Durability, Error, Isolation, hook};

/// Goal: a row that is referred to does not go in the moment in which the reference's transaction has ended and is not seen yet. Method: whoever makes that commit visible
/// stops in between, until another thread has removed the row or waits.
#[test]
fn a_commit_that_is_about_to_be_seen() {
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
        // Not waited for here: it may wait for this one.
        let _ = thread::spawn("removes", move || {
            let waits = stopped.clone();
            hook::set(move |place| {
                if place == "waits for somebody who makes commits visible" {
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
