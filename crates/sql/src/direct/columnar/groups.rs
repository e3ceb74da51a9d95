//! Assigns rows to groups.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, ColumnValues};
use hashbrown::HashMap;

use super::chosen::Chosen;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::sqlstate::DATA_CORRUPTED;

/// BOUND: queries with more groups are left to the general path, which can spill.
pub(super) const GROUPS_MAX: usize = 1 << 16;

/// BOUND: likewise for groups whose keys take more bytes than this.
const KEY_BYTES_MAX: usize = 32 << 20;

/// The number of values around the first one of a column whose groups are found without hashing.
const NEAR: usize = 1 << 14;

/// The number of entries in the cache of packed keys.
const PACKED: usize = 1 << 10;

/// The group has not been looked up yet.
const UNKNOWN: u32 = u32::MAX;

/// A column of the group key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub column: usize,
    pub kind: ColumnType,
}

/// Groups, numbered in the order of their first rows.
#[derive(Debug)]
pub(super) struct Groups {
    keys: Vec<Key>,
    known: HashMap<Box<[u8]>, u32>,
    /// Bytes of the keys.
    key_bytes: usize,
    /// The key values of each group.
    values: Vec<Vec<Datum>>,
    /// The number of rows of each group.
    rows: Vec<i64>,
    /// For a single integer key: the groups of the values from `first` on.
    near: Vec<u32>,
    first: i64,
    /// The packing of keys, if they can be packed, and a cache of the groups of recent keys. An
    /// entry's position follows from its key.
    packing: Option<Packing>,
    packed: Vec<(u64, u32)>,
    codes: Vec<u64>,
    /// The group of each chosen row of a block, at the row's number.
    of_rows: Vec<u32>,
    bytes: Vec<u8>,
}

/// There are more groups than this path handles, or larger ones.
#[derive(Debug)]
pub(super) struct TooMany;

/// An error while assigning groups.
#[derive(Debug)]
pub(super) enum Failed {
    TooMany,
    Error(Error),
}

impl From<TooMany> for Failed {
    fn from(_: TooMany) -> Self {
        Failed::TooMany
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Error(error)
    }
}

impl From<cairn_table::Error> for Failed {
    fn from(error: cairn_table::Error) -> Self {
        Failed::Error(error.into())
    }
}

