use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, MemFs, SeededRng};

use super::{database, def};
use crate::row::Value;
use crate::{Database, Durability, Error, Isolation, Options, RowBuf, hook};

/// Goal: if two threads find a checkpoint due, one makes it. Method: another checkpoint is made
/// between the check and the lock.
#[test]
fn one_of_two_threads_makes_the_checkpoint() {
    let db = database();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    let (made, looks) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (count, looked, other) = (Rc::clone(&made), Rc::clone(&looks), db.clone());
    hook::set(move |place| match place {
        "a checkpoint is due" => {
            looked.set(looked.get() + 1);
            // Counted here, because hooks are not called within a hook.
            count.set(count.get() + 1);
            other.checkpoint().unwrap();
        }
        "makes a checkpoint" => count.set(count.get() + 1),
        _ => {}
    });
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    for id in 0..1_000 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(0)]).unwrap();
    }
    transaction.commit(Durability::Buffered).unwrap();
    hook::clear();
    assert_eq!((looks.get(), made.get()), (1, 1));
}

/// Goal: a checkpoint does not release the log of a transaction that could not be undone. Method:
/// the failure happens after the checkpoint's first check for failures, and before it looks for
/// writers; the next opening undoes the transaction.
#[test]
fn checkpoint_keeps_log_of_failed_undo() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut options = Options::default();
    options.store.background = false;
    let open = || Database::open_seeded(&fs, Path::new("test.db"), &options, &mut SeededRng::new(7)).unwrap();
    let db = open();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    transaction.insert(&table, &[Value::Int(1), Value::Int(1)]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(1)], &mut key));
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    assert!(transaction.update(&table, &key, &[Value::Int(1), Value::Int(2)]).unwrap());
    let (mut fails, other) = (Some(transaction), db.clone());
    hook::set(move |place| {
        if place == "makes a checkpoint"
            && let Some(transaction) = fails.take()
        {
            other.inner.fail(&Error::NoPages);
            assert!(transaction.rollback().is_err());
        }
    });
    let made = db.checkpoint();
    hook::clear();
    drop((db, table));
    let db = open();
    let transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = Arc::clone(transaction.view().catalog().table("public", "t").unwrap());
    let mut row = RowBuf::default();
    assert!(transaction.view().get(&table, &key, &mut row).unwrap());
    assert_eq!(row.row(&table).get(1), Value::Int(1));
    assert_eq!(made.unwrap_err().kind(), ErrorKind::Poisoned);
}
