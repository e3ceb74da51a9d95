//! Type names, of PostgreSQL and of SQLite.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, ObjectName, TimezoneInfo,
};

use super::last_name;
use crate::datum::OPEN;
use crate::error::{Error, Result};
use crate::sqlstate::{INVALID_PARAMETER_VALUE, UNDEFINED_OBJECT};

const MOST_DIGITS: u64 = 38;

/// Returns the column type for a type name. `char(n)` is treated as `varchar(n)`; timestamps with a
/// time zone are stored in UTC.
///
/// Errors: 0A000 for types that are not supported, 42704 for unknown types, 22023 for invalid
/// lengths.
pub(crate) fn column_type(kind: &DataType) -> Result<ColumnType> {
    Ok(match kind {
        DataType::Bool | DataType::Boolean => Type::Boolean.into(),
        DataType::TinyInt(_) | DataType::Int2(_) | DataType::SmallInt(_) => Type::SmallInt.into(),
        DataType::MediumInt(_)
        | DataType::Int(_)
        | DataType::Int4(_)
        | DataType::Integer(_)
        | DataType::Int32 => Type::Int.into(),
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => Type::BigInt.into(),
        DataType::Real | DataType::Float4 | DataType::Float32 => Type::Real.into(),
        DataType::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => Type::Real.into(),
        DataType::Float(_)
        | DataType::Float8
        | DataType::Float64
        | DataType::Double(_)
        | DataType::DoublePrecision => Type::Double.into(),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => decimal(info)?,
        DataType::Char(length) | DataType::Character(length) => text(length.as_ref(), Some(1))?,
        DataType::Varchar(length)
        | DataType::CharVarying(length)
        | DataType::CharacterVarying(length)
        | DataType::Nvarchar(length) => text(length.as_ref(), None)?,
        DataType::Text
        | DataType::TinyText
        | DataType::MediumText
        | DataType::LongText
        | DataType::String(_)
        | DataType::Clob(_)
        | DataType::CharacterLargeObject(_)
        | DataType::CharLargeObject(_) => Type::Text.into(),
        DataType::Bytea
        | DataType::Blob(_)
        | DataType::TinyBlob
        | DataType::MediumBlob
        | DataType::LongBlob
        | DataType::Binary(_)
        | DataType::Varbinary(_)
        | DataType::Bytes(_) => Type::Blob.into(),
        DataType::Date | DataType::Date32 => Type::Date.into(),
        DataType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            with_digits(Type::Time.into(), *digits)
        }
        DataType::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            with_digits(ColumnType::zoned(), *digits)
        }
        DataType::Timestamp(digits, _) | DataType::Datetime(digits) | DataType::TimestampNtz(digits) => {
            with_digits(Type::Timestamp.into(), *digits)
        }
        DataType::Interval { fields: None, precision } => with_digits(Type::Interval.into(), *precision),
        DataType::Interval { fields: Some(fields), .. } => {
            return Err(Error::unsupported(format_args!("the type interval {fields}")));
        }
        DataType::Uuid => Type::Uuid.into(),
        DataType::JSON | DataType::JSONB => ColumnType::json(),
        DataType::Regclass => Type::BigInt.into(),
        DataType::Custom(name, _) => custom(&last_name(name))?,
        other => return Err(Error::unsupported(format_args!("the type {other}"))),
    })
}

/// Returns the parameter type for a type name: a column type, or a list of one.
///
/// Errors: as [`column_type`].
pub(crate) fn parameter_type(kind: &DataType) -> Result<ColumnType> {
    match kind {
        DataType::Array(ArrayElemTypeDef::SquareBracket(of, _)) => Ok(column_type(of)?.list_of()),
        other => column_type(other),
    }
}

fn custom(name: &str) -> Result<ColumnType> {
    Ok(match name {
        "serial" | "serial4" => Type::Int.into(),
        "bigserial" | "serial8" => Type::BigInt.into(),
        "smallserial" | "serial2" => Type::SmallInt.into(),
        "timestamptz" => ColumnType::zoned(),
        "name" | "bpchar" => Type::Text.into(),
        "oid" | "xid" | "cid" | "regproc" | "regtype" | "regnamespace" | "regrole" | "regoper"
        | "regclass" => Type::BigInt.into(),
        "money" | "point" | "line" | "inet" | "cidr" | "macaddr" | "xml" | "tsvector" | "tsquery"
        | "timetz" | "citext" => {
            return Err(Error::unsupported(format_args!("the type {name}")));
        }
        _ => return Err(Error::new(UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))),
    })
}

/// Checks that a collation is the only one available, which compares bytes and has several names.
///
/// Errors: 0A000.
pub(crate) fn check_collation(name: &ObjectName) -> Result<()> {
    let is_known = match last_name(name).as_str() {
        "C" | "POSIX" | "default" | "ucs_basic" => true,
        other => other.eq_ignore_ascii_case("binary"),
    };
    match is_known {
        true => Ok(()),
        false => Err(Error::unsupported(format_args!("the collation {name}"))),
    }
}

/// Whether it is a serial type.
pub(crate) fn is_serial(kind: &DataType) -> bool {
    matches!(kind, DataType::Custom(name, _) if last_name(name).contains("serial"))
}

fn decimal(info: &ExactNumberInfo) -> Result<ColumnType> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => return Ok(ColumnType::decimal(OPEN.0, OPEN.1)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let invalid = |what: String| Error::new(INVALID_PARAMETER_VALUE, what);
    if !(1..=MOST_DIGITS).contains(&precision) {
        return Err(invalid(format!("NUMERIC precision {precision} must be between 1 and {MOST_DIGITS}")));
    }
    let fits = u8::try_from(scale).ok().filter(|&scale| u64::from(scale) <= precision);
    let scale = fits.ok_or_else(|| {
        invalid(format!("NUMERIC scale {scale} must be between 0 and precision {precision}"))
    })?;
    Ok(ColumnType::decimal(precision as u8, scale))
}

/// Sets the number of fractional digits of a second. Six is the maximum, as in PostgreSQL.
fn with_digits(mut kind: ColumnType, digits: Option<u64>) -> ColumnType {
    kind.length = digits.filter(|digits| *digits < 6).map(|digits| digits as u32);
    kind
}

fn text(length: Option<&CharacterLength>, default: Option<u32>) -> Result<ColumnType> {
    let length = match length {
        Some(CharacterLength::IntegerLength { length, .. }) => {
            let fits = u32::try_from(*length).ok().filter(|length| (1..=10_485_760).contains(length));
            let invalid = || {
                Error::new(INVALID_PARAMETER_VALUE, "length for type varchar must be between 1 and 10485760")
            };
            Some(fits.ok_or_else(invalid)?)
        }
        Some(CharacterLength::Max) => None,
        None => default,
    };
    Ok(length.map_or_else(|| Type::Text.into(), ColumnType::varchar))
}
