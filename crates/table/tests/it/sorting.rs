//! Sorting with less memory than the data needs.

use std::path::Path;

use cairn_table::Error;
use cairn_table::row::{Type, Value};

use crate::{Fixture, all, def, index};

const ROWS: i32 = 4_000;

/// Goal: indexes, bulk loads and altered tables are the same as with enough memory, a violation of
/// a unique index is found, and no temporary file is left. Method: a few kilobytes, for rows whose
/// keys and values are in no order.
#[test]
fn sorting_beyond_memory() {
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
    // A different primary key changes the order of all rows.
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

/// Goal: a load results in the same rows, and no more pages, for every order of its input, and a
/// duplicate is found. Method: ascending, descending, no order, and ascending except for neighbours
/// or for a few rows; with memory for all of them and for some.
#[test]
fn load_order_does_not_matter() {
    let orders: [fn(i32) -> i32; 5] = [
        |at| at,
        |at| ROWS - 1 - at,
        |at| at * 1_597 % ROWS,
        |at| at ^ 1,
        |at| if at % 500 == 250 { (at + 1_500) % ROWS } else { at },
    ];
    for sort_bytes in [64 << 20, 8 << 10] {
        let mut least = None;
        for (nth, order) in orders.iter().enumerate() {
            let fixture = Fixture::with(|options| options.sort_bytes = sort_bytes);
            let before = fixture.db.pages().unwrap().0;
            let load = |twice: Option<i32>| {
                let mut transaction = fixture.begin();
                let def = def("t", &[("id", Type::Int), ("v", Type::Int), ("w", Type::BigInt)], &[0]);
                let table = transaction.create_table(def).unwrap();
                let mut bulk = transaction.bulk_insert(&table).unwrap();
                for id in (0..ROWS).map(order).chain(twice) {
                    bulk.push(&[Value::Int(id), Value::Int(id % 7), Value::BigInt(5)]).unwrap();
                }
                bulk.finish().map(|_| transaction)
            };
            for twice in [0, 250, ROWS / 2, ROWS - 1] {
                let error = load(Some(twice)).unwrap_err();
                assert!(
                    matches!(&error, Error::UniqueViolation { key, .. } if *key == format!("(id)=({twice})")),
                    "{nth}: {error:?}"
                );
            }
            load(None).unwrap().commit(cairn_table::Durability::Buffered).unwrap();
            let table = fixture.table("t");
            let expected: Vec<String> = (0..ROWS).map(|id| format!("{id},{},5", id % 7)).collect();
            assert_eq!(all(&fixture.begin(), &table, None), expected);
            assert_eq!(fixture.db.check().unwrap().rows, ROWS as u64);
            fixture.db.vacuum().unwrap();
            let pages = fixture.db.pages().unwrap().0 - before;
            let least = *least.get_or_insert(pages);
            // If only a few rows are out of order, these are inserted individually and split
            // leaves.
            let most = if nth == 4 && sort_bytes < 1 << 20 { 12 * least } else { least };
            assert!(pages <= most, "{nth}: {pages} pages, {least} of rows in order");
        }
    }
}
