//! Statements of several changes. The work that foreign keys require is noted with each change, and
//! done after the last one.
//!
//! ```text
//!   removed      referenced rows were deleted or changed: the referencing rows follow,
//!                or it is an error
//!   referring    rows reference rows that did not exist: they must exist by now
//! ```
//!
//! Done in this order, and each kind in the order of the changes. Changes of referencing rows are
//! changes themselves, whose work is queued after the rest, so a cascade may be of any length.

use super::Transaction;
use super::pending::Removed;
use super::rules::{NoRules, Rules};
use crate::{Error, Result};

impl Transaction {
    /// Begins a statement of several changes. Until [`Transaction::end_changes`], rows may
    /// reference rows that are still to be inserted, and rows may be deleted before those that
    /// reference them. Without this, each change is a statement of its own.
    pub fn begin_changes(&mut self) {
        self.statement.is_open = true;
    }

    /// Ends a statement of several changes: rows that reference deleted or changed rows are handled
    /// according to their foreign keys, and rows referenced in advance must exist. A commit does
    /// this if it has not been done, and so does a schema change.
    ///
    /// Errors: [`Error::ForeignKeyViolation`], those of changes. The caller must then roll back to
    /// a savepoint before the statement; without that it cannot commit.
    pub fn end_changes(&mut self) -> Result<()> {
        self.end_changes_by(&NoRules)
    }

    /// Like [`Transaction::end_changes`], with rules for the referencing rows that are changed.
    ///
    /// Errors: as [`Transaction::end_changes`], and [`Error::Refused`].
    pub fn end_changes_by(&mut self, rules: &dyn Rules) -> Result<()> {
        self.statement.is_open = false;
        let settled = self.settle_by(rules);
        debug_assert!(!self.statement.is_open, "a statement is open after its end");
        settled
    }

    /// Notes the work that a finished change requires, and does it at once if the change is a
    /// statement of its own.
    pub(super) fn after_change(&mut self, removed: Vec<Removed>) -> Result<()> {
        self.statement.note_removed(removed);
        if self.statement.is_open { Ok(()) } else { self.settle() }
    }

    /// Does the pending work.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.settle_by(&NoRules)
    }

    fn settle_by(&mut self, rules: &dyn Rules) -> Result<()> {
        if !self.statement.has_work() {
            return Ok(());
        }
        self.view.db.check()?;
        self.statement.rounds += 1;
        // The changes made here belong to the statement.
        let was_open = std::mem::replace(&mut self.statement.is_open, true);
        let settled = self.settle_all(rules);
        debug_assert!(self.statement.is_open, "a statement was ended by its own work");
        debug_assert!(
            settled.is_err() || !self.statement.has_work(),
            "work of a statement is left after its end"
        );
        self.statement.is_open = was_open;
        settled
    }

    fn settle_all(&mut self, rules: &dyn Rules) -> Result<()> {
        // Work that fails remains pending, so that the transaction cannot commit without it.
        while let Some(removed) = self.statement.removed.pop_front() {
            if let Err(error) = self.check_cancelled().and_then(|()| self.apply_action(&removed, rules)) {
                self.statement.removed.push_front(removed);
                return Err(error);
            }
        }
        while let Some(referring) = self.statement.referring.pop_front() {
            if let Err(error) = self.check_cancelled().and_then(|()| self.check_again(&referring)) {
                self.statement.referring.push_front(referring);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks for cancellation. Errors: [`Error::Cancelled`].
    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.view.canceller.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
