//! Foreign keys.
//!
//! A transaction that inserts a reference takes a shared lock on the *key* of the referenced row;
//! one that deletes a row or changes its key takes an exclusive lock on the key. So neither misses
//! the other, and changes of other columns of the referenced row wait for nothing. Both locks are
//! taken with the change itself and held to the end of the transaction. The work that a change
//! leaves, and checks whose result may still change, wait for the end of the statement
//! (`statement.rs`).

use std::ops::Bound;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering;

use super::Rules;
use super::Transaction;
use super::dml::{named, shown};
use super::pending::{Referring, Removed};
use crate::catalog::{GHOST, Index, OwnedValue, RowRef, Table};
use crate::mvcc::{Mode, Seen, State};
use crate::options::Isolation;
use crate::row::Value;
use crate::schema::{ForeignKeyDef, Referential};
use crate::storage::{ColumnSet, Direction, Tree};
use crate::view::View;
use crate::{Error, Relation, Result};

/// Returns the tree in which referenced rows are looked up by the columns of a foreign key: the
/// table, or a unique index.
fn referenced<'t>(parent: &'t Table, key: &ForeignKeyDef) -> Option<(&'t Tree, Option<&'t Index>)> {
    let is_it = |columns: &[crate::schema::KeyColumn]| {
        columns.len() == key.references.len()
            && columns.iter().all(|column| key.references.contains(&column.column))
    };
    if is_it(&parent.def().primary_key) {
        return Some((&parent.tree, None));
    }
    let index = parent.indexes.iter().find(|index| index.def.unique && is_it(&index.def.columns))?;
    Some((&index.tree, Some(index)))
}

/// Returns the key of a referenced row from the values of its columns or of the referencing
/// columns. `None` if one is NULL, or a number that the column cannot represent.
fn key_of<'v>(
    parent: &Table,
    index: Option<&Index>,
    value: impl Fn(usize) -> Option<Value<'v>>,
) -> Option<Vec<u8>> {
    let (columns, format) = match index {
        None => (&parent.def().primary_key, parent.key_format()),
        Some(index) => (&index.def.columns, &index.key),
    };
    debug_assert!(
        columns.len() == format.len() && !columns.is_empty(),
        "a key of {} columns is referenced by {}",
        format.len(),
        columns.len()
    );
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let value = value(column.column).filter(|value| *value != Value::Null)?;
        values.push(value.with_type(parent.def().columns.get(column.column)?.kind.kind)?);
    }
    let mut key = Vec::new();
    format.encode(&values, &mut key).then_some(key)
}

/// Returns the key that a row references, in the form of [`key_of`].
fn reference<'v>(
    parent: &Table,
    index: Option<&Index>,
    key: &ForeignKeyDef,
    value: impl Fn(usize) -> Option<Value<'v>>,
) -> Option<Vec<u8>> {
    debug_assert!(
        key.columns.len() == key.references.len(),
        "constraint {} has {} columns for {}",
        key.name,
        key.columns.len(),
        key.references.len()
    );
    key_of(parent, index, |column| {
        let at = key.references.iter().position(|&other| other == column)?;
        key.columns.get(at).and_then(|&column| value(column))
    })
}

