use std::cell::Cell;
use std::rc::Rc;

use super::{database, def};
use crate::row::Value;
use crate::{Database, Durability, Isolation, hook};

fn fill(db: &Database, name: &str) {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def(name)).unwrap();
    for id in 0..4_000 {
        transaction.insert(&table, &[Value::Int(id), Value::Int(0)]).unwrap();
    }
    transaction.commit(Durability::Buffered).unwrap();
}

/// Goal: counting free pages while others allocate some counts no allocated page, and reports none
/// as damage. Method: while the list is read, one page is allocated, or one after another.
#[test]
fn free_page_count_during_allocation() {
    for most in [1, usize::MAX] {
        let db = database();
        fill(&db, "gone");
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let gone = transaction.view().catalog().table("public", "gone").unwrap().clone();
        transaction.drop_table(&gone).unwrap();
        transaction.commit(Durability::Buffered).unwrap();
        let free = db.pages().unwrap().1;
        assert!(free > 8, "{free}");
        let (looks, other) = (Rc::new(Cell::new(0)), db.clone());
        let count = Rc::clone(&looks);
        hook::set(move |place| {
            if place == "looks at a free page" && count.get() < most.min(8) {
                count.set(count.get() + 1);
                let mut transaction = other.begin(Isolation::ReadCommitted).unwrap();
                transaction.create_table(def(&format!("t{}", count.get()))).unwrap();
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
        let found = db.pages();
        hook::clear();
        assert_eq!(found.unwrap(), db.pages().unwrap());
        assert_eq!((looks.get(), db.pages().unwrap().1), (most.min(8), free - most.min(8) as u32));
    }
}
