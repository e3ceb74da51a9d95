//! Keys whose bytes sort like their values.
//!
//! ```text
//!   each column:  01 | value       02: NULL, after all values (00 with NULLS FIRST)
//!
//!   integers, dates, times, decimals   big endian, the sign bit flipped
//!   floats                             big endian; all bits of negative ones flipped, the sign bit
//!                                      of others; a single NaN, -0 as 0
//!   text, bytes                        unchanged, except 00 as 00 ff; then 00 00
//!   boolean                            00 or 01
//!   uuid                               unchanged
//!
//!   descending columns                 all bytes of the value flipped; the place of NULL follows
//!                                      from NULLS FIRST or LAST alone
//! ```
//!
//! Keys cannot contain intervals, because equal intervals may have different representations.
//!
//! No encoded key is a prefix of another, so columns follow one another without separators. The
//! encoded first columns of a key are a byte prefix of exactly the keys that have the same values
//! there.

use super::convert::{IfThere, Make};
use super::value::{Type, Value};

/// The sort order of a key column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether NULL sorts before all values rather than after them.
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
/// NULL sorts before or after every value.
const _: () = assert!(NULL_FIRST < VALUE && VALUE < NULL_LAST);

impl KeyFormat {
    /// Creates the format for these key columns.
    pub fn new(columns: Vec<(Type, Order)>) -> Self {
        KeyFormat { columns }
    }

    /// Returns the number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether there are no columns. All such keys are equal.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends a key, or its first columns if there are fewer values. Returns false, and appends
    /// nothing, if a value is not of its column's type, or if there are too many values.
    #[must_use]
    pub fn encode(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        let fits = |(value, (column, _)): (&Value<'_>, &(Type, Order))| {
            value.type_of().is_none_or(|kind| kind == *column && kind != Type::Interval)
        };
        if values.len() > self.columns.len() || !values.iter().zip(&self.columns).all(fits) {
            return false;
        }
        let begin = to.len();
        for (value, (_, order)) in values.iter().zip(&self.columns) {
            if *value == Value::Null {
                to.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
                continue;
            }
            to.push(VALUE);
            let start = to.len();
            encode(value, to);
            debug_assert!(
                value.type_of().and_then(Type::width).is_none_or(|width| to.len() - start == width),
                "{value:?} takes {} bytes in a key",
                to.len() - start
            );
            if order.descending {
                to.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
        }
        debug_assert!(
            self.is_read_back(values, to.get(begin..).unwrap_or_default()),
            "a key is not read as it was written: {values:?}"
        );
        true
    }

    /// Returns whether a key has these values. For assertions. Floats are not compared, because a
    /// key has one zero and one NaN.
    fn is_read_back(&self, values: &[Value<'_>], key: &[u8]) -> bool {
        let format = KeyFormat { columns: self.columns.iter().take(values.len()).copied().collect() };
        let (mut left, mut is_same) = (values.iter(), true);
        let is_key = format.decode(key, |found| {
            is_same &= match left.next() {
                Some(Value::Real(_) | Value::Double(_)) => true,
                value => value == Some(&found),
            };
        });
        is_key && is_same && left.next().is_none()
    }

    /// Returns whether [`KeyFormat::get`] can return the value of a column exactly as it was
    /// encoded. It cannot for floats, because keys have one zero and one NaN, nor for values whose
    /// bytes a key stores in a changed form.
    pub fn keeps(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|(kind, order)| match kind {
            Type::Real | Type::Double | Type::Blob | Type::Interval => false,
            Type::Text => !order.descending,
            _ => true,
        })
    }

    /// Returns the offset of a column including its tag, which is the end of the columns before it.
    /// Returns `None` if the bytes are not such a key.
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

    /// Returns the value of a column, read in place. Returns `None` if the bytes are not such a
    /// key, and for columns for which [`KeyFormat::keeps`] returns false.
    #[inline]
    pub fn get<'k>(&self, column: usize, key: &'k [u8]) -> Option<Value<'k>> {
        self.get_as(column, key, IfThere)
    }

    /// Like [`KeyFormat::get`], but converts the value with `make` where it is read.
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

    /// Returns the position of a column whose offset is the same in every key that has no NULL up
    /// to and including the column. Returns `None` if there is no such offset, or if
    /// [`KeyFormat::keeps`] returns false for the column.
    pub(crate) fn fixed(&self, column: usize) -> Option<FixedKey> {
        let (mut at, mut tags) = (0, Vec::with_capacity(column + 1));
        for (kind, _) in self.columns.get(..column)? {
            tags.push(at);
            at += 1 + kind.width()?;
        }
        tags.push(at);
        debug_assert!(
            tags.len() == column + 1 && tags.is_sorted(),
            "the tags up to {column} are at {tags:?}"
        );
        let &(kind, order) = self.columns.get(column)?;
        (self.keeps(column) && kind.width().is_some()).then_some(FixedKey {
            start: at,
            tags,
            kind,
            descending: order.descending,
        })
    }

    /// Decodes a key and passes its values to `each` in column order. Returns false if the bytes
    /// are not such a key.
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

