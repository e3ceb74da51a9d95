//! The keys that a range plan means once values are known.
//!
//! A key that begins with certain columns begins with their bytes, and no key is the beginning of another, so the keys that begin with `p` are those from `p` up to
//! `p ff`. Values come behind a tag of 1 in either order, NULL behind 0 or 2.

use std::ops::Bound;

use cairn_table::row::{KeyFormat, Value};
use cairn_table::schema::{ColumnType, KeyColumn};
use cairn_table::{KeyRange, RowBuf, Table, View};

use super::access::{Access, RangePlan};
use crate::datum::{DatumRef, pow10, rescale_exact};
use crate::error::Result;
use crate::expr::{Env, Node};

/// What there is to read.
#[derive(Debug, PartialEq)]
pub(crate) enum Ranges {
    /// Nothing: a condition cannot be met.
    None,
    /// The row with this key, or none; the key is in the buffer.
    Point,
    /// These, in order.
    Some(Vec<KeyRange>),
}

const VALUE: u8 = 1;
const AFTER_VALUES: u8 = 2;
const AFTER_ALL: u8 = 0xff;

/// A key's column: its place in the key, and its type.
struct Column<'a> {
    kind: &'a ColumnType,
    descending: bool,
}

impl Access {
    /// The keys that it means with these parameters. `key` is a buffer, and has the key of a point in the end.
    ///
    /// Errors: those of computing values.
    pub fn ranges(&self, env: &Env<'_>, key: &mut Vec<u8>) -> Result<Ranges> {
        key.clear();
        let format = match self.index {
            None => self.table.key_format(),
            Some(index) => match self.table.index_key_format(index) {
                Some(format) => format,
                None => return Ok(Ranges::None),
            },
        };
        let columns = self.key_columns();
        if !self.prefix(format, columns, env, key)? {
            return Ok(Ranges::None);
        }
        let plan = &self.range;
        if plan.is_point && self.index.is_none() {
            return Ok(Ranges::Point);
        }
        if self.is_full() {
            return Ok(Ranges::Some(vec![(Bound::Unbounded, Bound::Unbounded)]));
        }
        let next = columns.get(plan.prefix.len()).and_then(|column| key_column(&self.table, column));
        let Some(column) = next else { return Ok(Ranges::Some(vec![all_with(key)])) };
        if let Some(list) = &plan.any_of {
            return any_of(list, &column, env, key);
        }
        between(plan, &column, env, key)
    }

    /// How many rows it means with these parameters, where the tree sees to the whole condition. Cost: a look at the head of each leaf, if everybody sees its rows.
    ///
    /// Errors: those of computing values, and of the table.
    pub fn count(&self, view: &View, env: &Env<'_>) -> Result<u64> {
        let mut key = Vec::new();
        let ranges = match self.ranges(env, &mut key)? {
            Ranges::None => return Ok(0),
            Ranges::Point => return Ok(view.get(&self.table, &key, &mut RowBuf::default())?.into()),
            Ranges::Some(ranges) => ranges,
        };
        let mut count = 0;
        for (start, end) in &ranges {
            let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            count += view.count(&self.table, self.index, range)?;
        }
        Ok(count)
    }

    fn key_columns(&self) -> &[KeyColumn] {
        let def = self.table.def();
        match self.index.and_then(|index| def.indexes.get(index)) {
            None => &def.primary_key,
            Some(index) => &index.columns,
        }
    }

    /// Writes the values that the first columns are equal to. False when no row can have them.
    fn prefix(
        &self,
        format: &KeyFormat,
        columns: &[KeyColumn],
        env: &Env<'_>,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        // Most keys are of one column or two.
        if let ([node], [column, ..]) = (self.range.prefix.as_slice(), columns) {
            let value = node.eval(env)?;
            let Some(column) = key_column(&self.table, column) else { return Ok(false) };
            let Some(value) = exact(value.get(), column.kind) else { return Ok(false) };
            return Ok(format.encode(&[value], key));
        }
        let values = self.range.prefix.iter().map(|node| node.eval(env)).collect::<Result<Vec<_>>>()?;
        let mut exactly = Vec::with_capacity(values.len());
        for (value, column) in values.iter().zip(columns) {
            let Some(column) = key_column(&self.table, column) else { return Ok(false) };
            let Some(value) = exact(value.get(), column.kind) else { return Ok(false) };
            exactly.push(value);
        }
        Ok(format.encode(&exactly, key))
    }
}

fn key_column<'a>(table: &'a Table, column: &KeyColumn) -> Option<Column<'a>> {
    let kind = &table.def().columns.get(column.column)?.kind;
    Some(Column { kind, descending: column.order.descending })
}

