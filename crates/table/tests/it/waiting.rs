//! Who waits for whom, and what they find when it is their turn.

use std::time::Duration;

use cairn_table::row::{Type, Value};
use cairn_table::{Canceller, Durability, Error, Isolation};

use crate::watch::Watch;
use crate::{all, def, key};

/// Goal: a vacuum that has waited for a transaction frees the pages that this one has left to be freed once, not twice. Method: a transaction that gives a long row
/// another text ends while a vacuum waits for it.
#[test]
fn vacuum_after_a_transaction() {
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
    // Whoever ends now cleans up.
    fixture.run(|transaction| {
        transaction.insert(&table, &[Value::Int(99), Value::Text(&text("c"))]).unwrap();
    });
    let report = fixture.db.check().unwrap();
    assert_eq!((report.rows, report.lost_pages), (20, 0), "{report:?}");
    let letters: String =
        all(&fixture.begin(), &table, None).iter().map(|row| row.chars().last().unwrap()).collect();
    assert_eq!(letters, "aaabbaaaaaaaaaaaaaac");
}

/// Goal: whoever has the schema sees everything that those have committed whom it has waited for, so that a new constraint is checked against all rows.
#[test]
fn the_schema_lock_sees_everything() {
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

/// Goal: whoever waits to begin, because somebody changes the schema, can be cancelled.
#[test]
fn waiting_to_begin_can_be_cancelled() {
    let (fixture, watch) = Watch::fixture();
    let mut changes = fixture.begin();
    changes.create_schema("s").unwrap();
    let canceller = Canceller::new();
    let (db, own) = (fixture.db.clone(), canceller.clone());
    let begins = watch.start(move || db.begin_with(Isolation::Snapshot, &own, Some(Duration::from_secs(3600))).map(|_| ()));
    canceller.cancel();
    // Looks again, and again, as long as it waits.
    let looks = watch.looks(&begins);
    watch.until_waits(begins.thread().id(), looks + 3);
    let is_over = begins.is_finished();
    drop(changes);
    let begun = begins.join().unwrap();
    assert!(matches!(begun, Err(Error::Cancelled)), "{begun:?}, over before the change: {is_over}");
}
