//! Inserting, updating and deleting rows, with their index entries.

use std::mem::take;

use cairn_vfs::Bug;
use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, lock};

use super::Transaction;
use super::index_entry::Entry;
use super::locked_row::LockedRow;
use crate::catalog::{Index, RowRef, Table};
use crate::mvcc::{Key, Mode};
use crate::options::Isolation;
use crate::row::{Order, Type, Value};
use crate::schema::{ColumnType, TableDef};
use crate::storage::{Direction, LongRecord, Reclaiming, Tree, is_ghost, write_chain};
use crate::{Error, Result};

impl Transaction {
    /// Inserts a row: a value for each column. Checks NULLs, types, lengths, unique indexes and
    /// foreign keys. The caller handles defaults and checks.
    ///
    /// Waits for other transactions that hold a row with the same key. After an error, the row may
    /// be partly inserted: roll back to an earlier savepoint.
    ///
    /// Errors: [`Error::NotNull`], [`Error::WrongType`], [`Error::TooWide`], [`Error::OutOfRange`],
    /// [`Error::UniqueViolation`], [`Error::ForeignKeyViolation`], [`Error::TooLong`] of a key;
    /// those of waiting ([`Transaction::lock`]); the pool's and the log's.
    pub fn insert(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<()> {
        self.view.db.check_room()?;
        self.check_table(table)?;
        check_values(table, values)?;
        let mut key = Vec::with_capacity(16);
        if table.has_row_number() {
            let number = self.take_row_number(table)?;
            let _ = table.key_format().encode(&[Value::BigInt(number)], &mut key);
        } else if !table.encode_key(values, &mut key) {
            return Err(key_is_null(table, values));
        }
        self.check_parents(table, &key, None, values)?;
        self.insert_at(table, &key, values)?;
        self.count_rows(table, 1);
        self.after_change(Vec::new())
    }

    /// Inserts a row whose foreign keys have been checked.
    fn insert_at(&mut self, table: &Arc<Table>, key: &[u8], values: &[Value<'_>]) -> Result<()> {
        debug_assert!(
            values.len() == table.def().columns.len(),
            "a row of {} values is inserted",
            values.len()
        );
        debug_assert!(!key.is_empty(), "a row of table {} has no key", table.def().name);
        let key = self.claim_place(&table.tree, key)?;
        let record = self.encode(table, &key, values)?;
        if !self.insert_record(&table.tree, &key, &record)? {
            return Err(duplicate(table, None, values));
        }
        if table.indexes.is_empty() {
            return Ok(());
        }
        let (whole, row);
        row = match self.whole(&record)? {
            Some(long) => {
                whole = long;
                table.row(&key, &whole)
            }
            None => table.row(&key, &record),
        };
        let Some(row) = row else { return Err(self.view.db.damaged_record(table.tree.root())) };
        let mut entry = take(&mut self.entry);
        debug_assert!(row.key() == &*key, "a row is read with another key than it was written");
        for index in &table.indexes {
            entry.set(table, index, &row)?;
            self.add_entry(table, index, &entry, values)?;
        }
        self.entry = entry;
        Ok(())
    }

    /// Returns the record of a row. If it is too long for a page, its bytes are written to a chain
    /// of pages.
    fn encode(&mut self, table: &Table, key: &[u8], values: &[Value<'_>]) -> Result<Vec<u8>> {
        let mut record = Vec::with_capacity(64);
        if !table.encode_row(values, &mut record) {
            return Err(Error::Invalid {
                what: format!("a row of table {} is longer than 4 GiB", table.def().name),
            });
        }
        if key.len() + record.len() <= table.tree.max_record() {
            return Ok(record);
        }
        let (flags, bytes) =
            (record.first().copied().unwrap_or_default(), record.get(1..).unwrap_or_default());
        // The transaction owns the chain from its first page on.
        self.register_writer()?;
        let first = write_chain(self.view.db.store.space(), bytes)?;
        self.new_chains.push(first);
        Ok(LongRecord { flags, len: bytes.len(), first }.encode())
    }

    fn add_entry(
        &mut self,
        table: &Arc<Table>,
        index: &Index,
        entry: &Entry,
        values: &[Value<'_>],
    ) -> Result<()> {
        let key = self.claim_place(&index.tree, &entry.key)?;
        if !self.insert_record(&index.tree, &key, &entry.value)? {
            return Err(duplicate(table, Some(index), values));
        }
        Ok(())
    }

    fn remove_entry(&mut self, index: &Index, entry: &Entry) -> Result<()> {
        let key = self.claim(index.tree.root(), &entry.key, Mode::Exclusive, false)?;
        if !self.remove_record(&index.tree, &key)? {
            return Err(self.view.db.store.space().damaged(
                index.tree.root(),
                format!("index {} has no entry for a row of its table", index.def.name),
            ));
        }
        Ok(())
    }

    /// Updates the row with a key to other values, which may change its key. Returns false if the
    /// row no longer exists. The row must have been locked, or not be changed by others.
    ///
    /// Errors: as [`Transaction::insert`] and [`Transaction::lock`].
    pub fn update(&mut self, table: &Arc<Table>, key: &[u8], values: &[Value<'_>]) -> Result<bool> {
        self.view.db.check_room()?;
        self.check_table(table)?;
        check_values(table, values)?;
        let Some(LockedRow { key, record: before, .. }) = self.claim_row(table, key)? else {
            return Ok(false);
        };
        let long = self.whole(&before)?;
        let Some(old) = table.row(&key, long.as_deref().unwrap_or(&before)) else {
            return Err(self.view.db.damaged_record(table.tree.root()));
        };
        let mut new_key = Vec::with_capacity(key.len());
        if table.has_row_number() {
            new_key.extend(&*key);
        } else if !table.encode_key(values, &mut new_key) {
            return Err(key_is_null(table, values));
        }
        self.check_parents(table, &new_key, Some(&old), values)?;
        let removed = self.lock_referenced_key(table, &old, Some(values))?;
        if *new_key != *key {
            self.remove_row(table, &key, &before, &old)?;
            self.insert_at(table, &new_key, values)?;
        } else {
            self.replace(table, &key, &before, &old, values)?;
        }
        self.after_change(removed)?;
        Ok(true)
    }

    /// Updates a row in place, and those index entries that change.
    fn replace(
        &mut self,
        table: &Arc<Table>,
        key: &Key,
        before: &[u8],
        old: &RowRef<'_>,
        values: &[Value<'_>],
    ) -> Result<()> {
        debug_assert!(old.key() == &**key, "a row is replaced by one with another key");
        let record = self.encode(table, key, values)?;
        if record == before {
            return Ok(());
        }
        self.put_record(&table.tree, key, Some(before), Some(&record))?;
        self.note_old_chain(before);
        if table.indexes.is_empty() {
            return Ok(());
        }
        let long = self.whole(&record)?;
        let Some(new) = table.row(key, long.as_deref().unwrap_or(&record)) else {
            return Err(self.view.db.damaged_record(table.tree.root()));
        };
        for index in &table.indexes {
            let columns = index.def.columns.iter().map(|key| key.column).chain(index.include.iter().copied());
            if columns.clone().all(|column| is_same(old.get(column), new.get(column))) {
                continue;
            }
            let (mut from, mut to) = (Entry::default(), Entry::default());
            from.set(table, index, old)?;
            to.set(table, index, &new)?;
            if from.key == to.key {
                let key = self.claim(index.tree.root(), &from.key, Mode::Exclusive, false)?;
                let before = self.current(&index.tree, &key)?;
                self.put_record(&index.tree, &key, before.as_deref(), Some(&to.value))?;
            } else {
                self.remove_entry(index, &from)?;
                self.add_entry(table, index, &to, values)?;
            }
        }
        Ok(())
    }

    fn remove_row(&mut self, table: &Arc<Table>, key: &Key, before: &[u8], old: &RowRef<'_>) -> Result<()> {
        debug_assert!(old.key() == &**key, "a row is removed by the key of another one");
        debug_assert!(!is_ghost(before), "a ghost is removed as a row");
        self.put_record(&table.tree, key, Some(before), None)?;
        self.note_old_chain(before);
        let mut entry = take(&mut self.entry);
        for index in &table.indexes {
            entry.set(table, index, old)?;
            self.remove_entry(index, &entry)?;
        }
        self.entry = entry;
        Ok(())
    }

    /// Deletes the row with a key. Returns false if there is none. Referencing rows are handled
    /// according to their foreign keys: at the end of the statement
    /// ([`Transaction::begin_changes`]), or here if this is the only change. After an error, the
    /// row may be partly deleted, as with [`Transaction::insert`].
    ///
    /// Errors: [`Error::ForeignKeyViolation`]; as [`Transaction::lock`]; the pool's and the log's.
    pub fn delete(&mut self, table: &Arc<Table>, key: &[u8]) -> Result<bool> {
        self.view.db.check()?;
        let _reclaiming = Reclaiming::free_space();
        self.view.db.make_room();
        self.view.db.store.ensure_undo_space(&mut self.undo_space)?;
        self.check_table(table)?;
        let Some(LockedRow { key, record: before, .. }) = self.claim_row(table, key)? else {
            return Ok(false);
        };
        let long = self.whole(&before)?;
        let Some(old) = table.row(&key, long.as_deref().unwrap_or(&before)) else {
            return Err(self.view.db.damaged_record(table.tree.root()));
        };
        let removed = self.lock_referenced_key(table, &old, None)?;
        self.remove_row(table, &key, &before, &old)?;
        self.count_rows(table, -1);
        self.after_change(removed)?;
        Ok(true)
    }

    /// Finds and locks the row that conflicts with a new one, and returns its key. `arbiter` is the
    /// unique index to search, or `None` for the primary key. Waits for other transactions that
    /// have inserted or deleted such a row. Returns `None` if there is none. Errors: as
    /// [`Transaction::lock`].
    pub fn conflict(
        &mut self,
        table: &Arc<Table>,
        arbiter: Option<usize>,
        values: &[Value<'_>],
    ) -> Result<Option<Vec<u8>>> {
        self.check_table(table)?;
        let Some((tree, key)) = place_of(table, arbiter, values) else { return Ok(None) };
        let key = self.claim(tree.root(), &key, Mode::Exclusive, true)?;
        let Some(record) = self.current(tree, &key)? else { return Ok(None) };
        let Some(at) = arbiter else { return Ok(Some(key.to_vec())) };
        let Some(row) = table.entry(at, &key, &record) else {
            return Err(self.view.db.damaged_record(tree.root()));
        };
        let primary = row.key().to_vec();
        self.claim(table.tree.root(), &primary, Mode::Exclusive, true)?;
        Ok(Some(primary))
    }

    /// Returns whether a row conflicts with a new one, as in [`Transaction::conflict`], for callers
    /// that leave it alone: nothing is locked. Waits for other transactions that are inserting such
    /// a row.
    /// Errors: [`Error::SerializationFailure`] for a row that this transaction does not see; those
    /// of waiting ([`Transaction::lock`]).
    pub fn has_conflict(
        &mut self,
        table: &Arc<Table>,
        arbiter: Option<usize>,
        values: &[Value<'_>],
    ) -> Result<bool> {
        self.check_table(table)?;
        let Some((tree, key)) = place_of(table, arbiter, values) else { return Ok(false) };
        self.note_read(tree.root(), &key);
        if !self.row_exists(tree, &key)? {
            return Ok(false);
        }
        if self.isolation != Isolation::ReadCommitted && !self.view.read(tree, &key, &mut Vec::new())? {
            self.view.db.counts.conflicts.fetch_add(1, Ordering::Relaxed);
            return Err(Error::SerializationFailure { what: "due to concurrent update" });
        }
        Ok(true)
    }

    /// Allocates a number for a row without a primary key. Cost: for the first row in a table, a
    /// search for the last row.
    fn take_row_number(&mut self, table: &Arc<Table>) -> Result<i64> {
        let next = &table.counters.next_row;
        if next.load(Ordering::Relaxed) == 0 {
            let mut last = 0;
            let everything = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            let mut cursor = table.tree.scan(everything, Direction::Backward);
            // Ghosts count too: a snapshot may still see the row.
            if cursor.advance()? {
                let is_number = table.key_format().decode(cursor.key(), |value| {
                    if let Value::BigInt(number) = value {
                        last = number;
                    }
                });
                if !is_number {
                    return Err(self.view.db.damaged_record(table.tree.root()));
                }
            }
            // Only the first thread sets it. Until then no row can have obtained a number.
            let _ = next.compare_exchange(0, last + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        let number = next.fetch_add(1, Ordering::Relaxed);
        debug_assert!(number > 0, "a row gets number {number}");
        Ok(number)
    }

    /// Records a read for the validation of a serializable transaction.
    pub(super) fn note_read(&self, tree: u32, key: &[u8]) {
        if let Some(reads) = &self.view.reads {
            lock(reads).key(tree, key);
        }
    }
}

/// Returns whether two values are identical bit for bit, so that an index need not change.
fn is_same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Real(a), Value::Real(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

/// Returns the tree and the key at which a conflicting row would be. `None` if none can conflict.
fn place_of<'t>(
    table: &'t Table,
    arbiter: Option<usize>,
    values: &[Value<'_>],
) -> Option<(&'t Tree, Vec<u8>)> {
    let mut key = Vec::new();
    let Some(at) = arbiter else {
        let is_key = !table.has_row_number() && table.encode_key(values, &mut key);
        return is_key.then_some((&table.tree, key));
    };
    let index = table.indexes.get(at)?;
    let columns = index.def.columns.iter();
    let columns: Vec<Value<'_>> = columns.filter_map(|key| values.get(key.column)).copied().collect();
    let is_key = !columns.contains(&Value::Null) && index.key.encode(&columns, &mut key);
    is_key.then_some((&index.tree, key))
}

/// Returns a unique violation that names the columns and the values.
pub(super) fn duplicate(table: &Table, index: Option<&Index>, values: &[Value<'_>]) -> Error {
    let (name, columns) = match index {
        Some(index) => (index.def.name.clone(), &index.def.columns),
        None => {
            let name = table.def().primary_key_name.clone();
            (name.unwrap_or_else(|| format!("{}_pkey", table.def().name)), &table.def().primary_key)
        }
    };
    let columns: Vec<usize> = columns.iter().map(|key| key.column).collect();
    Error::UniqueViolation {
        schema: table.def().schema.clone(),
        table: table.def().name.clone(),
        index: name,
        key: named(table, &columns, values),
    }
}

/// Formats columns and their values: `(a, b)=(1, 2)`.
pub(super) fn named(table: &Table, columns: &[usize], values: &[Value<'_>]) -> String {
    shown(table, columns, columns.iter().filter_map(|&column| values.get(column)).copied())
}

/// Like [`named`], with values of these columns only.
pub(super) fn shown<'v>(table: &Table, columns: &[usize], values: impl Iterator<Item = Value<'v>>) -> String {
    let names: Vec<&str> = columns
        .iter()
        .filter_map(|&column| table.def().columns.get(column))
        .map(|column| column.name.as_str())
        .collect();
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// Returns the error for a NULL in a column that does not allow it.
pub(super) fn null_in(def: &TableDef, column: &str) -> Error {
    Error::NotNull { schema: def.schema.clone(), table: def.name.clone(), column: column.to_owned() }
}

fn key_is_null(table: &Table, values: &[Value<'_>]) -> Error {
    let is_null = |column: &usize| values.get(*column).is_none_or(|value| *value == Value::Null);
    let column = table.def().primary_key.iter().map(|key| key.column).find(is_null);
    let column = column.and_then(|column| table.def().columns.get(column));
    match column {
        Some(column) => null_in(table.def(), &column.name),
        None => Bug::new(format!("the key of a row of table {} cannot be encoded", table.def().name)).into(),
    }
}

/// Checks values against the definitions of the columns.
pub(super) fn check_values(table: &Table, values: &[Value<'_>]) -> Result<()> {
    let def = table.def();
    if values.len() != def.columns.len() {
        return Err(Error::Invalid {
            what: format!("table {} has {} columns, not {}", def.name, def.columns.len(), values.len()),
        });
    }
    for (column, value) in def.columns.iter().zip(values) {
        if *value == Value::Null {
            if !column.nullable {
                return Err(null_in(def, &column.name));
            }
            continue;
        }
        check_value(&column.name, &column.kind, value)?;
    }
    Ok(())
}

fn check_value(column: &str, kind: &ColumnType, value: &Value<'_>) -> Result<()> {
    let wrong = |what: String| Error::WrongType { column: column.to_owned(), kind: kind.to_string(), what };
    if value.type_of() != Some(kind.kind) {
        return Err(wrong(format!("the value {value} is not")));
    }
    match (value, kind.length, kind.decimal) {
        (Value::Text(text), _, _) if text.contains('\0') => {
            Err(wrong("a text cannot have a zero byte".to_owned()))
        }
        // The byte length is an upper bound of the number of characters, and cheaper to get.
        (Value::Text(text), Some(length), _)
            if text.len() > length as usize && text.chars().count() > length as usize =>
        {
            Err(Error::TooWide { column: column.to_owned(), kind: kind.to_string() })
        }
        (Value::Decimal(value), _, Some((precision, _)))
            if precision < 39 && value.unsigned_abs() >= 10u128.pow(precision.into()) =>
        {
            Err(Error::OutOfRange { column: column.to_owned(), kind: kind.to_string() })
        }
        _ => Ok(()),
    }
}

/// Returns whether keys can contain values of this type.
pub(super) fn can_be_key(kind: Type) -> bool {
    crate::row::KeyFormat::new(vec![(kind, Order::default())]).keeps(0)
        || matches!(kind, Type::Real | Type::Double | Type::Blob)
}
