//! Computes the key ranges of a range plan once its values are known.
//!
//! A key whose first columns have given values begins with their bytes, and no key is a prefix of
//! another. So the keys with the prefix `p` are those from `p` to `p ff`. Values follow a tag of 1
//! in either order, NULL follows 0 or 2.

use std::ops::Bound;

use cairn_table::row::{KeyFormat, Value};
use cairn_table::schema::{ColumnType, KeyColumn};
use cairn_table::{KeyRange, RowBuf, Table, View};

use super::access::{Access, RangePlan};
use super::place::Place;
use crate::datum::{Datum, DatumRef};
use crate::error::Result;
use crate::expr::{Env, Node, values_of};

/// The ranges to read.
#[derive(Debug, PartialEq)]
pub(crate) enum Ranges {
    /// Nothing: a condition cannot be met.
    None,
    /// At most one row, whose key is in the buffer.
    Point,
    /// These ranges, in order.
    Some(Vec<KeyRange>),
}

const VALUE: u8 = 1;
const AFTER_VALUES: u8 = 2;
const AFTER_ALL: u8 = 0xff;

/// A column of a key.
struct Column<'a> {
    kind: &'a ColumnType,
    descending: bool,
}

impl Access {
    /// Returns the key ranges for these parameters. `key` is a buffer, which receives the key of a
    /// point.
    ///
    /// Errors: those of computing values.
    pub fn ranges(&self, env: &Env<'_>, key: &mut Vec<u8>) -> Result<Ranges> {
        key.clear();
        let Some(format) = self.key_format() else { return Ok(Ranges::None) };
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

    /// Counts the rows for these parameters, if the range covers the whole condition. Cost: reads
    /// the header of each leaf whose rows are visible to everyone.
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

    /// Returns the key ranges of the tree that have one of these values in a column, in order;
    /// `None` if the tree is not ordered by the column. There may be more ranges than rows.
    ///
    /// Errors: those of computing values.
    pub fn ranges_of(&self, column: usize, values: &[Datum], env: &Env<'_>) -> Result<Option<Vec<KeyRange>>> {
        let columns = self.key_columns();
        let next = columns.get(self.range.prefix.len()).filter(|next| next.column == column);
        let (Some(next), Some(format)) = (next, self.key_format()) else { return Ok(None) };
        let mut prefix = Vec::new();
        if !self.prefix(format, columns, env, &mut prefix)? {
            return Ok(Some(Vec::new()));
        }
        Ok(key_column(&self.table, next).map(|next| ranges_with(&prefix, &next, values)))
    }

    pub(super) fn key_columns(&self) -> &[KeyColumn] {
        let def = self.table.def();
        match self.index.and_then(|index| def.indexes.get(index)) {
            None => &def.primary_key,
            Some(index) => &index.columns,
        }
    }

    fn key_format(&self) -> Option<&KeyFormat> {
        match self.index {
            None => Some(self.table.key_format()),
            Some(index) => self.table.index_key_format(index),
        }
    }

    /// Writes the values of the first columns. Returns false if no row can have them.
    fn prefix(
        &self,
        format: &KeyFormat,
        columns: &[KeyColumn],
        env: &Env<'_>,
        key: &mut Vec<u8>,
    ) -> Result<bool> {
        // Fast path for keys with one fixed column, the most common case.
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

/// Intersects `ranges` with `others`, which are sorted. Neither list has overlapping ranges. The
/// next range to read is put last; with `is_backward` that is the last one in the order of the
/// tree. Cost: a binary search for each range.
pub(super) fn narrow(ranges: &mut Vec<KeyRange>, others: &[KeyRange], is_backward: bool) {
    if !is_backward {
        ranges.reverse();
    }
    let mut both = Vec::new();
    for range in ranges.iter() {
        let first = others.partition_point(|other| is_over(&other.1, &range.0));
        for other in others.iter().skip(first) {
            if is_over(&range.1, &other.0) {
                break;
            }
            both.push((later(&range.0, &other.0).clone(), earlier(&range.1, &other.1).clone()));
        }
    }
    if !is_backward {
        both.reverse();
    }
    *ranges = both;
}

/// Whether no key lies after `start` and before `end`.
fn is_over(end: &Bound<Vec<u8>>, start: &Bound<Vec<u8>>) -> bool {
    match (end, start) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(end), Bound::Included(start)) => end < start,
        (Bound::Included(end) | Bound::Excluded(end), Bound::Included(start) | Bound::Excluded(start)) => {
            end <= start
        }
    }
}

fn later<'b>(one: &'b Bound<Vec<u8>>, other: &'b Bound<Vec<u8>>) -> &'b Bound<Vec<u8>> {
    let place = |bound: &'b Bound<Vec<u8>>| match bound {
        Bound::Unbounded => (None, false),
        Bound::Included(key) => (Some(key), false),
        Bound::Excluded(key) => (Some(key), true),
    };
    if place(one) < place(other) { other } else { one }
}

fn earlier<'b>(one: &'b Bound<Vec<u8>>, other: &'b Bound<Vec<u8>>) -> &'b Bound<Vec<u8>> {
    let place = |bound: &'b Bound<Vec<u8>>| match bound {
        Bound::Unbounded => (true, None, true),
        Bound::Included(key) => (false, Some(key), true),
        Bound::Excluded(key) => (false, Some(key), false),
    };
    if place(one) > place(other) { other } else { one }
}

fn key_column<'a>(table: &'a Table, column: &KeyColumn) -> Option<Column<'a>> {
    let kind = &table.def().columns.get(column.column)?.kind;
    Some(Column { kind, descending: column.order.descending })
}

