//! Sequences: what `serial` columns count with.
//!
//! A sequence is a row of a table that nobody sees, and a number in memory that all sessions share. The row says where to go on after a restart: it is ahead of
//! the number by up to [`BLOCK`] values, so that counting writes nothing most of the time. Who takes a value that the row is not ahead of moves the row just before their own
//! commit, in a transaction beside it, so a value that was committed is never given again; and others who want to move it wait for that moment only, with nothing that anybody
//! waits for. But whoever has made or altered a sequence has its row up to their own end. Closing the database moves the rows back to where the numbers are.

use std::collections::{HashMap, HashSet};

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ColumnType, KeyColumn, TableDef};
use cairn_table::{Catalog, Durability, Isolation, RowBuf, RowRef, Table, Transaction, View};
use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::database::Shared;
use crate::error::{Error, Result};
use crate::sqlstate::{
    NUMERIC_VALUE_OUT_OF_RANGE, OBJECT_NOT_IN_PREREQUISITE_STATE, SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
    UNDEFINED_TABLE,
};
use crate::syntax::name_parts;

/// The namespace of what nobody sees.
pub(crate) const HIDDEN: &str = "cairn_catalog";
const TABLE: &str = "sequences";
/// Values between two writes.
const BLOCK: u32 = 256;

/// A sequence's name: its namespace and its own.
pub(crate) type Name = (String, String);

/// What a sequence is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// What it gives next at the earliest; `None` after the last value.
    pub next: Option<i64>,
    /// Its first value.
    pub start: i64,
    /// From one value to the next; below zero it counts down.
    pub increment: i64,
    /// The least value.
    pub minimum: i64,
    /// The greatest value.
    pub maximum: i64,
    /// Whether it begins again after the last value.
    pub cycles: bool,
    /// The column that it counts for, `table.column`: it goes with that.
    pub owner: Option<String>,
}

impl Sequence {
    /// Counts from 1 to the most that a type holds.
    pub(crate) fn of(kind: Type, owner: Option<String>) -> Self {
        let maximum = match kind {
            Type::SmallInt => i16::MAX.into(),
            Type::Int => i32::MAX.into(),
            _ => i64::MAX,
        };
        Sequence { next: Some(1), start: 1, increment: 1, minimum: 1, maximum, cycles: false, owner }
    }

    /// The value behind one.
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

    /// What it would give after so many values more, or gives now where it would begin again or end before.
    fn ahead(&self, count: u32) -> Option<i64> {
        let next = self.next?;
        let reach = i128::from(next) + i128::from(self.increment) * i128::from(count);
        let within = i64::try_from(reach).ok().filter(|reach| (self.minimum..=self.maximum).contains(reach));
        within.or(Some(next))
    }
}

/// The number in memory.
#[derive(Debug)]
pub(crate) struct Counter {
    sequence: Sequence,
    /// Values that the row is ahead by.
    left: u32,
    /// Counts the moves of the row, and the other changes after which it is not known to be ahead.
    moves: u64,
}

impl Counter {
    fn new(sequence: Sequence) -> Self {
        Counter { sequence, left: 0, moves: 0 }
    }

    /// The row has to be moved before the next value is committed.
    fn fall_behind(&mut self) {
        self.left = 0;
        self.moves += 1;
    }
}

/// What all sessions share.
pub(crate) type Counters = HashMap<Name, Counter>;

/// What a session knows of sequences. Queries that run on other threads count too: who needs both locks takes that of the counters first.
#[derive(Debug, Default)]
pub(crate) struct SessionSequences {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    current: HashMap<Name, i64>,
    last: Option<Name>,
    /// Those whose rows have to be moved before the commit.
    behind: HashSet<Name>,
    /// Those that this transaction has made or dropped: others must not know of them if it does not commit.
    changed: HashSet<Name>,
}

