//! Column buffers: the values of one column, contiguous, for computing on many at once.

use std::ops::Range;

use crate::row::{Interval, Type, Value};

/// The values of a column. A NULL has an arbitrary value here; [`ColumnBuf::validity`] tells which
/// values are not NULL.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Booleans.
    Boolean(Vec<bool>),
    /// 16-bit integers.
    SmallInt(Vec<i16>),
    /// 32-bit integers, and dates.
    Int(Vec<i32>),
    /// 64-bit integers, times and timestamps.
    BigInt(Vec<i64>),
    /// 32-bit floats.
    Real(Vec<f32>),
    /// 64-bit floats.
    Double(Vec<f64>),
    /// Decimals, as integer counts of their smallest unit.
    Decimal(Vec<i128>),
    /// Intervals.
    Interval(Vec<Interval>),
    /// UUIDs.
    Uuid(Vec<[u8; 16]>),
    /// Texts and bytes.
    Bytes(ByteValues),
}

impl ColumnValues {
    /// Returns the number of values.
    fn len(&self) -> usize {
        match self {
            ColumnValues::Boolean(values) => values.len(),
            ColumnValues::SmallInt(values) => values.len(),
            ColumnValues::Int(values) => values.len(),
            ColumnValues::BigInt(values) => values.len(),
            ColumnValues::Real(values) => values.len(),
            ColumnValues::Double(values) => values.len(),
            ColumnValues::Decimal(values) => values.len(),
            ColumnValues::Interval(values) => values.len(),
            ColumnValues::Uuid(values) => values.len(),
            ColumnValues::Bytes(values) => values.ends.len().saturating_sub(1),
        }
    }

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

    /// See [`ColumnBuf::keep_from`].
    fn keep_from(&mut self, start: usize, bits: &[u64]) {
        fn keep<T: Copy>(values: &mut Vec<T>, start: usize, bits: &[u64]) {
            let mut to = start;
            runs(bits, |run| {
                let (from, end) = (start + run.start, (start + run.end).min(values.len()));
                if from != to && from < end {
                    values.copy_within(from..end, to);
                }
                to += end.saturating_sub(from);
            });
            debug_assert!(to <= values.len(), "{to} of {} values are kept", values.len());
            values.truncate(to);
        }
        match self {
            ColumnValues::Boolean(values) => keep(values, start, bits),
            ColumnValues::SmallInt(values) => keep(values, start, bits),
            ColumnValues::Int(values) => keep(values, start, bits),
            ColumnValues::BigInt(values) => keep(values, start, bits),
            ColumnValues::Real(values) => keep(values, start, bits),
            ColumnValues::Double(values) => keep(values, start, bits),
            ColumnValues::Decimal(values) => keep(values, start, bits),
            ColumnValues::Interval(values) => keep(values, start, bits),
            ColumnValues::Uuid(values) => keep(values, start, bits),
            ColumnValues::Bytes(values) => values.keep_from(start, bits),
        }
    }

    /// Reverses the values from `start` on.
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

/// Calls `each` with the ranges of set bits, in order.
fn runs(bits: &[u64], mut each: impl FnMut(Range<usize>)) {
    let mut run = 0..0;
    for (nth, word) in bits.iter().enumerate() {
        let (mut left, mut at) = (*word, 64 * nth);
        while left != 0 {
            let gap = left.trailing_zeros();
            // Shifted by the gap and the ones separately, because together they may be all 64 bits.
            let ones = (left >> gap).trailing_ones();
            let start = at + gap as usize;
            debug_assert!(start >= run.end, "a run begins at {start}, in {run:?}");
            if start != run.end {
                each(run.clone());
                run.start = start;
            }
            debug_assert!(ones > 0 && gap + ones <= u64::BITS, "a run of {ones} bits begins at {gap}");
            run.end = start + ones as usize;
            at = run.end;
            left = left.checked_shr(gap + ones).unwrap_or_default();
        }
    }
    each(run);
}

/// Texts or bytes in one buffer. Texts are UTF-8 if the file is intact, which is not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteValues {
    /// 0, and then the end of each value in `bytes`: one more than there are values.
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
    /// Returns a value; `None` if there are not that many.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(*self.ends.get(at)?..*self.ends.get(at + 1)?)
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    /// See [`ColumnBuf::keep_from`].
    fn keep_from(&mut self, start: usize, bits: &[u64]) {
        let ByteValues { ends, bytes } = self;
        let mut to = start;
        let mut to_byte = ends.get(start).copied().unwrap_or_default();
        runs(bits, |run| {
            let (first, last) = (start + run.start, (start + run.end).min(ends.len().saturating_sub(1)));
            let (Some(&from), Some(&end)) = (ends.get(first), ends.get(last)) else { return };
            if first >= last {
                return;
            }
            if first != to {
                bytes.copy_within(from..end, to_byte);
                // The values removed before it have made the buffer shorter by this.
                debug_assert!(from >= to_byte && first > to, "values move from {first} to {to}");
                let shorter = from - to_byte;
                ends.copy_within(first + 1..=last, to + 1);
                let moved = ends.get_mut(to + 1..=to + last - first).unwrap_or_default();
                moved.iter_mut().for_each(|end| *end -= shorter);
            }
            to += last - first;
            to_byte += end - from;
        });
        debug_assert!(to_byte <= bytes.len() && to < ends.len(), "{to} values of {to_byte} bytes are kept");
        bytes.truncate(to_byte);
        ends.truncate(to + 1);
    }
}

