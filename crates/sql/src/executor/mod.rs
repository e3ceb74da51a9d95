//! Prepares statements and runs them: chooses between the direct and the general path, and hands
//! back rows.

mod cursors;
mod first_rows;
mod locking_subqueries;
mod plan;
mod prepare;
mod run;
mod select;
mod utility;

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use cairn_vfs::sync::Arc;

pub(crate) use plan::{Plan, Planned};
pub use plan::{Statement, StatementKind};
pub(crate) use run::Answer;

use crate::session::Session;

/// The most prepared statements in a connection's plan cache.
const MOST_CACHED: usize = 512;
/// The limit on the total length of their texts. A plan is larger than its text by some factor.
const CACHED_BYTES: usize = 1 << 20;
/// Longer texts are unlikely to be repeated.
const CACHED_TEXT_BYTES: usize = 8 << 10;

/// A session with its prepared statements.
#[derive(Debug)]
pub(crate) struct Executor {
    pub session: Session,
    /// The plan of the last statement, which is often run again.
    last: Option<Arc<Planned>>,
    /// The plan cache: statements by text, for calls that give only the text.
    cache: HashMap<String, Statement>,
    /// The total length of the texts in the plan cache.
    cached_bytes: usize,
    /// Statements of PREPARE.
    named: HashMap<String, Statement>,
}

impl Deref for Executor {
    type Target = Session;

    #[inline]
    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Executor {
    #[inline]
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Executor {
    pub fn new(session: Session) -> Self {
        Executor { session, last: None, cache: HashMap::new(), cached_bytes: 0, named: HashMap::new() }
    }

    /// Adds a statement to the plan cache, unless its text is long.
    pub fn cache(&mut self, statement: &Statement) {
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

    /// Returns the statement with this text from the plan cache.
    pub fn cached(&self, sql: &str) -> Option<Statement> {
        self.cache.get(sql).cloned()
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
    fn plan_cache_has_a_budget() {
        let database = crate::Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
        let general = &crate::general::GENERAL;
        let mut session = Executor::new(Session::new(database.shared(), 1, general));
        // A text of this many bytes, including `select '` and `'`.
        let text = |number: usize, bytes: usize| format!("select '{number:0>width$}'", width = bytes - 9);
        let keep = |session: &mut Executor, sql: &str| {
            let statement = session.prepare(sql, &[]).unwrap();
            assert_eq!(statement.sql(), sql);
            session.cache(&statement);
        };
        let (longest, long) = (text(0, 8 << 10), text(0, (8 << 10) + 1));
        keep(&mut session, &longest);
        keep(&mut session, &long);
        assert!(session.cached(&longest).is_some() && session.cached(&long).is_none());
        for _ in 0..200 {
            keep(&mut session, &longest);
        }
        keep(&mut session, "select 1");
        assert!(session.cached(&longest).is_some(), "one text fills nothing, however often it comes");
        for number in 1..200 {
            let sql = text(number, 8 << 10);
            keep(&mut session, &sql);
            assert!(session.cached(&sql).is_some());
            let bytes: usize = session.cache.keys().map(String::len).sum();
            assert_eq!(bytes, session.cached_bytes);
            assert!(bytes < 1 << 20, "{bytes} bytes after {number} texts");
        }
        assert!(session.cached("select 1").is_none());
    }
}
