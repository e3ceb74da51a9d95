//! Values, as programs pass them to statements and read them from rows.

mod convert;
mod interval;
mod json;
mod list;
mod number;
mod parse;
mod text;

pub(crate) use cairn_codec::calendar::{civil_from_days, days_from_civil, days_in_month};
pub use convert::FromDatum;
pub(crate) use interval::typed_interval;
pub(crate) use list::{Item, items, nested_items, put_item};
pub(crate) use number::{OPEN, kept, pow10, quotient, rescale, rescale_exact, too_fine, wide_quotient};
pub(crate) use parse::{parse_decimal, parse_decimal_exactly};
pub(crate) use text::zoned_text;

use cairn_table::row::{Interval, Make, Type, Value};

/// A value that owns its bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Datum {
    /// NULL, of any type.
    #[default]
    Null,
    /// A boolean.
    Boolean(bool),
    /// A signed integer of 16 bits.
    SmallInt(i16),
    /// A signed integer of 32 bits.
    Int(i32),
    /// A signed integer of 64 bits.
    BigInt(i64),
    /// A floating-point number of 32 bits, IEEE 754.
    Real(f32),
    /// A floating-point number of 64 bits, IEEE 754.
    Double(f64),
    /// `unscaled` / 10^`scale`.
    Decimal {
        /// The digits.
        unscaled: i128,
        /// The number of digits after the decimal point.
        scale: u8,
    },
    /// Text, including JSON.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// An interval.
    Interval {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Microseconds.
        micros: i64,
    },
    /// 128 bits.
    Uuid([u8; 16]),
    /// A list of values of one type, which may include NULL. Lists serve as parameters; no column
    /// has them.
    List(Vec<Datum>),
}

