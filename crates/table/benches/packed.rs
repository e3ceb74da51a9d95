//! Savings and costs of packed leaves, for the lab's table of records. `[CAIRN_ROWS=1000000]
//! [CAIRN_ROUNDS=3] cargo bench -p cairn-table --bench packed [-- FILTER]`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a benchmark")]

use std::fmt::Write;
use std::ops::Bound;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, IndexDef, KeyColumn, TableDef};
use cairn_table::{
    ColumnBuf, ColumnValues, Database, Direction, Durability, Isolation, Options, RowBuf, Table,
};
use cairn_vfs::{Clock, Fs, StdFs, SystemClock};

const WORDS: [&str; 32] = [
    "river", "stone", "ledger", "harbour", "signal", "copper", "garden", "window", "packet", "market",
    "winter", "orbit", "cable", "meadow", "anchor", "barrel", "candle", "desert", "engine", "forest",
    "glacier", "hammer", "island", "jacket", "kettle", "lantern", "mirror", "needle", "orchard", "pepper",
    "quarry", "ribbon",
];

const COLUMNS: [(&str, Type); 7] = [
    ("id", Type::Int),
    ("grp", Type::Int),
    ("kind", Type::Int),
    ("amount", Type::BigInt),
    ("counter", Type::BigInt),
    ("name", Type::Text),
    ("note", Type::Text),
];

/// Mixes the bits of a number (the last step of SplitMix64 by Steele, Lea and Flood).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Builds the texts of a record, as the lab's suite does.
fn texts(id: u64, name: &mut String, note: &mut String) -> (u64, u64) {
    let (a, b) = (mix(id << 1), mix(id << 1 | 1));
    name.clear();
    let _ = write!(name, "{}-{:08x}", WORDS[(b % 32) as usize], b >> 32);
    note.clear();
    let mut c = mix(a ^ b);
    for at in 0..6 + b % 5 {
        if at > 0 {
            note.push(' ');
        }
        note.push_str(WORDS[(c % 32) as usize]);
        c = c.rotate_right(5);
    }
    (a, b)
}

fn def() -> TableDef {
    let column = |(name, kind): (&str, Type)| ColumnDef {
        name: name.into(),
        kind: kind.into(),
        nullable: false,
        default: None,
        identity: None,
    };
    TableDef {
        schema: "public".into(),
        name: "records".into(),
        columns: COLUMNS.map(column).to_vec(),
        primary_key: on(0),
        ..TableDef::default()
    }
}

fn on(column: usize) -> Vec<KeyColumn> {
    vec![KeyColumn { column, order: Order::default() }]
}

struct Bench {
    clock: SystemClock,
    filter: Option<String>,
    rounds: usize,
}

const LOAD: &str = "load, a row";

impl Bench {
    /// Measures a repeatable operation: reports the best of several times.
    fn best(&self, name: &str, count: u64, mut work: impl FnMut()) {
        if !self.skips(name) {
            let best = (0..self.rounds).map(|_| self.time(&mut work)).min().unwrap_or_default();
            println!("{name:<40} {:>10.1} ns", best as f64 / count as f64);
        }
    }

    /// Measures an operation that is done once.
    fn once(&self, name: &str, count: u64, work: impl FnOnce()) {
        if !self.skips(name) {
            println!("{name:<40} {:>10.1} ns", self.time(work) as f64 / count as f64);
        }
    }

    fn skips(&self, name: &str) -> bool {
        name != LOAD && self.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str()))
    }

    fn time(&self, work: impl FnOnce()) -> u128 {
        let start = self.clock.now();
        work();
        (self.clock.now() - start).as_nanos()
    }
}

fn load(db: &Database, rows: u64) {
    let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let table = transaction.create_table(def()).unwrap();
    let mut bulk = transaction.bulk_insert(&table).unwrap();
    let (mut name, mut note) = (String::new(), String::new());
    for id in 0..rows {
        let (a, b) = texts(id, &mut name, &mut note);
        let values = [
            Value::Int(id as i32),
            Value::Int((a % (rows / 100).max(1)) as i32),
            Value::Int((a >> 32) as i32 & 15),
            Value::BigInt((b % 1_000_000) as i64),
            Value::BigInt(0),
            Value::Text(&name),
            Value::Text(&note),
        ];
        bulk.push(&values).unwrap();
    }
    bulk.finish().unwrap();
    transaction.commit(Durability::Buffered).unwrap();
}

fn now(db: &Database) -> Arc<Table> {
    let transaction = db.begin(Isolation::ReadCommitted).unwrap();
    Arc::clone(transaction.view().catalog().table("public", "records").unwrap())
}