impl Transaction {
    /// Checks that the rows exist that a new or changed row references, and keeps them from being
    /// deleted. With `old`, unchanged references are not checked. `row` is the key that the row is
    /// going to have. If the statement has further changes, a failed check is repeated at its end.
    pub(super) fn check_parents(
        &mut self,
        table: &Arc<Table>,
        row: &[u8],
        old: Option<&RowRef<'_>>,
        values: &[Value<'_>],
    ) -> Result<()> {
        for (constraint, key) in table.def().foreign_keys.iter().enumerate() {
            let value = |column: usize| values.get(column).copied().unwrap_or(Value::Null);
            let is_same =
                old.is_some_and(|old| key.columns.iter().all(|&column| old.get(column) == value(column)));
            if is_same {
                // A check that was to be repeated must now use the new key.
                if self.statement.has_referring() && old.is_some_and(|old| old.key() != row) {
                    self.note_referring(table, constraint, row);
                }
                continue;
            }
            let is_its_own = |(&here, &there): (&usize, &usize)| {
                let there = value(there);
                there.type_of().and_then(|kind| value(here).with_type(kind)) == Some(there)
            };
            let refers_to_itself =
                key.table == table.id() && key.columns.iter().zip(&key.references).all(is_its_own);
            if self.refers_to_a_row(table, key, value)? || refers_to_itself {
                continue;
            }
            if !self.statement.is_open() {
                return Err(self.missing_parent(table, key, values));
            }
            self.note_referring(table, constraint, row);
        }
        Ok(())
    }

    fn note_referring(&mut self, table: &Arc<Table>, constraint: usize, row: &[u8]) {
        let (table, key) = (Arc::clone(table), row.to_vec());
        self.statement.note_referring(Referring { table, constraint, key });
    }

    /// Repeats the check of a reference that failed before, for the row as it is now, if it still
    /// exists.
    pub(super) fn check_again(&mut self, referring: &Referring) -> Result<()> {
        let Referring { table, constraint, key: row } = referring;
        let Some(key) = table.def().foreign_keys.get(*constraint) else { return Ok(()) };
        let Some(bytes) = self.current(&table.tree, row)? else { return Ok(()) };
        let whole = self.whole(&bytes)?;
        let Some(row) = table.row(row, whole.as_deref().unwrap_or(&bytes)) else {
            return Err(self.view.db.damaged_record(table.tree.root()));
        };
        if self.refers_to_a_row(table, key, |column| row.get(column))? {
            return Ok(());
        }
        Err(self.missing_parent(table, key, &row.values()))
    }

    /// Returns whether a reference is NULL or refers to an existing row, which it keeps from being
    /// deleted.
    fn refers_to_a_row<'v>(
        &mut self,
        table: &Table,
        key: &ForeignKeyDef,
        value: impl Fn(usize) -> Value<'v>,
    ) -> Result<bool> {
        if key.columns.iter().any(|&column| value(column) == Value::Null) {
            return Ok(true);
        }
        let catalog = Arc::clone(self.view.catalog());
        let parent = catalog.table_by_id(key.table).ok_or_else(|| dangling(table, key))?;
        let (tree, index) = referenced(parent, key).ok_or_else(|| dangling(table, key))?;
        let Some(parent_key) = reference(parent, index, key, |column| Some(value(column))) else {
            return Ok(false);
        };
        self.claim_key(tree.root(), &parent_key, Mode::Shared)?;
        self.note_read(tree.root(), &parent_key);
        self.row_exists(tree, &parent_key)
    }