impl Groups {
    /// Returns an empty set. Without keys there is one group, which has all rows.
    pub fn new(keys: &[Key]) -> Self {
        let groups = usize::from(keys.is_empty());
        Groups {
            keys: keys.to_vec(),
            known: HashMap::new(),
            key_bytes: 0,
            values: vec![Vec::new(); groups],
            rows: vec![0; groups],
            near: Vec::new(),
            first: 0,
            packing: Packing::of(keys),
            packed: Vec::new(),
            codes: Vec::new(),
            of_rows: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The groups of a block's rows; `None` if there is only one group.
    pub fn of_rows(&self) -> Option<&[u32]> {
        (!self.keys.is_empty()).then_some(&self.of_rows[..])
    }

    /// Returns the key values and the number of rows of each group.
    pub fn into_values(self) -> impl Iterator<Item = (Vec<Datum>, i64)> {
        self.values.into_iter().zip(self.rows)
    }

    /// Finds the groups of the chosen rows, and counts these rows. `columns` has a buffer for each
    /// key.
    pub fn assign(&mut self, columns: &[&ColumnBuf], rows: usize, chosen: &Chosen) -> Result<(), Failed> {
        if self.keys.is_empty() {
            if let Some(rows) = self.rows.first_mut() {
                *rows += chosen.count() as i64;
            }
            return Ok(());
        }
        let mut of_rows = std::mem::take(&mut self.of_rows);
        of_rows.clear();
        of_rows.resize(rows, UNKNOWN);
        let result = match columns {
            [one] => match one.values() {
                ColumnValues::SmallInt(values) => self.near(values, columns, chosen, &mut of_rows),
                ColumnValues::Int(values) => self.near(values, columns, chosen, &mut of_rows),
                ColumnValues::BigInt(values) => self.near(values, columns, chosen, &mut of_rows),
                _ => self.packed(columns, rows, chosen, &mut of_rows),
            },
            _ => self.packed(columns, rows, chosen, &mut of_rows),
        };
        self.of_rows = of_rows;
        result
    }

    fn each(&mut self, columns: &[&ColumnBuf], chosen: &Chosen, to: &mut [u32]) -> Result<(), Failed> {
        let mut result = Ok(());
        chosen.each(|at| {
            if result.is_err() {
                return;
            }
            match (self.find(columns, at), to.get_mut(at)) {
                (Ok(group), Some(to)) => {
                    *to = group;
                    self.count(group);
                }
                (Err(failed), _) => result = Err(failed),
                _ => {}
            }
        });
        result
    }

    /// Assigns by packed keys. For most rows, one comparison finds the group in the cache.
    fn packed(
        &mut self,
        columns: &[&ColumnBuf],
        rows: usize,
        chosen: &Chosen,
        to: &mut [u32],
    ) -> Result<(), Failed> {
        let Some(packing) = self.packing else { return self.each(columns, chosen, to) };
        let mut codes = std::mem::take(&mut self.codes);
        packing.pack(columns, rows, &mut codes);
        self.packed.resize(PACKED, (UNPACKED, UNKNOWN));
        let mut result = Ok(());
        chosen.each(|at| {
            let (Some(&code), Some(to)) = (codes.get(at), to.get_mut(at)) else { return };
            let place = (code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PACKED.ilog2())) as usize;
            match self.packed.get(place) {
                Some(&(known, group)) if known == code && code & UNPACKED == 0 => {
                    *to = group;
                    self.count(group);
                }
                _ if result.is_err() => {}
                _ => match self.find(columns, at) {
                    Ok(group) => {
                        *to = group;
                        self.count(group);
                        if let Some(known) = self.packed.get_mut(place).filter(|_| code & UNPACKED == 0) {
                            *known = (code, group);
                        }
                    }
                    Err(failed) => result = Err(failed),
                },
            }
        });
        self.codes = codes;
        result
    }

    /// Counts a row of a group.
    #[inline]
    fn count(&mut self, group: u32) {
        if let Some(rows) = self.rows.get_mut(group as usize) {
            *rows += 1;
        }
    }

    /// Assigns by a table of the values near the first one.
    fn near<T: Copy + Into<i64>>(
        &mut self,
        values: &[T],
        columns: &[&ColumnBuf],
        chosen: &Chosen,
        to: &mut [u32],
    ) -> Result<(), Failed> {
        if self.near.is_empty() {
            self.near.resize(NEAR, UNKNOWN);
            let first = values.first().map_or(0, |value| (*value).into());
            self.first = first.saturating_sub(NEAR as i64 / 4);
        }
        let has_nulls = columns.iter().any(|column| column.validity().nulls() > 0);
        if has_nulls {
            return self.each(columns, chosen, to);
        }
        let mut result = Ok(());
        chosen.each(|at| {
            let (Some(value), Some(to)) = (values.get(at), to.get_mut(at)) else { return };
            let place = (*value).into().wrapping_sub(self.first) as u64 as usize;
            match self.near.get(place) {
                Some(&group) if group != UNKNOWN => {
                    *to = group;
                    self.count(group);
                }
                _ if result.is_err() => {}
                _ => match self.find(columns, at) {
                    Ok(group) => {
                        *to = group;
                        self.count(group);
                        if let Some(near) = self.near.get_mut(place) {
                            *near = group;
                        }
                    }
                    Err(failed) => result = Err(failed),
                },
            }
        });
        result
    }

    /// Returns the group of a row, and adds it if it is new.
    fn find(&mut self, columns: &[&ColumnBuf], at: usize) -> Result<u32, Failed> {
        self.bytes.clear();
        for column in columns {
            write_key(column, at, &mut self.bytes);
        }
        if let Some(group) = self.known.get(&self.bytes[..]) {
            return Ok(*group);
        }
        let values = self.keys.iter().zip(columns).map(|(key, column)| datum_of(column, at, &key.kind));
        let values = values.collect::<Result<Vec<Datum>>>()?;
        Ok(self.add(values)?)
    }

    /// Adds the group whose key is in the buffer.
    fn add(&mut self, values: Vec<Datum>) -> Result<u32, TooMany> {
        self.key_bytes += self.bytes.len();
        if self.values.len() >= GROUPS_MAX || self.key_bytes > KEY_BYTES_MAX {
            return Err(TooMany);
        }
        let group = self.values.len() as u32;
        self.values.push(values);
        self.rows.push(0);
        self.known.insert(self.bytes.clone().into_boxed_slice(), group);
        Ok(group)
    }

    /// Adds the groups of another set, and returns their numbers in this one.
    pub fn merge(&mut self, other: Groups) -> Result<Vec<u32>, TooMany> {
        if self.keys.is_empty() {
            for (to, from) in self.rows.iter_mut().zip(other.rows) {
                *to += from;
            }
            return Ok(vec![0]);
        }
        let mut numbers = vec![UNKNOWN; other.values.len()];
        let mut keys: Vec<(Box<[u8]>, u32)> = other.known.into_iter().collect();
        // In the order of their numbers, so that the same parts always give results in the same
        // order.
        keys.sort_unstable_by_key(|(_, group)| *group);
        let mut values = other.values.into_iter().zip(other.rows);
        for (key, group) in keys {
            let (values, rows) = values.next().unwrap_or_default();
            let own = match self.known.get(&key) {
                Some(own) => *own,
                None => {
                    self.bytes.clear();
                    self.bytes.extend_from_slice(&key);
                    self.add(values)?
                }
            };
            if let (Some(number), Some(to)) =
                (numbers.get_mut(group as usize), self.rows.get_mut(own as usize))
            {
                *number = own;
                *to += rows;
            }
        }
        Ok(numbers)
    }
}

/// The packing of a key's columns into 63 bits, such that different keys are different numbers.
///
/// ```text
///   number    | 1 | value            |     in as many bits as its type has
///   text      | length + 1 | bytes   |     8 bits, and the room that all texts are given
///   NULL      | 0                    |
/// ```
#[derive(Debug, Clone, Copy)]
struct Packing {
    /// The most bytes of a packed text.
    room: u32,
}

/// The highest bit marks a key that is not packed, because one of its texts is too long.
const UNPACKED: u64 = 1 << 63;

impl Packing {
    /// `None` if the columns do not fit.
    fn of(keys: &[Key]) -> Option<Packing> {
        let (mut left, mut texts) = (u64::BITS - 1, 0);
        for key in keys {
            match key.kind.kind {
                Type::Text => texts += 1,
                Type::Boolean => left = left.checked_sub(2)?,
                Type::SmallInt => left = left.checked_sub(17)?,
                Type::Int | Type::Date => left = left.checked_sub(33)?,
                _ => return None,
            }
        }
        let room = (left.checked_div(texts).unwrap_or(u64::BITS) / 8).saturating_sub(1);
        (room > 0).then_some(Packing { room })
    }