/// The NULLs of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validity {
    /// One bit per value, the lowest bit of a byte first; empty until a value is NULL.
    bits: Vec<u8>,
    len: usize,
    nulls: usize,
}

impl Validity {
    /// Returns the number of NULLs.
    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// Returns one bit per value, from the lowest of the first byte on: 0 for NULL. `None` if no
    /// value is NULL.
    pub fn bits(&self) -> Option<&[u8]> {
        debug_assert!(
            self.nulls == 0 || self.bits.len() == self.len.div_ceil(8),
            "the validity of {} values has {} bytes",
            self.len,
            self.bits.len()
        );
        (self.nulls > 0).then_some(&self.bits[..])
    }

    /// Returns whether a value is not NULL.
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
            // At the first NULL, all values before it are valid.
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
        debug_assert!(
            self.nulls > 0 && self.nulls <= self.len && self.bits.len() == self.len.div_ceil(8),
            "{} of {} values are NULL, in {} bytes",
            self.nulls,
            self.len,
            self.bits.len()
        );
    }

    /// See [`ColumnBuf::keep_from`].
    fn keep_from(&mut self, start: usize, bits: &[u64]) {
        let all = self.clone_bits_from(start);
        self.truncate(start);
        runs(bits, |run| {
            if all.nulls == 0 {
                return self.push_valid(run.end.min(all.len).saturating_sub(run.start));
            }
            for at in run.start..run.end.min(all.len) {
                self.push(all.is_valid(at));
            }
        });
        debug_assert!(self.len <= start + all.len, "{} values are kept of {}", self.len, start + all.len);
    }

    /// Returns the part from `start` on.
    fn clone_bits_from(&self, start: usize) -> Validity {
        let mut part = Validity::default();
        if self.nulls == 0 {
            part.push_valid(self.len.saturating_sub(start));
        } else {
            (start..self.len).for_each(|at| part.push(self.is_valid(at)));
        }
        debug_assert!(
            part.len == self.len.saturating_sub(start),
            "{} of {} values are copied from {start} on",
            part.len,
            self.len
        );
        part
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if self.nulls == 0 {
            return;
        }
        self.bits.truncate(self.len.div_ceil(8));
        if let Some(last) = self.bits.last_mut().filter(|_| !self.len.is_multiple_of(8)) {
            *last &= (1 << (self.len % 8)) - 1;
        }
        let valid: usize = self.bits.iter().map(|bits| bits.count_ones() as usize).sum();
        debug_assert!(valid <= self.len, "{valid} of {} values are valid", self.len);
        self.nulls = self.len - valid;
        if self.nulls == 0 {
            self.bits.clear();
        }
    }

    /// Reverses the part from `start` on.
    fn reverse_from(&mut self, start: usize) {
        debug_assert!(start <= self.len, "{} values are reversed from {start} on", self.len);
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

/// The values of a column, in row order. Blocks append to it, so it can hold the rows of several.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBuf {
    pub(super) values: ColumnValues,
    pub(super) validity: Validity,
}

impl ColumnBuf {
    /// Creates a buffer for a column of a type.
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

    /// Like [`ColumnBuf::new`], with capacity for `count` values. The bytes of texts and blobs,
    /// which vary in length, need more.
    pub fn with_capacity(kind: Type, count: usize) -> Self {
        let mut new = ColumnBuf::new(kind);
        new.values.reserve(count);
        new
    }

    /// Returns whether it fits columns of a type.
    pub(super) fn fits(&self, kind: Type) -> bool {
        std::mem::discriminant(&self.values) == std::mem::discriminant(&ColumnBuf::new(kind).values)
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.validity.len
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the values.
    pub fn values(&self) -> &ColumnValues {
        &self.values
    }

    /// Returns which of the values are NULL.
    pub fn validity(&self) -> &Validity {
        &self.validity
    }

    /// Returns the values and their validity as owned parts.
    pub fn into_parts(self) -> (ColumnValues, Validity) {
        (self.values, self.validity)
    }

    /// Removes all values, and keeps the memory.
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
        self.assert_invariants();
    }