fn reads(bench: &Bench, db: &Database, table: &Arc<Table>, rows: u64) {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let transaction = db.begin(Isolation::ReadCommitted).unwrap();
    let view = transaction.view();
    let key = |id: u64, key: &mut Vec<u8>| {
        key.clear();
        assert!(table.key_format().encode(&[Value::Int(id as i32)], key));
    };
    bench.best("get", rows.min(1_000_000), || {
        let (mut buffer, mut row) = (Vec::new(), RowBuf::default());
        for at in 0..rows.min(1_000_000) {
            key(mix(at) % rows, &mut buffer);
            assert!(view.get(table, &buffer, &mut row).unwrap());
            let Value::Text(name) = row.row(table).get(5) else { panic!() };
            assert!(name.len() > 10);
        }
    });
    bench.best("range of 100, a row", 1_000_000, || {
        let (mut low, mut sum) = (Vec::new(), 0);
        for at in 0..10_000 {
            key(mix(at) % (rows - 100), &mut low);
            let from = (Bound::Included(&low[..]), Bound::Unbounded);
            let mut scan = view.scan(table, None, from, Direction::Forward).unwrap();
            for _ in 0..100 {
                let Value::BigInt(amount) = scan.next().unwrap().unwrap().get(3) else { panic!() };
                sum += amount;
            }
        }
        assert!(sum > 0);
    });
    bench.best("scan, a row", rows, || {
        let mut scan = view.scan(table, None, everything, Direction::Forward).unwrap();
        let mut sum = 0;
        while let Some(row) = scan.next().unwrap() {
            let Value::BigInt(amount) = row.get(3) else { panic!() };
            sum += amount;
        }
        assert!(sum > 0);
    });
    for (column, (name, kind)) in COLUMNS.into_iter().enumerate() {
        bench.best(&format!("blocks, {name}, a row"), rows, || {
            let mut scan = view.blocks(table, None, everything, Direction::Forward, &[column]).unwrap();
            let (mut sum, mut buffer) = (0, ColumnBuf::new(kind));
            while let Some(block) = scan.next().unwrap() {
                buffer.clear();
                block.column(column, &mut buffer).unwrap();
                sum += match buffer.values() {
                    ColumnValues::Int(values) => values.iter().map(|value| i64::from(*value)).sum(),
                    ColumnValues::BigInt(values) => values.iter().sum::<i64>() + 1,
                    ColumnValues::Bytes(values) => values.bytes.len() as i64,
                    other => panic!("{other:?}"),
                };
            }
            assert!(sum > 0);
        });
    }
    bench.best("count, a row", rows, || {
        assert_eq!(view.count(table, None, everything).unwrap(), rows);
    });
}

fn writes(bench: &Bench, db: &Database, table: &Arc<Table>, rows: u64) {
    let count = (rows / 20).max(1);
    for what in ["update, the first time", "update, again"] {
        bench.once(what, count, || {
            let (mut key, mut row) = (Vec::new(), RowBuf::default());
            for at in 0..count / 100 {
                let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
                for one in 0..100 {
                    key.clear();
                    let id = mix(at * 100 + one) % rows;
                    assert!(table.key_format().encode(&[Value::Int(id as i32)], &mut key));
                    assert!(transaction.lock(table, &key, &mut row).unwrap());
                    let mut values = row.row(table).values();
                    values[4] = Value::BigInt(at as i64);
                    assert!(transaction.update(table, &key, &values).unwrap());
                }
                transaction.commit(Durability::Buffered).unwrap();
            }
        });
    }
}

fn main() {
    let rows: u64 = std::env::var("CAIRN_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let filter = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    let rounds = std::env::var("CAIRN_ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    let bench = Bench { clock: SystemClock::new(), filter, rounds };
    let dir = tempfile::tempdir_in(std::env::var_os("CAIRN_WORK").unwrap_or_else(|| ".".into())).unwrap();
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    for pack in [true, false] {
        println!("{}", if pack { "packed" } else { "ordinary" });
        let mut options = Options::default();
        options.store.frames = (rows as usize / 40).max(1 << 10);
        options.pack = pack;
        let path = dir.path().join(if pack { "packed" } else { "ordinary" });
        let db = Database::open(&fs, &path, &options).unwrap();
        let pages = db.pages().unwrap().0;
        bench.once(LOAD, rows, || load(&db, rows));
        let size = (db.pages().unwrap().0 - pages) as f64 * 8192.0;
        println!("{:<40} {:>10.1} bytes", "file, a row", size / rows as f64);
        let table = now(&db);
        reads(&bench, &db, &table, rows);
        bench.once("index", rows, || {
            let before = db.pages().unwrap().0;
            let index = IndexDef {
                name: "records_grp".into(),
                columns: on(1),
                include: vec![],
                unique: false,
                is_constraint: false,
            };
            let mut transaction = db.begin(Isolation::ReadCommitted).unwrap();
            transaction.create_index(&table, index).unwrap();
            transaction.commit(Durability::Buffered).unwrap();
            let size = (db.pages().unwrap().0 - before) as f64 * 8192.0;
            println!("{:<40} {:>10.1} bytes", "index, an entry", size / rows as f64);
        });
        writes(&bench, &db, &now(&db), rows);
        let size = db.pages().unwrap().0 as f64 * 8192.0;
        println!("{:<40} {:>10.1} bytes", "file after updates, a row", size / rows as f64);
    }
}
