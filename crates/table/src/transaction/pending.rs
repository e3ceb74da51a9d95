//! The foreign key work that the changes of a statement have left to be done at its end.

use std::collections::VecDeque;

use cairn_vfs::sync::Arc;

use crate::catalog::{OwnedValue, Table};
use crate::schema::{ForeignKeyDef, Referential};
use crate::{Error, Result};

/// A row that others may reference was deleted, or has other values in the referenced columns. No
/// new references to it can appear, because its key is locked.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) parent: Arc<Table>,
    /// Its key in the tree in which references are looked up.
    pub(super) key: Vec<u8>,
    /// Its old values there, in the order of the foreign key's columns, and the new ones unless it
    /// was deleted.
    pub(super) old: Vec<OwnedValue>,
    pub(super) new: Option<Vec<OwnedValue>>,
    pub(super) child: Arc<Table>,
    pub(super) constraint: usize,
}

impl Removed {
    /// Returns the foreign key and the action that it requires.
    pub(super) fn action(&self) -> Option<(&ForeignKeyDef, Referential)> {
        debug_assert!(
            self.new.as_ref().is_none_or(|new| new.len() == self.old.len()),
            "a row with {} referenced values gets others",
            self.old.len()
        );
        let key = self.child.def().foreign_keys.get(self.constraint)?;
        debug_assert!(
            key.table == self.parent.id() && key.references.len() == self.old.len(),
            "constraint {} does not refer to table {}",
            key.name,
            self.parent.def().name
        );
        Some((key, if self.new.is_some() { key.on_update } else { key.on_delete }))
    }
}

/// A row that references a row which did not exist when it was changed.
#[derive(Debug)]
pub(super) struct Referring {
    pub(super) table: Arc<Table>,
    pub(super) constraint: usize,
    pub(super) key: Vec<u8>,
}

/// The pending foreign key work of a statement.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Whether further changes follow.
    pub(super) is_open: bool,
    pub(super) removed: VecDeque<Removed>,
    pub(super) referring: VecDeque<Referring>,
    /// Number of times this work was started.
    pub(super) rounds: u64,
}

/// A point between two changes.
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

    /// Returns whether any work is left.
    pub(super) fn has_work(&self) -> bool {
        !self.removed.is_empty() || !self.referring.is_empty()
    }

    /// Returns whether rows must be checked again by their keys.
    pub(super) fn has_referring(&self) -> bool {
        !self.referring.is_empty()
    }

    pub(super) fn note_removed(&mut self, removed: impl IntoIterator<Item = Removed>) {
        self.removed.extend(removed);
    }

    pub(super) fn note_referring(&mut self, referring: Referring) {
        debug_assert!(
            referring.constraint < referring.table.def().foreign_keys.len(),
            "table {} has no constraint {}",
            referring.table.def().name,
            referring.constraint
        );
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

    /// Drops the work noted since a mark. Errors: [`Error::Invalid`] if work noted before the mark
    /// was started since, because it can no longer be restored.
    pub(super) fn rollback_to(&mut self, mark: Mark) -> Result<()> {
        if mark.removed + mark.referring > 0 && mark.rounds != self.rounds {
            return Err(Error::Invalid {
                what: "the savepoint is in the middle of a statement that has ended".to_owned(),
            });
        }
        self.is_open = mark.is_open;
        debug_assert!(
            self.rounds >= mark.rounds,
            "the work of a statement was started {} times, and {} before",
            self.rounds,
            mark.rounds
        );
        self.removed.truncate(mark.removed);
        self.referring.truncate(mark.referring);
        debug_assert!(
            self.removed.len() <= mark.removed && self.referring.len() <= mark.referring,
            "work is left after a rollback to {mark:?}"
        );
        Ok(())
    }
}
