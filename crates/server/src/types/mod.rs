//! PostgreSQL's types: their OIDs, and values of them as text ([`text`]) and binary ([`binary`]).

pub mod binary;
pub mod list;
pub mod numeric;
pub mod text;

use cairn_sql::{Column, ColumnType, Type};

use crate::codec::backend::Field;

/// OIDs of types, as in `pg_type`.
#[allow(missing_docs, reason = "the names are PostgreSQL's")]
pub mod oid {
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
    pub const JSONB: u32 = 3802;
    /// OIDs of parameters whose type is left to the statement: 0, `unknown`, and numeric, whose
    /// digits follow from the values.
    pub const ANY: [u32; 3] = [0, 705, NUMERIC];
}

/// Returns the OID of the type of a column or parameter.
pub fn oid_of(kind: &ColumnType) -> u32 {
    if let Some(element) = kind.element() {
        return list_oid_of(&element);
    }
    match kind.kind {
        Type::Boolean => oid::BOOL,
        Type::SmallInt => oid::INT2,
        Type::Int => oid::INT4,
        Type::BigInt => oid::INT8,
        Type::Real => oid::FLOAT4,
        Type::Double => oid::FLOAT8,
        Type::Decimal => oid::NUMERIC,
        Type::Text if kind.is_json => oid::JSON,
        Type::Text if kind.length.is_some() => oid::VARCHAR,
        Type::Blob => oid::BYTEA,
        Type::Date => oid::DATE,
        Type::Time => oid::TIME,
        Type::Timestamp if kind.is_zoned => oid::TIMESTAMPTZ,
        Type::Timestamp => oid::TIMESTAMP,
        Type::Interval => oid::INTERVAL,
        Type::Uuid => oid::UUID,
        _ => oid::TEXT,
    }
}

/// Returns the OID of the list type with elements of this type.
fn list_oid_of(element: &ColumnType) -> u32 {
    match oid_of(element) {
        oid::BOOL => 1000,
        oid::BYTEA => 1001,
        oid::INT2 => 1005,
        oid::INT4 => 1007,
        oid::INT8 => 1016,
        oid::FLOAT4 => 1021,
        oid::FLOAT8 => 1022,
        oid::JSON => 199,
        oid::VARCHAR => 1015,
        oid::DATE => 1182,
        oid::TIME => 1183,
        oid::TIMESTAMP => 1115,
        oid::TIMESTAMPTZ => 1185,
        oid::INTERVAL => 1187,
        oid::NUMERIC => 1231,
        oid::UUID => 2951,
        _ => 1009,
    }
}

/// The scale that a list of numerics is declared with.
const NUMERIC_SCALE: u8 = 10;

/// Returns the OID of a list type's elements; `None` for types that are not lists.
pub fn element_oid_of(list_oid: u32) -> Option<u32> {
    Some(match list_oid {
        1000 => oid::BOOL,
        1001 => oid::BYTEA,
        1002 => oid::CHAR,
        1003 => oid::NAME,
        1005 => oid::INT2,
        1007 => oid::INT4,
        1016 => oid::INT8,
        1021 => oid::FLOAT4,
        1022 => oid::FLOAT8,
        1028 => oid::OID,
        199 => oid::JSON,
        3807 => oid::JSONB,
        1009 => oid::TEXT,
        1014 => oid::BPCHAR,
        1015 => oid::VARCHAR,
        1182 => oid::DATE,
        1183 => oid::TIME,
        1115 => oid::TIMESTAMP,
        1185 => oid::TIMESTAMPTZ,
        1187 => oid::INTERVAL,
        1231 => oid::NUMERIC,
        2951 => oid::UUID,
        _ => return None,
    })
}

/// Returns the type with this OID; `None` for 0 and for types that are left to the statement.
pub fn kind_of(type_oid: u32) -> Option<ColumnType> {
    if let Some(element) = element_oid_of(type_oid) {
        // Each numeric of a list keeps its own digits.
        let element = match element {
            oid::NUMERIC => ColumnType::decimal(38, NUMERIC_SCALE),
            other => kind_of(other)?,
        };
        return Some(element.list_of());
    }
    Some(match type_oid {
        oid::BOOL => Type::Boolean.into(),
        oid::BYTEA => Type::Blob.into(),
        oid::INT8 | oid::OID => Type::BigInt.into(),
        oid::INT2 => Type::SmallInt.into(),
        oid::INT4 => Type::Int.into(),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR => Type::Text.into(),
        oid::JSON | oid::JSONB => ColumnType::json(),
        oid::FLOAT4 => Type::Real.into(),
        oid::FLOAT8 => Type::Double.into(),
        oid::DATE => Type::Date.into(),
        oid::TIME => Type::Time.into(),
        oid::TIMESTAMP => Type::Timestamp.into(),
        oid::TIMESTAMPTZ => ColumnType::zoned(),
        oid::INTERVAL => Type::Interval.into(),
        oid::UUID => Type::Uuid.into(),
        _ => return None,
    })
}

/// Returns the size of a type's values in bytes; -1 if it varies.
fn bytes_of(type_oid: u32) -> i16 {
    match type_oid {
        oid::BOOL => 1,
        oid::INT2 => 2,
        oid::INT4 | oid::FLOAT4 | oid::DATE => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ => 8,
        oid::INTERVAL | oid::UUID => 16,
        _ => -1,
    }
}

/// Returns PostgreSQL's type modifier: the values in parentheses plus 4, for the length field that
/// it once included; without the 4 for times.
fn modifier_of(kind: &ColumnType) -> i32 {
    match (kind.length, kind.decimal) {
        (Some(digits), _) if kind.kind != Type::Text => i32::try_from(digits).unwrap_or(-1),
        (Some(length), _) => i32::try_from(length).unwrap_or(i32::MAX - 4).saturating_add(4),
        (None, Some((precision, scale))) if kind.kind == Type::Decimal => {
            (i32::from(precision) << 16 | i32::from(scale)) + 4
        }
        _ => -1,
    }
}

/// Returns the description of a column for the client.
pub fn field_of(column: &Column, is_binary: bool) -> Field<'_> {
    let type_oid = column.element.as_ref().map_or_else(|| oid_of(&column.kind), list_oid_of);
    // The protocol counts columns from 1; 0 means none.
    let (table, number) = column.table.map_or((0, 0), |(table, number)| (table, number.saturating_add(1)));
    Field {
        name: &column.name,
        table,
        column: number,
        type_oid,
        type_bytes: bytes_of(type_oid),
        modifier: modifier_of(&column.kind),
        is_binary,
    }
}

#[cfg(test)]
mod tests;
