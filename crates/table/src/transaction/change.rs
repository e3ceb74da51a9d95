//! Changes of single records: the previous version is kept in memory and logged, and then the tree
//! is changed.

use std::mem::take;

use cairn_vfs::sync::Arc;

use super::Transaction;
use crate::Result;
use crate::catalog::GHOST;
use crate::hook;
use crate::mvcc::{ACTIVE, Ghost, KeptVersions, Key, State, Write};
use crate::storage::{Before, Edit, Record, Tree, is_ghost};

/// Log bytes to undo a change, besides the record and its key: two headers, the reference to the
/// page, and a share of the nodes that are split for it.
const UNDO: usize = 160;

impl Transaction {
    /// Changes a claimed record from `before` to `after`. `None` for `after` makes it a ghost.
    pub(super) fn put_record(
        &mut self,
        tree: &Tree,
        key: &Key,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
    ) -> Result<()> {
        let state = self.register_writer()?;
        let kept = self.keep_version(&state, tree.root(), key, before)?;
        debug_assert!(before.is_some() || after.is_some(), "no record is replaced by a ghost");
        debug_assert!(after.is_none_or(|after| !is_ghost(after)), "a ghost is put as a record");
        tree.put_for(key, after.unwrap_or(&[GHOST]), &mut self.header)?;
        kept.set_logged();
        if after.is_none() {
            self.ghosts.push(Ghost { tree: tree.root(), key: key.clone() });
        }
        Ok(())
    }

    /// Inserts a record at a claimed key. Returns false if there is one. Like
    /// [`Transaction::put_record`], with a single descent.
    pub(super) fn insert_record(&mut self, tree: &Tree, key: &Key, record: &[u8]) -> Result<bool> {
        debug_assert!(!is_ghost(record), "a ghost is inserted as a record");
        self.edit(tree, key, Expected::Nothing, record)
    }

    /// Turns the record at a claimed key into a ghost. Returns false if there is none. Like
    /// [`Transaction::put_record`], with a single descent.
    pub(super) fn remove_record(&mut self, tree: &Tree, key: &Key) -> Result<bool> {
        let is_out = self.edit(tree, key, Expected::Record, &[GHOST])?;
        if is_out {
            self.ghosts.push(Ghost { tree: tree.root(), key: key.clone() });
        }
        Ok(is_out)
    }

    /// Changes a record if it is in the expected state. Returns false otherwise.
    fn edit(&mut self, tree: &Tree, key: &Key, expected: Expected, to: &[u8]) -> Result<bool> {
        let state = self.register_writer()?;
        let mut found = take(&mut self.found);
        let mut edit =
            ConditionalEdit { transaction: self, state, root: tree.root(), key, expected, to, kept: None };
        let is_done = tree.edit(key, &mut found, &mut edit);
        debug_assert!(
            !matches!(is_done, Ok(true)) || edit.kept.is_some(),
            "a record was changed without a version of it"
        );
        if let (Ok(true), Some(kept)) = (&is_done, edit.kept) {
            kept.set_logged();
        }
        self.found = found;
        is_done
    }

    /// Keeps the contents of a record before this transaction changes it, and begins the log record
    /// of the change. The caller marks the returned write once the record is in the log.
    fn keep_version(
        &mut self,
        state: &Arc<State>,
        root: u32,
        key: &Key,
        before: Option<&[u8]>,
    ) -> Result<Arc<Write>> {
        debug_assert!(
            self.state.as_ref().is_some_and(|own| Arc::ptr_eq(own, state)),
            "a row is changed for another transaction"
        );
        // ORDER: before the change. A change that could not be undone must not be made.
        let bytes = UNDO + key.len() + before.map_or(0, <[u8]>::len);
        self.view.db.store.reserve_undo(&mut self.undo_space, bytes as u64)?;
        self.last_locked = None;
        if self.fixed.strong_count() > 0 {
            self.next_epoch();
        }
        debug_assert!(state.commit() == ACTIVE, "transaction {} changes a row after its end", state.id);
        debug_assert!(
            self.writer.is_some(),
            "transaction {} writes, and does not count as a writer",
            state.id
        );
        let KeptVersions { oldest, new } =
            self.view.db.rows.add_version(state, self.epoch, root, key, before);
        // If an earlier change failed before it was logged, and perhaps was undone since, the log
        // does not have the old contents, so this record must.
        let before = match (oldest.is_logged(), &oldest.before) {
            (true, _) => Before::Known,
            (false, Some(before)) => Before::Value(before),
            (false, None) => Before::Absent,
        };
        self.header.clear();
        debug_assert!(oldest.tree == root && oldest.key == *key, "the version of another row is logged");
        Record::Row { transaction: state.id, tree: root, key, before }.encode(&mut self.header);
        if let Some(write) = new {
            hook::at("keeps a version");
            // The write remembers the key from now on.
            if self.claims.last().is_some_and(|(tree, last)| *tree == root && last == key) {
                self.claims.pop();
            }
            self.undo.push(write);
        }
        Ok(oldest)
    }
}

/// The state of a record that a change requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// No record, or a ghost.
    Nothing,
    /// A record that is not a ghost.
    Record,
}

/// A change of a record that is inspected during the descent.
struct ConditionalEdit<'t> {
    transaction: &'t mut Transaction,
    state: Arc<State>,
    root: u32,
    key: &'t Key,
    expected: Expected,
    to: &'t [u8],
    /// Set at the first inspection. The record is claimed, so later ones find the same contents.
    kept: Option<Arc<Write>>,
}

impl Edit for ConditionalEdit<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Result<bool> {
        let is_there = current.and_then(<[u8]>::first).is_some_and(|flags| flags & GHOST == 0);
        if is_there != (self.expected == Expected::Record) {
            return Ok(false);
        }
        if self.kept.is_none() {
            self.kept = Some(self.transaction.keep_version(&self.state, self.root, self.key, current)?);
        }
        Ok(true)
    }

    fn parts(&mut self) -> (&[u8], &mut Vec<u8>) {
        (self.to, &mut self.transaction.header)
    }
}
