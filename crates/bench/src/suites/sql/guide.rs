//! The cases of the SimpleDB guide: single statements on a table of a hundred rows, and a few
//! concurrent workers, with and without an index. Statements are sent as text, and each is a
//! transaction of its own. Cairn and SQLite cache the parsed form of a text; DuckDB and PostgreSQL
//! parse it each time.

use std::time::Duration;

use cairn_vfs::{Clock, Rng, SeededRng, SystemClock};

use super::session_threads;
use crate::core::answer::{Answer, Cell};
use crate::core::error::{Error, Result};
use crate::stores::sql::{SqlDb, SqlSession};

/// Number of rows in the guide's table.
pub const ROWS: u32 = 100;

/// Number of threads in concurrent cases.
pub const WORKERS: u32 = 4;

/// Number of statements of each worker in a sample.
const EACH: u32 = 24;

/// Id of rows that exist only within a sample.
const NEW: u32 = 88_888;

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guide {
    /// Inserts a row.
    Insert,
    /// Selects the rows above an age, with a table scan.
    Scan,
    /// Counts all rows.
    Count,
    /// Updates a row by its id, which a table scan finds.
    Update,
    /// Deletes a row.
    Delete,
    /// Scans by several workers.
    ManySelect,
    /// Updates by several workers, each of its own rows.
    ManyUpdate,
    /// Four fifths scans, one fifth updates.
    ManyMixed,
    /// Inserts into a table with an index, by several workers with disjoint keys.
    IndexInsert,
    /// Lookups through an index.
    IndexLookup,
    /// Four fifths lookups, one fifth inserts.
    IndexMixed,
}

impl Guide {
    /// All cases, in the guide's order.
    pub const ALL: [Guide; 11] = [
        Guide::Insert,
        Guide::Scan,
        Guide::Count,
        Guide::Update,
        Guide::Delete,
        Guide::ManySelect,
        Guide::ManyUpdate,
        Guide::ManyMixed,
        Guide::IndexInsert,
        Guide::IndexLookup,
        Guide::IndexMixed,
    ];

    /// Returns the guide's name for the case.
    pub fn name(self) -> &'static str {
        match self {
            Guide::Insert => "INSERT (single record)",
            Guide::Scan => "SELECT (table scan)",
            Guide::Count => "SELECT COUNT(*)",
            Guide::Update => "UPDATE (single record)",
            Guide::Delete => "DELETE (single record)",
            Guide::ManySelect => "SQL Concurrency: SELECT",
            Guide::ManyUpdate => "SQL Concurrency: UPDATE",
            Guide::ManyMixed => "SQL Concurrency: mixed 80/20",
            Guide::IndexInsert => "Index Concurrency: INSERT disjoint keys",
            Guide::IndexLookup => "Index Concurrency: LOOKUP",
            Guide::IndexMixed => "Index Concurrency: mixed 80/20",
        }
    }

    /// Returns the number of threads.
    pub fn workers(self) -> u32 {
        match self {
            Guide::Insert | Guide::Scan | Guide::Count | Guide::Update | Guide::Delete => 1,
            _ => WORKERS,
        }
    }
}

/// Creates the guide's tables.
pub fn create(db: &dyn SqlDb) -> Result<()> {
    session_threads::once(db, |session| {
        session.execute("CREATE TABLE bench_table (id INT, name VARCHAR(20), age INT)")?;
        session.execute("CREATE TABLE index_table (id INT, name VARCHAR(20), age INT)")?;
        session.begin()?;
        for id in 0..ROWS {
            for table in ["bench_table", "index_table"] {
                session.execute(&insert(table, id, &format!("user{id}"), age(id)))?;
            }
        }
        session.commit()?;
        session.execute("CREATE INDEX index_table_id ON index_table (id)").map(drop)
    })
}

fn age(id: u32) -> u32 {
    20 + id % 50
}

fn insert(table: &str, id: u32, name: &str, age: u32) -> String {
    format!("INSERT INTO {table} (id, name, age) VALUES ({id}, '{name}', {age})")
}

fn update(age: u32, id: u32) -> String {
    format!("UPDATE bench_table SET age = {age} WHERE id = {id}")
}

fn delete(table: &str, id: u32) -> String {
    format!("DELETE FROM {table} WHERE id = {id}")
}

const SCAN: &str = "SELECT id, name FROM bench_table WHERE age > 30";
const COUNT: &str = "SELECT COUNT(*) FROM bench_table";

/// Returns the expected rows of a `SELECT` on the table as it is between samples. It also holds
/// while updates run, because an age of 31 to 69 stays above 30 and ages are not selected.
fn scanned() -> Answer {
    let mut answer = Answer::default();
    for id in (0..ROWS).filter(|id| age(*id) > 30) {
        answer.add(&[Cell::Int(i64::from(id)), Cell::Text(&format!("user{id}"))]);
    }
    answer
}

/// Takes samples of a case, each in nanoseconds per statement. Everything is checked, and the
/// tables have their original contents afterwards.
pub fn take(of: Guide, db: &dyn SqlDb, samples: usize) -> Result<Vec<f64>> {
    if of.workers() > 1 {
        return many(of, db, samples);
    }
    session_threads::once(db, |session| {
        // The first two executions warm up, as in the guide.
        let nanos: Result<Vec<f64>> =
            (0..samples + 2).map(|_| Ok(single(of, session)?.as_nanos() as f64)).collect();
        check(session)?;
        nanos.map(|nanos| nanos.get(2..).unwrap_or_default().to_vec())
    })
}

