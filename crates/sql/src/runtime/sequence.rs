//! Sequences, from which `serial` columns take their values.
//!
//! A sequence consists of a row in a hidden table, and of a counter in memory that all sessions
//! share. The row says where to continue after a restart. It is up to [`BLOCK`] values ahead of the
//! counter, so that most values are given out without a write. A transaction that takes a value
//! beyond the row advances the row just before its own commit, in a separate transaction, so that a
//! committed value is never given out again. Other sessions that advance the row wait for that
//! short transaction only, which holds no other lock. A transaction that creates or alters a
//! sequence, however, locks its row until it ends. When the database is closed, the rows are set
//! back to the counters.

use std::collections::{HashMap, HashSet};

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ColumnType, KeyColumn, TableDef};
use cairn_table::{Catalog, Durability, Isolation, RowBuf, RowRef, Table, Transaction, View};
use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, MutexGuard, lock};

use super::Shared;
use crate::error::{Error, Result};
use crate::sqlstate::{
    NUMERIC_VALUE_OUT_OF_RANGE, OBJECT_NOT_IN_PREREQUISITE_STATE, SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
    UNDEFINED_TABLE,
};
use crate::syntax::name_parts;

/// The namespace of hidden tables.
pub(crate) const HIDDEN: &str = "cairn_catalog";
const TABLE: &str = "sequences";
/// The number of values between two writes.
const BLOCK: u32 = 256;

/// The namespace and name of a sequence.
pub(crate) type Name = (String, String);

/// The properties of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The earliest next value; `None` after the last value.
    pub next: Option<i64>,
    /// The first value.
    pub start: i64,
    /// The step between values; negative to count down.
    pub increment: i64,
    /// The least value.
    pub minimum: i64,
    /// The greatest value.
    pub maximum: i64,
    /// Whether it restarts after the last value.
    pub cycles: bool,
    /// The column that owns it, as `table.column`. The sequence is dropped with that column.
    pub owner: Option<String>,
}

