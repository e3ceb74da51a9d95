//! Keys whose bytes sort as their values do.
//!
//! ```text
//!   each column:  01 | value           02: NULL, after all values (00 with NULLS FIRST)
//!
//!   integers, dates, times, decimals   big endian, the sign bit flipped
//!   floats                             big endian; negative ones with all bits flipped, others with the sign bit flipped; one NaN, -0 as 0
//!   text, bytes                        as they are, 00 as 00 ff; then 00 00
//!   boolean                            00 or 01
//!   uuid                               as it is
//!
//!   descending columns                 all bytes of the value flipped; NULL is where NULLS FIRST or LAST says, all the same
//! ```
//!
//! Intervals are not for keys: those that are equal need not be the same.
//!
//! No encoded key is the beginning of another, so columns follow each other without separators, and
//! the beginning of a key by whole columns is the beginning of the bytes of every key that has
//! these columns.

use super::make::{IfThere, Make};
use super::value::{Type, Value};

/// How a column of a key is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// Larger values first.
    pub descending: bool,
    /// NULL before all values instead of after them.
    pub nulls_first: bool,
}

/// The columns of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFormat {
    columns: Vec<(Type, Order)>,
}

const VALUE: u8 = 1;
const NULL_FIRST: u8 = 0;
const NULL_LAST: u8 = 2;

impl KeyFormat {
    /// Keys of these columns.
    pub fn new(columns: Vec<(Type, Order)>) -> Self {
        KeyFormat { columns }
    }

    /// How many columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True for keys of no column, which are all the same.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends a key, or its first columns when there are fewer values. False, and nothing else,
    /// when a value is not of its column's type, or there are too many.
    #[must_use]
    pub fn encode(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        let fits = |(value, (column, _)): (&Value<'_>, &(Type, Order))| {
            value.type_of().is_none_or(|kind| kind == *column && kind != Type::Interval)
        };
        if values.len() > self.columns.len() || !values.iter().zip(&self.columns).all(fits) {
            return false;
        }
        for (value, (_, order)) in values.iter().zip(&self.columns) {
            if *value == Value::Null {
                to.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
                continue;
            }
            to.push(VALUE);
            let start = to.len();
            encode(value, to);
            if order.descending {
                to.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
        }
        true
    }

    /// Whether [`KeyFormat::get`] can give the value of a column as it was put in: not of floats,
    /// which have one zero and one NaN here, nor of bytes that a key has otherwise than the value.
    pub fn keeps(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|(kind, order)| match kind {
            Type::Real | Type::Double | Type::Blob | Type::Interval => false,
            Type::Text => !order.descending,
            _ => true,
        })
    }

    /// Where the bytes of a column begin, its tag included: those of the columns before it end
    /// there. `None` for bytes that are no such key.
    pub fn offset(&self, column: usize, key: &[u8]) -> Option<usize> {
        let mut at = 0;
        for (kind, order) in self.columns.get(..column)? {
            let tag = *key.get(at)?;
            at += 1;
            if tag != VALUE {
                continue;
            }
            at += match kind.width() {
                Some(width) => width,
                None => {
                    let zero = if order.descending { !0 } else { 0 };
                    end_of_text(key.get(at..)?, zero)?
                }
            };
        }
        Some(at)
    }

