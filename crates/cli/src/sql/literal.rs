//! Values and names as they stand in SQL and JSON.

use cairn_sql::{Column, DatumRef, quote_ident};
use serde_json::value::RawValue;

/// A value as SQL has it.
pub fn value(value: DatumRef<'_>) -> String {
    match value {
        DatumRef::Null => "NULL".to_owned(),
        DatumRef::Boolean(value) => if value { "true" } else { "false" }.to_owned(),
        DatumRef::SmallInt(_) | DatumRef::Int(_) | DatumRef::BigInt(_) | DatumRef::Decimal { .. } => {
            value.to_string()
        }
        // Also floating point numbers: in quotes they are read as what they are, and not as
        // decimals first.
        other => text(&other.to_string()),
    }
}

/// A text as SQL has it.
pub fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name with its schema, which `public` needs not be told.
pub fn qualified(schema: &str, table: &str) -> String {
    if schema == "public" {
        quote_ident(table)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(table))
    }
}

/// A text as JSON has it.
pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as JSON has it: numbers, truth and JSON as they are, the rest as text.
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
