//! The types of SQL, as signatures of functions name them.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

/// A type without precision, scale and length, or one of the pseudo-types of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Numeric,
    Real,
    Double,
    /// Also `varchar`.
    Text,
    Bytea,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    TextArray,
    /// The number of an object in the system catalogs.
    Oid,
    Name,
    /// Any array. The elements of all such arguments have the same type.
    AnyArray,
    /// Any type, the same for all such arguments.
    AnyElement,
    /// Any type.
    Any,
    /// A row.
    Record,
}

/// The group of types within which PostgreSQL prefers one type over the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Category {
    Array,
    Boolean,
    DateTime,
    Number,
    Pseudo,
    String,
    Timespan,
    User,
}

impl Kind {
    /// The types of values that are not arrays.
    #[cfg(test)]
    pub const SCALARS: [Kind; 15] = [
        Kind::Boolean,
        Kind::SmallInt,
        Kind::Integer,
        Kind::BigInt,
        Kind::Numeric,
        Kind::Real,
        Kind::Double,
        Kind::Text,
        Kind::Bytea,
        Kind::Date,
        Kind::Time,
        Kind::Timestamp,
        Kind::TimestampTz,
        Kind::Interval,
        Kind::Uuid,
    ];

    /// Returns the type of a value. JSON counts as text, which every function accepts it as.
    pub fn of(kind: &ColumnType) -> Kind {
        if kind.is_list {
            return Kind::AnyArray;
        }
        match kind.kind {
            Type::Boolean => Kind::Boolean,
            Type::SmallInt => Kind::SmallInt,
            Type::Int => Kind::Integer,
            Type::BigInt => Kind::BigInt,
            Type::Decimal => Kind::Numeric,
            Type::Real => Kind::Real,
            Type::Double => Kind::Double,
            Type::Blob => Kind::Bytea,
            Type::Date => Kind::Date,
            Type::Time => Kind::Time,
            Type::Timestamp if kind.is_zoned => Kind::TimestampTz,
            Type::Timestamp => Kind::Timestamp,
            Type::Interval => Kind::Interval,
            Type::Uuid => Kind::Uuid,
            _ => Kind::Text,
        }
    }

    /// Returns the type of columns. That of numerics has no digits after the point. Pseudo-types
    /// become text.
    pub fn column_type(self) -> ColumnType {
        match self {
            Kind::Boolean => Type::Boolean.into(),
            Kind::SmallInt => Type::SmallInt.into(),
            Kind::Integer => Type::Int.into(),
            Kind::BigInt | Kind::Oid => Type::BigInt.into(),
            Kind::Numeric => Type::Decimal.into(),
            Kind::Real => Type::Real.into(),
            Kind::Double => Type::Double.into(),
            Kind::Bytea => Type::Blob.into(),
            Kind::Date => Type::Date.into(),
            Kind::Time => Type::Time.into(),
            Kind::Timestamp => Type::Timestamp.into(),
            Kind::TimestampTz => ColumnType::zoned(),
            Kind::Interval => Type::Interval.into(),
            Kind::Uuid => Type::Uuid.into(),
            Kind::TextArray => ColumnType::from(Type::Text).list_of(),
            Kind::Text | Kind::Name | Kind::AnyArray | Kind::AnyElement | Kind::Any | Kind::Record => {
                Type::Text.into()
            }
        }
    }

    /// Returns PostgreSQL's name.
    pub fn name(self) -> &'static str {
        self.catalog().1
    }

    /// Returns PostgreSQL's OID.
    pub fn oid(self) -> i64 {
        self.catalog().0
    }

    /// Returns the OID and the name.
    fn catalog(self) -> (i64, &'static str) {
        match self {
            Kind::Boolean => (16, "boolean"),
            Kind::Bytea => (17, "bytea"),
            Kind::Name => (19, "name"),
            Kind::BigInt => (20, "bigint"),
            Kind::SmallInt => (21, "smallint"),
            Kind::Integer => (23, "integer"),
            Kind::Text => (25, "text"),
            Kind::Oid => (26, "oid"),
            Kind::Real => (700, "real"),
            Kind::Double => (701, "double precision"),
            Kind::TextArray => (1_009, "text[]"),
            Kind::Date => (1_082, "date"),
            Kind::Time => (1_083, "time without time zone"),
            Kind::Timestamp => (1_114, "timestamp without time zone"),
            Kind::TimestampTz => (1_184, "timestamp with time zone"),
            Kind::Interval => (1_186, "interval"),
            Kind::Numeric => (1_700, "numeric"),
            Kind::Record => (2_249, "record"),
            Kind::Any => (2_276, "\"any\""),
            Kind::AnyArray => (2_277, "anyarray"),
            Kind::AnyElement => (2_283, "anyelement"),
            Kind::Uuid => (2_950, "uuid"),
        }
    }

    /// Whether every type is accepted in its place.
    pub(super) fn accepts_all(self) -> bool {
        matches!(self, Kind::Any | Kind::AnyElement)
    }

    pub(super) fn category(self) -> Category {
        match self {
            Kind::Boolean => Category::Boolean,
            Kind::SmallInt
            | Kind::Integer
            | Kind::BigInt
            | Kind::Numeric
            | Kind::Real
            | Kind::Double
            | Kind::Oid => Category::Number,
            Kind::Text | Kind::Name => Category::String,
            Kind::Date | Kind::Time | Kind::Timestamp | Kind::TimestampTz => Category::DateTime,
            Kind::Interval => Category::Timespan,
            Kind::TextArray => Category::Array,
            Kind::Bytea | Kind::Uuid => Category::User,
            Kind::AnyArray | Kind::AnyElement | Kind::Any | Kind::Record => Category::Pseudo,
        }
    }

    /// Whether it is the preferred type of its category.
    pub(super) fn is_preferred(self) -> bool {
        matches!(
            self,
            Kind::Boolean | Kind::Double | Kind::Oid | Kind::Text | Kind::TimestampTz | Kind::Interval
        )
    }
}
