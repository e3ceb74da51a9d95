//! The encoding of a row.
//!
//! ```text
//!   NULL bits: 1 for NULL      one per column, rounded up to bytes
//!   columns of fixed width     each at an offset that follows from the types alone; zeros for NULL
//!   ends of the others         u16 each, in a wide row u32; relative to the start of their bytes
//!   bytes of the others        back to back; empty for NULL
//! ```
//!
//! Numbers are little endian. Every column can be located without reading the others. A row whose
//! variable-width values take 64 KiB or more in total is wide. The format does not record this: the
//! caller stores it.

use super::convert::{IfThere, Make};
use super::value::{Interval, Type, Value};

/// The layout of rows with given columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFormat {
    columns: Vec<(Type, Place)>,
    /// Offset of the ends of the variable-width columns.
    ends: usize,
    /// Number of variable-width columns.
    variable: usize,
}

/// The place of a column in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this offset.
    Fixed(usize),
    /// The n-th variable-width column.
    Variable(usize),
}

impl RowFormat {
    /// Creates the format for these column types.
    pub fn new(types: &[Type]) -> Self {
        let mut offset = types.len().div_ceil(8);
        let mut variable = 0;
        let columns = types.iter().map(|&kind| match kind.width() {
            Some(width) => {
                offset += width;
                (kind, Place::Fixed(offset - width))
            }
            None => {
                variable += 1;
                (kind, Place::Variable(variable - 1))
            }
        });
        let columns: Vec<(Type, Place)> = columns.collect();
        debug_assert!(
            columns.iter().all(|(kind, place)| match place {
                Place::Fixed(at) => at + kind.width().unwrap_or_default() <= offset,
                Place::Variable(nth) => *nth < variable,
            }),
            "columns overlap in {columns:?}"
        );
        RowFormat { columns, ends: offset, variable }
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the type of a column and its place in a row.
    pub(crate) fn place(&self, column: usize) -> Option<(Type, Place)> {
        self.columns.get(column).copied()
    }

    /// Returns the width of each column, 0 for a variable width.
    pub(crate) fn widths(&self) -> Vec<u8> {
        self.columns.iter().map(|(kind, _)| kind.width().unwrap_or_default() as u8).collect()
    }

    /// Returns the offsets at which the ends and the bytes of the variable-width columns begin in a
    /// row that is not wide.
    pub(crate) fn ends(&self) -> (usize, usize) {
        (self.ends, self.ends + 2 * self.variable)
    }

    /// Returns whether a row of these values must be wide.
    pub fn is_wide(&self, values: &[Value<'_>]) -> bool {
        let len = |value: &Value<'_>| match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            _ => 0,
        };
        self.variable > 0 && values.iter().map(len).sum::<usize>() > u16::MAX.into()
    }

    /// Appends a row that is not wide. Returns false, and appends nothing, if the number of values
    /// differs from the number of columns, a value is not of its column's type, or the values are
    /// too long in total.
    #[must_use]
    pub fn encode(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        self.encode_with::<2>(values, to)
    }

    /// Like [`RowFormat::encode`], for values of up to 4 GiB in total.
    #[must_use]
    pub fn encode_wide(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        self.encode_with::<4>(values, to)
    }

    fn encode_with<const END: usize>(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        const { assert!(END == 2 || END == 4) };
        let fits = |(value, (column, _)): (&Value<'_>, &(Type, Place))| {
            value.type_of().is_none_or(|kind| kind == *column)
        };
        if values.len() != self.columns.len() || !values.iter().zip(&self.columns).all(fits) {
            return false;
        }
        let start = to.len();
        to.resize(start + self.ends + END * self.variable, 0);
        let body = to.len();
        for (at, (value, (_, place))) in values.iter().zip(&self.columns).enumerate() {
            if *value == Value::Null
                && let Some(bits) = to.get_mut(start + at / 8)
            {
                *bits |= 1 << (at % 8);
            }
            match *place {
                Place::Fixed(offset) => put_fixed(value, to.get_mut(start + offset..).unwrap_or_default()),
                Place::Variable(index) => {
                    match value {
                        Value::Text(text) => to.extend(text.as_bytes()),
                        Value::Blob(bytes) => to.extend(*bytes),
                        _ => {}
                    }
                    let end = to.len() - body;
                    if end >= 1 << (8 * END) {
                        to.truncate(start);
                        return false;
                    }
                    debug_assert!(index < self.variable, "column {at} has end {index} of {}", self.variable);
                    let field = start + self.ends + END * index;
                    if let Some(place) = to.get_mut(field..field + END) {
                        place.copy_from_slice(end.to_le_bytes().get(..END).unwrap_or_default());
                    }
                }
            }
        }
        debug_assert!(
            self.is_read_back::<END>(values, to.get(start..).unwrap_or_default()),
            "a row is not read as it was written: {values:?}"
        );
        true
    }

    /// Returns whether a row has these values. For assertions. Floats are not compared, because NaN
    /// does not equal itself.
    fn is_read_back<const END: usize>(&self, values: &[Value<'_>], bytes: &[u8]) -> bool {
        let row = Row { format: self, bytes, end: END };
        values.iter().enumerate().all(|(at, value)| match value {
            Value::Real(_) | Value::Double(_) => row.get(at).is_some(),
            value => row.get(at) == Some(*value),
        })
    }

    /// Returns a row to read. The bytes may be arbitrary: missing values read as `None`.
    #[inline]
    pub fn read<'a>(&'a self, bytes: &'a [u8]) -> Row<'a> {
        Row { format: self, bytes, end: 2 }
    }

    /// Like [`RowFormat::read`], for a wide row.
    pub fn read_wide<'a>(&'a self, bytes: &'a [u8]) -> Row<'a> {
        Row { format: self, bytes, end: 4 }
    }
}

fn put_fixed(value: &Value<'_>, place: &mut [u8]) {
    let mut put = |bytes: &[u8]| {
        debug_assert!(bytes.len() <= place.len(), "a value of {} bytes has no place", bytes.len());
        if let Some(place) = place.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    match *value {
        Value::Boolean(value) => put(&[value.into()]),
        Value::SmallInt(value) => put(&value.to_le_bytes()),
        Value::Int(value) | Value::Date(value) => put(&value.to_le_bytes()),
        Value::BigInt(value) | Value::Time(value) | Value::Timestamp(value) => put(&value.to_le_bytes()),
        Value::Real(value) => put(&value.to_le_bytes()),
        Value::Double(value) => put(&value.to_le_bytes()),
        Value::Decimal(value) => put(&value.to_le_bytes()),
        Value::Uuid(value) => put(&value),
        Value::Interval(value) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&value.months.to_le_bytes());
            bytes[4..8].copy_from_slice(&value.days.to_le_bytes());
            bytes[8..].copy_from_slice(&value.micros.to_le_bytes());
            put(&bytes);
        }
        Value::Null | Value::Text(_) | Value::Blob(_) => {}
    }
}

/// A row, read in place.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    format: &'a RowFormat,
    bytes: &'a [u8],
    /// Number of bytes of each end: 2, or 4 in a wide row.
    end: usize,
}

