use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

use cairn_vfs::sync::Arc;

use super::{database_of, def};
use crate::row::{Type, Value};
use crate::{Database, Durability, Isolation, Table, Transaction, hook};

const ROWS: i32 = 10_000;

fn run<T>(db: &Database, work: impl FnOnce(&mut Transaction) -> T) -> T {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let value = work(&mut transaction);
    transaction.commit(Durability::Buffered).unwrap();
    value
}

fn key(table: &Table, id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(id)], &mut key));
    key
}

/// Goal: splitting a table for several threads succeeds whatever happens to its nodes meanwhile:
/// merged, freed, or reused for a long row. Method: a tree of three levels loses nearly all of its
/// rows, and long rows take the pages, between reading the root and reading its children.
#[test]
fn split_while_nodes_change() {
    let db = database_of(4096);
    let (table, texts) = run(&db, |transaction| {
        let mut texts = def("texts");
        texts.columns[1].kind = Type::Text.into();
        let table = transaction
            .create_table(crate::schema::TableDef { name: "t".to_owned(), ..texts.clone() })
            .unwrap();
        let texts = transaction.create_table(texts).unwrap();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        // Long texts make many nodes.
        (0..ROWS).for_each(|id| bulk.push(&[Value::Int(id), Value::Text(&"x".repeat(100))]).unwrap());
        bulk.finish().unwrap();
        (Arc::clone(transaction.view().catalog().table("public", "t").unwrap()), texts)
    });
    // Keeps the ghosts in place until it is dropped.
    let holds = db.begin(Isolation::Snapshot).unwrap();
    run(&db, |transaction| {
        (10..ROWS).for_each(|id| assert!(transaction.delete(&table, &key(&table, id)).unwrap()));
    });
    let reads = db.begin(Isolation::Snapshot).unwrap();
    let (looks, over, other) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), db.clone());
    let passed = Rc::clone(&over);
    let (count, mut holds, to) = (Rc::clone(&looks), Some(holds), Arc::clone(&table));
    hook::set(move |place| {
        if place == "passes over a page" {
            passed.set(passed.get() + 1);
        }
        if place != "looks for separators" {
            return;
        }
        count.set(count.get() + 1);
        if count.get() == 2 {
            drop(holds.take());
            let used = |db: &Database| db.pages().map(|(pages, free)| pages - free).unwrap();
            let before = used(&other);
            run(&other, |transaction| assert!(transaction.delete(&to, &key(&to, 5)).unwrap()));
            assert!(used(&other) < before - 50, "nothing was merged");
            let text = "\u{7ff}".repeat(30_000);
            for id in 0.. {
                run(&other, |transaction| {
                    transaction.insert(&texts, &[Value::Int(id), Value::Text(&text)]).unwrap();
                });
                let (_, free) = other.pages().unwrap();
                if free == 0 {
                    break;
                }
            }
        }
    });
    let everything = || (Bound::Unbounded, Bound::Unbounded);
    let parts = reads.view().split(&table, None, everything(), 64).unwrap();
    hook::clear();
    assert!(looks.get() > 2 && over.get() > 0, "{} looks, {} pages passed over", looks.get(), over.get());
    // All parts together cover everything.
    let count = |range: &crate::KeyRange| {
        let range = (range.0.as_ref().map(|key| &key[..]), range.1.as_ref().map(|key| &key[..]));
        let mut scan = reads.view().scan(&table, None, range, crate::Direction::Forward).unwrap();
        let mut rows = 0;
        while scan.next().unwrap().is_some() {
            rows += 1;
        }
        rows
    };
    assert_eq!(parts.iter().map(count).sum::<usize>(), 10);
    drop(reads);
    db.check().unwrap();
}