    /// Appends a value. Returns false, and appends nothing, if it is of another type.
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
        debug_assert!(self.values.len() == self.validity.len, "a value was appended without its validity");
        true
    }

    /// Keeps only those values from `start` on whose bit is set, from the lowest of the first word
    /// on.
    pub(super) fn keep_from(&mut self, start: usize, bits: &[u64]) {
        self.values.keep_from(start, bits);
        self.validity.keep_from(start, bits);
        self.assert_invariants();
    }

    /// Checks that every value has its validity, and every text its end.
    pub(super) fn assert_invariants(&self) {
        debug_assert!(
            self.values.len() == self.validity.len,
            "{} values have the validity of {}",
            self.values.len(),
            self.validity.len
        );
        if let ColumnValues::Bytes(values) = &self.values {
            debug_assert!(
                values.ends.first() == Some(&0) && values.ends.last() == Some(&values.bytes.len()),
                "texts of {} bytes end at {:?}",
                values.bytes.len(),
                values.ends.last()
            );
        }
    }

    /// Reverses the values from `start` on.
    pub(super) fn reverse_from(&mut self, start: usize) {
        let before = self.values.len();
        self.values.reverse_from(start);
        self.validity.reverse_from(start);
        debug_assert!(self.values.len() == before, "{before} values became {}", self.values.len());
        self.assert_invariants();
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
        debug_assert!(self.values.len() == self.validity.len, "a NULL was appended without a value");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Type; 14] = [
        Type::Boolean,
        Type::SmallInt,
        Type::Int,
        Type::Date,
        Type::BigInt,
        Type::Time,
        Type::Timestamp,
        Type::Real,
        Type::Double,
        Type::Decimal,
        Type::Interval,
        Type::Uuid,
        Type::Text,
        Type::Blob,
    ];

    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    fn push(to: &mut ColumnBuf, kind: Type, number: u64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let value = match kind {
            Type::Boolean => Value::Boolean(number & 1 == 1),
            Type::SmallInt => Value::SmallInt(number as i16),
            Type::Int => Value::Int(number as i32),
            Type::Date => Value::Date(number as i32),
            Type::BigInt => Value::BigInt(number as i64),
            Type::Time => Value::Time(number as i64),
            Type::Timestamp => Value::Timestamp(number as i64),
            Type::Real => Value::Real(number as f32),
            Type::Double => Value::Double(number as f64),
            Type::Decimal => Value::Decimal(i128::from(number) << 40),
            Type::Interval => Value::Interval(Interval { months: number as i32, ..Interval::default() }),
            Type::Uuid => Value::Uuid(u128::from(number).to_le_bytes()),
            Type::Text => Value::Text(&text),
            Type::Blob => Value::Blob(bytes),
        };
        assert!(to.push(value));
    }

    /// Goal: keeping some values after a position is equivalent to having appended only those, and
    /// changes nothing before the position. Method: columns of all types, with no, few and many
    /// NULLs before and after the position, and bits of all densities, compared with a column to
    /// which the values were appended one by one; then more values are appended to both.
    #[test]
    fn kept_values_equal_appended_ones() {
        let mut state = 7;
        for (round, kind) in (0..40).flat_map(|round| KINDS.map(|kind| (round, kind))) {
            let (before, behind) = (next(&mut state) as usize % 200, next(&mut state) as usize % 300);
            let nulls = [0, 30, 500, 1000][round % 4];
            let density = [0, 20, 500, 980, 1000][round % 5];
            let (mut found, mut expected) = (ColumnBuf::new(kind), ColumnBuf::new(kind));
            let mut bits = vec![0u64; behind.div_ceil(64)];
            for at in 0..before + behind + 20 {
                if at == before + behind {
                    found.keep_from(before, &bits);
                    assert_eq!(found, expected, "{kind:?} {before} {behind} {bits:x?}");
                }
                let is_kept = at < before || at >= before + behind || next(&mut state) % 1000 < density;
                if is_kept && (before..before + behind).contains(&at) {
                    bits[(at - before) / 64] |= 1 << ((at - before) % 64);
                }
                // NULLs after the position, before it, or both.
                let may_be_null = round % 3 != usize::from(at < before);
                let is_null = may_be_null && next(&mut state) % 1000 < nulls;
                let number = next(&mut state);
                let bytes = vec![b'a' + (number % 26) as u8; number as usize % 9];
                for to in [Some(&mut found), is_kept.then_some(&mut expected)].into_iter().flatten() {
                    if is_null { to.push_null() } else { push(to, kind, number, &bytes) }
                }
            }
            assert_eq!(found.len(), expected.len());
            for at in 0..expected.len() {
                assert_eq!(found.validity.is_valid(at), expected.validity.is_valid(at));
            }
            assert_eq!(found.values, expected.values);
        }
    }
}