    /// The value of a column, read where it lies. `None` for bytes that are no such key, and for
    /// columns that [`KeyFormat::keeps`] says no of.
    #[inline]
    pub fn get<'k>(&self, column: usize, key: &'k [u8]) -> Option<Value<'k>> {
        self.get_as(column, key, IfThere)
    }

    /// As [`KeyFormat::get`], made into something else where it is read.
    #[inline]
    pub fn get_as<'k, M: Make<'k>>(&self, column: usize, key: &'k [u8], make: M) -> M::Made {
        let place = self.columns.get(column).zip(self.offset(column, key));
        let Some((&(kind, order), rest)) = place.and_then(|(column, at)| Some((column, key.get(at..)?)))
        else {
            return make.absent();
        };
        match (rest.split_first(), kind) {
            (None, _) => make.absent(),
            (Some((&tag, _)), _) if tag != VALUE => make.make(Value::Null),
            (Some((_, rest)), Type::Text) if !order.descending => match text(rest) {
                Some(text) => make.make(Value::Text(text)),
                None => make.absent(),
            },
            (Some(_), Type::Text | Type::Blob | Type::Interval) => make.absent(),
            (Some((_, rest)), _) => fixed(kind, order.descending, rest, make),
        }
    }

    /// A column that is at the same place in every key that has no NULL up to it. `None` when that
    /// is not so, or [`KeyFormat::keeps`] says no of it.
    pub(crate) fn fixed(&self, column: usize) -> Option<FixedKey> {
        let (mut at, mut tags) = (0, Vec::with_capacity(column + 1));
        for (kind, _) in self.columns.get(..column)? {
            tags.push(at);
            at += 1 + kind.width()?;
        }
        tags.push(at);
        let &(kind, order) = self.columns.get(column)?;
        (self.keeps(column) && kind.width().is_some()).then_some(FixedKey {
            start: at,
            tags,
            kind,
            descending: order.descending,
        })
    }

    /// Reads a key back and gives its values to `each`, in the order of the columns. False for
    /// bytes that are no such key.
    #[must_use]
    pub fn decode(&self, mut key: &[u8], mut each: impl FnMut(Value<'_>)) -> bool {
        let mut store = Vec::new();
        for (kind, order) in &self.columns {
            let Some((&tag, rest)) = key.split_first() else { return false };
            key = rest;
            match tag {
                VALUE => {
                    store.clear();
                    let Some(value) = decode(*kind, order.descending, &mut key, &mut store) else {
                        return false;
                    };
                    each(value);
                }
                NULL_FIRST if order.nulls_first => each(Value::Null),
                NULL_LAST if !order.nulls_first => each(Value::Null),
                _ => return false,
            }
        }
        key.is_empty()
    }
}

/// A column that is at the same place in many keys.
#[derive(Debug, Clone)]
pub(crate) struct FixedKey {
    start: usize,
    /// Where the tags of the columns up to it are.
    tags: Vec<usize>,
    kind: Type,
    descending: bool,
}

impl FixedKey {
    /// Where the tags of the columns up to it are, its own the last.
    pub(crate) fn tags(&self) -> &[usize] {
        &self.tags
    }

    /// Whether a tag says that there is a value.
    pub(crate) fn is_value(tag: u8) -> bool {
        tag == VALUE
    }

    /// Bytes of its value.
    pub(crate) fn width(&self) -> usize {
        self.kind.width().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> Type {
        self.kind
    }

    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }

    /// Where its tag is.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Its value: `own` are the key's bytes from its tag on, `byte` gives those at other places.
    /// `None` when there is a NULL up to it, and for bytes that are no such key.
    #[inline]
    pub(crate) fn read(&self, own: &[u8], byte: impl Fn(usize) -> Option<u8>) -> Option<Value<'static>> {
        if !self.tags.iter().all(|&tag| byte(tag) == Some(VALUE)) {
            return None;
        }
        fixed(self.kind, self.descending, own.get(1..)?, IfThere)
    }
}

fn encode(value: &Value<'_>, to: &mut Vec<u8>) {
    match *value {
        Value::Null | Value::Interval(_) => {}
        Value::Boolean(value) => to.push(value.into()),
        Value::SmallInt(value) => to.extend((value as u16 ^ 1 << 15).to_be_bytes()),
        Value::Int(value) | Value::Date(value) => to.extend((value as u32 ^ 1 << 31).to_be_bytes()),
        Value::BigInt(value) | Value::Time(value) | Value::Timestamp(value) => {
            to.extend((value as u64 ^ 1 << 63).to_be_bytes());
        }
        Value::Decimal(value) => to.extend((value as u128 ^ 1 << 127).to_be_bytes()),
        Value::Real(value) => {
            // One representation of what is equal: adding zero turns -0 into 0.
            let bits = if value.is_nan() { f32::NAN } else { value + 0.0 }.to_bits()
                & if value.is_nan() { !(1 << 31) } else { !0 };
            to.extend(if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 }.to_be_bytes());
        }
        Value::Double(value) => {
            let bits = if value.is_nan() { f64::NAN } else { value + 0.0 }.to_bits()
                & if value.is_nan() { !(1 << 63) } else { !0 };
            to.extend(if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 }.to_be_bytes());
        }
        Value::Text(text) => escape(text.as_bytes(), to),
        Value::Blob(bytes) => escape(bytes, to),
        Value::Uuid(bytes) => to.extend(bytes),
    }
}