/// The value as the column has it; `None` when no row can be equal to it.
fn exact<'a>(value: DatumRef<'a>, kind: &ColumnType) -> Option<Value<'a>> {
    match (value, kind.decimal) {
        (DatumRef::Null, _) => None,
        (DatumRef::Decimal { unscaled, scale }, Some((_, to))) => {
            rescale_exact(unscaled, scale, to).map(Value::Decimal)
        }
        _ => Some(value.to_value()),
    }
}

fn all_with(prefix: &[u8]) -> KeyRange {
    (Bound::Included(prefix.to_vec()), Bound::Excluded([prefix, &[AFTER_ALL]].concat()))
}

fn any_of(list: &[Node], column: &Column<'_>, env: &Env<'_>, prefix: &[u8]) -> Result<Ranges> {
    let mut keys = Vec::with_capacity(list.len());
    for node in list {
        let value = node.eval(env)?;
        let Some(value) = exact(value.get(), column.kind) else { continue };
        let mut key = prefix.to_vec();
        if encode(&value, column, &mut key) {
            keys.push(key);
        }
    }
    // In the order of the tree, each once.
    keys.sort_unstable();
    keys.dedup();
    Ok(if keys.is_empty() {
        Ranges::None
    } else {
        Ranges::Some(keys.iter().map(|key| all_with(key)).collect())
    })
}

/// Appends one column of a key.
fn encode(value: &Value<'_>, column: &Column<'_>, to: &mut Vec<u8>) -> bool {
    let order = cairn_table::row::Order { descending: column.descending, nulls_first: false };
    KeyFormat::new(vec![(column.kind.kind, order)]).encode(std::slice::from_ref(value), to)
}

/// Between the bounds of the column behind the prefix. NULL is in no range.
fn between(plan: &RangePlan, column: &Column<'_>, env: &Env<'_>, prefix: &[u8]) -> Result<Ranges> {
    let (lower, upper) = match column.descending {
        false => (&plan.lower, &plan.upper),
        true => (&plan.upper, &plan.lower),
    };
    let mut start = Bound::Included([prefix, &[VALUE]].concat());
    let mut end = Bound::Excluded([prefix, &[AFTER_VALUES]].concat());
    if plan.lower.is_none() && plan.upper.is_none() {
        return Ok(Ranges::Some(vec![all_with(prefix)]));
    }
    if let Some((node, inclusive)) = lower {
        match bound(node, *inclusive, column, column.descending, env, prefix)? {
            Side::Nothing => return Ok(Ranges::None),
            Side::Open => {}
            // Behind all keys that begin with it, unless they count.
            Side::At(key, true) => start = Bound::Included(key),
            Side::At(mut key, false) => {
                key.push(AFTER_ALL);
                start = Bound::Included(key);
            }
        }
    }
    if let Some((node, inclusive)) = upper {
        match bound(node, *inclusive, column, !column.descending, env, prefix)? {
            Side::Nothing => return Ok(Ranges::None),
            Side::Open => {}
            Side::At(mut key, true) => {
                key.push(AFTER_ALL);
                end = Bound::Excluded(key);
            }
            Side::At(key, false) => end = Bound::Excluded(key),
        }
    }
    Ok(Ranges::Some(vec![(start, end)]))
}

/// A side of a range.
enum Side {
    /// At this key, which counts or does not.
    At(Vec<u8>, bool),
    /// No bound after all: every value of the column is within.
    Open,
    /// No value is.
    Nothing,
}

/// `is_upper`: the bound is one that values are below.
fn bound(
    node: &Node,
    inclusive: bool,
    column: &Column<'_>,
    is_upper: bool,
    env: &Env<'_>,
    prefix: &[u8],
) -> Result<Side> {
    let value = node.eval(env)?;
    let mut inclusive = inclusive;
    let value = match (value.get(), column.kind.decimal) {
        (DatumRef::Null, _) => return Ok(Side::Nothing),
        (DatumRef::Decimal { unscaled, scale }, Some((_, to))) if scale > to => {
            // Between two values of the column: above the bound is above the lower of them, and below it is at most that.
            let unit = pow10((scale - to).into()).unwrap_or(i128::MAX);
            if unscaled.rem_euclid(unit) != 0 {
                inclusive = is_upper;
            }
            Value::Decimal(unscaled.div_euclid(unit))
        }
        (DatumRef::Decimal { unscaled, scale }, Some((_, to))) => match rescale_exact(unscaled, scale, to) {
            Some(unscaled) => Value::Decimal(unscaled),
            // Farther from zero than any value of the column.
            None if (unscaled > 0) == is_upper => return Ok(Side::Open),
            None => return Ok(Side::Nothing),
        },
        (value, _) => value.to_value(),
    };
    let mut key = prefix.to_vec();
    Ok(if encode(&value, column, &mut key) { Side::At(key, inclusive) } else { Side::Nothing })
}
