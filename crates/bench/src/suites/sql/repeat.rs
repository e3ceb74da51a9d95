//! Repeats an operation on several client threads for the duration of a turn.
//!
//! Threads warm up, are timed, and then perform some more operations with the clock read around
//! each. Answers are only summed up while the clock runs, and compared with the expected ones
//! afterwards, by repeating the draws from the same seed.

use std::time::Duration;

use cairn_vfs::{Clock, Rng, SeededRng, SystemClock};

use super::data::{COLUMN_COUNT, Expected, RANGE_ROWS, Record, Records};
use super::guide::again;
use super::plan::Op;
use super::session_threads;
use crate::core::answer::{Answer, Cell};
use crate::core::error::{Error, Result};
use crate::core::histogram::{Latencies, clock_overhead};
use crate::stores::sql::{Prepared, SqlDb, SqlSession};

/// Maximum number of rows that a thread may delete in a turn, and minimum number that it inserts
/// for that, however long the inserts take.
const DELETES_EACH: i64 = 20_000;
const DELETES_LEAST: i64 = 200;

/// Number of ids that a thread may insert in a turn.
const IDS_EACH: i64 = 1 << 19;

/// Number of operations between two readings of the clock, for short operations.
const UNWATCHED: u64 = 16;

/// The table on which a turn works.
#[derive(Debug)]
pub struct Table {
    /// The rows.
    pub records: Records,
    /// The expected answers.
    pub expected: Expected,
}

impl Table {
    /// Creates a table with this many rows.
    pub fn new(rows: u32, seed: u64) -> Self {
        let records = Records::new(rows, seed);
        Table { records, expected: Expected::new(records) }
    }
}

/// The past changes of a database, which determine its expected contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// Number of committed updates.
    pub updates: u64,
    /// The first id that has never been used.
    pub next_id: i64,
}

impl History {
    /// Returns the history of a table that has just been loaded.
    pub fn new(records: Records) -> Self {
        History { updates: 0, next_id: i64::from(records.rows) }
    }
}

/// The results of a turn.
#[derive(Debug)]
pub struct Turn {
    /// Operations per second over all threads.
    pub rate: f64,
    /// Latencies of single operations.
    pub latencies: Latencies,
}

/// Takes a turn, and checks the answers and the contents of the table.
pub fn take(
    op: Op,
    db: &dyn SqlDb,
    table: &Table,
    history: &mut History,
    (threads, seconds, seed): (u32, f64, u64),
) -> Result<Turn> {
    let first_id = history.next_id;
    if !matches!(op, Op::Update | Op::UpdateMany | Op::Mixed) && op.writes() {
        history.next_id += i64::from(threads) * IDS_EACH;
    }
    let overhead = clock_overhead(&SystemClock::new());
    let make = |index: usize, session: &mut dyn SqlSession| {
        let place = Place {
            thread: index as u32,
            threads,
            first_id: first_id + index as i64 * IDS_EACH,
            seed: seed ^ (index as u64 + 1) << 40,
        };
        Client::new(op, table, place, session, (seconds, overhead))
    };
    let lengths = [seconds / 4.0, seconds, seconds / 4.0].map(Duration::from_secs_f64);
    let work = |client: &mut Client<'_>, session: &mut dyn SqlSession, sample: usize| {
        let length = lengths.get(sample).copied().unwrap_or_default();
        client.sample(session, length, sample == 2)
    };
    let (spans, clients) = session_threads::take(db, threads, lengths.len(), &make, &work)?;
    history.updates += clients.iter().map(|client| client.updates).sum::<u64>();
    let mut latencies = Latencies::new(overhead);
    for client in &clients {
        client.check()?;
        latencies.merge(&client.latencies);
    }
    if op.writes() {
        tidy(db, table, *history)?;
    }
    let done: u64 = clients.iter().filter_map(|client| client.counts.get(1)).sum();
    let seconds = spans.get(1).copied().unwrap_or_default().as_secs_f64();
    Ok(Turn { rate: done as f64 / seconds.max(1e-9), latencies })
}

/// Deletes the inserted rows, and compares the table with its history.
fn tidy(db: &dyn SqlDb, table: &Table, history: History) -> Result<()> {
    session_threads::once(db, |session| {
        session.execute(&format!("DELETE FROM records WHERE id >= {}", table.records.rows))?;
        let mut got = Answer::default();
        let query = "SELECT count(*), sum(counter) FROM records";
        session.select(query, &mut |row| got.add(row))?;
        let (rows, updates) = (i64::from(table.records.rows), history.updates as i64);
        Error::expect_answer(query, Answer::of([&[Cell::Int(rows), Cell::Int(updates)][..]]), got)
    })
}

#[derive(Debug, Clone, Copy)]
struct Place {
    thread: u32,
    threads: u32,
    first_id: i64,
    seed: u64,
}

