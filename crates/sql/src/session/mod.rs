//! What a connection is in the middle of: its transaction, settings, statements.

mod context;
mod cursors;
mod first_rows;
mod notice;
mod plan;
mod prepare;
mod rules;
mod run;
mod settings;
mod staged;
mod transaction;
mod utility;

use std::collections::HashMap;

use cairn_table::{Canceller, RowBuf, Spare};
use cairn_vfs::sync::Arc;

pub(crate) use context::SessionContext;
pub(crate) use cursors::{CursorFacts, Cursors, Walk};
pub use notice::Notice;
pub(crate) use plan::{Plan, Planned};
pub(crate) use settings::Settings;
pub(crate) use transaction::Open;
pub use transaction::TransactionStatus;

use crate::database::Shared;
use crate::pg_catalog::{Changes, Pictures, ViewColumns};
use crate::query::Engine;
use crate::statement::Statement;

/// Prepared statements that a connection keeps by their text.
const MOST_CACHED: usize = 512;
/// What their texts have together, all but: a plan is larger than its text by some factor.
const CACHED_BYTES: usize = 1 << 20;
/// A longer text is hardly one that comes again.
const CACHED_TEXT_BYTES: usize = 8 << 10;

/// Everything that belongs to a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub shared: Arc<Shared>,
    pub open: Option<Open>,
    /// What the last transaction has left to the next one.
    spare: Option<Spare>,
    /// What expressions may ask for.
    pub context: SessionContext,
    pub canceller: Canceller,
    /// Whether a request to cancel holds until somebody takes it back: for all statements of a
    /// message.
    pub keeps_cancels: bool,
    /// While a cursor's query begins: what stops its run, which is to go on when another statement
    /// is stopped.
    pub apart: Option<Canceller>,
    pub timer: Option<crate::database::Timer>,
    pub notices: Vec<Notice>,
    /// What the last statement ran with: the next one is often the same.
    last: Option<Arc<Planned>>,
    /// The statement that runs, or ran last.
    running: Option<crate::Statement>,
    /// Statements by text, for calls that give only that.
    cache: HashMap<String, Statement>,
    /// What their texts have.
    cached_bytes: usize,
    /// Those of PREPARE.
    named: HashMap<String, Statement>,
    pub cursors: Cursors,
    /// The general path's, once it was needed.
    pub engine: Option<Engine>,
    /// Spare buffers of point reads.
    pub key: Vec<u8>,
    pub row: RowBuf,
    /// A number of its own: what `pg_backend_pid` says.
    pub backend: u32,
    /// What `set_config` was called with in the statement that runs.
    pub changes: Changes,
    /// Whether what is planned has a picture of the session in it.
    pub pictures: Pictures,
    /// The columns of views, of the catalog and the settings of these versions.
    pub view_columns: Option<((u64, u64), Arc<ViewColumns>)>,
    /// Levels of what is planned.
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

    /// Keeps a statement for the next call with its text, unless that is long.
    pub fn keep(&mut self, statement: &Statement) {
        let bytes = statement.sql().len();
        if bytes > CACHED_TEXT_BYTES {
            return;
        }
        if self.cache.len() >= MOST_CACHED || self.cached_bytes + bytes >= CACHED_BYTES {
            // Whatever is used again comes back at the price of a parse.
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

    /// Goal: texts that are kept have less than 1 MiB together, none of them has more than 8 KiB,
    /// and keeping one again counts once. Method: texts around both limits, and what is there after
    /// each.
    #[test]
    fn kept_statements_have_a_budget() {
        let database = crate::Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
        let mut session = Session::new(database.shared(), 1);
        // Of so many bytes, `select '` and `'` among them.
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
