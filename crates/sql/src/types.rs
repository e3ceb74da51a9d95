//! Names of types.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

/// PostgreSQL's name for a type, as its messages have it.
pub(crate) fn name_of(kind: &ColumnType) -> &'static str {
    if kind.is_json {
        return "json";
    }
    match kind.kind {
        Type::Boolean => "boolean",
        Type::SmallInt => "smallint",
        Type::Int => "integer",
        Type::BigInt => "bigint",
        Type::Real => "real",
        Type::Double => "double precision",
        Type::Decimal => "numeric",
        Type::Text if kind.length.is_some() => "character varying",
        Type::Text => "text",
        Type::Blob => "bytea",
        Type::Date => "date",
        Type::Time => "time without time zone",
        Type::Timestamp if kind.is_zoned => "timestamp with time zone",
        Type::Timestamp => "timestamp without time zone",
        Type::Interval => "interval",
        Type::Uuid => "uuid",
        _ => "unknown",
    }
}