impl<'a> Row<'a> {
    /// Returns the value of a column. Returns `None` if there is no such column, or if the bytes
    /// are not a row of this format.
    #[inline]
    pub fn get(&self, column: usize) -> Option<Value<'a>> {
        self.get_as(column, IfThere)
    }

    /// Like [`Row::get`], but converts the value with `make` where it is read.
    #[inline]
    pub fn get_as<M: Make<'a>>(&self, column: usize, make: M) -> M::Made {
        let Some(&(kind, place)) = self.format.columns.get(column) else { return make.absent() };
        match self.bytes.get(column / 8) {
            None => return make.absent(),
            Some(nulls) if nulls >> (column % 8) & 1 == 1 => return make.make(Value::Null),
            Some(_) => {}
        }
        match place {
            Place::Fixed(offset) => fixed(kind, self.bytes.get(offset..).unwrap_or_default(), make),
            Place::Variable(index) => match (self.variable(index), kind) {
                (Some(bytes), Type::Text) => match std::str::from_utf8(bytes) {
                    Ok(text) => make.make(Value::Text(text)),
                    Err(_) => make.absent(),
                },
                (Some(bytes), _) => make.make(Value::Blob(bytes)),
                (None, _) => make.absent(),
            },
        }
    }

    /// Returns the bytes of the `index`-th variable-width column.
    #[inline]
    fn variable(&self, index: usize) -> Option<&'a [u8]> {
        let body = self.bytes.get(self.format.ends + self.end * self.format.variable..)?;
        let start = if index == 0 { 0 } else { self.end(index - 1)? };
        body.get(start..self.end(index)?)
    }

    fn end(&self, index: usize) -> Option<usize> {
        debug_assert!(matches!(self.end, 2 | 4), "an end has {} bytes", self.end);
        let bytes = self.bytes.get(self.format.ends + self.end * index..)?;
        match self.end {
            2 => Some(u16::from_le_bytes(*bytes.first_chunk()?).into()),
            _ => Some(u32::from_le_bytes(*bytes.first_chunk()?) as usize),
        }
    }
}

/// Reads a fixed-width value from the start of `bytes`.
#[inline]
fn fixed<'a, M: Make<'a>>(kind: Type, bytes: &[u8], make: M) -> M::Made {
    /// Reads a number from the start of `bytes` and wraps it in its value.
    macro_rules! read {
        ($number:ty, $value:expr) => {
            match bytes.first_chunk() {
                Some(bytes) => make.make($value(<$number>::from_le_bytes(*bytes))),
                None => make.absent(),
            }
        };
    }
    match kind {
        Type::Boolean => read!(u8, |byte| Value::Boolean(byte != 0)),
        Type::SmallInt => read!(i16, Value::SmallInt),
        Type::Int => read!(i32, Value::Int),
        Type::Date => read!(i32, Value::Date),
        Type::BigInt => read!(i64, Value::BigInt),
        Type::Time => read!(i64, Value::Time),
        Type::Timestamp => read!(i64, Value::Timestamp),
        Type::Real => read!(f32, Value::Real),
        Type::Double => read!(f64, Value::Double),
        Type::Decimal => read!(i128, Value::Decimal),
        Type::Interval => read!(Interval, Value::Interval),
        Type::Uuid => match bytes.first_chunk() {
            Some(bytes) => make.make(Value::Uuid(*bytes)),
            None => make.absent(),
        },
        Type::Text | Type::Blob => make.absent(),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