    fn missing_parent(&self, table: &Table, key: &ForeignKeyDef, values: &[Value<'_>]) -> Error {
        let parent = self.view.catalog().table_by_id(key.table).map(|parent| parent.def().name.as_str());
        Error::ForeignKeyViolation {
            change: "insert or update",
            table: table.def().name.clone(),
            constraint: key.name.clone(),
            child: relation(table),
            on: "".into(),
            detail: format!(
                "Key {} is not present in table \"{}\".",
                named(table, &key.columns, values),
                parent.unwrap_or_default()
            ),
        }
    }

    /// Returns whether a row is committed or was inserted by this transaction. If another
    /// transaction is inserting it, waits and looks again. The row stays if its key is locked.
    pub(super) fn row_exists(&mut self, tree: &Tree, key: &[u8]) -> Result<bool> {
        let db = Arc::clone(&self.view.db);
        let (mut record, mut before) = (Vec::new(), Vec::new());
        loop {
            let snapshot = db.new_snapshot()?;
            record.clear();
            let lsn = tree.get_with_lsn(key, ColumnSet::ALL, &mut record)?;
            let is_row = |record: &[u8]| record.first().is_some_and(|flags| flags & GHOST == 0);
            let in_place = lsn.is_some() && is_row(&record);
            before.clear();
            let seen = match lsn {
                Some(lsn) if lsn > snapshot.all_visible => {
                    let own = self.state.as_ref().map(|own| (own, u32::MAX));
                    db.rows.visible_version(tree.root(), key, snapshot.csn, own, &mut before)
                }
                _ => Seen::InPlace,
            };
            let is_seen = match seen {
                Seen::InPlace => in_place,
                Seen::Before => is_row(&before),
                Seen::Absent => false,
            };
            if is_seen || !in_place {
                return Ok(is_seen);
            }
            // The row was inserted by a transaction that has not ended, or ended after the snapshot
            // was taken.
            if let Some(other) = db.rows.owner(tree.root(), key) {
                let state = self.register();
                self.wait_for(&state, &[other])?;
            }
        }
    }

    /// Prevents new references to a row before it is deleted or changed. Returns the work to do
    /// after the change.
    pub(super) fn lock_referenced_key(
        &mut self,
        table: &Arc<Table>,
        old: &RowRef<'_>,
        values: Option<&[Value<'_>]>,
    ) -> Result<Vec<Removed>> {
        let catalog = Arc::clone(self.view.catalog());
        let mut all = Vec::new();
        for (child, constraint) in catalog.references_to(table.id()) {
            let Some(key) = child.def().foreign_keys.get(constraint) else { continue };
            let stays =
                |column: &usize| values.is_some_and(|values| values.get(*column) == Some(&old.get(*column)));
            if key.references.iter().all(stays) {
                continue;
            }
            let Some((tree, index)) = referenced(table, key) else { continue };
            let Some(parent_key) = key_of(table, index, |column| Some(old.get(column))) else { continue };
            debug_assert!(key.table == table.id(), "constraint {} refers to another table", key.name);
            self.claim_key(tree.root(), &parent_key, Mode::Exclusive)?;
            let owned = |value: Option<Value<'_>>| OwnedValue::from(value.unwrap_or(Value::Null));
            let new = |values: &[Value<'_>]| {
                key.references.iter().map(|&column| owned(values.get(column).copied())).collect()
            };
            all.push(Removed {
                parent: Arc::clone(table),
                key: parent_key,
                old: key.references.iter().map(|&column| owned(Some(old.get(column)))).collect(),
                new: values.map(new),
                child: Arc::clone(child),
                constraint,
            });
        }
        Ok(all)
    }

    /// Handles rows that reference a row that was deleted or changed.
    pub(super) fn apply_action(&mut self, removed: &Removed, rules: &dyn Rules) -> Result<()> {
        let Some((key, action)) = removed.action() else { return Ok(()) };
        if matches!(action, Referential::NoAction | Referential::Restrict) {
            return self.check_not_referenced(removed, key, action);
        }
        let table = &removed.child;
        let Some((_, index)) = referenced(&removed.parent, key) else { return Ok(()) };
        for child in &self.children_of(removed, key, usize::MAX)? {
            self.check_cancelled()?;
            self.claim(table.tree.root(), child, Mode::Exclusive, true)?;
            let Some(bytes) = self.current(&table.tree, child)? else { continue };
            let whole = self.whole(&bytes)?;
            let Some(row) = table.row(child, whole.as_deref().unwrap_or(&bytes)) else {
                return Err(self.view.db.damaged_record(table.tree.root()));
            };
            // A transaction that was waited for may have changed the reference.
            let refers_to = reference(&removed.parent, index, key, |column| Some(row.get(column)));
            if refers_to.as_ref() != Some(&removed.key) {
                continue;
            }
            if action == Referential::Cascade && removed.new.is_none() {
                self.delete(table, child)?;
                continue;
            }
            let new = self.new_references(removed, key, action, rules)?;
            let mut changed = row.values();
            for (&column, new) in key.columns.iter().zip(&new) {
                if let Some(place) = changed.get_mut(column) {
                    *place = new.value();
                }
            }
            // The default may be the very key that is gone. The row then stays unchanged and
            // references nothing.
            if action == Referential::SetDefault
                && key.columns.iter().all(|&at| changed.get(at) == Some(&row.get(at)))
            {
                self.note_referring(table, removed.constraint, child);
                continue;
            }
            super::dml::check_values(table, &changed)?;
            rules.check(table, &changed).map_err(|cause| Error::Refused { cause })?;
            self.update(table, child, &changed)?;
        }
        Ok(())
    }

    /// Returns the new values of the referencing columns.
    fn new_references(
        &self,
        removed: &Removed,
        key: &ForeignKeyDef,
        action: Referential,
        rules: &dyn Rules,
    ) -> Result<Vec<OwnedValue>> {
        let table = &removed.child;
        let value = |(at, &column): (usize, &usize)| match (action, &removed.new) {
            (Referential::Cascade, Some(new)) => {
                let Some(def) = table.def().columns.get(column) else {
                    return Ok(OwnedValue::Plain(Value::Null));
                };
                let new = new.get(at).map_or(Value::Null, OwnedValue::value);
                new.with_type(def.kind.kind)
                    .map(OwnedValue::from)
                    .ok_or_else(|| Error::OutOfRange { column: def.name.clone(), kind: def.kind.to_string() })
            }
            (Referential::SetDefault, _) => {
                rules.default_of(table, column).map_err(|cause| Error::Refused { cause })
            }
            _ => Ok(OwnedValue::Plain(Value::Null)),
        };
        let values: Result<Vec<OwnedValue>> = key.columns.iter().enumerate().map(value).collect();
        debug_assert!(
            values.as_ref().map_or(true, |values| values.len() == key.columns.len()),
            "some columns of constraint {} get no value",
            key.name
        );
        values
    }

    /// Checks that no row references the removed one. If a referencing row is being deleted by
    /// another transaction, waits for that to end, because only then is it known whether the row
    /// stays.
    fn check_not_referenced(
        &mut self,
        removed: &Removed,
        key: &ForeignKeyDef,
        action: Referential,
    ) -> Result<()> {
        loop {
            let Some(row) = self.children_of(removed, key, 1)?.pop() else { return Ok(()) };
            // By now, another row may have the referenced key.
            if action == Referential::NoAction
                && let Some((tree, _)) = referenced(&removed.parent, key)
                && self.row_exists(tree, &removed.key)?
            {
                return Ok(());
            }
            let owner = self.view.db.rows.owner(removed.child.tree.root(), &row);
            let owner = owner.filter(|owner| self.state.as_ref().is_none_or(|own| !Arc::ptr_eq(own, owner)));
            // ORDER: first the owner, then a snapshot. If a transaction owned the row before that
            // look and no longer does, the snapshot sees its changes.
            let Some(seen) = self.still_refers(removed, key, &row)? else { continue };
            match owner {
                Some(other) if self.may_disappear(&removed.child, &row, &seen)? => {
                    self.wait_for_child(removed, key, &row, &other)?;
                }
                _ => return Err(still_referenced(removed, key)),
            }
        }
    }

    /// Waits for a transaction that may be deleting a row. Errors: those of waiting;
    /// [`Error::SerializationFailure`] for a deleted row, if this transaction sees a single
    /// snapshot.
    fn wait_for_child(
        &mut self,
        removed: &Removed,
        key: &ForeignKeyDef,
        row: &[u8],
        other: &Arc<State>,
    ) -> Result<()> {
        let state = self.register();
        self.wait_for(&state, std::slice::from_ref(other))?;
        if self.isolation != Isolation::ReadCommitted && self.still_refers(removed, key, row)?.is_none() {
            self.view.db.counts.conflicts.fetch_add(1, Ordering::Relaxed);
            return Err(Error::SerializationFailure { what: "due to concurrent delete" });
        }
        Ok(())
    }

    /// Returns a row that references the removed one, as currently committed. `None` if it does not
    /// reference it or no longer exists.
    fn still_refers(
        &mut self,
        removed: &Removed,
        key: &ForeignKeyDef,
        row: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let view = View { reads: None, ..self.current_view()? };
        let (child, mut record) = (&removed.child, Vec::new());
        if !view.read(&child.tree, row, &mut record)? {
            return Ok(None);
        }
        let whole = self.whole(&record)?.unwrap_or(record);
        let Some(seen) = child.row(row, &whole) else {
            return Err(self.view.db.damaged_record(child.tree.root()));
        };
        let Some((_, by)) = referenced(&removed.parent, key) else { return Ok(None) };
        let refers_to = reference(&removed.parent, by, key, |column| Some(seen.get(column)));
        Ok((refers_to.as_ref() == Some(&removed.key)).then_some(whole))
    }

    /// Returns whether a row held by another transaction may be gone when that one ends, compared
    /// with `seen`: it was deleted or only locked, or columns of its unique keys were changed. A
    /// change of other columns leaves it there, as in PostgreSQL, where such a change does not
    /// conflict with `FOR KEY SHARE`.
    fn may_disappear(&self, child: &Table, key: &[u8], seen: &[u8]) -> Result<bool> {
        let Some(record) = self.current(&child.tree, key)? else { return Ok(true) };
        let whole = self.whole(&record)?.unwrap_or(record);
        if whole == seen {
            return Ok(true);
        }
        let (Some(now), Some(then)) = (child.row(key, &whole), child.row(key, seen)) else {
            return Err(self.view.db.damaged_record(child.tree.root()));
        };
        let unique = child.indexes.iter().filter(|index| index.def.unique);
        let mut columns = unique.flat_map(|index| &index.def.columns).map(|column| column.column);
        Ok(columns.any(|column| now.get(column) != then.get(column)))
    }

    /// Returns the keys of up to `most` rows that reference the removed one, as they are now rather
    /// than in the snapshot. Cost: a lookup in an index of the columns, or a scan of the table.
    fn children_of(&mut self, removed: &Removed, key: &ForeignKeyDef, most: usize) -> Result<Vec<Vec<u8>>> {
        let child = &removed.child;
        let Some((_, by)) = referenced(&removed.parent, key) else { return Ok(Vec::new()) };
        let view = self.current_view()?;
        let index = child.indexes.iter().position(|index| {
            let begins = index.def.columns.get(..key.columns.len());
            begins.is_some_and(|begins| begins.iter().all(|column| key.columns.contains(&column.column)))
        });
        let mut start = Vec::new();
        if let Some(index) = index.and_then(|at| child.indexes.get(at)) {
            let old = |column: usize| {
                let at = key.columns.iter().position(|&other| other == column)?;
                let kind = child.def().columns.get(column)?.kind.kind;
                removed.old.get(at)?.value().with_type(kind)
            };
            let columns = index.def.columns.iter().take(key.columns.len());
            let values: Option<Vec<Value<'_>>> = columns.map(|column| old(column.column)).collect();
            // The columns cannot represent the number.
            let Some(values) = values else { return Ok(Vec::new()) };
            if !index.key.encode(&values, &mut start) {
                return Err(dangling(child, key));
            }
        }
        let end = after(&start);
        let range = match (&start[..], &end) {
            ([], _) => (Bound::Unbounded, Bound::Unbounded),
            (start, None) => (Bound::Included(start), Bound::Unbounded),
            (start, Some(end)) => (Bound::Included(start), Bound::Excluded(&end[..])),
        };
        let mut keys = Vec::new();
        let mut scan = view.scan(child, index, range, Direction::Forward)?;
        while keys.len() < most
            && let Some(row) = scan.next()?
        {
            // With an index, the range already selects them.
            if index.is_some()
                || reference(&removed.parent, by, key, |column| Some(row.get(column))).as_ref()
                    == Some(&removed.key)
            {
                keys.push(row.key().to_vec());
            }
        }
        debug_assert!(keys.len() <= most, "{} keys are returned instead of {most}", keys.len());
        Ok(keys)
    }

    /// Returns a view of the current commits and this transaction's changes. It sees every
    /// transaction whose locks this one obtained because it ended: locks are released only after
    /// the end is visible.
    pub(super) fn current_view(&mut self) -> Result<View> {
        Ok(View { snapshot: self.view.db.new_snapshot()?, ..self.view.clone() })
    }

    /// Returns a view of the current commits and this transaction's changes, at every isolation
    /// level: for statements that change a table and scan all its rows. Reads through it are not
    /// validated for a serializable transaction.
    pub fn current_rows(&mut self) -> Result<View> {
        let view = View { reads: None, ..self.current_view()? };
        // A transaction must not wait for its own snapshots.
        self.own_snapshots.retain(|snapshot| snapshot.strong_count() > 0);
        self.own_snapshots.push(Arc::downgrade(&view.snapshot));
        Ok(view)
    }
}

/// Returns the error for a row that is still referenced.
fn still_referenced(removed: &Removed, key: &ForeignKeyDef) -> Error {
    let (table, child) = (&removed.parent, &removed.child);
    Error::ForeignKeyViolation {
        change: "update or delete",
        table: table.def().name.clone(),
        constraint: key.name.clone(),
        child: relation(child),
        on: format!(" on table \"{}\"", child.def().name).into(),
        detail: format!(
            "Key {} is still referenced from table \"{}\".",
            shown(table, &key.references, removed.old.iter().map(OwnedValue::value)),
            child.def().name
        ),
    }
}

fn dangling(table: &Table, key: &ForeignKeyDef) -> Error {
    Error::Invalid {
        what: format!("constraint {} of table {} does not refer to a unique key", key.name, table.def().name),
    }
}

/// Returns the least key after all keys with a prefix; `None` if there is none.
pub(crate) fn after(start: &[u8]) -> Option<Vec<u8>> {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            debug_assert!(&end[..] > start, "{end:?} is not behind {start:?}");
            return Some(end);
        }
    }
    None
}

/// Returns the name of a table.
fn relation(table: &Table) -> Box<Relation> {
    Box::new(Relation { schema: table.def().schema.clone(), table: table.def().name.clone() })
}