    /// Packs the keys of some rows.
    fn pack(self, columns: &[&ColumnBuf], rows: usize, codes: &mut Vec<u64>) {
        codes.clear();
        codes.resize(rows, 0);
        for column in columns {
            match column.values() {
                ColumnValues::Boolean(values) => {
                    append(codes, 2, column, values.iter().map(|value| 1 << 1 | u64::from(*value)));
                }
                ColumnValues::SmallInt(values) => {
                    append(codes, 17, column, values.iter().map(|value| 1 << 16 | u64::from(*value as u16)));
                }
                ColumnValues::Int(values) => {
                    append(codes, 33, column, values.iter().map(|value| 1 << 32 | u64::from(*value as u32)));
                }
                ColumnValues::Bytes(values) => {
                    let ends = values.ends.iter().zip(values.ends.iter().skip(1));
                    let texts = ends.map(|(from, to)| values.bytes.get(*from..*to).unwrap_or_default());
                    let room = self.room as usize;
                    append(codes, 8 * (self.room + 1), column, texts.map(|text| packed_text(text, room)));
                }
                // `Packing::of` accepts no others.
                _ => codes.fill(UNPACKED),
            }
        }
    }
}

/// Appends a column's values, with `bits` bits each.
fn append(codes: &mut [u64], bits: u32, column: &ColumnBuf, values: impl Iterator<Item = u64>) {
    let validity = column.validity();
    let has_nulls = validity.nulls() > 0;
    for (at, (code, value)) in codes.iter_mut().zip(values).enumerate() {
        let value = if has_nulls && !validity.is_valid(at) { 0 } else { value };
        // The mark of an unpacked key stays.
        *code = *code & UNPACKED | *code << bits & !UNPACKED | value;
    }
}

fn packed_text(text: &[u8], room: usize) -> u64 {
    if text.len() > room {
        return UNPACKED;
    }
    let bytes = text.iter().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte));
    (text.len() as u64 + 1) << (8 * room) | bytes
}