/// Converts a value to the column's type; `None` if no row can equal it.
fn exact<'a>(value: DatumRef<'a>, kind: &ColumnType) -> Option<Value<'a>> {
    match Place::of(value, kind) {
        Place::At(value) => Some(value),
        _ => None,
    }
}

/// Returns the range of all keys with this prefix.
pub(super) fn all_with(prefix: &[u8]) -> KeyRange {
    (Bound::Included(prefix.to_vec()), Bound::Excluded([prefix, &[AFTER_ALL]].concat()))
}

fn any_of(list: &[Node], column: &Column<'_>, env: &Env<'_>, prefix: &[u8]) -> Result<Ranges> {
    let ranges = ranges_with(prefix, column, &values_of(list, env)?);
    Ok(if ranges.is_empty() { Ranges::None } else { Ranges::Some(ranges) })
}

/// Returns the ranges of keys that have one of these values after a prefix, in the order of the
/// tree, without duplicates.
fn ranges_with(prefix: &[u8], column: &Column<'_>, values: &[Datum]) -> Vec<KeyRange> {
    let mut keys = Vec::with_capacity(values.len());
    for value in values {
        let Some(value) = exact(value.borrow(), column.kind) else { continue };
        let mut key = prefix.to_vec();
        if encode(&value, column, &mut key) {
            keys.push(key);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys.iter().map(|key| all_with(key)).collect()
}

/// Appends one column of a key.
fn encode(value: &Value<'_>, column: &Column<'_>, to: &mut Vec<u8>) -> bool {
    let order = cairn_table::row::Order { descending: column.descending, nulls_first: false };
    KeyFormat::new(vec![(column.kind.kind, order)]).encode(std::slice::from_ref(value), to)
}

/// Returns the keys within the bounds of the column after the prefix. NULL is in no range.
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
            // An exclusive start lies after all keys that begin with it.
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
    /// At this key, inclusive or not.
    At(Vec<u8>, bool),
    /// No bound: every value of the column is within it.
    Open,
    /// No value of the column is within it.
    Nothing,
}

/// Computes a side of a range. `is_upper` says that it is an upper bound.
fn bound(
    node: &Node,
    inclusive: bool,
    column: &Column<'_>,
    is_upper: bool,
    env: &Env<'_>,
    prefix: &[u8],
) -> Result<Side> {
    let value = node.eval(env)?;
    let (value, inclusive) = match Place::of(value.get(), column.kind) {
        Place::At(value) => (value, inclusive),
        // Between two values of the column: values above the bound are above the lower of the two,
        // and values below it are at most that one.
        Place::Above(value) => (value, is_upper),
        Place::AboveAll if is_upper => return Ok(Side::Open),
        Place::BelowAll if !is_upper => return Ok(Side::Open),
        Place::AboveAll | Place::BelowAll | Place::Nowhere => return Ok(Side::Nothing),
    };
    let mut key = prefix.to_vec();
    Ok(if encode(&value, column, &mut key) { Side::At(key, inclusive) } else { Side::Nothing })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sorted ranges of keys of one byte that do not overlap.
    fn ranges() -> impl Strategy<Value = Vec<KeyRange>> {
        let ends = prop::collection::btree_set(0u8..40, 0..12);
        (ends, any::<[bool; 12]>(), any::<(bool, bool)>()).prop_map(|(ends, closed, (from_start, to_end))| {
            let ends: Vec<u8> = ends.into_iter().collect();
            let mut ranges: Vec<KeyRange> = Vec::new();
            for (pair, &[start, end]) in ends.as_chunks::<2>().0.iter().enumerate() {
                let start_is_in = closed.get(pair * 2).is_some_and(|closed| *closed);
                let end_is_in = closed.get(pair * 2 + 1).is_some_and(|closed| *closed);
                let side = |key: u8, is_in| match is_in {
                    true => Bound::Included(vec![key]),
                    false => Bound::Excluded(vec![key]),
                };
                ranges.push((side(start, start_is_in), side(end, end_is_in)));
            }
            if let Some(first) = ranges.first_mut().filter(|_| from_start) {
                first.0 = Bound::Unbounded;
            }
            if let Some(last) = ranges.last_mut().filter(|_| to_end) {
                last.1 = Bound::Unbounded;
            }
            ranges
        })
    }

    fn keys(ranges: &[KeyRange]) -> Vec<u8> {
        use std::ops::RangeBounds;
        let has = |key: &u8| ranges.iter().any(|range| range.contains(&vec![*key]));
        (0..=41).filter(has).collect()
    }

    proptest! {
        /// Goal: narrowed ranges contain the keys that both lists contain, without duplicates, in
        /// the order of reading. Method: all keys of one byte, in random ranges with all kinds of
        /// ends, read in both directions.
        #[test]
        fn narrowed_ranges_have_what_both_have(own in ranges(), others in ranges(), is_backward: bool) {
            let expected: Vec<u8> =
                keys(&own).into_iter().filter(|key| keys(&others).contains(key)).collect();
            let mut narrowed = own.clone();
            if !is_backward {
                narrowed.reverse();
            }
            narrow(&mut narrowed, &others, is_backward);
            prop_assert_eq!(keys(&narrowed), expected);
            if !is_backward {
                narrowed.reverse();
            }
            for pair in narrowed.windows(2) {
                prop_assert!(is_over(&pair[0].1, &pair[1].0), "{:?}", narrowed);
            }
        }
    }
}
