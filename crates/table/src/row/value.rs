//! Column types and their values.

use std::cmp::Ordering;
use std::fmt;

/// The physical type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// True or false.
    Boolean,
    /// 16-bit signed integer.
    SmallInt,
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    BigInt,
    /// 32-bit IEEE 754 float.
    Real,
    /// 64-bit IEEE 754 float.
    Double,
    /// A number of up to 38 digits, stored as an integer count of its smallest unit. The number of
    /// digits after the decimal point belongs to the column.
    Decimal,
    /// UTF-8 text, ordered by its bytes.
    Text,
    /// Bytes.
    Blob,
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp,
    /// Months, days and microseconds, stored separately because months and days vary in length. Not
    /// allowed in keys.
    Interval,
    /// 128 bits, ordered by their bytes as written.
    Uuid,
}

/// The widths of types whose values have parts.
const _: () = {
    assert!(matches!(Type::Interval.width(), Some(16)) && size_of::<Interval>() == 16);
    assert!(matches!(Type::Decimal.width(), Some(16)) && size_of::<i128>() == 16);
};

impl Type {
    /// Returns whether this is an integer type.
    pub const fn is_integer(self) -> bool {
        matches!(self, Type::SmallInt | Type::Int | Type::BigInt)
    }

    /// Returns the size of a value in a row in bytes, or `None` if it depends on the value.
    pub const fn width(self) -> Option<usize> {
        match self {
            Type::Boolean => Some(1),
            Type::SmallInt => Some(2),
            Type::Int | Type::Real | Type::Date => Some(4),
            Type::BigInt | Type::Double | Type::Time | Type::Timestamp => Some(8),
            Type::Decimal | Type::Interval | Type::Uuid => Some(16),
            Type::Text | Type::Blob => None,
        }
    }
}

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// Decodes an interval from its bytes in a row.
    pub(crate) fn from_le_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_le_bytes(bytes);
        Interval { months: number as i32, days: (number >> 32) as i32, micros: (number >> 64) as i64 }
    }

    /// Returns the length with 30 days per month and 24 hours per day, by which intervals are
    /// compared.
    pub fn micros_in_all(&self) -> i128 {
        const DAY: i128 = 86_400_000_000;
        i128::from(self.months) * 30 * DAY + i128::from(self.days) * DAY + i128::from(self.micros)
    }
}

/// A value of a column. Text and bytes are borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each is named after its type")]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    SmallInt(i16),
    Int(i32),
    BigInt(i64),
    Real(f32),
    Double(f64),
    Decimal(i128),
    Text(&'a str),
    Blob(&'a [u8]),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    Interval(Interval),
    Uuid([u8; 16]),
}

impl<'a> Value<'a> {
    /// Converts an integer to another width, for lookups in a referenced column of that type. A
    /// value that already has the type, or NULL, is returned unchanged. Returns `None` if the type
    /// cannot represent the value.
    pub fn with_type(self, kind: Type) -> Option<Value<'a>> {
        let number: i64 = match self {
            Value::SmallInt(number) => number.into(),
            Value::Int(number) => number.into(),
            Value::BigInt(number) => number,
            other => return other.type_of().is_none_or(|own| own == kind).then_some(other),
        };
        match kind {
            Type::SmallInt => number.try_into().ok().map(Value::SmallInt),
            Type::Int => number.try_into().ok().map(Value::Int),
            Type::BigInt => Some(Value::BigInt(number)),
            _ => None,
        }
    }
}

impl Value<'_> {
    /// Returns the type, or `None` for NULL, which belongs to every type.
    pub const fn type_of(&self) -> Option<Type> {
        Some(match self {
            Value::Null => return None,
            Value::Boolean(_) => Type::Boolean,
            Value::SmallInt(_) => Type::SmallInt,
            Value::Int(_) => Type::Int,
            Value::BigInt(_) => Type::BigInt,
            Value::Real(_) => Type::Real,
            Value::Double(_) => Type::Double,
            Value::Decimal(_) => Type::Decimal,
            Value::Text(_) => Type::Text,
            Value::Blob(_) => Type::Blob,
            Value::Date(_) => Type::Date,
            Value::Time(_) => Type::Time,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Interval(_) => Type::Interval,
            Value::Uuid(_) => Type::Uuid,
        })
    }

    /// Compares in key order: NULL after everything, as in PostgreSQL; NaN after every number and
    /// equal to itself; -0 equal to 0. Returns `None` for values of two different types.
    pub fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        Some(match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::SmallInt(a), Value::SmallInt(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) | (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::BigInt(a), Value::BigInt(b))
            | (Value::Time(a), Value::Time(b))
            | (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::Real(a), Value::Real(b)) => order_of_floats((*a).into(), (*b).into()),
            (Value::Double(a), Value::Double(b)) => order_of_floats(*a, *b),
            (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
            (Value::Interval(a), Value::Interval(b)) => a.micros_in_all().cmp(&b.micros_in_all()),
            (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

impl fmt::Display for Value<'_> {
    /// Formats the value for error messages. A decimal is shown without its decimal point, whose
    /// position only the column knows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::SmallInt(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::BigInt(value) => write!(f, "{value}"),
            Value::Real(value) => write!(f, "{value}"),
            Value::Double(value) => write!(f, "{value}"),
            Value::Decimal(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::Blob(bytes) => {
                f.write_str("\\x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Date(days) => date(f, i64::from(*days)),
            Value::Time(micros) => time(f, *micros),
            Value::Timestamp(micros) => {
                date(f, micros.div_euclid(DAY))?;
                f.write_str(" ")?;
                time(f, micros.rem_euclid(DAY))
            }
            Value::Interval(Interval { months, days, micros }) => {
                write!(f, "{months} mons {days} days ")?;
                time(f, *micros)
            }
            Value::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                    write!(f, "{dash}{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;
const _: () = assert!(DAY == 24 * 60 * 60 * 1_000_000);

fn date(f: &mut fmt::Formatter<'_>, days: i64) -> fmt::Result {
    let (year, month, day) = cairn_codec::calendar::civil_from_days(days);
    write!(f, "{year:04}-{month:02}-{day:02}")
}

fn time(f: &mut fmt::Formatter<'_>, micros: i64) -> fmt::Result {
    let sign = if micros < 0 { "-" } else { "" };
    let (seconds, micros) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    write!(f, "{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if micros > 0 { write!(f, ".{micros:06}") } else { Ok(()) }
}

fn order_of_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
