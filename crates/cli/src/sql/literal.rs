//! Formats values and names as SQL and JSON.

use cairn_sql::{Column, DatumRef, quote_ident};
use serde_json::value::RawValue;

/// Formats a value as an SQL literal.
pub fn value(value: DatumRef<'_>) -> String {
    match value {
        DatumRef::Null => "NULL".to_owned(),
        DatumRef::Boolean(value) => if value { "true" } else { "false" }.to_owned(),
        DatumRef::SmallInt(_) | DatumRef::Int(_) | DatumRef::BigInt(_) | DatumRef::Decimal { .. } => {
            value.to_string()
        }
        // Includes floating point numbers: in quotes they take the type of their column, without a
        // conversion through decimal.
        other => text(&other.to_string()),
    }
}

/// Formats a string as an SQL literal.
pub fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Formats a name with its schema, unless that is `public`.
pub fn qualified(schema: &str, table: &str) -> String {
    if schema == "public" {
        quote_ident(table)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(table))
    }
}

/// Formats a string as JSON.
pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Formats a value as JSON: numbers, booleans and JSON unchanged, everything else as a string.
pub fn json(value: DatumRef<'_>, column: &Column) -> String {
    match value {
        DatumRef::Null => "null".to_owned(),
        DatumRef::Boolean(value) => value.to_string(),
        DatumRef::SmallInt(_) | DatumRef::Int(_) | DatumRef::BigInt(_) | DatumRef::Decimal { .. } => {
            value.to_string()
        }
        DatumRef::Real(number) if number.is_finite() => value.to_string(),
        DatumRef::Double(number) if number.is_finite() => value.to_string(),
        DatumRef::Text(text) if column.kind.is_json && serde_json::from_str::<&RawValue>(text).is_ok() => {
            text.to_owned()
        }
        other => json_text(&other.to_string()),
    }
}