fn undefined(name: &str) -> Error {
    Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

/// Namespace and name, as a text has them.
pub(crate) fn parse_name(text: &str, schema: &str) -> Name {
    let mut parts = name_parts(text);
    let name = parts.pop().unwrap_or_default();
    (parts.pop().unwrap_or_else(|| schema.to_owned()), name)
}

/// The sequence that an identity column counts with: its namespace and its own name. `None` for other columns.
pub fn identity_sequence(def: &TableDef, column: &ColumnDef) -> Option<(String, String)> {
    column.identity?;
    let text = column.default.as_deref()?.strip_prefix("nextval('")?.strip_suffix("')")?;
    Some(parse_name(&text.replace("''", "'"), &def.schema))
}

/// The identity column that counts with a sequence.
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
        let mut inner = lock(&self.inner);
        match counter.left.checked_sub(1) {
            Some(left) => counter.left = left,
            None => _ = inner.behind.insert(name.clone()),
        }
        inner.current.insert(name.clone(), value);
        inner.last = Some(name);
        Ok(value)
    }

    /// `currval`, and `lastval` without a name.
    ///
    /// Errors: 55000 where this session has taken no value.
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
        let mut inner = lock(&self.inner);
        inner.behind.insert(name.clone());
        if is_called {
            inner.current.insert(name, value);
        }
        Ok(value)
    }

    /// Makes a sequence, as a part of the transaction.
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
        lock(&self.inner).changed.insert(name.clone());
        lock(&shared.sequences).insert(name.clone(), Counter::new(sequence));
        Ok(())
    }

    /// Changes one.
    ///
    /// Errors: 42P01 where there is none, those of `change` and of the table.
    pub fn alter(
        &self,
        shared: &Shared,
        transaction: &mut Transaction,
        name: &Name,
        change: impl FnOnce(&mut Sequence) -> Result<()>,
    ) -> Result<()> {
        let table = transaction.view().catalog().table(HIDDEN, TABLE).cloned();
        let table = table.ok_or_else(|| undefined(&name.1))?;
        let mut row = RowBuf::default();
        if !transaction.lock(&table, &key_of(&table, name), &mut row)? {
            return Err(undefined(&name.1));
        }
        let counted = lock(&shared.sequences).get(name).map(|counter| counter.sequence.clone());
        let mut sequence = counted.unwrap_or_else(|| of_row(&row.row(&table)));
        change(&mut sequence)?;
        put(transaction, &table, name, &sequence)?;
        let mut counters = lock(&shared.sequences);
        let counter = counters.entry(name.clone()).or_insert_with(|| Counter::new(sequence.clone()));
        counter.sequence = sequence;
        counter.fall_behind();
        drop(counters);
        let mut inner = lock(&self.inner);
        inner.changed.insert(name.clone());
        inner.behind.remove(name);
        Ok(())
    }

    /// Removes one. False when there is none.
    ///
    /// Errors: those of the table.
    pub fn remove(&self, shared: &Shared, transaction: &mut Transaction, name: &Name) -> Result<bool> {
        let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else {
            return Ok(false);
        };
        let removed = transaction.delete(&table, &key_of(&table, name))?;
        lock(&shared.sequences).remove(name);
        let mut inner = lock(&self.inner);
        inner.changed.insert(name.clone());
        inner.behind.remove(name);
        Ok(removed)
    }

    /// Moves the rows of those sequences that were counted past them.
    ///
    /// Errors: those of the table.
    pub fn write_back(&self, shared: &Shared, transaction: &mut Transaction) -> Result<()> {
        let behind: Vec<(bool, Name)> = {
            let mut inner = lock(&self.inner);
            let behind = std::mem::take(&mut inner.behind);
            let is_own = |name: &Name| inner.changed.contains(name);
            behind.into_iter().map(|name| (is_own(&name), name)).collect()
        };
        for (is_own, name) in behind {
            if is_own {
                // Its row is this transaction's already. Nobody is told that it is ahead before it is committed, so it is not.
                advance(shared, transaction, &name, 0)?;
            } else if let Some(moved) = transaction.beside(|other| advance(shared, other, &name, BLOCK))? {
                moved.tell(shared, &name);
            }
        }
        Ok(())
    }

    /// The transaction has ended. Those that it made or changed are what they were before, if it was not committed.
    ///
    /// Errors: those of the table.
    pub fn end(&self, shared: &Shared, committed: bool) -> Result<()> {
        let changed: Vec<Name> = {
            let mut inner = lock(&self.inner);
            inner.behind.clear();
            inner.changed.drain().collect()
        };
        if committed || changed.is_empty() {
            return Ok(());
        }
        // Waits for changes of the schema, and nobody may wait for the counters meanwhile.
        let view = shared.tables.begin(Isolation::ReadCommitted)?.view().clone();
        let mut counters = lock(&shared.sequences);
        let mut inner = lock(&self.inner);
        for name in &changed {
            inner.current.remove(name);
        }
        for name in changed {
            counters.remove(&name);
            load_into(&mut counters, &view, &name)?;
        }
        Ok(())
    }
}

