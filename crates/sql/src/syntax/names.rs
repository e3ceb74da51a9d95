//! Names of database objects.

use std::fmt;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use crate::error::{Error, Result};
use crate::sqlstate::SYNTAX_ERROR;

/// Returns a name as stored in the catalog: unquoted names are folded to lower case.
pub(crate) fn ident(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => fold(&ident.value),
    }
}

/// Folds an unquoted name to lower case. Like PostgreSQL, it changes ASCII letters only.
pub(crate) fn fold(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The name of a table, or of another object in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The namespace, if it was given.
    pub schema: Option<String>,
    pub name: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Splits a qualified name. The database's name is dropped.
pub(crate) fn qualified(name: &ObjectName) -> Result<TableName> {
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(part) => Some(ident(part)),
            ObjectNamePart::Function(_) => None,
        })
        .collect();
    match parts.as_deref() {
        Some([name]) => Ok(TableName { schema: None, name: name.clone() }),
        Some([schema, name] | [_, schema, name]) => {
            Ok(TableName { schema: Some(schema.clone()), name: name.clone() })
        }
        _ => {
            Err(Error::new(SYNTAX_ERROR, format!("improper qualified name (too many dotted names): {name}")))
        }
    }
}

/// Splits a qualified name in a text, as stored in the catalog: `'public."T"'`.
pub(crate) fn name_parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut chars) = (false, name.trim().chars().peekable());
    while let Some(next) = chars.next() {
        let Some(last) = parts.last_mut() else { break };
        match next {
            '"' if quoted && chars.peek() == Some(&'"') => {
                last.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other if quoted => last.push(other),
            other => last.push(other.to_ascii_lowercase()),
        }
    }
    parts
}

/// Returns the last part of a name, such as that of a function without `pg_catalog`.
pub(crate) fn last_name(name: &ObjectName) -> String {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(part)) => ident(part),
        _ => String::new(),
    }
}