/// One client thread.
struct Client<'t> {
    op: Op,
    table: &'t Table,
    place: Place,
    rng: SeededRng,
    statement: Prepared,
    /// The update of [`Op::Mixed`].
    second: Option<Prepared>,
    record: Record,
    /// Number of inserted ids, and how many of them are deleted again.
    inserted: i64,
    deleted: i64,
    /// Number of operations in each sample.
    counts: Vec<u64>,
    updates: u64,
    answer: Answer,
    latencies: Latencies,
}

const POINT: &str = "SELECT id, grp, kind, amount, name, note FROM records WHERE id = $1";
const UPDATE: &str = "UPDATE records SET counter = counter + 1 WHERE id = $1";
const INSERT: &str = "INSERT INTO records VALUES ($1, $2, $3, $4, $5, $6, $7)";

fn sql(op: Op) -> &'static str {
    match op {
        Op::Point | Op::Mixed => POINT,
        Op::Range => "SELECT id, amount, name FROM records WHERE id >= $1 AND id < $2 ORDER BY id",
        Op::Insert | Op::InsertMany => INSERT,
        Op::Update | Op::UpdateMany => UPDATE,
        Op::Delete | Op::DeleteMany => "DELETE FROM records WHERE id = $1",
        Op::Join => {
            "SELECT g.label, r.id, r.amount FROM groups g JOIN records r ON r.grp = g.id WHERE g.rank = $1"
        }
        Op::Count => "SELECT count(*) FROM records",
        Op::Filter => "SELECT count(*), sum(amount) FROM records WHERE amount >= $1 AND amount < $2",
        Op::GroupBy => {
            "SELECT kind, count(*), sum(amount), min(amount), max(amount) FROM records GROUP BY kind"
        }
    }
}

impl<'t> Client<'t> {
    fn new(
        op: Op,
        table: &'t Table,
        place: Place,
        session: &mut dyn SqlSession,
        (seconds, overhead): (f64, u64),
    ) -> Result<Self> {
        let mut client = Client {
            op,
            table,
            place,
            rng: SeededRng::new(place.seed),
            statement: session.prepare(sql(op))?,
            second: if op == Op::Mixed { Some(session.prepare(UPDATE)?) } else { None },
            record: Record::default(),
            inserted: 0,
            deleted: 0,
            counts: Vec::new(),
            updates: 0,
            answer: Answer::default(),
            latencies: Latencies::new(overhead),
        };
        if matches!(op, Op::Delete | Op::DeleteMany) {
            client.stock(session, seconds)?;
        }
        Ok(client)
    }

    /// Inserts the rows to delete, for no longer than the rest of the turn takes.
    fn stock(&mut self, session: &mut dyn SqlSession, seconds: f64) -> Result<()> {
        let (insert, clock) = (session.prepare(INSERT)?, SystemClock::new());
        let until = clock.now() + Duration::from_secs_f64(2.0 * seconds);
        session.begin()?;
        while self.inserted < DELETES_EACH && (self.inserted < DELETES_LEAST || clock.now() < until) {
            self.insert(session, insert)?;
        }
        session.commit()
    }

    fn sample(&mut self, session: &mut dyn SqlSession, length: Duration, timed: bool) -> Result<()> {
        let clock = SystemClock::new();
        let start = clock.now();
        let (mut count, mut now) = (0, start);
        while now < start + length && !self.is_out() {
            let before = now;
            if self.op.at_once() > 1 {
                count += self.transaction(session)?;
            } else {
                // The clock is not read around every short operation. The rate so far shows whether
                // operations are short.
                let is_short = u128::from(count) * length.as_nanos() > 4096 * (now - start).as_nanos();
                let unwatched = if is_short && !timed { UNWATCHED } else { 1 };
                for _ in 0..unwatched {
                    if self.is_out() {
                        break;
                    }
                    self.step(session)?;
                    count += 1;
                }
            }
            now = clock.now();
            if timed {
                self.latencies.record(now - before);
            }
        }
        self.counts.push(count);
        Ok(())
    }

    /// Returns true if no row is left to delete in this sample. The first and the last sample get a
    /// tenth of the rows each.
    fn is_out(&self) -> bool {
        let share = match self.counts.len() {
            0 => self.inserted / 10,
            1 => self.inserted * 9 / 10,
            _ => self.inserted,
        };
        matches!(self.op, Op::Delete | Op::DeleteMany) && self.deleted >= share
    }

    fn transaction(&mut self, session: &mut dyn SqlSession) -> Result<u64> {
        let mut count = 0;
        session.begin()?;
        while count < self.op.at_once() && !self.is_out() {
            self.step(session)?;
            count += 1;
        }
        session.commit()?;
        Ok(count)
    }

