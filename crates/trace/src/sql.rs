//! A [`cairn_sql`] connection whose statements are recorded.
//!
//! [`TracedConnection`] has the methods of [`Connection`] and dereferences to it for everything
//! that runs no statement. A record holds the text of the statement as sent (its hash, unless keys
//! are kept raw) and the number of rows returned or changed. A prepared statement is recorded with
//! its placeholders (`$1`); parameter values are not recorded. Failed statements are not recorded.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
//! use cairn_sql::Database;
//! use cairn_trace::Recorder;
//! use cairn_trace::sql::TracedConnection;
//!
//! let recorder = Recorder::from_env("my program")?; // None unless CAIRN_TRACE names a file
//! let database = Database::builder().fs(fs).open("fruit.db")?;
//! let mut connection = TracedConnection::new(database.connect(), recorder);
//! connection.execute("CREATE TABLE fruit (name text PRIMARY KEY, colour text)", &[])?;
//! connection.execute("INSERT INTO fruit VALUES ('apple', 'red')", &[])?;
//! let mut rows = connection.query("SELECT colour FROM fruit WHERE name = $1", &["apple".into()])?;
//! assert_eq!(rows.next()?.unwrap().get_as::<String>(0)?, "red");
//! # Ok(())
//! # }
//! ```
//!
//! Not recorded: [`Connection::begin_implicit`] and [`Connection::end_implicit`], which are not
//! statements.

use std::ops::{Deref, DerefMut};

use cairn_sql::{
    CommandTag, Connection, CopyIn, CopyOut, Datum, Outcome, Result, Rows, Statement, StatementKind,
};

use crate::recorder::Recorder;

/// A [`Connection`] whose statements are recorded. Without a recorder, a statement costs one extra
/// branch.
#[derive(Debug)]
pub struct TracedConnection {
    connection: Connection,
    recorder: Option<Recorder>,
}

/// Like [`Outcome`].
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "as Outcome: there is one at a time")]
pub enum TracedOutcome<'c> {
    /// The statement returns rows.
    Rows(TracedRows<'c>),
    /// The statement is finished.
    Done(CommandTag),
    /// `COPY ... FROM STDIN` waits for input. It is already recorded, without a row count.
    CopyIn(CopyIn<'c>),
    /// `COPY ... TO STDOUT` has output to read. It is already recorded, without a row count.
    CopyOut(CopyOut<'c>),
}

/// [`Rows`] whose statement is recorded on drop, with the number of rows that were read.
#[derive(Debug)]
pub struct TracedRows<'c> {
    rows: Rows<'c>,
    /// The recorder, and the statement's text.
    said: Option<(&'c Recorder, String)>,
}

impl TracedConnection {
    /// Wraps a connection so that statements through the returned handle are recorded. If
    /// `recorder` is `None`, nothing is recorded.
    pub fn new(connection: Connection, recorder: Option<Recorder>) -> TracedConnection {
        TracedConnection { connection, recorder }
    }

    /// Returns the recorder.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Like [`Connection::execute`].
    pub fn execute(&mut self, sql: &str, params: &[Datum]) -> Result<u64> {
        let rows = self.connection.execute(sql, params)?;
        self.record(sql, rows);
        Ok(rows)
    }

    /// Like [`Connection::query`].
    pub fn query(&mut self, sql: &str, params: &[Datum]) -> Result<TracedRows<'_>> {
        let TracedConnection { connection, recorder } = self;
        let rows = connection.query(sql, params)?;
        Ok(TracedRows { rows, said: recorder.as_ref().map(|recorder| (recorder, sql.to_owned())) })
    }

    /// Like [`Connection::batch`]. Each statement is recorded separately, without a row count.
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.connection.batch(sql)?;
        if self.recorder.is_some() {
            // The batch has just run, so splitting it into statements cannot fail.
            cairn_sql::split(sql)?.iter().for_each(|one| self.record(one, 0));
        }
        Ok(())
    }

    /// Like [`Connection::run`].
    pub fn run(&mut self, statement: &Statement, params: &[Datum]) -> Result<TracedOutcome<'_>> {
        let TracedConnection { connection, recorder } = self;
        let recorder = recorder.as_ref().filter(|_| statement.kind() != StatementKind::Empty);
        let record = |rows| {
            if let Some(recorder) = recorder {
                recorder.statement(statement.sql(), rows);
            }
        };
        Ok(match connection.run(statement, params)? {
            Outcome::Rows(rows) => {
                let said = recorder.map(|recorder| (recorder, statement.sql().to_owned()));
                TracedOutcome::Rows(TracedRows { rows, said })
            }
            Outcome::Done(tag) => {
                record(tag.rows.unwrap_or(0));
                TracedOutcome::Done(tag)
            }
            Outcome::CopyIn(copy) => {
                record(0);
                TracedOutcome::CopyIn(copy)
            }
            Outcome::CopyOut(copy) => {
                record(0);
                TracedOutcome::CopyOut(copy)
            }
        })
    }

    fn record(&self, sql: &str, rows: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.statement(sql, rows);
        }
    }
}

