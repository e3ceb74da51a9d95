//! Cursors: queries whose rows are read some at a time, while other statements run between.
//!
//! What a query's rows come from owns all that it needs, so it is kept in the session and goes on
//! where it was when somebody fetches. Its view of the database is *fixed*: it sees nothing of what
//! its own transaction changes afterwards. With the transaction it goes; one WITH HOLD has the rows
//! that are left put aside before the commit, in memory and in a file, and so has one with SCROLL
//! all of its rows from the beginning. The portals of the wire protocol are cursors too, by the
//! same names.

mod run;
mod walk;

use std::collections::HashMap;

use cairn_vfs::sync::Arc;

pub(crate) use walk::{CursorRows, Walk};

use crate::error::{Error, Result};
use crate::outcome::Column;
use crate::sqlstate::{
    DUPLICATE_CURSOR, INVALID_CURSOR_NAME, OBJECT_NOT_IN_PREREQUISITE_STATE, PROGRAM_LIMIT_EXCEEDED,
};
use crate::statement::Statement;
use crate::syntax::{Declared, Direction};

/// A planned DECLARE.
#[derive(Debug)]
pub(crate) struct Declare {
    pub declared: Declared,
    pub query: Statement,
}

/// Cursors that a session may have. Each may hold a snapshot, and of these there are 2048 for all
/// sessions.
const MOST: usize = 256;

/// What others may know of a cursor: `pg_cursors` shows it.
#[derive(Debug)]
pub(crate) struct CursorFacts {
    pub declared: Declared,
    /// The statement's text.
    pub sql: String,
    /// Microseconds since 1970.
    pub created: i64,
}

/// A cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub facts: Arc<CursorFacts>,
    /// No other cursor of the session has it, of the same name or not.
    pub number: u64,
    pub columns: Arc<[Column]>,
    /// What its query says when it is done.
    pub verb: &'static str,
    /// How many savepoints there were; `None` once its transaction is committed.
    depth: Option<usize>,
    /// `None` while somebody fetches, and when that failed.
    rows: Option<CursorRows>,
}

/// Those of a session.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    by_name: HashMap<String, Cursor>,
    /// How many there have been.
    count: u64,
}

fn unknown(name: &str) -> Error {
    Error::new(INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

impl Cursors {
    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Cursor> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn all(&self) -> Vec<Arc<CursorFacts>> {
        let mut all: Vec<_> = self.by_name.values().map(|cursor| Arc::clone(&cursor.facts)).collect();
        all.sort_by(|a, b| a.declared.name.cmp(&b.declared.name));
        all
    }

    /// Errors: 42P03 for a name that is taken; 54000 where there are too many already.
    fn check_free(&self, name: &str) -> Result<()> {
        if self.by_name.contains_key(name) {
            return Err(Error::new(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        if self.by_name.len() >= MOST {
            let what = format!("too many cursors: a session may have {MOST}");
            return Err(Error::new(PROGRAM_LIMIT_EXCEEDED, what));
        }
        Ok(())
    }

    fn add(&mut self, cursor: Cursor) {
        self.count += 1;
        self.by_name.insert(cursor.facts.declared.name.clone(), Cursor { number: self.count, ..cursor });
    }

    /// Closes one.
    ///
    /// Errors: 34000 where there is none.
    pub fn close(&mut self, name: &str) -> Result<()> {
        self.by_name.remove(name).map(|_| ()).ok_or_else(|| unknown(name))
    }

    /// Closes all.
    pub fn clear(&mut self) {
        self.by_name.clear();
    }

    /// Begins to fetch.
    ///
    /// Errors: 34000 where there is none; 55000 where it goes no further, or not there.
    fn walk(&mut self, name: &str, direction: Direction) -> Result<Walk> {
        let cursor = self.by_name.get_mut(name).ok_or_else(|| unknown(name))?;
        // As in PostgreSQL, whatever fails from here on is the end of it.
        let rows = cursor.rows.take().ok_or_else(|| {
            Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run"))
        })?;
        Walk::new(name, rows, direction)
    }

    /// Takes back what was given out for fetching, with its place.
    pub fn give_back(&mut self, walk: Walk) {
        if let Some(cursor) = self.by_name.get_mut(&walk.name) {
            cursor.rows = Some(walk.rows);
        }
    }

    /// Its transaction is over: those that are held stay.
    pub fn end(&mut self, is_committed: bool) {
        self.by_name.retain(|_, cursor| {
            let stays = cursor.depth.is_none() || is_committed && cursor.facts.declared.is_held;
            cursor.depth = None;
            stays
        });
    }

    /// Savepoints from this one on are released: what was declared behind them belongs to what is
    /// before.
    pub fn release(&mut self, savepoints: usize) {
        for depth in self.by_name.values_mut().filter_map(|cursor| cursor.depth.as_mut()) {
            *depth = (*depth).min(savepoints);
        }
    }

    /// Everything behind this savepoint is taken back.
    pub fn roll_back_to(&mut self, savepoint: usize) {
        self.by_name.retain(|_, cursor| cursor.depth.is_none_or(|depth| depth <= savepoint));
    }
}
