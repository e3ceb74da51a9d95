//! Cursors: queries whose rows are read in parts, with other statements in between.
//!
//! The source of a query's rows owns everything that it needs. So it is kept in the session, and
//! resumes at the next fetch. Its view of the database is *fixed*: it does not see later changes,
//! not even those of its own transaction. A cursor ends with its transaction. For a cursor WITH
//! HOLD, the remaining rows are materialized before the commit, in memory and in a file. For one
//! with SCROLL, all rows are materialized from the start. The portals of the wire protocol are
//! cursors too, under the same names.

use std::collections::HashMap;

use cairn_vfs::sync::Arc;

use super::Session;
use crate::column::Column;
use crate::error::{Error, Result};
use crate::rows::{CursorRows, Source, StoredRows, Walk};
use crate::sqlstate::{
    DUPLICATE_CURSOR, INVALID_CURSOR_NAME, OBJECT_NOT_IN_PREREQUISITE_STATE, PROGRAM_LIMIT_EXCEEDED,
};
use crate::syntax::{Declared, Direction};

/// The most cursors of a session. Each may hold a snapshot, and all sessions together can have 2048
/// of these.
const MOST: usize = 256;

/// The properties of a cursor that `pg_cursors` shows.
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
    /// Unique among all cursors of the session, even those of the same name.
    pub number: u64,
    pub columns: Arc<[Column]>,
    /// The verb of the query's command tag.
    pub verb: &'static str,
    /// The number of savepoints at its declaration; `None` once its transaction is committed.
    pub depth: Option<usize>,
    /// `None` during a fetch, and after a failed one.
    pub rows: Option<CursorRows>,
}

/// The cursors of a session.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    by_name: HashMap<String, Cursor>,
    /// The number of cursors so far.
    count: u64,
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::new(INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

impl Cursors {
    /// Returns a cursor.
    pub fn get(&self, name: &str) -> Option<&Cursor> {
        self.by_name.get(name)
    }

    /// Returns all cursors, sorted by name.
    pub fn all(&self) -> Vec<Arc<CursorFacts>> {
        let mut all: Vec<_> = self.by_name.values().map(|cursor| Arc::clone(&cursor.facts)).collect();
        all.sort_by(|a, b| a.declared.name.cmp(&b.declared.name));
        all
    }

    /// Errors: 42P03 for a name that is taken; 54000 for too many cursors.
    pub fn check_free(&self, name: &str) -> Result<()> {
        if self.by_name.contains_key(name) {
            return Err(Error::new(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        if self.by_name.len() >= MOST {
            let what = format!("too many cursors: a session may have {MOST}");
            return Err(Error::new(PROGRAM_LIMIT_EXCEEDED, what));
        }
        Ok(())
    }

    pub fn add(&mut self, cursor: Cursor) {
        self.count += 1;
        self.by_name.insert(cursor.facts.declared.name.clone(), Cursor { number: self.count, ..cursor });
    }

    /// Closes a cursor.
    ///
    /// Errors: 34000 if there is none.
    pub fn close(&mut self, name: &str) -> Result<()> {
        self.by_name.remove(name).map(|_| ()).ok_or_else(|| unknown(name))
    }

    /// Closes all cursors.
    pub fn clear(&mut self) {
        self.by_name.clear();
    }

    /// Begins a fetch.
    ///
    /// Errors: 34000 if there is no such cursor; 55000 if it has failed, or cannot move in this
    /// direction.
    pub fn walk(&mut self, name: &str, direction: Direction) -> Result<Walk> {
        let cursor = self.by_name.get_mut(name).ok_or_else(|| unknown(name))?;
        // As in PostgreSQL, any failure from here on makes the cursor unusable.
        let rows = cursor.rows.take().ok_or_else(|| {
            Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run"))
        })?;
        Walk::new(name, rows, direction)
    }

    /// Returns a cursor's rows after a fetch, with its new position.
    pub fn give_back(&mut self, walk: Walk) {
        if let Some(cursor) = self.by_name.get_mut(&walk.name) {
            cursor.rows = Some(walk.rows);
        }
    }

    /// Ends the transaction. Held cursors stay.
    pub fn end(&mut self, is_committed: bool) {
        self.by_name.retain(|_, cursor| {
            let stays = cursor.depth.is_none() || is_committed && cursor.facts.declared.is_held;
            cursor.depth = None;
            stays
        });
    }

    /// Releases the savepoints from this one on. Cursors declared after them now belong to the
    /// level before.
    pub fn release(&mut self, savepoints: usize) {
        for depth in self.by_name.values_mut().filter_map(|cursor| cursor.depth.as_mut()) {
            *depth = (*depth).min(savepoints);
        }
    }

    /// Closes the cursors that were declared after this savepoint.
    pub fn roll_back_to(&mut self, savepoint: usize) {
        self.by_name.retain(|_, cursor| cursor.depth.is_none_or(|depth| depth <= savepoint));
    }
}

impl Session {
    /// Materializes the remaining rows of cursors WITH HOLD, before their transaction ends. Other
    /// cursors are closed.
    ///
    /// Errors: those of their rows.
    pub fn hold_cursors(&mut self) -> Result<()> {
        if self.open.is_none() || self.cursors.by_name.is_empty() {
            return Ok(());
        }
        // A cursor that has failed has no rows to hold.
        self.cursors.by_name.retain(|_, cursor| {
            cursor.depth.is_none() || cursor.facts.declared.is_held && cursor.rows.is_some()
        });
        let held = self.cursors.by_name.values().filter(|cursor| cursor.depth.is_some());
        let held: Vec<String> = held.map(|cursor| cursor.facts.declared.name.clone()).collect();
        for name in held {
            self.hold(&name)?;
        }
        Ok(())
    }

    fn hold(&mut self, name: &str) -> Result<()> {
        let cursor = self.cursors.by_name.get_mut(name).ok_or_else(|| unknown(name))?;
        let columns = Arc::clone(&cursor.columns);
        let Some(mut rows) = cursor.rows.take() else { return Ok(()) };
        if !matches!(rows.source, Source::Materialized(_)) {
            rows.source = Source::Materialized(self.materialize(&mut rows.source, &columns)?);
        }
        if let Some(cursor) = self.cursors.by_name.get_mut(name) {
            cursor.rows = Some(rows);
        }
        Ok(())
    }

    /// Materializes the remaining rows of a source.
    ///
    /// Errors: those of the rows; those of the disk.
    pub fn materialize(&mut self, source: &mut Source, columns: &[Column]) -> Result<Box<dyn StoredRows>> {
        let general = self.general;
        general.materialize(self, source, columns)
    }
}