/// Dereferences to the untraced connection, for settings, the catalog and the like.
impl Deref for TracedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for TracedConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl<'c> Deref for TracedRows<'c> {
    type Target = Rows<'c>;

    fn deref(&self) -> &Rows<'c> {
        &self.rows
    }
}

impl<'c> DerefMut for TracedRows<'c> {
    fn deref_mut(&mut self) -> &mut Rows<'c> {
        &mut self.rows
    }
}

impl Drop for TracedRows<'_> {
    fn drop(&mut self) {
        if let Some((recorder, sql)) = &self.said {
            recorder.statement(sql, self.rows.count());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use cairn_sql::Database;
    use cairn_vfs::{Fs, MemFs};

    use super::*;
    use crate::event::Detail;
    use crate::{KeyForm, Options, Trace};

    /// Goal: statements are recorded in order, with their row counts, and failed statements are not
    /// recorded. Method: each way to run a statement.
    #[test]
    fn statements_are_recorded() {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let options = Options { keys: KeyForm::Raw, ..Options::default() };
        let recorder = Recorder::create_in(&fs, Path::new("/t"), options).unwrap();
        let database = Database::builder().fs(Arc::clone(&fs)).open("test.db").unwrap();
        let mut connection = TracedConnection::new(database.connect(), Some(recorder.clone()));
        connection.batch("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)").unwrap();
        assert_eq!(connection.execute("UPDATE t SET a = a + 10 WHERE a > 1", &[]).unwrap(), 2);
        connection.execute("INSERT INTO t VALUES (1)", &[]).unwrap_err();
        connection.query("SELECT * FROM absent", &[]).unwrap_err();
        let mut rows = connection.query("SELECT a FROM t", &[]).unwrap();
        rows.next().unwrap();
        rows.next().unwrap();
        drop(rows);
        let point = connection.prepare("SELECT a FROM t WHERE a = $1").unwrap();
        for key in [1, 12, 99] {
            let TracedOutcome::Rows(mut rows) = connection.run(&point, &[Datum::from(key)]).unwrap() else {
                panic!("a query gives rows");
            };
            while rows.next().unwrap().is_some() {}
        }
        let delete = connection.prepare("DELETE FROM t").unwrap();
        assert!(
            matches!(connection.run(&delete, &[]).unwrap(), TracedOutcome::Done(tag) if tag.rows == Some(3))
        );
        recorder.finish().unwrap();
        let trace = Trace::open(&*fs, Path::new("/t")).unwrap();
        let seen: Vec<(String, u64)> = trace
            .events()
            .map(|event| {
                let event = event.unwrap();
                let Detail::Statement(rows) = event.detail else { panic!("a statement") };
                (String::from_utf8_lossy(event.key).into_owned(), rows)
            })
            .collect();
        let expected = [
            ("CREATE TABLE t (a int PRIMARY KEY)", 0),
            ("INSERT INTO t VALUES (1), (2), (3)", 0),
            ("UPDATE t SET a = a + 10 WHERE a > 1", 2),
            ("SELECT a FROM t", 2),
            ("SELECT a FROM t WHERE a = $1", 1),
            ("SELECT a FROM t WHERE a = $1", 1),
            ("SELECT a FROM t WHERE a = $1", 0),
            ("DELETE FROM t", 3),
        ];
        assert_eq!(seen, expected.map(|(sql, rows)| (sql.to_owned(), rows)));
    }
}
