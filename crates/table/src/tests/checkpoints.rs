use std::cell::Cell;
use std::rc::Rc;

use super::{database, def};
use crate::row::Value;
use crate::{Durability, Isolation, hook};

/// Goal: of two that find a checkpoint due, one makes it. Method: another one is made between the look and the lock.
#[test]
fn two_that_find_one_due() {
    let db = database();
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def("t")).unwrap();
    transaction.commit(Durability::Buffered).unwrap();
    let (made, looks) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (count, looked, other) = (Rc::clone(&made), Rc::clone(&looks), db.clone());
    hook::set(move |place| match place {
        "a checkpoint is due" => {
            looked.set(looked.get() + 1);
            // Counted here, since no hook is called within a hook.
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
