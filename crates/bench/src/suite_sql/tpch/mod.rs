//! TPC-H: its eight tables, made by the crate tpchgen, and its 22 queries with the parameters that
//! its answers are published for.
//!
//! Not an audited result: no refresh functions, no throughput test, and the time of each query by
//! itself. Answers are compared row by row with those of DuckDB, or of the first contender where
//! DuckDB is not here.

mod compare;
mod queries;
mod tables;

use std::path::PathBuf;

use cairn_vfs::{Clock, SystemClock};

use self::compare::{Grid, differs};
use self::tables::TABLES;
use super::store::{Dialect, SqlDb, SqlSettings};
use super::{Suite, crew};
use crate::error::{Error, Result};
use crate::results::Case;
use crate::scratch::remove_tree;
use crate::suite_hash::recorder::{BYTES, TIME};
use crate::workload::shuffle;

/// As cases name it.
pub const DATASET: &str = "TPC-H";

/// Whose answers are right, if it is here.
const REFERENCE: &str = "duckdb";

/// How many queries there are.
pub const QUERIES: usize = 22;

struct Open {
    name: String,
    dialect: Dialect,
    dir: PathBuf,
    db: Box<dyn SqlDb>,
    /// Of each round, the seconds of all queries so far, and how many those are.
    totals: Vec<(f64, usize)>,
    failed: bool,
}

/// A query by its number from 1.
fn case(operation: String, rows: u64) -> Case {
    Case {
        operation,
        dataset: DATASET.to_owned(),
        entries: rows,
        value_bytes: 0,
        compression: "none".to_owned(),
        keys: "present".to_owned(),
        distribution: "TPC-H".to_owned(),
        threads: 1,
    }
}

/// Loads everybody's tables, then takes all rounds of each query.
pub(super) fn run(suite: &mut Suite<'_>, scale: f64) -> Result<()> {
    let rows = tables::line_items(scale);
    suite.progress.group(0, 2, "TPC-H: loading");
    let mut opens = Vec::new();
    for index in 0..suite.catalog.stores.len() {
        suite.stop.check()?;
        let Some(store) = suite.catalog.stores.get(index) else { continue };
        let (name, dialect) = (store.name().to_owned(), store.dialect());
        suite.progress.step(index, suite.catalog.stores.len(), &name);
        match load(suite, index, scale) {
            Ok((dir, db, seconds, bytes)) => {
                let load = case("load".to_owned(), rows);
                suite.recorder.add(&name, &load, TIME, seconds);
                suite.recorder.add(&name, &load, BYTES, bytes as f64 / rows as f64);
                let totals = vec![(0.0, 0); suite.options.rounds as usize];
                opens.push(Open { name, dialect, dir, db, totals, failed: false });
            }
            Err(error) => {
                suite.progress.note(&format!("{name} does not load TPC-H: {error}"));
                suite.recorder.discard(&name, &case("load".to_owned(), rows), error.to_string());
            }
        }
    }
    // Whose answers the others are compared with comes first.
    opens.sort_by_key(|open| open.name != REFERENCE);
    suite.progress.group(1, 2, "TPC-H: queries");
    let asked = (1..=QUERIES).try_for_each(|number| {
        suite.progress.step(number - 1, QUERIES, &format!("Q{number}"));
        query(suite, &mut opens, number, (scale, rows))
    });
    for open in opens {
        for (seconds, _) in open.totals.iter().filter(|(_, count)| *count == QUERIES) {
            suite.recorder.add(&open.name, &case("all 22 queries".to_owned(), rows), TIME, *seconds);
        }
        if let Err(error) = open.db.close() {
            suite.progress.note(&format!("{} does not close cleanly: {error}", open.name));
        }
        remove_tree(&open.dir)?;
    }
    asked
}

type Loaded = (PathBuf, Box<dyn SqlDb>, f64, u64);

