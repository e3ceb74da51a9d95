//! What is sorted with less memory than it takes.

use std::path::Path;

use cairn_table::Error;
use cairn_table::row::{Type, Value};

use crate::{Fixture, all, def, index};

const ROWS: i32 = 4_000;

/// Goal: indexes, bulk loads and altered tables are what they are with more memory, a violation of a unique index is found, and no file of it is left. Method: a few
/// kilobytes, for rows whose keys and values come in no order.
#[test]
fn more_than_memory() {
    let fixture = Fixture::with(|options| options.sort_bytes = 4 << 10);
    let id = |at: i32| at * 1_597 % ROWS;
    let table = fixture.run(|transaction| {
        let mut def = def("t", &[("id", Type::Int), ("v", Type::Int)], &[0]);
        def.indexes = vec![index("t_v", &[1], true)];
        let table = transaction.create_table(def).unwrap();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        (0..ROWS).for_each(|at| bulk.push(&[Value::Int(id(at)), Value::Int(at)]).unwrap());
        bulk.finish().unwrap();
        transaction.view().catalog().table("public", "t").unwrap().clone()
    });
    let expected: Vec<String> = (0..ROWS).map(|at| format!("{},{at}", id(at))).collect();
    assert_eq!(all(&fixture.begin(), &table, Some(0)), expected);
    let table =
        fixture.run(|transaction| transaction.create_index(&table, index("t_more", &[1], false)).unwrap());
    assert_eq!(all(&fixture.begin(), &table, Some(1)), expected);
    // Another primary key: all rows come in another order.
    let table = fixture.run(|transaction| {
        let mut def = table.def().clone();
        def.primary_key = crate::on(&[1]);
        transaction.alter_table(&table, def, &[Some(0), Some(1)], &[]).unwrap()
    });
    assert_eq!(all(&fixture.begin(), &table, None), expected);
    assert_eq!(fixture.db.check().unwrap().entries, 2 * ROWS as u64);
    let mut transaction = fixture.begin();
    transaction.insert(&table, &[Value::Int(id(77)), Value::Int(ROWS)]).unwrap();
    let error = transaction.create_index(&table, index("t_id", &[0], true)).unwrap_err();
    assert!(
        matches!(&error, Error::UniqueViolation { key, .. } if *key == format!("(id)=({})", id(77))),
        "{error:?}"
    );
    transaction.rollback().unwrap();
    let names = fixture.fs.read_dir(Path::new("/db")).unwrap();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("sort")), "{names:?}");
}