/// Returns the range of an integer type.
pub(crate) fn bounds_of(kind: Type) -> (i64, i64) {
    match kind {
        Type::SmallInt => (i16::MIN.into(), i16::MAX.into()),
        Type::Int => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

impl Sequence {
    /// Returns a sequence that counts from 1 to the maximum of a type.
    pub(crate) fn of(kind: Type, owner: Option<String>) -> Self {
        let (_, maximum) = bounds_of(kind);
        Sequence { next: Some(1), start: 1, increment: 1, minimum: 1, maximum, cycles: false, owner }
    }

    /// Returns the value after `value`.
    fn after(&self, value: i64) -> Option<i64> {
        let next =
            value.checked_add(self.increment).filter(|next| (self.minimum..=self.maximum).contains(next));
        next.or(if !self.cycles {
            None
        } else if self.increment > 0 {
            Some(self.minimum)
        } else {
            Some(self.maximum)
        })
    }

    /// Changes the bounds. An exhausted sequence continues after the old bound if the new bounds
    /// allow it.
    pub(crate) fn set_bounds(&mut self, minimum: i64, maximum: i64) {
        let behind =
            if self.increment > 0 { self.maximum.checked_add(1) } else { self.minimum.checked_sub(1) };
        (self.minimum, self.maximum) = (minimum, maximum);
        self.next = self.next.or(behind.filter(|next| (minimum..=maximum).contains(next)));
    }

    /// The value that must be within the bounds: the next one, or the last one of an exhausted
    /// sequence.
    pub(crate) fn place(&self) -> i64 {
        self.next.unwrap_or(if self.increment > 0 { self.maximum } else { self.minimum })
    }

    /// Returns the value that follows `count` more values. If the sequence would restart or end
    /// before, it returns the next value.
    fn ahead(&self, count: u32) -> Option<i64> {
        let next = self.next?;
        let reach = i128::from(next) + i128::from(self.increment) * i128::from(count);
        let within = i64::try_from(reach).ok().filter(|reach| (self.minimum..=self.maximum).contains(reach));
        within.or(Some(next))
    }
}

/// The counter in memory.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    sequence: Sequence,
    /// The number of values by which the row is ahead.
    left: u32,
    /// Counts the advances of the row, and other changes after which the row may not be ahead.
    moves: u64,
}

impl Counter {
    fn new(sequence: Sequence) -> Self {
        Counter { sequence, left: 0, moves: 0 }
    }

    /// Requires that the row is advanced before the next value is committed.
    fn fall_behind(&mut self) {
        self.left = 0;
        self.moves += 1;
    }

    /// Undoes a change. The counter does not go back, so that no value is given out twice, unless
    /// the change has set it to another value.
    fn take_back(&mut self, before: Sequence, has_moved: bool) {
        let bounds = before.minimum..=before.maximum;
        self.sequence.set_bounds(before.minimum, before.maximum);
        let now = self.sequence.next;
        let stays = !has_moved && now.is_none_or(|next| bounds.contains(&next));
        self.sequence = Sequence { next: if stays { now } else { before.next }, ..before };
    }
}

/// A change of a sequence, to be undone if it is not committed.
#[derive(Debug)]
struct Change {
    name: Name,
    /// The earlier state; `None` for a new sequence.
    before: Option<Counter>,
    /// Whether the change has set the counter.
    has_moved: bool,
}

/// The counters, shared by all sessions.
pub(crate) type Counters = HashMap<Name, Counter>;

/// A session's state of sequences. Queries that run on other threads draw values too. A thread that
/// needs both locks takes that of the counters first.
#[derive(Debug, Default)]
pub(crate) struct SessionSequences {
    inner: Mutex<Inner>,
    /// Whether the transaction may have used sequences. Most have not, and end without taking a
    /// lock.
    is_used: AtomicBool,
}

#[derive(Debug, Default)]
struct Inner {
    current: HashMap<Name, i64>,
    last: Option<Name>,
    /// Sequences whose rows must be advanced before the commit.
    behind: HashSet<Name>,
    /// The transaction's changes of sequences, oldest first. They must be undone if it does not
    /// commit.
    changes: Vec<Change>,
    /// Sequences whose rows this transaction has locked. Undoing changes does not unlock them.
    own: HashSet<Name>,
}

impl Inner {
    /// Records a change, which has been written to the row.
    fn note(&mut self, change: Change) {
        self.behind.remove(&change.name);
        self.own.insert(change.name.clone());
        self.changes.push(change);
    }

    /// Undoes a change.
    fn take_back(&mut self, counters: &mut Counters, change: Change) {
        let Change { name, before, has_moved } = change;
        let mut counter = match (counters.remove(&name), before) {
            (_, None) => {
                self.behind.remove(&name);
                self.current.remove(&name);
                return;
            }
            (Some(mut counter), Some(before)) => {
                counter.take_back(before.sequence, has_moved);
                counter
            }
            (None, Some(before)) => before,
        };
        // Values may have been given out since that are beyond the restored row.
        counter.fall_behind();
        counters.insert(name.clone(), counter);
        self.behind.insert(name);
    }
}

/// Returns the error for an unknown sequence.
pub(crate) fn undefined(name: &str) -> Error {
    Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// Splits a text into namespace and name.
pub(crate) fn parse_name(text: &str, schema: &str) -> Name {
    let mut parts = name_parts(text);
    let name = parts.pop().unwrap_or_default();
    (parts.pop().unwrap_or_else(|| schema.to_owned()), name)
}

/// Returns the namespace and name of an identity column's sequence; `None` for other columns.
pub fn identity_sequence(def: &TableDef, column: &ColumnDef) -> Option<(String, String)> {
    column.identity?;
    let text = column.default.as_deref()?.strip_prefix("nextval('")?.strip_suffix("')")?;
    Some(parse_name(&text.replace("''", "'"), &def.schema))
}

/// Returns the identity column that uses a sequence.
pub(crate) fn identity_column<'c>(
    catalog: &'c Catalog,
    name: &Name,
) -> Option<(&'c Arc<Table>, &'c ColumnDef)> {
    let own = |table: &'c Arc<Table>| {
        let def = table.def();
        let column =
            def.columns.iter().find(|column| identity_sequence(def, column).as_ref() == Some(name))?;
        Some((table, column))
    };
    catalog.tables().find_map(own)
}

