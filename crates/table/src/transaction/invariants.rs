//! Assertions about the state of a transaction.

use super::{Savepoint, Transaction};

impl Transaction {
    /// Checks that nothing is left of the work after a savepoint.
    pub(super) fn assert_is_back_at(&self, savepoint: &Savepoint) {
        debug_assert!(
            self.undo.len() <= savepoint.undo,
            "{} changes are left after a rollback to {}",
            self.undo.len(),
            savepoint.undo
        );
        debug_assert!(
            self.ghosts.len() <= savepoint.ghosts && self.dropped.len() <= savepoint.dropped,
            "{} ghosts and {} dropped trees are left after {savepoint:?}",
            self.ghosts.len(),
            self.dropped.len()
        );
        debug_assert!(
            self.made.len() <= savepoint.made && self.catalogs.len() <= savepoint.catalogs,
            "{} trees and {} schema changes are left after {savepoint:?}",
            self.made.len(),
            self.catalogs.len()
        );
        debug_assert!(
            self.new_chains.len() <= savepoint.new_chains && self.old_chains.len() <= savepoint.old_chains,
            "{} new and {} old chains are left after {savepoint:?}",
            self.new_chains.len(),
            self.old_chains.len()
        );
        debug_assert!(self.last_locked.is_none(), "a row is remembered as it was before a rollback");
    }

    /// Checks that everything to be done at the end was handed over.
    pub(super) fn assert_has_no_work(&self) {
        debug_assert!(
            self.undo.is_empty() && self.undone.is_empty() && self.claims.is_empty(),
            "changes or locks of transaction {} were not handed over",
            self.id()
        );
        debug_assert!(
            self.old_chains.is_empty() && self.left_chains.is_empty() && self.ghosts.is_empty(),
            "space of transaction {} was not handed over",
            self.id()
        );
        debug_assert!(self.writer.is_none(), "transaction {} still counts as a writer", self.id());
    }
}
