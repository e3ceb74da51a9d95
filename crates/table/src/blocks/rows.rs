//! Columns of rows that are stored one by one: in a copy of an ordinary leaf, or gathered.

use super::buffer::{ByteValues, ColumnBuf, ColumnValues, Validity};
use crate::catalog::{Place as TablePlace, RowRef, Table};
use crate::row::{FixedKey, Interval, Place as RowPlace, RowFormat, Type, Value};

/// The location of a record: its key, followed by its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) key: u32,
    pub(super) value: u32,
    pub(super) end: u32,
}

/// Records, with their table and index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) table: &'a Table,
    pub(super) index: Option<usize>,
    /// The common prefix of all keys.
    pub(super) prefix: &'a [u8],
    pub(super) bytes: &'a [u8],
    pub(super) places: &'a [Place],
    /// Whether the columns of all records are laid out as in rows that are not wide.
    pub(super) is_plain: bool,
}

/// The error for bytes that are not a row.
#[derive(Debug)]
pub(super) struct Unsound;

type Sound<T> = Result<T, Unsound>;

impl<'a> Rows<'a> {
    /// Returns the whole key of a row, in a buffer that already contains the prefix.
    fn key<'k>(&self, place: &Place, buffer: &'k mut Vec<u8>) -> &'k [u8] {
        debug_assert!(buffer.starts_with(self.prefix), "a buffer for keys does not begin with their prefix");
        buffer.truncate(self.prefix.len());
        buffer.extend_from_slice(self.part(place));
        buffer
    }

    fn part(&self, place: &Place) -> &'a [u8] {
        debug_assert!(
            place.key <= place.value && place.value <= place.end && place.end as usize <= self.bytes.len(),
            "a row is at {place:?} of {} bytes",
            self.bytes.len()
        );
        self.bytes.get(place.key as usize..place.value as usize).unwrap_or_default()
    }

    fn value(&self, place: &Place) -> &'a [u8] {
        debug_assert!(
            place.value <= place.end && place.end as usize <= self.bytes.len(),
            "a row is at {place:?} of {} bytes",
            self.bytes.len()
        );
        self.bytes.get(place.value as usize..place.end as usize).unwrap_or_default()
    }

    fn each(&self, mut each: impl FnMut(&RowRef<'_>) -> bool) -> Sound<()> {
        let mut key = self.prefix.to_vec();
        for place in self.places {
            let (key, value) = (self.key(place, &mut key), self.value(place));
            let row = match self.index {
                None => self.table.row(key, value),
                Some(index) => self.table.entry(index, key, value),
            };
            if !row.is_some_and(|row| each(&row)) {
                return Err(Unsound);
            }
        }
        Ok(())
    }

    /// Appends a column.
    pub(super) fn column(&self, column: usize, to: &mut ColumnBuf) -> Sound<()> {
        match self.table.place(self.index, column) {
            Some(TablePlace::Row(at)) if self.is_plain => {
                let format = self.table.row_format(self.index);
                if let (Some(format), Some(start)) = (format, self.table.row_start(self.index)) {
                    return self.of_rows(format, start, at, to);
                }
            }
            Some(TablePlace::Key(at)) => {
                let fixed = self.table.tree_key_format(self.index).and_then(|format| format.fixed(at));
                if let Some(fixed) = fixed {
                    return self.of_keys(&fixed, column, to);
                }
            }
            _ => {}
        }
        self.each(|row| to.push(row.get(column)))
    }

    /// Appends the keys of the rows in their table.
    pub(super) fn keys(&self, to: &mut ColumnBuf) -> Sound<()> {
        self.each(|row| to.push(Value::Blob(row.key())))
    }

    /// Appends a row column. The columns begin at offset `start` of the record.
    fn of_rows(&self, format: &RowFormat, start: usize, at: usize, to: &mut ColumnBuf) -> Sound<()> {
        let (kind, place) = format.place(at).ok_or(Unsound)?;
        let bit = Bit { byte: start + at / 8, mask: 1 << (at % 8) };
        let ColumnBuf { values, validity } = to;
        match place {
            RowPlace::Variable(nth) => {
                let ColumnValues::Bytes(to) = values else { return Err(Unsound) };
                let (ends, bytes) = format.ends();
                self.variable(bit, nth, start + ends, start + bytes, to, validity)
            }
            RowPlace::Fixed(offset) => {
                let offset = start + offset;
                match values {
                    ColumnValues::Boolean(to) => {
                        self.fixed(bit, offset, to, validity, |[byte]: [u8; 1]| byte != 0)
                    }
                    ColumnValues::SmallInt(to) => self.fixed(bit, offset, to, validity, i16::from_le_bytes),
                    ColumnValues::Int(to) if matches!(kind, Type::Int | Type::Date) => {
                        self.fixed(bit, offset, to, validity, i32::from_le_bytes)
                    }
                    ColumnValues::BigInt(to) => self.fixed(bit, offset, to, validity, i64::from_le_bytes),
                    ColumnValues::Real(to) if kind == Type::Real => {
                        self.fixed(bit, offset, to, validity, f32::from_le_bytes)
                    }
                    ColumnValues::Double(to) => self.fixed(bit, offset, to, validity, f64::from_le_bytes),
                    ColumnValues::Decimal(to) => self.fixed(bit, offset, to, validity, i128::from_le_bytes),
                    ColumnValues::Uuid(to) => self.fixed(bit, offset, to, validity, |bytes: [u8; 16]| bytes),
                    ColumnValues::Interval(to) => {
                        self.fixed(bit, offset, to, validity, Interval::from_le_bytes)
                    }
                    _ => Err(Unsound),
                }
            }
        }
    }

    fn fixed<T: Default, const WIDTH: usize>(
        &self,
        bit: Bit,
        offset: usize,
        to: &mut Vec<T>,
        validity: &mut Validity,
        make: impl Fn([u8; WIDTH]) -> T,
    ) -> Sound<()> {
        let (mut nulls, mut is_sound) = (0, true);
        to.extend(self.places.iter().map(|place| {
            let value = self.value(place);
            let bytes = value.get(offset..).and_then(|bytes| bytes.first_chunk::<WIDTH>());
            match (bytes, value.get(bit.byte)) {
                (Some(bytes), Some(bits)) => {
                    nulls |= bits & bit.mask;
                    make(*bytes)
                }
                _ => {
                    is_sound = false;
                    T::default()
                }
            }
        }));
        self.validity(bit, nulls != 0, validity);
        if is_sound { Ok(()) } else { Err(Unsound) }
    }

    fn variable(
        &self,
        bit: Bit,
        nth: usize,
        ends: usize,
        body: usize,
        to: &mut ByteValues,
        validity: &mut Validity,
    ) -> Sound<()> {
        let mut nulls = 0;
        let end = |value: &[u8], nth: usize| -> Option<usize> {
            Some(u16::from_le_bytes(*value.get(ends + 2 * nth..)?.first_chunk()?).into())
        };
        for place in self.places {
            let value = self.value(place);
            nulls |= value.get(bit.byte).ok_or(Unsound)? & bit.mask;
            let start = if nth == 0 { 0 } else { end(value, nth - 1).ok_or(Unsound)? };
            let end = end(value, nth).ok_or(Unsound)?;
            to.push(value.get(body + start..body + end).ok_or(Unsound)?);
        }
        self.validity(bit, nulls != 0, validity);
        Ok(())
    }

    fn validity(&self, bit: Bit, has_nulls: bool, to: &mut Validity) {
        debug_assert!(bit.mask.is_power_of_two(), "the bits {:#x} mark a NULL", bit.mask);
        if !has_nulls {
            return to.push_valid(self.places.len());
        }
        for place in self.places {
            to.push(self.value(place).get(bit.byte).is_some_and(|bits| bits & bit.mask == 0));
        }
    }

    /// Appends a key column, which has the same offset and width in all keys without a NULL before
    /// it.
    fn of_keys(&self, key: &FixedKey, column: usize, to: &mut ColumnBuf) -> Sound<()> {
        let mut whole = self.prefix.to_vec();
        for place in self.places {
            let (part, skip) = (self.part(place), self.prefix.len());
            let value = match key.start().checked_sub(skip) {
                // The column lies entirely after the prefix, so no key must be reconstructed.
                Some(start) => key.read(part.get(start..).unwrap_or_default(), |tag| {
                    if tag < skip { self.prefix.get(tag) } else { part.get(tag - skip) }.copied()
                }),
                None => {
                    let whole = self.key(place, &mut whole);
                    let own = whole.get(key.start()..).unwrap_or_default();
                    key.read(own, |tag| whole.get(tag).copied())
                }
            };
            let is_pushed = match value {
                Some(value) => to.push(value),
                // There is a NULL, which the slow path handles.
                None => {
                    let row = Rows { places: std::slice::from_ref(place), ..*self };
                    row.each(|row| to.push(row.get(column)))?;
                    true
                }
            };
            if !is_pushed {
                return Err(Unsound);
            }
        }
        Ok(())
    }
}

/// The bit of a record that marks a column as NULL.
#[derive(Debug, Clone, Copy)]
struct Bit {
    byte: usize,
    mask: u8,
}