impl SessionSequences {
    /// Locks the session's state in order to record something of the transaction.
    fn used(&self) -> MutexGuard<'_, Inner> {
        let inner = lock(&self.inner);
        // ORDER: pairs with the loads at the end of the transaction, which come after its queries'
        // work on other threads.
        self.is_used.store(true, Release);
        inner
    }

    /// `nextval`.
    ///
    /// Errors: 42P01, 2200H.
    pub fn next(&self, shared: &Shared, schema: &str, text: &str) -> Result<i64> {
        let name = parse_name(text, schema);
        let mut counters = lock(&shared.sequences);
        let counter = counters.get_mut(&name).ok_or_else(|| undefined(text))?;
        let Some(value) = counter.sequence.next else {
            let bound = if counter.sequence.increment > 0 { "maximum" } else { "minimum" };
            let limit = if counter.sequence.increment > 0 {
                counter.sequence.maximum
            } else {
                counter.sequence.minimum
            };
            let what = format!("nextval: reached {bound} value of sequence \"{}\" ({limit})", name.1);
            return Err(Error::new(SEQUENCE_GENERATOR_LIMIT_EXCEEDED, what));
        };
        counter.sequence.next = counter.sequence.after(value);
        let mut inner = self.used();
        match counter.left.checked_sub(1) {
            Some(left) => counter.left = left,
            None => _ = inner.behind.insert(name.clone()),
        }
        inner.current.insert(name.clone(), value);
        inner.last = Some(name);
        Ok(value)
    }

    /// `currval`, and `lastval` if no name is given.
    ///
    /// Errors: 55000 if this session has drawn no value.
    pub fn current(&self, schema: &str, text: Option<&str>) -> Result<i64> {
        let inner = lock(&self.inner);
        let name = match text {
            Some(text) => Some(parse_name(text, schema)),
            None => inner.last.clone(),
        };
        let value = name.as_ref().and_then(|name| inner.current.get(name)).copied();
        value.ok_or_else(|| {
            let what = match text {
                Some(text) => format!("currval of sequence \"{text}\" is not yet defined in this session"),
                None => "lastval is not yet defined in this session".to_owned(),
            };
            Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, what)
        })
    }

    /// `DISCARD SEQUENCES`: forgets the values of `currval` and `lastval`, so that the next user of
    /// the session cannot read them.
    pub fn forget(&self) {
        let mut inner = lock(&self.inner);
        inner.current.clear();
        inner.last = None;
    }

    /// `setval`.
    ///
    /// Errors: 42P01, 22003.
    pub fn set(&self, shared: &Shared, schema: &str, text: &str, value: i64, is_called: bool) -> Result<i64> {
        let name = parse_name(text, schema);
        let mut counters = lock(&shared.sequences);
        let counter = counters.get_mut(&name).ok_or_else(|| undefined(text))?;
        let sequence = &mut counter.sequence;
        if !(sequence.minimum..=sequence.maximum).contains(&value) {
            let what = format!(
                "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                name.1, sequence.minimum, sequence.maximum
            );
            return Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what));
        }
        sequence.next = if is_called { sequence.after(value) } else { Some(value) };
        counter.fall_behind();
        let mut inner = self.used();
        inner.behind.insert(name.clone());
        if is_called {
            inner.current.insert(name, value);
        }
        Ok(value)
    }

    /// Creates a sequence as a part of the transaction.
    ///
    /// Errors: those of the table.
    pub fn create(
        &self,
        shared: &Shared,
        transaction: &mut Transaction,
        name: &Name,
        sequence: Sequence,
    ) -> Result<()> {
        let table = table(transaction)?;
        insert(transaction, &table, name, &sequence)?;
        let mut counters = lock(&shared.sequences);
        let before = counters.insert(name.clone(), Counter::new(sequence));
        self.used().note(Change { name: name.clone(), before, has_moved: true });
        Ok(())
    }

    /// Alters a sequence.
    ///
    /// Errors: 42P01 if there is none, those of `change` and of the table.
    pub fn alter(
        &self,
        shared: &Shared,
        transaction: &mut Transaction,
        name: &Name,
        change: impl FnOnce(&mut Sequence) -> Result<()>,
    ) -> Result<()> {
        let table = transaction.view().catalog().table(HIDDEN, TABLE).cloned();
        let table = table.ok_or_else(|| undefined(&name.1))?;
        let (key, mut row) = (key_of(&table, name), RowBuf::default());
        if !transaction.lock(&table, &key, &mut row)? {
            return Err(undefined(&name.1));
        }
        let sequence = {
            let mut counters = lock(&shared.sequences);
            let loaded = || Counter::new(of_row(&row.row(&table)));
            let counter = counters.entry(name.clone()).or_insert_with(loaded);
            let mut sequence = counter.sequence.clone();
            change(&mut sequence)?;
            let has_moved = sequence.next != counter.sequence.next;
            let before = Some(counter.clone());
            counter.sequence = sequence.clone();
            // ORDER: before the row is written. A session that draws a value from here on advances
            // the row after this transaction has ended.
            counter.fall_behind();
            self.used().note(Change { name: name.clone(), before, has_moved });
            sequence
        };
        transaction.update(&table, &key, &values(name, &sequence))?;
        Ok(())
    }

    /// Drops a sequence. Returns false if there is none.
    ///
    /// Errors: those of the table.
    pub fn remove(&self, shared: &Shared, transaction: &mut Transaction, name: &Name) -> Result<bool> {
        let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else {
            return Ok(false);
        };
        let removed = transaction.delete(&table, &key_of(&table, name))?;
        let mut counters = lock(&shared.sequences);
        if let Some(before) = counters.remove(name) {
            self.used().note(Change { name: name.clone(), before: Some(before), has_moved: false });
        }
        Ok(removed)
    }

    /// Advances the rows of sequences whose counters have passed them.
    ///
    /// Errors: those of the table.
    pub fn write_back(&self, shared: &Shared, transaction: &mut Transaction) -> Result<()> {
        if !self.is_used.load(Acquire) {
            return Ok(());
        }
        let behind: Vec<(bool, Name)> = {
            let mut inner = lock(&self.inner);
            let behind = std::mem::take(&mut inner.behind);
            let is_own = |name: &Name| inner.own.contains(name);
            behind.into_iter().map(|name| (is_own(&name), name)).collect()
        };
        for (is_own, name) in behind {
            if is_own {
                // This transaction has locked the row. Before it commits, the row must not count as
                // being ahead, so it is not moved ahead.
                advance(shared, transaction, &name, 0)?;
            } else if let Some(moved) =
                transaction.autonomous(|other| advance(shared, other, &name, BLOCK))?
            {
                moved.tell(shared, &name);
            }
        }
        Ok(())
    }

    /// Returns the number of changes of sequences so far, for [`SessionSequences::take_back`].
    pub fn mark(&self) -> usize {
        lock(&self.inner).changes.len()
    }

    /// Restores the sequences to their state at a mark. Values given out since are not given out
    /// again, unless the sequence had been set to them since.
    ///
    /// Call it while the transaction still has their rows locked, so that others see either its
    /// changes or the restored state.
    pub fn take_back(&self, shared: &Shared, mark: usize) {
        let changes = {
            let mut inner = lock(&self.inner);
            let mark = mark.min(inner.changes.len());
            inner.changes.split_off(mark)
        };
        if changes.is_empty() {
            return;
        }
        let mut counters = lock(&shared.sequences);
        let mut inner = lock(&self.inner);
        for change in changes.into_iter().rev() {
            inner.take_back(&mut counters, change);
        }
    }

    /// Ends the transaction, before a rollback or after a commit. Unless it is committed, all
    /// changes of sequences are undone.
    pub fn end(&self, shared: &Shared, committed: bool) {
        if !self.is_used.load(Acquire) {
            return;
        }
        if !committed {
            self.take_back(shared, 0);
        }
        let mut inner = lock(&self.inner);
        self.is_used.store(false, Relaxed);
        inner.changes.clear();
        inner.behind.clear();
        inner.own.clear();
    }
}

