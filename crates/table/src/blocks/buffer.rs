//! Values of one column, one after the other, for who computes on many at once.

use crate::row::{Interval, Type, Value};

/// Values of a column. What is NULL has some value here all the same: [`ColumnBuf::validity`] says which ones count.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Of booleans.
    Boolean(Vec<bool>),
    /// Of numbers of 16 bits.
    SmallInt(Vec<i16>),
    /// Of numbers of 32 bits, and of dates.
    Int(Vec<i32>),
    /// Of numbers of 64 bits, times and timestamps.
    BigInt(Vec<i64>),
    /// Of floating-point numbers of 32 bits.
    Real(Vec<f32>),
    /// Of floating-point numbers of 64 bits.
    Double(Vec<f64>),
    /// Of decimals: whole numbers of their smallest unit.
    Decimal(Vec<i128>),
    /// Of intervals.
    Interval(Vec<Interval>),
    /// Of uuids.
    Uuid(Vec<[u8; 16]>),
    /// Of texts and bytes.
    Bytes(ByteValues),
}

impl ColumnValues {
    pub(super) fn reserve(&mut self, count: usize) {
        match self {
            ColumnValues::Boolean(values) => values.reserve(count),
            ColumnValues::SmallInt(values) => values.reserve(count),
            ColumnValues::Int(values) => values.reserve(count),
            ColumnValues::BigInt(values) => values.reserve(count),
            ColumnValues::Real(values) => values.reserve(count),
            ColumnValues::Double(values) => values.reserve(count),
            ColumnValues::Decimal(values) => values.reserve(count),
            ColumnValues::Interval(values) => values.reserve(count),
            ColumnValues::Uuid(values) => values.reserve(count),
            ColumnValues::Bytes(values) => values.ends.reserve(count),
        }
    }

    /// Turns the values from `start` on around.
    pub(super) fn reverse_from(&mut self, start: usize) {
        fn turn<T>(values: &mut [T], start: usize) {
            values.get_mut(start..).unwrap_or_default().reverse();
        }
        match self {
            ColumnValues::Boolean(values) => turn(values, start),
            ColumnValues::SmallInt(values) => turn(values, start),
            ColumnValues::Int(values) => turn(values, start),
            ColumnValues::BigInt(values) => turn(values, start),
            ColumnValues::Real(values) => turn(values, start),
            ColumnValues::Double(values) => turn(values, start),
            ColumnValues::Decimal(values) => turn(values, start),
            ColumnValues::Interval(values) => turn(values, start),
            ColumnValues::Uuid(values) => turn(values, start),
            ColumnValues::Bytes(values) => {
                let mut turned = ByteValues::default();
                (start..values.ends.len() - 1)
                    .rev()
                    .filter_map(|at| values.get(at))
                    .for_each(|value| turned.push(value));
                let first = values.ends.get(start).copied().unwrap_or_default();
                values.bytes.truncate(first);
                values.bytes.extend_from_slice(&turned.bytes);
                values.ends.truncate(start + 1);
                values.ends.extend(turned.ends.iter().skip(1).map(|end| first + end));
            }
        }
    }
}

/// Texts or bytes in one piece. Texts are UTF-8 if the file is sound, and nobody has looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteValues {
    /// 0, and where each value ends in `bytes`: one more than there are values.
    pub ends: Vec<usize>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Default for ByteValues {
    fn default() -> Self {
        ByteValues { ends: vec![0], bytes: Vec::new() }
    }
}

impl ByteValues {
    /// A value; `None` when there are not so many.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(*self.ends.get(at)?..*self.ends.get(at + 1)?)
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }
}

/// Which values of a column are NULL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    /// One for each value, the lowest bit of a byte first; none as long as nothing is NULL.
    bits: Vec<u8>,
    len: usize,
    nulls: usize,
}

impl Validity {
    /// How many are NULL.
    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// A bit for each value, from the lowest of the first byte on: 0 for NULL. `None` when nothing is NULL.
    pub fn bits(&self) -> Option<&[u8]> {
        (self.nulls > 0).then_some(&self.bits[..])
    }