/// Runs one statement, timed, with another untimed one before or after it.
fn single(of: Guide, session: &mut dyn SqlSession) -> Result<Duration> {
    match of {
        Guide::Insert => {
            let took = timed(session, &insert("bench_table", NEW, "test_user", 25))?;
            expect_one(session.execute(&delete("bench_table", NEW))?)?;
            Ok(took)
        }
        Guide::Delete => {
            expect_one(session.execute(&insert("bench_table", NEW, "delete_me", 25))?)?;
            timed(session, &delete("bench_table", NEW))
        }
        Guide::Update => {
            let took = timed(session, &update(99, 0))?;
            // Changes no row unless the first statement had its effect.
            expect_one(session.execute(&format!("{} AND age = 99", update(age(0), 0)))?)?;
            Ok(took)
        }
        Guide::Count => shown(session, COUNT, Answer::of([&[Cell::Int(i64::from(ROWS))][..]])),
        _ => shown(session, SCAN, scanned()),
    }
}

fn timed(session: &mut dyn SqlSession, sql: &str) -> Result<Duration> {
    let clock = SystemClock::new();
    let start = clock.now();
    let changed = session.execute(sql)?;
    let took = clock.now() - start;
    expect_one(changed)?;
    Ok(took)
}

fn shown(session: &mut dyn SqlSession, sql: &str, expected: Answer) -> Result<Duration> {
    let (clock, mut got) = (SystemClock::new(), Answer::default());
    let start = clock.now();
    session.select(sql, &mut |row| got.add(row))?;
    let took = clock.now() - start;
    Error::expect_answer(sql, expected, got)?;
    Ok(took)
}

fn expect_one(changed: u64) -> Result<()> {
    let one = |count| Answer { rows: count, sum: 0 };
    Error::expect_answer("rows that a statement has changed", one(1), one(changed))
}

/// Checks that the tables have their original contents.
fn check(session: &mut dyn SqlSession) -> Result<()> {
    for table in ["bench_table", "index_table"] {
        let mut expected = Answer::default();
        for id in 0..ROWS {
            let name = format!("user{id}");
            expected.add(&[Cell::Int(i64::from(id)), Cell::Text(&name), Cell::Int(i64::from(age(id)))]);
        }
        shown(session, &format!("SELECT id, name, age FROM {table}"), expected)?;
    }
    Ok(())
}

/// Takes samples of concurrent cases. A sample consists of 24 statements of each of four workers,
/// and its time is divided by the number of statements.
fn many(of: Guide, db: &dyn SqlDb, samples: usize) -> Result<Vec<f64>> {
    let make = |worker: usize, _: &mut dyn SqlSession| Ok((worker, SeededRng::new(worker as u64)));
    let work = |(worker, rng): &mut (usize, SeededRng), session: &mut dyn SqlSession, sample: usize| {
        (0..EACH).try_for_each(|number| {
            let place = Place { worker: *worker as u32, number, sample: sample as u32 };
            let drawn = Drawn { is_read: rng.below(100) < 80, number: rng.below(u64::from(ROWS)) as u32 };
            again(session, &mut |session| statement(of, session, place, drawn))
        })
    };
    let (spans, _) = session_threads::take(db, WORKERS, samples + 1, &make, &work)?;
    session_threads::once(db, |session| {
        session.execute(&format!("DELETE FROM index_table WHERE id >= {ROWS}"))?;
        for id in 0..ROWS {
            session.execute(&update(age(id), id))?;
        }
        check(session)
    })?;
    let each = f64::from(WORKERS * EACH);
    Ok(spans.iter().skip(1).map(|span| span.as_nanos() as f64 / each).collect())
}

#[derive(Clone, Copy)]
struct Place {
    worker: u32,
    number: u32,
    sample: u32,
}

/// Repeats `work` while it conflicts with other transactions.
pub fn again(
    session: &mut dyn SqlSession,
    work: &mut dyn FnMut(&mut dyn SqlSession) -> Result<()>,
) -> Result<()> {
    // BOUND: conflicts end when the other transactions are done. An engine that never lets a
    // transaction succeed is an error.
    for _ in 0..10_000 {
        match work(session) {
            Err(Error::Conflict { .. }) => {}
            ended => return ended,
        }
    }
    work(session)
}

#[derive(Clone, Copy)]
struct Drawn {
    is_read: bool,
    /// Below [`ROWS`].
    number: u32,
}

fn statement(of: Guide, session: &mut dyn SqlSession, place: Place, drawn: Drawn) -> Result<()> {
    match of {
        Guide::ManySelect => scan(session),
        Guide::ManyMixed if drawn.is_read => scan(session),
        Guide::ManyUpdate | Guide::ManyMixed => {
            // Rows of this worker only, with ages above 30 before and after.
            let own = 11 + place.worker * 8 + drawn.number % 8;
            expect_one(session.execute(&update(31 + drawn.number % 39, own))?)
        }
        Guide::IndexInsert => insert_own(session, place),
        Guide::IndexMixed if !drawn.is_read => insert_own(session, place),
        _ => {
            let id = drawn.number;
            let sql = format!("SELECT name FROM index_table WHERE id = {id}");
            let expected = Answer::of([&[Cell::Text(&format!("user{id}"))][..]]);
            shown(session, &sql, expected).map(drop)
        }
    }
}

fn scan(session: &mut dyn SqlSession) -> Result<()> {
    shown(session, SCAN, scanned()).map(drop)
}

fn insert_own(session: &mut dyn SqlSession, place: Place) -> Result<()> {
    let id = ROWS + (place.sample * WORKERS + place.worker) * EACH + place.number;
    expect_one(session.execute(&insert("index_table", id, "new", 25))?)
}