/// A row that has been advanced.
#[derive(Debug)]
struct Moved {
    to: i64,
    /// The number of this advance.
    number: u64,
}

impl Moved {
    /// Records how far the row is ahead, once its advance is in the log. Does nothing if there was
    /// another advance since: its transaction has a later value, or has marked the row as behind.
    fn tell(&self, shared: &Shared, name: &Name) {
        let mut counters = lock(&shared.sequences);
        let Some(counter) = counters.get_mut(name).filter(|counter| counter.moves == self.number) else {
            return;
        };
        // Others may have drawn values meanwhile.
        if let Some(next) = counter.sequence.next {
            let left = (i128::from(self.to) - i128::from(next)) / i128::from(counter.sequence.increment);
            counter.left = u32::try_from(left).unwrap_or(0);
        }
    }
}

/// Advances a row beyond its counter. `None` if there is nothing to record: another transaction has
/// advanced it, or there is no counter.
fn advance(shared: &Shared, transaction: &mut Transaction, name: &Name, by: u32) -> Result<Option<Moved>> {
    let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else { return Ok(None) };
    let (key, mut row) = (key_of(&table, name), RowBuf::default());
    if !transaction.lock(&table, &key, &mut row)? {
        return Ok(None);
    }
    // The properties come from the row, because those in memory may be an uncommitted change.
    let sequence = of_row(&row.row(&table));
    // ORDER: the lock first. The next transaction that advances the row starts from a later value.
    let (next, number) = {
        let mut counters = lock(&shared.sequences);
        let Some(counter) = counters.get_mut(name).filter(|counter| counter.left == 0) else {
            return Ok(None);
        };
        counter.moves += 1;
        (counter.sequence.ahead(by), counter.moves)
    };
    transaction.update(&table, &key, &values(name, &Sequence { next, ..sequence }))?;
    Ok(next.map(|to| Moved { to, number }))
}