    /// Whether a value is not NULL.
    pub fn is_valid(&self, at: usize) -> bool {
        at < self.len
            && (self.nulls == 0 || self.bits.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1))
    }

    pub(crate) fn push_valid(&mut self, count: usize) {
        if self.nulls > 0 {
            (0..count).for_each(|_| self.push(true));
        } else {
            self.len += count;
        }
    }

    pub(crate) fn push(&mut self, is_valid: bool) {
        if is_valid && self.nulls == 0 {
            self.len += 1;
            return;
        }
        if self.nulls == 0 {
            // The first one: those before it are all there.
            self.bits.clear();
            self.bits.resize(self.len.div_ceil(8), !0);
            if let Some(last) = self.bits.last_mut().filter(|_| !self.len.is_multiple_of(8)) {
                *last = (1 << (self.len % 8)) - 1;
            }
        }
        if self.len.is_multiple_of(8) {
            self.bits.push(0);
        }
        if let Some(last) = self.bits.last_mut() {
            *last |= u8::from(is_valid) << (self.len % 8);
        }
        self.len += 1;
        self.nulls += usize::from(!is_valid);
    }

    /// Turns what comes from `start` on around.
    fn reverse_from(&mut self, start: usize) {
        if self.nulls == 0 {
            return;
        }
        let turned: Vec<bool> = (start..self.len).rev().map(|at| self.is_valid(at)).collect();
        for (at, is_valid) in (start..).zip(turned) {
            if let Some(bits) = self.bits.get_mut(at / 8) {
                *bits = *bits & !(1 << (at % 8)) | u8::from(is_valid) << (at % 8);
            }
        }
    }

    fn clear(&mut self) {
        *self = Validity { bits: std::mem::take(&mut self.bits), len: 0, nulls: 0 };
        self.bits.clear();
    }
}

/// Values of a column, in the order of rows. Blocks append to it, so that it can have the rows of several.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBuf {
    pub(super) values: ColumnValues,
    pub(super) validity: Validity,
}

impl ColumnBuf {
    /// For a column of a type.
    pub fn new(kind: Type) -> Self {
        let values = match kind {
            Type::Boolean => ColumnValues::Boolean(Vec::new()),
            Type::SmallInt => ColumnValues::SmallInt(Vec::new()),
            Type::Int | Type::Date => ColumnValues::Int(Vec::new()),
            Type::BigInt | Type::Time | Type::Timestamp => ColumnValues::BigInt(Vec::new()),
            Type::Real => ColumnValues::Real(Vec::new()),
            Type::Double => ColumnValues::Double(Vec::new()),
            Type::Decimal => ColumnValues::Decimal(Vec::new()),
            Type::Interval => ColumnValues::Interval(Vec::new()),
            Type::Uuid => ColumnValues::Uuid(Vec::new()),
            Type::Text | Type::Blob => ColumnValues::Bytes(ByteValues::default()),
        };
        ColumnBuf { values, validity: Validity::default() }
    }

    /// As [`ColumnBuf::new`], with room for so many values; for texts and bytes, which are of any length, the values' own bytes take more.
    pub fn with_capacity(kind: Type, count: usize) -> Self {
        let mut new = ColumnBuf::new(kind);
        new.values.reserve(count);
        new
    }