    #[inline]
    fn step(&mut self, session: &mut dyn SqlSession) -> Result<()> {
        let (statement, records) = (self.statement, self.table.records);
        match self.op {
            Op::Point => self.point(session),
            Op::Range => {
                let from = i64::from(range_start(&mut self.rng, records));
                self.query(session, &[Cell::Int(from), Cell::Int(from + i64::from(RANGE_ROWS))])
            }
            Op::Join => {
                let rank = self.rng.below(u64::from(records.groups()));
                self.query(session, &[Cell::Int(rank as i64)])
            }
            Op::Count | Op::GroupBy => self.query(session, &[]),
            Op::Filter => {
                let ((low, high), _) = self.table.expected.window(self.rng.below(7) as usize);
                self.query(session, &[Cell::Int(i64::from(low)), Cell::Int(i64::from(high))])
            }
            Op::Insert | Op::InsertMany => self.insert(session, statement),
            Op::Delete | Op::DeleteMany => {
                let id = self.place.first_id + self.deleted;
                self.deleted += 1;
                one(session.run(statement, &[Cell::Int(id)])?)
            }
            Op::Update | Op::UpdateMany => {
                let Place { thread, threads, .. } = self.place;
                let id = self.rng.below(u64::from(records.rows / threads)) as u32 * threads + thread;
                self.update(session, statement, id)
            }
            Op::Mixed => match (self.rng.below(5), self.second) {
                (0, Some(second)) => {
                    let id = self.rng.below(u64::from(records.rows)) as u32;
                    self.update(session, second, id)
                }
                _ => self.point(session),
            },
        }
    }

    #[inline]
    fn point(&mut self, session: &mut dyn SqlSession) -> Result<()> {
        let id = self.rng.below(u64::from(self.table.records.rows));
        self.query(session, &[Cell::Int(id as i64)])
    }

    #[inline]
    fn query(&mut self, session: &mut dyn SqlSession, parameters: &[Cell<'_>]) -> Result<()> {
        let answer = &mut self.answer;
        session.query(self.statement, parameters, &mut |row| answer.add(row))
    }

    fn update(&mut self, session: &mut dyn SqlSession, statement: Prepared, id: u32) -> Result<()> {
        let parameters = [Cell::Int(i64::from(id))];
        if self.op.at_once() > 1 {
            one(session.run(statement, &parameters)?)?;
        } else {
            again(session, &mut |session| one(session.run(statement, &parameters)?))?;
        }
        self.updates += 1;
        Ok(())
    }

    fn insert(&mut self, session: &mut dyn SqlSession, statement: Prepared) -> Result<()> {
        let id = self.place.first_id + self.inserted;
        self.inserted += 1;
        if self.inserted > IDS_EACH {
            return Err(Error::engine("the suite", "a turn has no more ids; make turns shorter"));
        }
        // Any existing row can serve as a template.
        self.table.records.make(id as u32 % self.table.records.rows, &mut self.record);
        let Record { grp, kind, amount, name, note } = &self.record;
        let int = |value: u32| Cell::Int(i64::from(value));
        let row: [Cell<'_>; COLUMN_COUNT] = [
            Cell::Int(id),
            int(*grp),
            int(*kind),
            int(*amount),
            Cell::Int(0),
            Cell::Text(name),
            Cell::Text(note),
        ];
        one(session.run(statement, &row)?)
    }

    /// Repeats all draws, and compares the expected answers with the actual ones.
    fn check(&self) -> Result<()> {
        let (mut rng, mut expected) = (SeededRng::new(self.place.seed), Answer::default());
        let (records, known) = (self.table.records, &self.table.expected);
        for _ in 0..self.counts.iter().sum() {
            expected = expected.merge(match self.op {
                Op::Point => known.point(rng.below(u64::from(records.rows)) as u32),
                Op::Range => {
                    let from = range_start(&mut rng, records);
                    known.range(from, from + RANGE_ROWS)
                }
                Op::Join => known.join(rng.below(u64::from(records.groups())) as u32),
                Op::Count => known.count(),
                Op::GroupBy => known.kinds(),
                Op::Filter => known.window(rng.below(7) as usize).1,
                Op::Mixed => {
                    let is_update = rng.below(5) == 0;
                    let id = rng.below(u64::from(records.rows)) as u32;
                    if is_update { Answer::default() } else { known.point(id) }
                }
                // The effects of writes are checked in the table.
                _ => Answer::default(),
            });
        }
        Error::expect_answer(sql(self.op), expected, self.answer)
    }
}

fn range_start(rng: &mut SeededRng, records: Records) -> u32 {
    rng.below(u64::from(records.rows.saturating_sub(RANGE_ROWS).max(1))) as u32
}

fn one(changed: u64) -> Result<()> {
    let rows = |rows| Answer { rows, sum: 0 };
    Error::expect_answer("rows that a statement has changed", rows(1), rows(changed))
}