/// Initializes the counters from the rows, after the database has been opened.
///
/// Errors: those of the table.
pub(crate) fn load_all(shared: &Shared) -> Result<()> {
    let view = shared.tables.begin(Isolation::ReadCommitted)?.view().clone();
    let counter = |(name, sequence)| (name, Counter::new(sequence));
    lock(&shared.sequences).extend(all(&view)?.into_iter().map(counter));
    Ok(())
}

/// Sets the rows back to the counters, when the database is closed.
pub(crate) fn close(shared: &Shared) -> Result<()> {
    let mut counters = lock(&shared.sequences);
    let ahead: Vec<(Name, Sequence)> = counters
        .drain()
        .filter(|(_, counter)| counter.left > 0)
        .map(|(name, counter)| (name, counter.sequence))
        .collect();
    if ahead.is_empty() {
        return Ok(());
    }
    let mut transaction = shared.tables.begin(Isolation::ReadCommitted)?;
    let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else { return Ok(()) };
    for (name, sequence) in ahead {
        put(&mut transaction, &table, &name, &sequence)?;
    }
    Ok(transaction.commit(Durability::Buffered)?)
}

/// Returns all sequences that are visible in a view.
pub(crate) fn all(view: &View) -> Result<Vec<(Name, Sequence)>> {
    use std::ops::Bound::Unbounded;
    let Some(table) = view.catalog().table(HIDDEN, TABLE) else { return Ok(Vec::new()) };
    let mut scan = view.scan(table, None, (Unbounded, Unbounded), cairn_table::Direction::Forward)?;
    let mut all = Vec::new();
    while let Some(row) = scan.next()? {
        if let (Value::Text(schema), Value::Text(name)) = (row.get(0), row.get(1)) {
            all.push(((schema.to_owned(), name.to_owned()), of_row(&row)));
        }
    }
    Ok(all)
}