fn escape(bytes: &[u8], to: &mut Vec<u8>) {
    let mut parts = bytes.split(|&byte| byte == 0);
    to.extend(parts.next().unwrap_or_default());
    for part in parts {
        to.extend([0, 0xff]);
        to.extend(part);
    }
    to.extend([0, 0]);
}

/// Reads one value from the front.
fn decode<'s>(kind: Type, descending: bool, key: &mut &[u8], store: &'s mut Vec<u8>) -> Option<Value<'s>> {
    if let Some(width) = kind.width() {
        let (bytes, rest) = key.split_at_checked(width)?;
        *key = rest;
        return fixed(kind, descending, bytes, IfThere);
    }
    unescape(key, if descending { !0 } else { 0u8 }, store)?;
    match kind {
        Type::Text => std::str::from_utf8(store).ok().map(Value::Text),
        _ => Some(Value::Blob(store)),
    }
}

/// How many bytes a text or bytes take, the two at their end included. `zero` is what a zero byte
/// is in this key.
fn end_of_text(bytes: &[u8], zero: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == zero)?;
        match *bytes.get(at + 1)? {
            byte if byte == zero => return Some(at + 2),
            _ => at += 2,
        }
    }
}

/// A text from the front, of a column that ascends.
#[inline]
fn text(bytes: &[u8]) -> Option<&str> {
    let end = end_of_text(bytes, 0)?;
    std::str::from_utf8(bytes.get(..end - 2)?).ok()
}

/// Reads a value of fixed width from the front.
#[inline]
fn fixed<'k, M: Make<'k>>(kind: Type, descending: bool, bytes: &[u8], make: M) -> M::Made {
    /// The first bytes as a number without sign, flipped back, as the value that it is.
    macro_rules! read {
        ($number:ty, $value:expr) => {
            match bytes.first_chunk() {
                Some(bytes) => {
                    let number = <$number>::from_be_bytes(*bytes);
                    make.make($value(if descending { !number } else { number }))
                }
                None => make.absent(),
            }
        };
    }
    match kind {
        Type::Boolean => match bytes.first().map(|byte| if descending { !byte } else { *byte }) {
            Some(byte @ (0 | 1)) => make.make(Value::Boolean(byte == 1)),
            _ => make.absent(),
        },
        Type::SmallInt => read!(u16, |number| Value::SmallInt((number ^ 1 << 15) as i16)),
        Type::Int => read!(u32, |number| Value::Int((number ^ 1 << 31) as i32)),
        Type::Date => read!(u32, |number| Value::Date((number ^ 1 << 31) as i32)),
        Type::BigInt => read!(u64, |number| Value::BigInt((number ^ 1 << 63) as i64)),
        Type::Time => read!(u64, |number| Value::Time((number ^ 1 << 63) as i64)),
        Type::Timestamp => read!(u64, |number| Value::Timestamp((number ^ 1 << 63) as i64)),
        Type::Decimal => read!(u128, |number| Value::Decimal((number ^ 1 << 127) as i128)),
        Type::Real => read!(u32, |bits: u32| {
            Value::Real(f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits }))
        }),
        Type::Double => read!(u64, |bits: u64| {
            Value::Double(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits }))
        }),
        Type::Uuid => read!(u128, |number: u128| Value::Uuid(number.to_be_bytes())),
        Type::Text | Type::Blob | Type::Interval => make.absent(),
    }
}

fn unescape(key: &mut &[u8], flip: u8, to: &mut Vec<u8>) -> Option<()> {
    loop {
        let at = key.iter().position(|byte| byte ^ flip == 0)?;
        let (part, rest) = key.split_at_checked(at)?;
        to.extend(part.iter().map(|byte| byte ^ flip));
        let (after, rest) = (rest.get(1)? ^ flip, rest.get(2..)?);
        *key = rest;
        match after {
            0 => return Some(()),
            0xff => to.push(0),
            _ => return None,
        }
    }
}
