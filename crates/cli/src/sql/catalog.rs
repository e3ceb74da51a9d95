//! The objects of a database.

use std::sync::Arc;

use cairn_sql::Connection;
use cairn_table::{Catalog, Table};

use crate::error::{Error, Result};

/// Returns the tables and views that this connection sees.
pub fn catalog(connection: &mut Connection) -> Result<Arc<Catalog>> {
    Ok(connection.catalog()?)
}

/// The schema that Cairn uses internally, and recreates when needed.
const HIDDEN: &str = "cairn_catalog";

/// Returns true for a schema of the user.
pub fn is_users(schema: &str) -> bool {
    schema != HIDDEN
}

/// Returns the user's tables.
pub fn tables_of(catalog: &Catalog) -> impl Iterator<Item = &Arc<Table>> {
    catalog.tables().filter(|table| is_users(&table.def().schema))
}

/// Finds a table by name, with or without its schema. A name without quotes is folded.
pub fn find_table<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Arc<Table>> {
    let (schema, table) = parse_name(name);
    let schema = schema.unwrap_or_else(|| "public".to_owned());
    let found = catalog.table(&schema, &table).or_else(|| catalog.table(&schema, name));
    found.ok_or_else(|| Error::usage(format!("there is no table {name:?}")))
}

/// Splits a name into schema and name, and removes quotes.
pub fn parse_name(text: &str) -> (Option<String>, String) {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for character in text.trim().chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            other => {
                if let Some(part) = parts.last_mut() {
                    if is_quoted { part.push(other) } else { part.extend(other.to_lowercase()) }
                }
            }
        }
    }
    let name = parts.pop().unwrap_or_default();
    (parts.pop(), name)
}

/// Returns true if a name matches a psql pattern with `*` and `?`. Without a pattern, every name
/// matches.
pub fn fits(name: &str, pattern: Option<&str>) -> bool {
    let Some(pattern) = pattern else { return true };
    let (name, pattern): (Vec<char>, Vec<char>) =
        (name.chars().collect(), pattern.to_lowercase().chars().collect());
    // The position to backtrack to if the last star has matched too little.
    let (mut at, mut in_pattern, mut star) = (0, 0, None);
    while at < name.len() {
        match pattern.get(in_pattern) {
            Some('*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(c) if *c == '?' || name.get(at) == Some(c) => {
                at += 1;
                in_pattern += 1;
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (in_pattern, at) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern.get(in_pattern..).unwrap_or_default().iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names and patterns are interpreted as in psql.
    #[test]
    fn names_and_patterns() {
        assert_eq!(parse_name("Foo"), (None, "foo".to_owned()));
        assert_eq!(parse_name("s.\"Foo.b\""), (Some("s".to_owned()), "Foo.b".to_owned()));
        for (name, pattern, does) in [
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "a?c", true),
            ("abc", "b", false),
            ("", "*", true),
            ("aab", "*ab", true),
        ] {
            assert_eq!(fits(name, Some(pattern)), does, "{name} {pattern}");
        }
    }
}