/// Returns the sequence of this name, if it is visible in a view.
pub(crate) fn find(view: &View, name: &Name) -> Result<Option<Sequence>> {
    let Some(table) = view.catalog().table(HIDDEN, TABLE) else { return Ok(None) };
    let mut row = RowBuf::default();
    let found = view.get(table, &key_of(table, name), &mut row)?;
    Ok(found.then(|| of_row(&row.row(table))))
}

/// Like [`all`], with the current next values, which the rows are ahead of.
pub(crate) fn all_now(shared: &Shared, view: &View) -> Result<Vec<(Name, Sequence)>> {
    let mut sequences = all(view)?;
    let counters = lock(&shared.sequences);
    for (name, sequence) in &mut sequences {
        if let Some(counter) = counters.get(name) {
            sequence.next = counter.sequence.next;
        }
    }
    Ok(sequences)
}

fn of_row(row: &RowRef<'_>) -> Sequence {
    let number = |column: usize| match row.get(column) {
        Value::BigInt(value) => Some(value),
        _ => None,
    };
    Sequence {
        next: number(2),
        start: number(3).unwrap_or(1),
        increment: number(4).unwrap_or(1),
        minimum: number(5).unwrap_or(1),
        maximum: number(6).unwrap_or(i64::MAX),
        cycles: row.get(7) == Value::Boolean(true),
        owner: match row.get(8) {
            Value::Text(owner) => Some(owner.to_owned()),
            _ => None,
        },
    }
}

fn key_of(table: &Table, name: &Name) -> Vec<u8> {
    let mut key = Vec::new();
    // Both are text, like the columns of the key.
    let _ = table.key_format().encode(&[Value::Text(&name.0), Value::Text(&name.1)], &mut key);
    key
}

fn values<'v>(name: &'v Name, sequence: &'v Sequence) -> [Value<'v>; 9] {
    [
        Value::Text(&name.0),
        Value::Text(&name.1),
        sequence.next.map_or(Value::Null, Value::BigInt),
        Value::BigInt(sequence.start),
        Value::BigInt(sequence.increment),
        Value::BigInt(sequence.minimum),
        Value::BigInt(sequence.maximum),
        Value::Boolean(sequence.cycles),
        sequence.owner.as_deref().map_or(Value::Null, Value::Text),
    ]
}

fn insert(transaction: &mut Transaction, table: &Arc<Table>, name: &Name, sequence: &Sequence) -> Result<()> {
    Ok(transaction.insert(table, &values(name, sequence))?)
}

fn put(transaction: &mut Transaction, table: &Arc<Table>, name: &Name, sequence: &Sequence) -> Result<()> {
    let mut row = RowBuf::default();
    let key = key_of(table, name);
    if transaction.lock(table, &key, &mut row)? {
        transaction.update(table, &key, &values(name, sequence))?;
    }
    Ok(())
}

/// Returns the table of sequences, and creates it at the first call.
fn table(transaction: &mut Transaction) -> Result<Arc<Table>> {
    if let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE) {
        return Ok(Arc::clone(table));
    }
    if !transaction.view().catalog().has_schema(HIDDEN) {
        transaction.create_schema(HIDDEN)?;
    }
    let column = |name: &str, kind: Type, nullable: bool| ColumnDef {
        name: name.to_owned(),
        kind: ColumnType::new(kind),
        nullable,
        default: None,
        identity: None,
    };
    let columns = vec![
        column("schema_name", Type::Text, false),
        column("name", Type::Text, false),
        column("next", Type::BigInt, true),
        column("start", Type::BigInt, false),
        column("increment", Type::BigInt, false),
        column("minimum", Type::BigInt, false),
        column("maximum", Type::BigInt, false),
        column("cycles", Type::Boolean, false),
        column("owner", Type::Text, true),
    ];
    let key = |column| KeyColumn { column, order: Order::default() };
    let def = TableDef {
        schema: HIDDEN.to_owned(),
        name: TABLE.to_owned(),
        columns,
        primary_key: vec![key(0), key(1)],
        primary_key_name: Some("sequences_pkey".to_owned()),
        ..TableDef::default()
    };
    Ok(transaction.create_table(def)?)
}