fn load(suite: &Suite<'_>, index: usize, scale: f64) -> Result<Loaded> {
    let none = || Error::engine("the suite", "no such engine");
    let store = suite.catalog.stores.get(index).ok_or_else(none)?;
    let dir = suite.dir_of(index)?;
    let settings = SqlSettings {
        durability: suite.options.durability,
        cache_bytes: suite.options.cache_bytes,
        sessions: suite.options.sessions(),
    };
    let db = store.open(&dir, &settings)?;
    let (dialect, clock) = (store.dialect(), SystemClock::new());
    let start = clock.now();
    for table in &TABLES {
        suite.stop.check()?;
        crew::once(&*db, |session| session.execute(&table.create(dialect)))?;
        let count = db.load(table.name, table.columns.len(), &mut table.rows(scale))?;
        if count == 0 {
            return Err(Error::engine(store.name(), format!("no rows in {}", table.name)));
        }
    }
    crew::once(&*db, |session| {
        for sql in tables::indexes(dialect) {
            session.execute(sql)?;
        }
        Ok(())
    })?;
    db.analyze()?;
    let seconds = (clock.now() - start).as_secs_f64();
    db.settle()?;
    let bytes = db.bytes(&TABLES.map(|table| table.name))?;
    Ok((dir, db, seconds, bytes))
}

/// All rounds of one query, after one of each contender that warms up and whose answer is compared.
fn query(suite: &mut Suite<'_>, opens: &mut [Open], number: usize, (scale, rows): (f64, u64)) -> Result<()> {
    let case = case(format!("Q{number}"), rows);
    let mut expected: Option<(String, Grid)> = None;
    for open in &mut *opens {
        suite.stop.check()?;
        open.failed = true;
        let sql = queries::sql(number, scale, open.dialect);
        let problem = match (ask(&*open.db, &sql), &expected) {
            (Err(error), _) => error.to_string(),
            (Ok((grid, _)), None) => {
                expected = Some((open.name.clone(), grid));
                open.failed = false;
                continue;
            }
            (Ok((grid, _)), Some((whose, right))) => match differs(right, &grid) {
                None => {
                    open.failed = false;
                    continue;
                }
                Some(place) => format!("not {whose}'s answer: {place}"),
            },
        };
        suite.progress.note(&format!("{} in {}: {problem}", open.name, case.operation));
        suite.recorder.discard(&open.name, &case, problem);
    }
    let mut order: Vec<usize> = (0..opens.len()).collect();
    for round in 0..suite.options.rounds as usize {
        shuffle(&mut order, &mut suite.rng);
        for &index in &order {
            suite.stop.check()?;
            let Some(open) = opens.get_mut(index).filter(|open| !open.failed) else { continue };
            let sql = queries::sql(number, scale, open.dialect);
            match ask(&*open.db, &sql) {
                Ok((_, seconds)) => {
                    suite.recorder.add(&open.name, &case, TIME, seconds);
                    if let Some(total) = open.totals.get_mut(round) {
                        *total = (total.0 + seconds, total.1 + 1);
                    }
                }
                Err(error) => {
                    open.failed = true;
                    suite.progress.note(&format!("{} in {}: {error}", open.name, case.operation));
                    suite.recorder.discard(&open.name, &case, error.to_string());
                }
            }
        }
    }
    Ok(())
}

/// The rows of a query, and how long it took until the last one was here.
fn ask(db: &dyn SqlDb, sql: &str) -> Result<(Grid, f64)> {
    let clock = SystemClock::new();
    crew::once(db, |session| {
        // A new session has to learn of the tables first, a server's most of all: that is no part
        // of a query.
        for table in &TABLES {
            session.select(&format!("SELECT 1 FROM {} LIMIT 1", table.name), &mut |_| ())?;
        }
        let mut grid = Grid::default();
        let start = clock.now();
        session.select(sql, &mut |row| grid.add(row))?;
        Ok((grid, (clock.now() - start).as_secs_f64()))
    })
}
