//! Foreign keys: rows that refer to others.
//!
//! Who puts a reference in keeps the other row's *key* from going, shared; who takes a row out or gives it another key wants the key alone. So neither misses
//! the other, and changes of other columns of the referenced row wait for nobody.

use std::ops::Bound;

use cairn_vfs::sync::Arc;

use super::Transaction;
use super::dml::named;
use crate::catalog::{GHOST, Index, RowRef, Table};
use crate::mvcc::{Mode, Seen, Snapshot};
use crate::row::Value;
use crate::schema::{ForeignKeyDef, Referential};
use crate::storage::{Direction, Tree};
use crate::view::View;
use crate::{Error, Result};

/// Rows that have to follow a change of the row that they refer to.
pub(super) struct Children {
    table: Arc<Table>,
    constraint: usize,
    keys: Vec<Vec<u8>>,
    /// What they refer to: the other table, and the key that the row had in the tree that references are looked up in.
    parent: Arc<Table>,
    parent_key: Vec<u8>,
}

/// The tree in which referenced rows are found by the columns of a reference: the table, or a unique index.
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

/// The key of a referenced row, from values of its columns. `None` when one is NULL.
fn key_of<'v>(
    parent: &Table,
    index: Option<&Index>,
    value: impl Fn(usize) -> Option<Value<'v>>,
) -> Option<Vec<u8>> {
    let (columns, format) = match index {
        None => (&parent.def().primary_key, parent.key_format()),
        Some(index) => (&index.def.columns, &index.key),
    };
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        match value(column.column) {
            None | Some(Value::Null) => return None,
            Some(value) => values.push(value),
        }
    }
    let mut key = Vec::new();
    format.encode(&values, &mut key).then_some(key)
}

/// What a row refers to: a key as [`key_of`] makes them.
fn reference<'v>(
    parent: &Table,
    index: Option<&Index>,
    key: &ForeignKeyDef,
    value: impl Fn(usize) -> Option<Value<'v>>,
) -> Option<Vec<u8>> {
    key_of(parent, index, |column| {
        let at = key.references.iter().position(|&other| other == column)?;
        key.columns.get(at).and_then(|&column| value(column))
    })
}