/// A value that borrows its text or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[allow(missing_docs, reason = "each is what it is in Datum")]
pub enum DatumRef<'a> {
    #[default]
    Null,
    Boolean(bool),
    SmallInt(i16),
    Int(i32),
    BigInt(i64),
    Real(f32),
    Double(f64),
    Decimal {
        unscaled: i128,
        scale: u8,
    },
    Text(&'a str),
    Blob(&'a [u8]),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    Interval {
        months: i32,
        days: i32,
        micros: i64,
    },
    Uuid([u8; 16]),
    List(&'a [Datum]),
}

impl Datum {
    /// Borrows the value.
    pub fn borrow(&self) -> DatumRef<'_> {
        match *self {
            Datum::Null => DatumRef::Null,
            Datum::Boolean(value) => DatumRef::Boolean(value),
            Datum::SmallInt(value) => DatumRef::SmallInt(value),
            Datum::Int(value) => DatumRef::Int(value),
            Datum::BigInt(value) => DatumRef::BigInt(value),
            Datum::Real(value) => DatumRef::Real(value),
            Datum::Double(value) => DatumRef::Double(value),
            Datum::Decimal { unscaled, scale } => DatumRef::Decimal { unscaled, scale },
            Datum::Text(ref value) => DatumRef::Text(value),
            Datum::Blob(ref value) => DatumRef::Blob(value),
            Datum::Date(value) => DatumRef::Date(value),
            Datum::Time(value) => DatumRef::Time(value),
            Datum::Timestamp(value) => DatumRef::Timestamp(value),
            Datum::Interval { months, days, micros } => DatumRef::Interval { months, days, micros },
            Datum::Uuid(value) => DatumRef::Uuid(value),
            Datum::List(ref items) => DatumRef::List(items),
        }
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The type of the value; `None` for NULL, and for lists, whose items have types.
    pub fn type_of(&self) -> Option<Type> {
        self.borrow().type_of()
    }
}

impl<'a> DatumRef<'a> {
    /// Copies the value.
    pub fn to_owned(self) -> Datum {
        match self {
            DatumRef::Null => Datum::Null,
            DatumRef::Boolean(value) => Datum::Boolean(value),
            DatumRef::SmallInt(value) => Datum::SmallInt(value),
            DatumRef::Int(value) => Datum::Int(value),
            DatumRef::BigInt(value) => Datum::BigInt(value),
            DatumRef::Real(value) => Datum::Real(value),
            DatumRef::Double(value) => Datum::Double(value),
            DatumRef::Decimal { unscaled, scale } => Datum::Decimal { unscaled, scale },
            DatumRef::Text(value) => Datum::Text(value.to_owned()),
            DatumRef::Blob(value) => Datum::Blob(value.to_owned()),
            DatumRef::Date(value) => Datum::Date(value),
            DatumRef::Time(value) => Datum::Time(value),
            DatumRef::Timestamp(value) => Datum::Timestamp(value),
            DatumRef::Interval { months, days, micros } => Datum::Interval { months, days, micros },
            DatumRef::Uuid(value) => Datum::Uuid(value),
            DatumRef::List(items) => Datum::List(items.to_vec()),
        }
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, DatumRef::Null)
    }

    /// The type of the value; `None` for NULL, and for lists, whose items have types.
    pub fn type_of(&self) -> Option<Type> {
        Some(match self {
            DatumRef::Null | DatumRef::List(_) => return None,
            DatumRef::Boolean(_) => Type::Boolean,
            DatumRef::SmallInt(_) => Type::SmallInt,
            DatumRef::Int(_) => Type::Int,
            DatumRef::BigInt(_) => Type::BigInt,
            DatumRef::Real(_) => Type::Real,
            DatumRef::Double(_) => Type::Double,
            DatumRef::Decimal { .. } => Type::Decimal,
            DatumRef::Text(_) => Type::Text,
            DatumRef::Blob(_) => Type::Blob,
            DatumRef::Date(_) => Type::Date,
            DatumRef::Time(_) => Type::Time,
            DatumRef::Timestamp(_) => Type::Timestamp,
            DatumRef::Interval { .. } => Type::Interval,
            DatumRef::Uuid(_) => Type::Uuid,
        })
    }

    /// Converts a value of a column. `scale` is that of the column, and only matters for decimals.
    #[inline(always)]
    pub(crate) fn from_value(value: Value<'a>, scale: u8) -> DatumRef<'a> {
        match value {
            Value::Boolean(value) => DatumRef::Boolean(value),
            Value::SmallInt(value) => DatumRef::SmallInt(value),
            Value::Int(value) => DatumRef::Int(value),
            Value::BigInt(value) => DatumRef::BigInt(value),
            Value::Real(value) => DatumRef::Real(value),
            Value::Double(value) => DatumRef::Double(value),
            Value::Decimal(unscaled) => DatumRef::Decimal { unscaled, scale },
            Value::Text(value) => DatumRef::Text(value),
            Value::Blob(value) => DatumRef::Blob(value),
            Value::Date(value) => DatumRef::Date(value),
            Value::Time(value) => DatumRef::Time(value),
            Value::Timestamp(value) => DatumRef::Timestamp(value),
            Value::Interval(Interval { months, days, micros }) => DatumRef::Interval { months, days, micros },
            Value::Uuid(value) => DatumRef::Uuid(value),
            _ => DatumRef::Null,
        }
    }

    /// Converts to a value as tables store it. A decimal must already have the scale of its column.
    #[inline]
    pub(crate) fn to_value(self) -> Value<'a> {
        match self {
            // No column stores lists, and nothing equals one.
            DatumRef::Null | DatumRef::List(_) => Value::Null,
            DatumRef::Boolean(value) => Value::Boolean(value),
            DatumRef::SmallInt(value) => Value::SmallInt(value),
            DatumRef::Int(value) => Value::Int(value),
            DatumRef::BigInt(value) => Value::BigInt(value),
            DatumRef::Real(value) => Value::Real(value),
            DatumRef::Double(value) => Value::Double(value),
            DatumRef::Decimal { unscaled, .. } => Value::Decimal(unscaled),
            DatumRef::Text(value) => Value::Text(value),
            DatumRef::Blob(value) => Value::Blob(value),
            DatumRef::Date(value) => Value::Date(value),
            DatumRef::Time(value) => Value::Time(value),
            DatumRef::Timestamp(value) => Value::Timestamp(value),
            DatumRef::Interval { months, days, micros } => Value::Interval(Interval { months, days, micros }),
            DatumRef::Uuid(value) => Value::Uuid(value),
        }
    }
}

/// Makes values [`DatumRef`]s as they are read from a column of this scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsDatum {
    pub scale: u8,
}

impl<'a> Make<'a> for AsDatum {
    type Made = DatumRef<'a>;

    #[inline(always)]
    fn make(self, value: Value<'a>) -> DatumRef<'a> {
        DatumRef::from_value(value, self.scale)
    }

    #[inline(always)]
    fn absent(self) -> DatumRef<'a> {
        DatumRef::Null
    }
}

impl<'a> From<&'a Datum> for DatumRef<'a> {
    fn from(datum: &'a Datum) -> Self {
        datum.borrow()
    }
}

impl From<DatumRef<'_>> for Datum {
    fn from(datum: DatumRef<'_>) -> Self {
        datum.to_owned()
    }
}

#[cfg(test)]
mod tests;