/// A row that was moved.
#[derive(Debug)]
struct Moved {
    to: i64,
    /// The number of this move.
    number: u64,
}

impl Moved {
    /// Says how far a row is ahead whose move is in the log. Nothing where it was moved again since: whoever did that has counted further, or says that it is behind.
    fn tell(&self, shared: &Shared, name: &Name) {
        let mut counters = lock(&shared.sequences);
        let Some(counter) = counters.get_mut(name).filter(|counter| counter.moves == self.number) else {
            return;
        };
        // Others may have counted on meanwhile.
        if let Some(next) = counter.sequence.next {
            let left = (i128::from(self.to) - i128::from(next)) / i128::from(counter.sequence.increment);
            counter.left = u32::try_from(left).unwrap_or(0);
        }
    }
}

/// Moves a row ahead of its number. `None` where there is no more to be told: it is ahead because of somebody else, or has no number to be ahead of.
fn advance(shared: &Shared, transaction: &mut Transaction, name: &Name, by: u32) -> Result<Option<Moved>> {
    let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE).cloned() else { return Ok(None) };
    let (key, mut row) = (key_of(&table, name), RowBuf::default());
    if !transaction.lock(&table, &key, &mut row)? {
        return Ok(None);
    }
    // ORDER: the lock first. Whoever moves the row after this one counts from a later number.
    let (sequence, number) = {
        let mut counters = lock(&shared.sequences);
        let Some(counter) = counters.get_mut(name).filter(|counter| counter.left == 0) else {
            return Ok(None);
        };
        counter.moves += 1;
        let next = counter.sequence.ahead(by);
        (Sequence { next, ..counter.sequence.clone() }, counter.moves)
    };
    transaction.update(&table, &key, &values(name, &sequence))?;
    Ok(sequence.next.map(|to| Moved { to, number }))
}

/// Counts on from where the rows say, in a database that was just opened.
///
/// Errors: those of the table.
pub(crate) fn load_all(shared: &Shared) -> Result<()> {
    let view = shared.tables.begin(Isolation::ReadCommitted)?.view().clone();
    let counter = |(name, sequence)| (name, Counter::new(sequence));
    lock(&shared.sequences).extend(all(&view)?.into_iter().map(counter));
    Ok(())
}

/// Moves rows back to where the numbers are: the database is closed.
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

/// All sequences that a view sees.
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

/// As [`all`], with what they give next as it is now: the rows are ahead of that.
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

fn load_into(counters: &mut Counters, view: &View, name: &Name) -> Result<()> {
    let Some(table) = view.catalog().table(HIDDEN, TABLE) else { return Ok(()) };
    let mut row = RowBuf::default();
    if view.get(table, &key_of(table, name), &mut row)? {
        counters.insert(name.clone(), Counter::new(of_row(&row.row(table))));
    }
    Ok(())
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
    // Both are text, as the key's columns are.
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

/// The table that sequences are in; it is made when it is needed first.
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
