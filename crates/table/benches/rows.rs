//! Costs of single operations on rows, without SQL. `[CAIRN_ROWS=1000000] cargo bench -p
//! cairn-table --bench rows [-- FILTER]`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a benchmark")]

use std::ops::Bound;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, IndexDef, KeyColumn, TableDef};
use cairn_table::{
    ColumnBuf, ColumnValues, Database, Direction, Durability, Isolation, Options, RowBuf, Table,
};
use cairn_vfs::{Clock, Fs, StdFs, SystemClock};

fn def(name: &str, indexed: bool) -> TableDef {
    let column = |name: &str, kind: Type| ColumnDef {
        name: name.into(),
        kind: kind.into(),
        nullable: true,
        default: None,
        identity: None,
    };
    let on = |column| vec![KeyColumn { column, order: Order::default() }];
    let index = IndexDef {
        name: format!("{name}_k"),
        columns: on(1),
        include: vec![],
        unique: false,
        is_constraint: false,
    };
    TableDef {
        schema: "public".into(),
        name: name.into(),
        columns: vec![column("id", Type::BigInt), column("k", Type::Int), column("c", Type::Text)],
        primary_key: on(0),
        indexes: if indexed { vec![index] } else { vec![] },
        ..TableDef::default()
    }
}

/// Counting takes only some nanoseconds per leaf, so a single count is too short to measure.
const COUNTS: i64 = 1_000;

struct Bench {
    clock: SystemClock,
    filter: Option<String>,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
    }

    fn run(&self, name: &str, count: i64, work: impl FnOnce()) {
        if !self.wants(name) {
            return;
        }
        let start = self.clock.now();
        work();
        let time = self.clock.now() - start;
        println!("{name:<40} {:>10.1} ns", time.as_nanos() as f64 / count as f64);
    }
}

/// Returns a pseudo-random number below `rows`, derived from another.
fn mix(at: i64, rows: i64) -> i64 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) as u64 >> 20) as i64 % rows
}

/// Measures block scans: a numeric column, a key column, a text column, and the number of rows.
fn blocks(bench: &Bench, db: &Database, table: &Arc<Table>, rows: i64) {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    for (name, column) in
        [("blocks, sum of a key, a row", 0), ("blocks, sum, a row", 1), ("blocks, texts, a row", 2)]
    {
        bench.run(name, rows, || {
            let transaction = db.begin(Isolation::ReadCommitted).unwrap();
            let mut scan =
                transaction.view().blocks(table, None, everything, Direction::Forward, &[column]).unwrap();
            let (mut sum, mut buffer) =
                (0, ColumnBuf::new(table.def().columns.get(column).unwrap().kind.kind));
            while let Some(block) = scan.next().unwrap() {
                buffer.clear();
                block.column(column, &mut buffer).unwrap();
                sum += match buffer.values() {
                    ColumnValues::Int(values) => values.iter().map(|value| i64::from(*value)).sum(),
                    ColumnValues::BigInt(values) => values.iter().sum::<i64>(),
                    ColumnValues::Bytes(values) => values.bytes.len() as i64,
                    other => panic!("{other:?}"),
                };
            }
            assert!(sum > 0);
        });
    }
    bench.run("count of all rows", COUNTS, || {
        let transaction = db.begin(Isolation::ReadCommitted).unwrap();
        for _ in 0..COUNTS {
            assert_eq!(transaction.view().count(table, None, everything).unwrap(), rows as u64);
        }
    });
}