    /// Whether it is for columns of a type.
    pub(super) fn fits(&self, kind: Type) -> bool {
        std::mem::discriminant(&self.values) == std::mem::discriminant(&ColumnBuf::new(kind).values)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.validity.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    pub fn values(&self) -> &ColumnValues {
        &self.values
    }

    /// Which of them are NULL.
    pub fn validity(&self) -> &Validity {
        &self.validity
    }

    /// Values and validity, for who wants to keep them.
    pub fn into_parts(self) -> (ColumnValues, Validity) {
        (self.values, self.validity)
    }

    /// Takes all values out, and keeps the memory.
    pub fn clear(&mut self) {
        self.validity.clear();
        match &mut self.values {
            ColumnValues::Boolean(values) => values.clear(),
            ColumnValues::SmallInt(values) => values.clear(),
            ColumnValues::Int(values) => values.clear(),
            ColumnValues::BigInt(values) => values.clear(),
            ColumnValues::Real(values) => values.clear(),
            ColumnValues::Double(values) => values.clear(),
            ColumnValues::Decimal(values) => values.clear(),
            ColumnValues::Interval(values) => values.clear(),
            ColumnValues::Uuid(values) => values.clear(),
            ColumnValues::Bytes(values) => {
                values.bytes.clear();
                values.ends.truncate(1);
            }
        }
    }

    /// Appends a value. False, and nothing else, when it is of another type.
    #[must_use]
    pub fn push(&mut self, value: Value<'_>) -> bool {
        match (&mut self.values, value) {
            (ColumnValues::Boolean(to), Value::Boolean(value)) => to.push(value),
            (ColumnValues::SmallInt(to), Value::SmallInt(value)) => to.push(value),
            (ColumnValues::Int(to), Value::Int(value) | Value::Date(value)) => to.push(value),
            (
                ColumnValues::BigInt(to),
                Value::BigInt(value) | Value::Time(value) | Value::Timestamp(value),
            ) => to.push(value),
            (ColumnValues::Real(to), Value::Real(value)) => to.push(value),
            (ColumnValues::Double(to), Value::Double(value)) => to.push(value),
            (ColumnValues::Decimal(to), Value::Decimal(value)) => to.push(value),
            (ColumnValues::Interval(to), Value::Interval(value)) => to.push(value),
            (ColumnValues::Uuid(to), Value::Uuid(value)) => to.push(value),
            (ColumnValues::Bytes(to), Value::Text(text)) => to.push(text.as_bytes()),
            (ColumnValues::Bytes(to), Value::Blob(bytes)) => to.push(bytes),
            (_, Value::Null) => {
                self.push_null();
                return true;
            }
            _ => return false,
        }
        self.validity.push(true);
        true
    }

    /// An empty one for the same type.
    pub(super) fn like(&self) -> ColumnBuf {
        let values = match &self.values {
            ColumnValues::Boolean(_) => ColumnValues::Boolean(Vec::new()),
            ColumnValues::SmallInt(_) => ColumnValues::SmallInt(Vec::new()),
            ColumnValues::Int(_) => ColumnValues::Int(Vec::new()),
            ColumnValues::BigInt(_) => ColumnValues::BigInt(Vec::new()),
            ColumnValues::Real(_) => ColumnValues::Real(Vec::new()),
            ColumnValues::Double(_) => ColumnValues::Double(Vec::new()),
            ColumnValues::Decimal(_) => ColumnValues::Decimal(Vec::new()),
            ColumnValues::Interval(_) => ColumnValues::Interval(Vec::new()),
            ColumnValues::Uuid(_) => ColumnValues::Uuid(Vec::new()),
            ColumnValues::Bytes(_) => ColumnValues::Bytes(ByteValues::default()),
        };
        ColumnBuf { values, validity: Validity::default() }
    }

    /// Appends a value of another one for the same type, if it is there.
    pub(super) fn push_of(&mut self, other: &ColumnBuf, at: usize) {
        fn put<T: Copy>(from: &[T], at: usize, to: &mut Vec<T>) {
            to.extend(from.get(at));
        }
        match (&other.values, &mut self.values) {
            (ColumnValues::Boolean(from), ColumnValues::Boolean(to)) => put(from, at, to),
            (ColumnValues::SmallInt(from), ColumnValues::SmallInt(to)) => put(from, at, to),
            (ColumnValues::Int(from), ColumnValues::Int(to)) => put(from, at, to),
            (ColumnValues::BigInt(from), ColumnValues::BigInt(to)) => put(from, at, to),
            (ColumnValues::Real(from), ColumnValues::Real(to)) => put(from, at, to),
            (ColumnValues::Double(from), ColumnValues::Double(to)) => put(from, at, to),
            (ColumnValues::Decimal(from), ColumnValues::Decimal(to)) => put(from, at, to),
            (ColumnValues::Interval(from), ColumnValues::Interval(to)) => put(from, at, to),
            (ColumnValues::Uuid(from), ColumnValues::Uuid(to)) => put(from, at, to),
            (ColumnValues::Bytes(from), ColumnValues::Bytes(to)) => to.push(from.get(at).unwrap_or_default()),
            _ => return,
        }
        self.validity.push(other.validity.is_valid(at));
    }

    /// Turns the values from `start` on around.
    pub(super) fn reverse_from(&mut self, start: usize) {
        self.values.reverse_from(start);
        self.validity.reverse_from(start);
    }

    fn push_null(&mut self) {
        match &mut self.values {
            ColumnValues::Boolean(to) => to.push(false),
            ColumnValues::SmallInt(to) => to.push(0),
            ColumnValues::Int(to) => to.push(0),
            ColumnValues::BigInt(to) => to.push(0),
            ColumnValues::Real(to) => to.push(0.0),
            ColumnValues::Double(to) => to.push(0.0),
            ColumnValues::Decimal(to) => to.push(0),
            ColumnValues::Interval(to) => to.push(Interval::default()),
            ColumnValues::Uuid(to) => to.push([0; 16]),
            ColumnValues::Bytes(to) => to.push(&[]),
        }
        self.validity.push(false);
    }
}