impl Transaction {
    /// Sees that the rows are there that a new or changed row refers to, and keeps them there. With `old`, references that stay as they are need no look.
    pub(super) fn check_parents(
        &mut self,
        table: &Arc<Table>,
        old: Option<&RowRef<'_>>,
        values: &[Value<'_>],
    ) -> Result<()> {
        for key in &table.def().foreign_keys {
            let value = |column: usize| values.get(column).copied().unwrap_or(Value::Null);
            let is_same =
                old.is_some_and(|old| key.columns.iter().all(|&column| old.get(column) == value(column)));
            if is_same || key.columns.iter().any(|&column| value(column) == Value::Null) {
                continue;
            }
            let catalog = Arc::clone(self.view.catalog());
            let parent = catalog.table_by_id(key.table).ok_or_else(|| dangling(table, key))?;
            let (tree, index) = referenced(parent, key).ok_or_else(|| dangling(table, key))?;
            let found = match reference(parent, index, key, |column| Some(value(column))) {
                None => false,
                Some(parent_key) => {
                    self.claim_key(tree.root(), &parent_key, Mode::Shared)?;
                    self.note_read(tree.root(), &parent_key);
                    self.has_parent(tree, &parent_key)?
                }
            };
            let refers_to_itself = parent.id() == table.id()
                && key.columns.iter().zip(&key.references).all(|(&here, &there)| value(here) == value(there));
            if !found && !refers_to_itself {
                return Err(Error::ForeignKeyViolation {
                    change: "insert or update",
                    table: table.def().name.clone(),
                    constraint: key.name.clone(),
                    on: String::new(),
                    detail: format!(
                        "Key {} is not present in table \"{}\".",
                        named(table, &key.columns, values),
                        parent.def().name
                    ),
                });
            }
        }
        Ok(())
    }

    /// Whether a row is there to be referred to: committed, or this transaction's own. One that somebody else is putting in is waited for, and looked at again.
    /// Its key is claimed, so one that is there stays.
    fn has_parent(&mut self, tree: &Tree, key: &[u8]) -> Result<bool> {
        let state = self.known();
        let db = Arc::clone(&self.view.db);
        let (mut record, mut before) = (Vec::new(), Vec::new());
        loop {
            let snapshot = self.snapshot_of_now()?;
            record.clear();
            let lsn = tree.get_with_lsn(key, &mut record)?;
            let is_row = |record: &[u8]| record.first().is_some_and(|flags| flags & GHOST == 0);
            let in_place = lsn.is_some() && is_row(&record);
            before.clear();
            let seen = match lsn {
                Some(lsn) if lsn > snapshot.all_visible => {
                    db.rows.see(tree.root(), key, snapshot.csn, Some(&state), &mut before)
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
            // Put in by somebody who has not ended, or has ended this very moment.
            if let Some(other) = db.rows.owner(tree.root(), key) {
                self.wait_for(&state, &[other])?;
            }
        }
    }

    /// Before a row goes, or gets another key and other values: keeps others from referring to it, and finds who does. Errors: [`Error::ForeignKeyViolation`] when they
    /// keep it from going.
    pub(super) fn hold_children(
        &mut self,
        table: &Arc<Table>,
        old: &RowRef<'_>,
        new: Option<(&[u8], &[Value<'_>])>,
    ) -> Result<Vec<Children>> {
        let values = new.map(|(_, values)| values);
        let catalog = Arc::clone(self.view.catalog());
        let mut all = Vec::new();
        for (child, at) in catalog.references_to(table.id()) {
            let Some(key) = child.def().foreign_keys.get(at) else { continue };
            let stays =
                |column: &usize| values.is_some_and(|values| values.get(*column) == Some(&old.get(*column)));
            if key.references.iter().all(stays) {
                continue;
            }
            let Some((tree, index)) = referenced(table, key) else { continue };
            let Some(parent_key) = key_of(table, index, |column| Some(old.get(column))) else { continue };
            self.claim_key(tree.root(), &parent_key, Mode::Exclusive)?;
            let mut keys = self.children_of(child, key, old, &parent_key)?;
            if child.id() == table.id()
                && let Some(at) = keys.iter().position(|child| *child == old.key())
            {
                // A row that refers to itself goes with itself. One that is going to refer to what it was is like any other, under its new key.
                let own = keys.swap_remove(at);
                if let Some((key_then, values)) = new {
                    let value = |column: usize| values.get(column).copied();
                    if reference(table, index, key, value).is_some_and(|then| then == parent_key) {
                        keys.push(if own == key_then { own } else { key_then.to_vec() });
                    }
                }
            }
            if keys.is_empty() {
                continue;
            }
            let action = if values.is_some() { key.on_update } else { key.on_delete };
            if action == Referential::Restrict {
                return Err(Error::ForeignKeyViolation {
                    change: "update or delete",
                    table: table.def().name.clone(),
                    constraint: key.name.clone(),
                    on: format!(" on table \"{}\"", child.def().name),
                    detail: format!(
                        "Key {} is still referenced from table \"{}\".",
                        named(table, &key.references, &old.values()),
                        child.def().name
                    ),
                });
            }
            let parent = Arc::clone(table);
            all.push(Children { table: Arc::clone(child), constraint: at, keys, parent, parent_key });
        }
        Ok(all)
    }

    /// The rows that refer to one, as they are now and not as the snapshot has them. Cost: a look into an index of the columns, or the whole table.
    fn children_of(
        &mut self,
        child: &Arc<Table>,
        key: &ForeignKeyDef,
        parent: &RowRef<'_>,
        parent_key: &[u8],
    ) -> Result<Vec<Vec<u8>>> {
        let table = parent.table();
        let Some((_, by)) = referenced(table, key) else { return Ok(Vec::new()) };
        let view = self.view_of_now()?;
        let parent_of = |column: usize| {
            let at = key.columns.iter().position(|&other| other == column)?;
            key.references.get(at).map(|&column| parent.get(column))
        };
        let index = child.indexes.iter().position(|index| {
            let begins = index.def.columns.get(..key.columns.len());
            begins.is_some_and(|begins| begins.iter().all(|column| key.columns.contains(&column.column)))
        });
        let mut start = Vec::new();
        if let Some(index) = index.and_then(|at| child.indexes.get(at)) {
            let columns = index.def.columns.iter().take(key.columns.len());
            let values: Vec<Value<'_>> = columns.filter_map(|column| parent_of(column.column)).collect();
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
        while let Some(row) = scan.next()? {
            // Of an index the range has said it.
            if index.is_some()
                || reference(table, by, key, |column| Some(row.get(column))).as_deref() == Some(parent_key)
            {
                keys.push(row.key().to_vec());
            }
        }
        Ok(keys)
    }

    /// What is committed now, and what this transaction has done.
    pub(super) fn view_of_now(&mut self) -> Result<View> {
        Ok(View { snapshot: self.snapshot_of_now()?, ..self.view.clone() })
    }

    /// Sees all whose claims this transaction has got because they have ended.
    fn snapshot_of_now(&self) -> Result<Arc<Snapshot>> {
        // ORDER: whoever lets others see a commit lets go of its claims a moment before.
        self.view.db.commits.settle();
        self.view.db.another_snapshot()
    }

    /// Deals with rows that refer to a row that has gone, or has other values now.
    pub(super) fn follow(&mut self, all: Vec<Children>, values: Option<&[Value<'_>]>) -> Result<()> {
        for children in all {
            let table = &children.table;
            let Some(key) = table.def().foreign_keys.get(children.constraint) else { continue };
            let action = if values.is_some() { key.on_update } else { key.on_delete };
            let parent = Arc::clone(&children.parent);
            let Some((_, index)) = referenced(&parent, key) else { continue };
            for child in &children.keys {
                self.claim(table.tree.root(), child, Mode::Exclusive, true)?;
                let Some(bytes) = self.current(&table.tree, child)? else { continue };
                let whole = self.whole(&bytes)?;
                let Some(row) = table.row(child, whole.as_deref().unwrap_or(&bytes)) else {
                    return Err(self.view.db.damaged_record(table.tree.root()));
                };
                // Somebody who was waited for may have made it refer to another row.
                if reference(&parent, index, key, |column| Some(row.get(column)))
                    != Some(children.parent_key.clone())
                {
                    continue;
                }
                if action == Referential::Cascade && values.is_none() {
                    self.delete(table, child)?;
                    continue;
                }
                let mut changed = row.values();
                for (&column, &reference) in key.columns.iter().zip(&key.references) {
                    let value = values.and_then(|values| values.get(reference)).copied();
                    if let Some(place) = changed.get_mut(column) {
                        *place = if action == Referential::Cascade {
                            value.unwrap_or(Value::Null)
                        } else {
                            Value::Null
                        };
                    }
                }
                self.update(table, child, &changed)?;
            }
        }
        Ok(())
    }
}

fn dangling(table: &Table, key: &ForeignKeyDef) -> Error {
    Error::Invalid {
        what: format!(
            "constraint {} of table {} refers to nothing that is unique",
            key.name,
            table.def().name
        ),
    }
}

/// The first key behind all those that begin with some bytes; `None` when there is none.
pub(crate) fn after(start: &[u8]) -> Option<Vec<u8>> {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
