//! Columns of packed leaves, which are already stored separately.

use std::ops::Range;

use cairn_pool::Changed;

use super::buffer::{ColumnBuf, ColumnValues};
use crate::catalog::{Place as TablePlace, RowRef, Table};
use crate::row::{FixedKey, Interval, KeyFormat, Type, Value};
use crate::storage::{Column, Packed, UNPACK_CHUNK, Unpacked};

/// Returns the row columns to read for some columns of the table. `None` if anything besides these
/// and the keys must be read.
pub(crate) fn columns(table: &Table, index: Option<usize>, columns: &[usize]) -> Option<Vec<usize>> {
    let mut own = Vec::new();
    for &column in columns {
        match table.place(index, column) {
            Some(TablePlace::Row(at)) => own.push(at),
            Some(TablePlace::Key(_)) => {}
            // The row's key, which is the record's key in the row tree.
            None if index.is_none() => {}
            _ => return None,
        }
    }
    Some(own)
}

/// Some records of a packed leaf, with their table and index.
#[derive(Debug, Clone)]
pub(super) struct PackedRows<'a> {
    pub(super) table: &'a Table,
    pub(super) index: Option<usize>,
    pub(super) page: Packed<'a, [u8]>,
    pub(super) range: Range<usize>,
}

impl PackedRows<'_> {
    /// Appends a column.
    pub(super) fn column(&self, column: usize, to: &mut ColumnBuf) -> Result<(), Changed> {
        match self.table.place(self.index, column) {
            Some(TablePlace::Row(at)) => self.of_rows(at, to),
            Some(TablePlace::Key(at)) => {
                let format = self.table.tree_key_format(self.index).ok_or(Changed)?;
                match format.fixed(at) {
                    Some(fixed) if self.of_keys(&fixed, to)? => Ok(()),
                    _ => self.of_whole_keys(format, at, to),
                }
            }
            _ => self.each(|row| to.push(row.get(column))),
        }
    }

    /// Returns the stored column for an integer-like column of the table, if it is one of the row
    /// columns.
    fn whole(&self, column: usize, kind: Type) -> Result<Option<Column>, Changed> {
        let is_whole = matches!(
            kind,
            Type::SmallInt
                | Type::Int
                | Type::BigInt
                | Type::Decimal
                | Type::Date
                | Type::Time
                | Type::Timestamp
        );
        match self.table.place(self.index, column) {
            Some(TablePlace::Row(at)) if is_whole => {
                self.page.column(at, kind.width().unwrap_or_default() as u8).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// See [`Block::keep_within`](super::Block::keep_within).
    pub(super) fn keep_within(
        &self,
        (column, kind): (usize, Type),
        bounds: (i128, i128),
        rows: &mut [u64],
    ) -> Result<bool, Changed> {
        match self.whole(column, kind)? {
            Some(column) => self.page.keep_within(&column, self.range.clone(), bounds, rows),
            None => Ok(false),
        }
    }

    /// See [`Block::keep_texts`](super::Block::keep_texts).
    pub(super) fn keep_texts(
        &self,
        (column, kind): (usize, Type),
        holds: impl FnMut(&[u8]) -> bool,
        rows: &mut [u64],
    ) -> Result<bool, Changed> {
        match self.table.place(self.index, column) {
            Some(TablePlace::Row(at)) if matches!(kind, Type::Text | Type::Blob) => {
                self.page.keep_texts(&self.page.column(at, 0)?, self.range.clone(), holds, rows)
            }
            _ => Ok(false),
        }
    }

    /// Appends the values of selected rows. Returns false, and appends nothing, if this requires
    /// decoding all rows.
    pub(super) fn chosen(
        &self,
        (column, kind): (usize, Type),
        rows: &[u64],
        to: &mut ColumnBuf,
    ) -> Result<bool, Changed> {
        let Some(column) = self.whole(column, kind)? else { return Ok(false) };
        if self.page.has_nulls(&column) {
            return Ok(false);
        }
        let (page, range) = (self.page, self.range.clone());
        let ColumnBuf { values, validity } = to;
        let is_read = match values {
            ColumnValues::SmallInt(to) => {
                page.numbers_of_chosen(&column, range, rows, |number| to.push(number as i16))?
            }
            ColumnValues::Int(to) => {
                page.numbers_of_chosen(&column, range, rows, |number| to.push(number as i32))?
            }
            ColumnValues::BigInt(to) => {
                page.numbers_of_chosen(&column, range, rows, |number| to.push(number))?
            }
            ColumnValues::Decimal(to) => {
                page.numbers_of_chosen(&column, range, rows, |number| to.push(number.into()))?
            }
            _ => false,
        };
        if is_read {
            validity.push_valid(rows.iter().map(|word| word.count_ones() as usize).sum());
        }
        Ok(is_read)
    }

    /// Appends the keys of the rows in their table.
    pub(super) fn keys(&self, to: &mut ColumnBuf) -> Result<(), Changed> {
        if self.index.is_some() {
            return self.each(|row| to.push(Value::Blob(row.key())));
        }
        let ColumnValues::Bytes(values) = &mut to.values else { return Err(Changed) };
        self.page.keys_of(self.range.clone(), (&mut values.bytes, &mut values.ends))?;
        to.validity.push_valid(self.range.len());
        Ok(())
    }

    fn each(&self, mut each: impl FnMut(&RowRef<'_>) -> bool) -> Result<(), Changed> {
        let mut unpacked = Unpacked::default();
        let end = self.range.end;
        for start in self.range.clone().step_by(UNPACK_CHUNK) {
            let range = start..end.min(start + UNPACK_CHUNK);
            unpacked.fill(self.page, range.clone(), None)?;
            for at in range {
                let (key, value) = unpacked.record(at).ok_or(Changed)?;
                let row = match self.index {
                    None => self.table.row(key, value),
                    Some(index) => self.table.entry(index, key, value),
                };
                if !row.is_some_and(|row| each(&row)) {
                    return Err(Changed);
                }
            }
        }
        Ok(())
    }

    /// Appends a row column.
    fn of_rows(&self, at: usize, to: &mut ColumnBuf) -> Result<(), Changed> {
        let format = self.table.row_format(self.index).ok_or(Changed)?;
        let (kind, _) = format.place(at).ok_or(Changed)?;
        let (page, range) = (self.page, self.range.clone());
        let column = page.column(at, kind.width().unwrap_or_default() as u8)?;
        let ColumnBuf { values, validity } = to;
        if page.has_nulls(&column) {
            page.nulls(&column, range.clone(), |is_null| validity.push(!is_null))?;
        } else {
            validity.push_valid(range.len());
        }
        values.reserve(range.len());
        match values {
            ColumnValues::Boolean(to) => page.numbers(&column, range, |number| to.push(number != 0)),
            ColumnValues::SmallInt(to) => page.numbers(&column, range, |number| to.push(number as i16)),
            ColumnValues::Int(to) => page.numbers(&column, range, |number| to.push(number as i32)),
            ColumnValues::BigInt(to) => page.numbers(&column, range, |number| to.push(number)),
            ColumnValues::Real(to) => {
                page.numbers(&column, range, |number| to.push(f32::from_bits(number as u32)))
            }
            ColumnValues::Double(to) => {
                page.numbers(&column, range, |number| to.push(f64::from_bits(number as u64)))
            }
            ColumnValues::Decimal(to) => page.long_numbers(&column, range, |number| to.push(number)),
            ColumnValues::Interval(to) => page.long_numbers(&column, range, |number| {
                to.push(Interval::from_le_bytes(number.to_le_bytes()));
            }),
            ColumnValues::Uuid(to) => {
                page.long_numbers(&column, range, |number| to.push(number.to_le_bytes()))
            }
            ColumnValues::Bytes(to) => page.texts(&column, range, (&mut to.bytes, &mut to.ends)),
        }
    }

    /// Appends a key column, after reconstructing the whole keys.
    fn of_whole_keys(&self, format: &KeyFormat, at: usize, to: &mut ColumnBuf) -> Result<(), Changed> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(self.range.len()));
        self.page.keys_of(self.range.clone(), (&mut bytes, &mut ends))?;
        let mut start = 0;
        for end in ends {
            let key = bytes.get(start..end).ok_or(Changed)?;
            if !to.push(format.get(at, key).unwrap_or(Value::Null)) {
                return Err(Changed);
            }
            start = end;
        }
        Ok(())
    }

    /// Appends a key column computed from the key words. Returns false, and appends nothing, if
    /// that is not possible.
    fn of_keys(&self, key: &FixedKey, to: &mut ColumnBuf) -> Result<bool, Changed> {
        let (page, range) = (self.page, self.range.clone());
        let width = key.width();
        for tag in key.tags() {
            if !page.key_byte(*tag)?.is_some_and(FixedKey::is_value) {
                return Ok(false);
            }
        }
        debug_assert!((1..=16).contains(&width), "a key column has {width} bytes");
        let Some(words) = page.key_words(key.start() + 1, width)? else { return Ok(false) };
        let flip = if key.is_descending() { u64::MAX } else { 0 };
        let ColumnBuf { values, validity } = to;
        values.reserve(range.len());
        match (values, key.kind()) {
            (ColumnValues::Boolean(to), _) => {
                page.key_numbers(&words, range.clone(), |number| to.push((number ^ flip) as u8 == 1))?;
            }
            (ColumnValues::SmallInt(to), _) => page.key_numbers(&words, range.clone(), |number| {
                to.push(((number ^ flip) as u16 ^ 1 << 15) as i16);
            })?,
            (ColumnValues::Int(to), Type::Int | Type::Date) => {
                page.key_numbers(&words, range.clone(), |number| {
                    to.push(((number ^ flip) as u32 ^ 1 << 31) as i32);
                })?;
            }
            (ColumnValues::BigInt(to), _) => page.key_numbers(&words, range.clone(), |number| {
                to.push((number ^ flip ^ 1 << 63) as i64);
            })?,
            _ => return Ok(false),
        }
        validity.push_valid(range.len());
        Ok(true)
    }
}
