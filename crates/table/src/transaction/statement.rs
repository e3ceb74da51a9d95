//! Statements of several changes: what foreign keys ask for is noted with each change, and done
//! when the last one is through.
//!
//! ```text
//!   removed      rows that others may refer to are gone, or have other values: the others follow, or it is an error
//!   referring    rows refer to rows that were not there: they have to be there by now
//! ```
//!
//! In this order, and each in the order of the changes. Rows that follow are changes themselves,
//! and what they ask for is noted behind the rest: so a chain of rows that follow each other may be
//! of any length.

use std::collections::VecDeque;

use super::Transaction;
use super::foreign::{Referring, Removed};
use super::rules::{NoRules, Rules};
use crate::{Error, Result};

/// What the changes of a statement have left to be done.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// It has further changes.
    is_open: bool,
    removed: VecDeque<Removed>,
    referring: VecDeque<Referring>,
    /// How often this was begun to be done.
    rounds: u64,
}

/// A moment between two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    is_open: bool,
    removed: usize,
    referring: usize,
    rounds: u64,
}

impl Statement {
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether rows are to be looked at again by their keys.
    pub(super) fn has_referring(&self) -> bool {
        !self.referring.is_empty()
    }

    pub(super) fn note_removed(&mut self, removed: impl IntoIterator<Item = Removed>) {
        self.removed.extend(removed);
    }

    pub(super) fn note_referring(&mut self, referring: Referring) {
        self.referring.push_back(referring);
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            is_open: self.is_open,
            removed: self.removed.len(),
            referring: self.referring.len(),
            rounds: self.rounds,
        }
    }

    /// Forgets what was noted since. Errors: [`Error::Invalid`] when what had been noted then was
    /// begun to be done since: nobody knows it any more.
    pub(super) fn go_back(&mut self, mark: Mark) -> Result<()> {
        if mark.removed + mark.referring > 0 && mark.rounds != self.rounds {
            return Err(Error::Invalid {
                what: "the savepoint is in the middle of a statement that has ended".to_owned(),
            });
        }
        self.is_open = mark.is_open;
        self.removed.truncate(mark.removed);
        self.referring.truncate(mark.referring);
        Ok(())
    }
}

impl Transaction {
    /// Begins a statement of several changes: up to [`Transaction::end_changes`], rows may refer to
    /// rows that are still to come, and rows may go before those that refer to them. Without it
    /// each change is a statement of its own.
    pub fn begin_changes(&mut self) {
        self.statement.is_open = true;
    }

    /// Ends a statement of several changes: rows that refer to what has gone follow as their
    /// foreign keys say, and what was referred to in advance has to be there. A commit does it
    /// where it was not done, and so does a change of the schema.
    ///
    /// Errors: [`Error::ForeignKeyViolation`], those of changes. Go back to a savepoint from before
    /// the statement then: without that there is no commit.
    pub fn end_changes(&mut self) -> Result<()> {
        self.end_changes_by(&NoRules)
    }

    /// As [`Transaction::end_changes`], with rules for the rows that follow.
    ///
    /// Errors: as [`Transaction::end_changes`], and [`Error::Refused`].
    pub fn end_changes_by(&mut self, rules: &dyn Rules) -> Result<()> {
        self.statement.is_open = false;
        self.settle_by(rules)
    }

    /// Notes what a change asks for that is through, and does it at once where the change is a
    /// statement of its own.
    pub(super) fn after_change(&mut self, removed: Vec<Removed>) -> Result<()> {
        self.statement.note_removed(removed);
        if self.statement.is_open { Ok(()) } else { self.settle() }
    }

    /// Does what is noted.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.settle_by(&NoRules)
    }

    fn settle_by(&mut self, rules: &dyn Rules) -> Result<()> {
        if self.statement.removed.is_empty() && self.statement.referring.is_empty() {
            return Ok(());
        }
        self.view.db.check()?;
        self.statement.rounds += 1;
        // What follows belongs to the statement.
        let was_open = std::mem::replace(&mut self.statement.is_open, true);
        let settled = self.settle_all(rules);
        self.statement.is_open = was_open;
        settled
    }

    fn settle_all(&mut self, rules: &dyn Rules) -> Result<()> {
        // What cannot be done is still to be done: nobody commits without it.
        while let Some(removed) = self.statement.removed.pop_front() {
            if let Err(error) = self.go_on().and_then(|()| self.follow(&removed, rules)) {
                self.statement.removed.push_front(removed);
                return Err(error);
            }
        }
        while let Some(referring) = self.statement.referring.pop_front() {
            if let Err(error) = self.go_on().and_then(|()| self.check_again(&referring)) {
                self.statement.referring.push_front(referring);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Errors: [`Error::Cancelled`].
    pub(super) fn go_on(&self) -> Result<()> {
        if self.view.canceller.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
