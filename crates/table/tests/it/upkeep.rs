use cairn_table::row::{Type, Value};

use crate::{Fixture, all, def, index, key};

/// Goal: a vacuum makes the file as short as what is in it, moves nothing out of its place as far as anybody can see, and leaves a sound database. Method: tables
/// with an index and long rows, of which most go; check, vacuum, check, open again.
#[test]
fn vacuum() {
    let fixture = Fixture::new();
    let text = |id: i32| "x".repeat((id % 7 * 10) as usize + if id % 100 == 5 { 9_000 } else { 0 });
    for name in ["a", "b", "c"] {
        fixture.run(|transaction| {
            let mut def = def(name, &[("id", Type::Int), ("v", Type::Text), ("w", Type::Int)], &[0]);
            def.indexes = vec![index(&format!("{name}_w"), &[2], false)];
            let table = transaction.create_table(def).unwrap();
            for id in 0..3_000 {
                let row = [Value::Int(id), Value::Text(&text(id)), Value::Int(-id)];
                transaction.insert(&table, &row).unwrap();
            }
        });
    }
    let full = fixture.db.check().unwrap();
    assert_eq!((full.tables, full.rows, full.entries, full.lost_pages), (3, 9_000, 9_000, 0));
    fixture.run(|transaction| {
        let table = transaction.view().catalog().table("public", "a").unwrap().clone();
        transaction.drop_table(&table).unwrap();
    });
    let table = fixture.table("b");
    for id in (0..3_000).filter(|id| id % 10 != 5) {
        fixture.run(|transaction| assert!(transaction.delete(&table, &key(&table, id)).unwrap()));
    }
    let before = all(&fixture.begin(), &table, None);
    drop(table);
    let report = fixture.db.vacuum().unwrap();
    let after = fixture.db.check().unwrap();
    assert_eq!((after.rows, after.lost_pages, after.free_pages), (3_300, 0, 0), "{report:?}");
    assert!(after.pages < full.pages * 7 / 10, "{report:?} {full:?} {after:?}");
    assert_eq!(report.pages_after, after.pages);
    let fixture = fixture.reopen();
    assert_eq!(fixture.db.check().unwrap(), after);
    assert_eq!(all(&fixture.begin(), &fixture.table("b"), None), before);
    let length = fixture.fs.metadata(crate::path()).unwrap().len;
    assert_eq!(length, u64::from(after.pages) * 8192);
    let table = fixture.table("c");
    fixture.run(|transaction| {
        let row = [Value::Int(9_000), Value::Text(&text(5)), Value::Null];
        transaction.insert(&table, &row).unwrap();
    });
    assert_eq!(fixture.db.check().unwrap().rows, 3_301);
}
