//! The bulk load: all rows of a table, loaded in the engine's fastest way, and their size on disk
//! afterwards.

use cairn_vfs::{Clock, SystemClock};

use super::data::{COLUMN_COUNT, COLUMNS, RecordRows, Records};
use super::session_threads;
use crate::core::answer::{Answer, Cell};
use crate::core::error::{Error, Result};
use crate::stores::sql::SqlDb;

const TABLE: &str = "loaded";

/// The results of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loaded {
    /// Time from the first row until the last one is durable.
    pub seconds: f64,
    /// Bytes on disk per row, including everything that belongs to the table.
    pub bytes_each: f64,
}

/// Takes a turn in a database without the table, and drops the table afterwards.
pub fn take(db: &dyn SqlDb, records: Records) -> Result<Loaded> {
    session_threads::once(db, |session| session.execute(&format!("CREATE TABLE {TABLE} ({COLUMNS})")))?;
    let (clock, mut rows) = (SystemClock::new(), RecordRows::new(records));
    let start = clock.now();
    let count = db.load(TABLE, COLUMN_COUNT, &mut rows)?;
    let seconds = (clock.now() - start).as_secs_f64();
    db.settle()?;
    let bytes = db.bytes(&[TABLE])?;
    let expected = [Cell::Int(i64::from(records.rows)), Cell::Int(rows.amounts as i64)];
    let (query, mut got) = (format!("SELECT count(*), sum(amount) FROM {TABLE}"), Answer::default());
    session_threads::once(db, |session| {
        session.select(&query, &mut |row| got.add(row))?;
        session.execute(&format!("DROP TABLE {TABLE}"))
    })?;
    Error::expect_answer(&query, Answer::of([&expected[..]]), got)?;
    let loaded = |rows| Answer { rows, sum: 0 };
    Error::expect_answer("rows that were loaded", loaded(u64::from(records.rows)), loaded(count))?;
    db.settle()?;
    Ok(Loaded { seconds, bytes_each: bytes as f64 / f64::from(records.rows) })
}
