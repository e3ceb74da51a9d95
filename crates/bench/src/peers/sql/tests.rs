//! Correctness tests that every engine must pass before it is measured.

use std::collections::BTreeMap;

use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::core::scratch::Scratch;
use crate::core::workload::Durability;
use crate::stores::sql::{Rows, SqlDb, SqlSettings, SqlStore};

/// Returns every available engine. With `CAIRN_REQUIRE_SQL_PEERS=1` a missing one fails the test.
fn stores() -> Vec<Box<dyn SqlStore>> {
    let mut stores: Vec<Box<dyn SqlStore>> = vec![Box::new(super::sqlite::Sqlite)];
    let must = std::env::var_os("CAIRN_REQUIRE_SQL_PEERS").is_some();
    let mut add = |found: Result<Box<dyn SqlStore>>| match found {
        Ok(store) => stores.push(store),
        Err(error) => assert!(!must, "{error}"),
    };
    add(super::duckdb::DuckDb::find().map(|store| Box::new(store) as Box<dyn SqlStore>));
    add(super::postgres::Postgres::find().map(|store| Box::new(store) as Box<dyn SqlStore>));
    stores
}

fn open(store: &dyn SqlStore, durability: Durability) -> (Scratch, Box<dyn SqlDb>) {
    let scratch = Scratch::temporary("sqltest").unwrap();
    let settings = SqlSettings { durability, cache_bytes: 16 << 20, sessions: 8 };
    let db = store.open(&scratch.dir("0").unwrap(), &settings).unwrap();
    (scratch, db)
}

/// Three rows, with texts that are hard to quote and with NULLs.
struct Three;

impl Rows for Three {
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        visit(&[Cell::Int(1), Cell::Text("a\tb\\'\n\"é"), Cell::Decimal(-1205, 2), Cell::Real(0.5)])?;
        visit(&[Cell::Int(2), Cell::Text(""), Cell::Decimal(5, 2), Cell::Real(-1e10)])?;
        visit(&[Cell::Int(3), Cell::Null, Cell::Null, Cell::Null])
    }
}

fn rows(db: &dyn SqlDb, sql: &str) -> Vec<String> {
    let mut rows = Vec::new();
    db.with_session(&mut |session| session.select(sql, &mut |row| rows.push(format!("{row:?}")))).unwrap();
    rows
}

/// Goal: values are stored and returned unchanged, by load, by text and by prepared statements, for
/// every type that the lab has. Method: the same statements on every engine, with the same expected
/// rows.
#[test]
fn values_come_back() {
    for store in stores() {
        let name = store.name().to_owned();
        let (_scratch, db) = open(&*store, Durability::Buffered);
        db.with_session(&mut |session| {
            session.execute(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20), price DECIMAL(12,2), ratio DOUBLE PRECISION)",
            )?;
            assert_eq!(db.load("t", 4, &mut Three)?, 3);
            let insert = session.prepare("INSERT INTO t VALUES ($1, $2, $3, $4)")?;
            let row = [Cell::Int(4), Cell::Text("four"), Cell::Decimal(99, 2), Cell::Real(2.5)];
            assert_eq!(session.run(insert, &row)?, 1, "{name}");
            assert_eq!(session.run(insert, &[Cell::Int(5), Cell::Null, Cell::Null, Cell::Null])?, 1);
            assert_eq!(session.execute("UPDATE t SET ratio = 1.5 WHERE id >= 4")?, 2, "{name}");
            assert_eq!(session.execute("DELETE FROM t WHERE id = 5")?, 1, "{name}");
            let by_id = session.prepare("SELECT name, price, ratio FROM t WHERE id = $1")?;
            let mut seen = BTreeMap::new();
            for id in [4, 3, 1, 7] {
                session.query(by_id, &[Cell::Int(id)], &mut |row| {
                    seen.insert(id, format!("{row:?}"));
                })?;
            }
            assert_eq!(seen.len(), 3);
            assert_eq!(seen[&1], r#"[Text("a\tb\\'\n\"é"), Real(-12.05), Real(0.5)]"#, "{name}");
            assert_eq!(seen[&3], "[Null, Null, Null]", "{name}");
            assert_eq!(seen[&4], r#"[Text("four"), Real(0.99), Real(1.5)]"#, "{name}");
            Ok(())
        })
        .unwrap();
        db.analyze().unwrap();
        db.settle().unwrap();
        assert!(db.bytes(&["t"]).unwrap() > 4096, "{name}");
        assert_eq!(rows(&*db, "SELECT count(*), sum(id) FROM t"), ["[Int(4), Int(10)]"], "{name}");
        assert_eq!(
            rows(&*db, "SELECT name FROM t WHERE id = 2 OR name = 'four' ORDER BY id"),
            [r#"[Text("")]"#, r#"[Text("four")]"#]
        );
        db.close().unwrap();
    }
}

/// Goal: a rolled-back transaction leaves nothing, and errors are reported. Method: one transaction
/// of each outcome, and an invalid statement.
#[test]
fn transactions_and_errors() {
    for store in stores() {
        let name = store.name().to_owned();
        assert!(!store.version().is_empty());
        for durability in [Durability::Memory, Durability::Buffered, Durability::Sync] {
            let settings = SqlSettings { durability, cache_bytes: 16 << 20, sessions: 8 };
            assert!(
                !store.guarantee(durability).sentence().is_empty() && store.settings(&settings).len() > 3
            );
        }
        let (_scratch, db) = open(&*store, Durability::Sync);
        db.with_session(&mut |session| {
            session.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")?;
            session.begin()?;
            session.execute("INSERT INTO t VALUES (1)")?;
            session.rollback()?;
            session.begin()?;
            session.execute("INSERT INTO t VALUES (2)")?;
            session.commit()?;
            assert!(session.execute("INSERT INTO t VALUES (2)").is_err(), "{name}");
            assert!(session.prepare("SELECT nothing FROM nowhere").is_err());
            let error = session.select("SELEC 1", &mut |_| {}).unwrap_err();
            assert!(matches!(error, Error::Engine { .. }) && error.to_string().contains(&name), "{error}");
            Ok(())
        })
        .unwrap();
        assert_eq!(rows(&*db, "SELECT id FROM t"), ["[Int(2)]"], "{name}");
        db.close().unwrap();
    }
}
