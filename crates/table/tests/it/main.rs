//! Transactions over tables: isolation, constraints, the schema, and recovery.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test program"
)]

#[path = "../../../../testing/examples.rs"]
#[macro_use]
mod testing;

mod anomalies;
mod backup_vacuum;
mod basics;
mod blocks;
mod cleanup;
mod conflicts;
mod constraints;
mod fixed_views;
mod formats;
mod history;
mod links;
mod lock_waits;
mod locked_row;
mod references;
mod reuse;
mod savepoints;
mod schema;
mod sorting;
mod statements;
mod watch;

use std::path::Path;
use std::sync::Arc;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ColumnType, IndexDef, KeyColumn, TableDef};
use cairn_table::{Database, Direction, Durability, Isolation, Options, RowBuf, Table, Transaction};
use cairn_vfs::{Fs, MemFs, SeededRng};
use std::ops::Bound;

/// A database in memory, and its file system.
pub struct Fixture {
    pub fs: Arc<dyn Fs>,
    pub db: Database,
}

pub fn options() -> Options {
    let mut options = Options::default();
    options.store.frames = 256;
    options.store.background = false;
    options
}

pub fn path() -> &'static Path {
    Path::new("/db/test.db")
}

pub fn open(fs: &Arc<dyn Fs>) -> Database {
    Database::open_seeded(fs, path(), &options(), &mut SeededRng::new(7)).unwrap()
}

#[allow(clippy::new_without_default, reason = "a fixture is not a value")]
impl Fixture {
    pub fn new() -> Self {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/db")).unwrap();
        Fixture { db: open(&fs), fs }
    }

    /// Creates a fixture with other options than most tests have.
    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        fs.create_dir_all(Path::new("/db")).unwrap();
        let mut options = options();
        change(&mut options);
        let db = Database::open_seeded(&fs, path(), &options, &mut SeededRng::new(7)).unwrap();
        Fixture { db, fs }
    }

    /// Closes and reopens the database.
    pub fn reopen(self) -> Self {
        drop(self.db);
        Fixture { db: open(&self.fs), fs: self.fs }
    }

    pub fn begin(&self) -> Transaction {
        self.db.begin(Isolation::ReadCommitted).unwrap()
    }

    /// Runs `work` in a transaction of its own and commits it.
    pub fn run<T>(&self, work: impl FnOnce(&mut Transaction) -> T) -> T {
        let mut transaction = self.begin();
        let value = work(&mut transaction);
        transaction.commit(Durability::Buffered).unwrap();
        value
    }

    pub fn table(&self, name: &str) -> Arc<Table> {
        Arc::clone(self.begin().view().catalog().table("public", name).unwrap())
    }

    /// Creates a fixture with a table `t` of rows `(id, -id)` and an index on `v`.
    pub fn indexed(rows: i32) -> (Self, Arc<Table>) {
        let fixture = Fixture::new();
        let table = fixture.run(|transaction| {
            let mut def = def("t", &[("id", Type::Int), ("v", Type::Int)], &[0]);
            def.indexes = vec![index("t_v", &[1], false)];
            let table = transaction.create_table(def).unwrap();
            for id in 0..rows {
                transaction.insert(&table, &[Value::Int(id), Value::Int(-id)]).unwrap();
            }
            table
        });
        (fixture, table)
    }

    /// Creates a table of two columns, `id` and `v`, with rows.
    pub fn pairs(&self, rows: &[(i32, i32)]) -> Arc<Table> {
        self.run(|transaction| {
            let table =
                transaction.create_table(def("t", &[("id", Type::Int), ("v", Type::Int)], &[0])).unwrap();
            for (id, v) in rows {
                transaction.insert(&table, &[Value::Int(*id), Value::Int(*v)]).unwrap();
            }
            table
        })
    }
}

pub fn column(name: &str, kind: impl Into<ColumnType>) -> ColumnDef {
    ColumnDef { name: name.to_owned(), kind: kind.into(), nullable: true, default: None, identity: None }
}

pub fn on(columns: &[usize]) -> Vec<KeyColumn> {
    columns.iter().map(|&column| KeyColumn { column, order: Order::default() }).collect()
}

pub fn def(name: &str, columns: &[(&str, Type)], primary_key: &[usize]) -> TableDef {
    TableDef {
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: columns.iter().map(|(name, kind)| column(name, *kind)).collect(),
        primary_key: on(primary_key),
        ..TableDef::default()
    }
}

pub fn index(name: &str, columns: &[usize], unique: bool) -> IndexDef {
    IndexDef {
        name: name.to_owned(),
        columns: on(columns),
        include: Vec::new(),
        unique,
        is_constraint: false,
    }
}

pub fn key(table: &Table, id: i32) -> Vec<u8> {
    let mut key = Vec::new();
    assert!(table.key_format().encode(&[Value::Int(id)], &mut key));
    key
}

/// Returns the `v` of an `id`.
pub fn get(transaction: &Transaction, table: &Table, id: i32) -> Option<i32> {
    let mut row = RowBuf::default();
    let found = transaction.view().get(table, &key(table, id), &mut row).unwrap();
    found.then(|| match row.row(table).get(1) {
        Value::Int(v) => v,
        other => panic!("{other:?}"),
    })
}

/// Sets the `v` of an `id`.
pub fn set(transaction: &mut Transaction, table: &Arc<Table>, id: i32, v: i32) -> cairn_table::Result<bool> {
    transaction.update(table, &key(table, id), &[Value::Int(id), Value::Int(v)])
}

/// Returns all rows, in the order of the table or an index, as text.
pub fn all(transaction: &Transaction, table: &Arc<Table>, index: Option<usize>) -> Vec<String> {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let mut scan = transaction.view().scan(table, index, everything, Direction::Forward).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = scan.next().unwrap() {
        let columns = 0..table.def().columns.len();
        let shown = columns.filter(|&column| index.is_none_or(|index| table.index_covers(index, column)));
        rows.push(shown.map(|column| row.get(column).to_string()).collect::<Vec<_>>().join(","));
    }
    rows
}

examples! { tables = "../../../../examples/tables.rs" }