/// Appends bytes that identify a value.
fn write_key(column: &ColumnBuf, at: usize, to: &mut Vec<u8>) {
    let is_valid = column.validity().is_valid(at);
    to.push(is_valid.into());
    if !is_valid {
        return;
    }
    fn put<const WIDTH: usize>(bytes: Option<[u8; WIDTH]>, to: &mut Vec<u8>) {
        to.extend_from_slice(&bytes.unwrap_or([0; WIDTH]));
    }
    match column.values() {
        ColumnValues::Boolean(values) => put(values.get(at).map(|value| [u8::from(*value)]), to),
        ColumnValues::SmallInt(values) => put(values.get(at).map(|value| value.to_le_bytes()), to),
        ColumnValues::Int(values) => put(values.get(at).map(|value| value.to_le_bytes()), to),
        ColumnValues::BigInt(values) => put(values.get(at).map(|value| value.to_le_bytes()), to),
        ColumnValues::Decimal(values) => put(values.get(at).map(|value| value.to_le_bytes()), to),
        ColumnValues::Uuid(values) => put(values.get(at).copied(), to),
        ColumnValues::Bytes(values) => {
            let value = values.get(at).unwrap_or_default();
            put(Some((value.len() as u64).to_le_bytes()), to);
            to.extend_from_slice(value);
        }
        // `is_key` accepts no others.
        ColumnValues::Real(_) | ColumnValues::Double(_) | ColumnValues::Interval(_) => {}
    }
}

/// Whether columns of a type can be keys, which requires that equal values have equal bytes.
pub(super) fn is_key(kind: Type) -> bool {
    !matches!(kind, Type::Real | Type::Double | Type::Interval)
}

/// Returns a value of a column.
///
/// Errors: a text that is not UTF-8, which only a damaged file holds.
fn datum_of(column: &ColumnBuf, at: usize, kind: &ColumnType) -> Result<Datum> {
    if !column.validity().is_valid(at) {
        return Ok(Datum::Null);
    }
    let datum = match column.values() {
        ColumnValues::Boolean(values) => values.get(at).map(|value| Datum::Boolean(*value)),
        ColumnValues::SmallInt(values) => values.get(at).map(|value| Datum::SmallInt(*value)),
        ColumnValues::Int(values) => values.get(at).map(|value| whole_datum((*value).into(), kind)),
        ColumnValues::BigInt(values) => values.get(at).map(|value| whole_datum((*value).into(), kind)),
        ColumnValues::Decimal(values) => values.get(at).map(|value| whole_datum(*value, kind)),
        ColumnValues::Uuid(values) => values.get(at).map(|value| Datum::Uuid(*value)),
        ColumnValues::Bytes(values) if kind.kind == Type::Blob => {
            values.get(at).map(|value| Datum::Blob(value.to_vec()))
        }
        ColumnValues::Bytes(values) => match values.get(at).map(std::str::from_utf8) {
            Some(Ok(text)) => Some(Datum::Text(text.to_owned())),
            Some(Err(_)) => {
                return Err(Error::new(DATA_CORRUPTED, "a text in a table is not UTF-8"));
            }
            None => None,
        },
        ColumnValues::Real(_) | ColumnValues::Double(_) | ColumnValues::Interval(_) => None,
    };
    Ok(datum.unwrap_or(Datum::Null))
}

/// Converts an integer to a value of a column's type.
pub(super) fn whole_datum(value: i128, kind: &ColumnType) -> Datum {
    match kind.kind {
        Type::SmallInt => Datum::SmallInt(value as i16),
        Type::Int => Datum::Int(value as i32),
        Type::BigInt => Datum::BigInt(value as i64),
        Type::Date => Datum::Date(value as i32),
        Type::Time => Datum::Time(value as i64),
        Type::Timestamp => Datum::Timestamp(value as i64),
        _ => Datum::Decimal { unscaled: value, scale: kind.decimal.map_or(0, |(_, scale)| scale) },
    }
}