/// A column with the same offset in many keys.
#[derive(Debug, Clone)]
pub(crate) struct FixedKey {
    start: usize,
    /// Offsets of the tags of the columns up to and including this one.
    tags: Vec<usize>,
    kind: Type,
    descending: bool,
}

impl FixedKey {
    /// Returns the offsets of the tags of the columns up to this one. Its own tag is the last.
    pub(crate) fn tags(&self) -> &[usize] {
        &self.tags
    }

    /// Returns whether a tag stands for a value rather than NULL.
    pub(crate) fn is_value(tag: u8) -> bool {
        tag == VALUE
    }

    /// Returns the size of the value in bytes.
    pub(crate) fn width(&self) -> usize {
        self.kind.width().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> Type {
        self.kind
    }

    pub(crate) fn is_descending(&self) -> bool {
        self.descending
    }

    /// Returns the offset of the column's tag.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Reads the value. `own` holds the key's bytes from the column's tag onwards, and `byte`
    /// returns the bytes at other offsets. Returns `None` if there is a NULL up to this column, and
    /// for bytes that are not such a key.
    #[inline]
    pub(crate) fn read(&self, own: &[u8], byte: impl Fn(usize) -> Option<u8>) -> Option<Value<'static>> {
        debug_assert!(self.tags.last() == Some(&self.start), "the tag of a column is not where it begins");
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
            // Equal values need one representation: adding zero turns -0 into 0.
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
    let start = to.len();
    let mut parts = bytes.split(|&byte| byte == 0);
    to.extend(parts.next().unwrap_or_default());
    for part in parts {
        to.extend([0, 0xff]);
        to.extend(part);
    }
    to.extend([0, 0]);
    debug_assert!(
        to.get(start..).and_then(|own| end_of_text(own, 0)) == Some(to.len() - start),
        "{} bytes in a key do not end where they were written to",
        bytes.len()
    );
}

/// Decodes one value from the front of `key`.
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

/// Returns the encoded size of a text or blob, including its two-byte terminator. `zero` is the
/// encoding of a zero byte in this key.
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

/// Reads a text from the front of the bytes of an ascending column.
#[inline]
fn text(bytes: &[u8]) -> Option<&str> {
    let end = end_of_text(bytes, 0)?;
    debug_assert!(end >= 2, "a text in a key has an end of {end} bytes");
    std::str::from_utf8(bytes.get(..end - 2)?).ok()
}

/// Reads a fixed-width value from the front of `bytes`.
#[inline]
fn fixed<'k, M: Make<'k>>(kind: Type, descending: bool, bytes: &[u8], make: M) -> M::Made {
    /// Reads an unsigned number from the start of `bytes`, undoes the flip of a descending column,
    /// and converts it into its value.
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
