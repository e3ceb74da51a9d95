//! Names of types.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

/// Returns PostgreSQL's name for a type, as its messages use it.
pub(crate) fn name_of(kind: &ColumnType) -> &'static str {
    let (name, list) = names_of(kind);
    if kind.is_list { list } else { name }
}

/// Returns the names of a type, and of lists of it.
fn names_of(kind: &ColumnType) -> (&'static str, &'static str) {
    if kind.is_json {
        return ("json", "json[]");
    }
    match kind.kind {
        Type::Boolean => ("boolean", "boolean[]"),
        Type::SmallInt => ("smallint", "smallint[]"),
        Type::Int => ("integer", "integer[]"),
        Type::BigInt => ("bigint", "bigint[]"),
        Type::Real => ("real", "real[]"),
        Type::Double => ("double precision", "double precision[]"),
        Type::Decimal => ("numeric", "numeric[]"),
        Type::Text if kind.length.is_some() => ("character varying", "character varying[]"),
        Type::Text => ("text", "text[]"),
        Type::Blob => ("bytea", "bytea[]"),
        Type::Date => ("date", "date[]"),
        Type::Time => ("time without time zone", "time without time zone[]"),
        Type::Timestamp if kind.is_zoned => ("timestamp with time zone", "timestamp with time zone[]"),
        Type::Timestamp => ("timestamp without time zone", "timestamp without time zone[]"),
        Type::Interval => ("interval", "interval[]"),
        Type::Uuid => ("uuid", "uuid[]"),
        _ => ("unknown", "unknown[]"),
    }
}