/// Measures deletes as applications do them: recent rows, a few in each leaf of an index. Each row
/// is locked first and has a savepoint of its own.
fn delete_of_few(bench: &Bench, db: &Database, table: &Arc<Table>, rows: i64) {
    const NAME: &str = "delete of few, transactions of 500, an index";
    if !bench.wants(NAME) {
        return;
    }
    let text = "some text of a row, forty bytes of it...";
    let insert = |ids: std::ops::Range<i64>| {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        for id in ids {
            let group = (mix(id, rows) % (rows / 100)) as i32;
            transaction.insert(table, &[Value::BigInt(id), Value::Int(group), Value::Text(text)]).unwrap();
        }
        transaction.commit(Durability::Buffered).unwrap();
    };
    insert(0..rows);
    let (count, mut buffer, mut row) = (rows / 10, Vec::new(), RowBuf::default());
    for first in (0..5).map(|turn| rows + turn * count) {
        insert(first..first + count);
        bench.run(NAME, count, || {
            for at in 0..count / 500 {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                for one in 0..500 {
                    transaction.savepoint();
                    buffer.clear();
                    let id = Value::BigInt(first + at * 500 + one);
                    assert!(table.key_format().encode(&[id], &mut buffer));
                    assert!(transaction.lock(table, &buffer, &mut row).unwrap());
                    assert!(transaction.delete(table, &buffer).unwrap());
                }
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
    }
}

fn main() {
    let rows: i64 = std::env::var("CAIRN_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let filter = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    let bench = Bench { clock: SystemClock::new(), filter };
    let dir = tempfile::tempdir_in(std::env::var_os("CAIRN_WORK").unwrap_or_else(|| ".".into())).unwrap();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let mut options = Options::default();
    options.store.frames = 64 << 10;
    let db = Database::open(&fs, &dir.path().join("db"), &options).unwrap();
    let text = "some text of a row, forty bytes of it...";
    let values = |id: i64, k: i32| [Value::BigInt(id), Value::Int(k), Value::Text(text)];
    let make = |name: &str, indexed: bool| {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let table = transaction.create_table(def(name, indexed)).unwrap();
        transaction.commit(Durability::Buffered).unwrap();
        table
    };
    let table = make("t", false);
    let always = Bench { clock: SystemClock::new(), filter: None };
    always.run("bulk insert", rows, || {
        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let mut bulk = transaction.bulk_insert(&table).unwrap();
        for id in 0..rows {
            bulk.push(&values(id, id as i32)).unwrap();
        }
        bulk.finish().unwrap();
        transaction.commit(Durability::Buffered).unwrap();
    });
    let now = |name: &str| -> Arc<Table> {
        Arc::clone(
            db.begin(Isolation::ReadCommitted).unwrap().view().catalog().table("public", name).unwrap(),
        )
    };
    let table = now("t");
    println!("{} rows, {} pages", table.rows(), db.pages().unwrap().0);
    let key = |id: i64, key: &mut Vec<u8>| {
        key.clear();
        assert!(table.key_format().encode(&[Value::BigInt(id)], key));
    };
    bench.run("get, own transaction", rows, || {
        let (mut buffer, mut row, mut sum) = (Vec::new(), RowBuf::default(), 0);
        for at in 0..rows {
            let transaction = db.begin(Isolation::ReadCommitted).unwrap();
            key(mix(at, rows), &mut buffer);
            assert!(transaction.view().get(&table, &buffer, &mut row).unwrap());
            let Value::Int(k) = row.row(&table).get(1) else { panic!() };
            sum += i64::from(k);
            transaction.commit(Durability::Buffered).unwrap();
        }
        assert!(sum > 0);
    });
    bench.run("get, one transaction", rows, || {
        let (mut buffer, mut row) = (Vec::new(), RowBuf::default());
        let transaction = db.begin(Isolation::ReadCommitted).unwrap();
        for at in 0..rows {
            key(mix(at, rows), &mut buffer);
            assert!(transaction.view().get(&table, &buffer, &mut row).unwrap());
        }
    });
    bench.run("range of 100, a row", rows, || {
        let (mut low, mut sum) = (Vec::new(), 0);
        let transaction = db.begin(Isolation::ReadCommitted).unwrap();
        for at in 0..rows / 100 {
            key(mix(at, rows).min(rows - 100), &mut low);
            let mut scan = transaction
                .view()
                .scan(&table, None, (Bound::Included(&low), Bound::Unbounded), Direction::Forward)
                .unwrap();
            for _ in 0..100 {
                let Value::Int(k) = scan.next().unwrap().unwrap().get(1) else { panic!() };
                sum += i64::from(k);
            }
        }
        assert!(sum > 0);
    });
    bench.run("scan, a row", rows, || {
        let transaction = db.begin(Isolation::ReadCommitted).unwrap();
        let mut scan = transaction
            .view()
            .scan(&table, None, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)
            .unwrap();
        let mut sum = 0;
        while let Some(row) = scan.next().unwrap() {
            let Value::Int(k) = row.get(1) else { panic!() };
            sum += i64::from(k);
        }
        assert!(sum > 0);
    });
    blocks(&bench, &db, &table, rows);
    for indexed in [false, true] {
        let what = if indexed { ", an index" } else { "" };
        let table = make(if indexed { "u" } else { "v" }, indexed);
        let count = rows / 4;
        always.run(&format!("insert, one transaction{what}"), count, || {
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            for at in 0..count {
                transaction.insert(&table, &values(at, mix(at, rows) as i32)).unwrap();
            }
            transaction.commit(Durability::Buffered).unwrap();
        });
        bench.run(&format!("update, transactions of 100{what}"), count, || {
            let (mut buffer, mut row) = (Vec::new(), RowBuf::default());
            for at in 0..count / 100 {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                for one in 0..100 {
                    let id = mix(at * 100 + one, rows) % count;
                    key(id, &mut buffer);
                    transaction.savepoint();
                    assert!(transaction.lock(&table, &buffer, &mut row).unwrap());
                    assert!(transaction.update(&table, &buffer, &values(id, at as i32)).unwrap());
                }
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
        bench.run(&format!("update, own transaction{what}"), count, || {
            let mut buffer = Vec::new();
            for at in 0..count {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                let id = mix(at, rows) % count;
                key(id, &mut buffer);
                assert!(transaction.update(&table, &buffer, &values(id, at as i32 + 7)).unwrap());
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
        bench.run(&format!("delete, transactions of 100{what}"), count, || {
            let mut buffer = Vec::new();
            for at in 0..count / 100 {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                for one in 0..100 {
                    key(at * 100 + one, &mut buffer);
                    assert!(transaction.delete(&table, &buffer).unwrap());
                }
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
    }
    delete_of_few(&bench, &db, &make("x", true), rows);
    // Each thread has its own keys, so no thread waits for another's rows.
    let table = make("w", true);
    bench.run("insert by eight threads, transactions of 500, sync", rows / 4, || {
        cairn_vfs::thread::scope(|scope| {
            for thread in 0..8 {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    for at in 0..rows / 4 / 8 / 500 {
                        let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                        for one in 0..500 {
                            let id = thread * rows + at * 500 + one;
                            transaction.insert(table, &values(id, mix(id, rows) as i32)).unwrap();
                        }
                        transaction.commit(Durability::Sync).unwrap();
                    }
                });
            }
        });
    });
}
