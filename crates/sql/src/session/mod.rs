//! The state of a connection: its transaction, settings and statements.

mod cursors;
mod first_rows;
mod locking_subqueries;
mod notice;
mod plan;
mod prepare;
mod rules;
mod run;
mod transaction;
mod utility;

use std::collections::HashMap;

use cairn_table::{Canceller, RowBuf, Spare};
use cairn_vfs::sync::Arc;

pub(crate) use cursors::{CursorFacts, Cursors, Walk};
pub use notice::Notice;
pub(crate) use plan::{Plan, Planned};
pub(crate) use transaction::Open;
pub use transaction::TransactionStatus;

use crate::general::Engine;
use crate::pg_catalog::{Changes, Pictures, ViewColumns};
use crate::runtime::{SessionContext, Shared};
use crate::statement::Statement;

/// The most prepared statements in a connection's plan cache.
const MOST_CACHED: usize = 512;
/// The limit on the total length of their texts. A plan is larger than its text by some factor.
const CACHED_BYTES: usize = 1 << 20;
/// Longer texts are unlikely to be repeated.
const CACHED_TEXT_BYTES: usize = 8 << 10;

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub shared: Arc<Shared>,
    pub open: Option<Open>,
    /// Parts of the last transaction for the next one to reuse.
    spare: Option<Spare>,
    /// The context of expressions.
    pub context: SessionContext,
    pub canceller: Canceller,
    /// Whether a request to cancel applies to all statements of a message, until it is reset.
    pub keeps_cancels: bool,
    /// While a cursor's query starts: its own canceller, so that canceling another statement does
    /// not stop the cursor.
    pub apart: Option<Canceller>,
    pub timer: Option<crate::runtime::Timer>,
    pub notices: Vec<Notice>,
    /// The plan of the last statement, which is often run again.
    last: Option<Arc<Planned>>,
    /// The current or last statement.
    running: Option<crate::Statement>,
    /// The plan cache: statements by text, for calls that give only the text.
    cache: HashMap<String, Statement>,
    /// The total length of the texts in the plan cache.
    cached_bytes: usize,
    /// Statements of PREPARE.
    named: HashMap<String, Statement>,
    pub cursors: Cursors,
    /// The engine of the general path, once it has been used.
    pub engine: Option<Engine>,
    /// Spare buffers of point reads.
    pub key: Vec<u8>,
    pub row: RowBuf,
    /// A unique number, which `pg_backend_pid` returns.
    pub backend: u32,
    /// The calls of `set_config` in the running statement.
    pub changes: Changes,
    /// Whether the plan contains a snapshot of the session.
    pub pictures: Pictures,
    /// The columns of views, with the versions of catalog and settings that they belong to.
    pub view_columns: Option<((u64, u64), Arc<ViewColumns>)>,
    /// The nesting depth of the statement being planned.
    pub levels: usize,
}

impl Session {
    pub fn new(shared: Arc<Shared>, backend: u32) -> Self {
        Session {
            open: None,
            spare: None,
            context: SessionContext::new(Arc::clone(&shared), backend),
            canceller: Canceller::new(),
            keeps_cancels: false,
            apart: None,
            timer: None,
            notices: Vec::new(),
            last: None,
            running: None,
            cache: HashMap::new(),
            cached_bytes: 0,
            named: HashMap::new(),
            cursors: Cursors::default(),
            engine: None,
            key: Vec::new(),
            row: RowBuf::default(),
            backend,
            changes: Changes::default(),
            pictures: Pictures::default(),
            view_columns: None,
            levels: 0,
            shared,
        }
    }

    /// Adds a statement to the plan cache, unless its text is long.
    pub fn keep(&mut self, statement: &Statement) {
        let bytes = statement.sql().len();
        if bytes > CACHED_TEXT_BYTES {
            return;
        }
        if self.cache.len() >= MOST_CACHED || self.cached_bytes + bytes >= CACHED_BYTES {
            // Statements still in use return at the cost of a parse.
            self.cache.clear();
            self.cached_bytes = 0;
        }
        if self.cache.insert(statement.sql().to_owned(), statement.clone()).is_none() {
            self.cached_bytes += bytes;
        }
    }

    pub fn kept(&self, sql: &str) -> Option<Statement> {
        self.cache.get(sql).cloned()
    }

    pub fn warn(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "WARNING", sqlstate, message: message.into() });
    }

    pub fn notice(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "NOTICE", sqlstate, message: message.into() });
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;

    /// Goal: the texts in the plan cache take less than 1 MiB in total, none of them more than 8
    /// KiB, and adding a text again counts it once. Method: texts around both limits, and the
    /// contents after each.
    #[test]
    fn kept_statements_have_a_budget() {
        let database = crate::Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
        let mut session = Session::new(database.shared(), 1);
        // A text of this many bytes, including `select '` and `'`.
        let text = |number: usize, bytes: usize| format!("select '{number:0>width$}'", width = bytes - 9);
        let keep = |session: &mut Session, sql: &str| {
            let statement = session.prepare(sql, &[]).unwrap();
            assert_eq!(statement.sql(), sql);
            session.keep(&statement);
        };
        let (longest, long) = (text(0, 8 << 10), text(0, (8 << 10) + 1));
        keep(&mut session, &longest);
        keep(&mut session, &long);
        assert!(session.kept(&longest).is_some() && session.kept(&long).is_none());
        for _ in 0..200 {
            keep(&mut session, &longest);
        }
        keep(&mut session, "select 1");
        assert!(session.kept(&longest).is_some(), "one text fills nothing, however often it comes");
        for number in 1..200 {
            let sql = text(number, 8 << 10);
            keep(&mut session, &sql);
            assert!(session.kept(&sql).is_some());
            let bytes: usize = session.cache.keys().map(String::len).sum();
            assert_eq!(bytes, session.cached_bytes);
            assert!(bytes < 1 << 20, "{bytes} bytes after {number} texts");
        }
        assert!(session.kept("select 1").is_none());
    }
}
