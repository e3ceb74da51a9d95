//! Dumps a database as statements that recreate it.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_sql::{Connection, identity_sequence, quote_ident};
use cairn_table::schema::Identity;
use cairn_table::{Catalog, Table};

use crate::error::Result;

use super::catalog::{catalog, fits, is_users, tables_of};
use super::literal::{self, qualified};
use super::schema;
use super::sink::Sink;

/// The number of rows per INSERT.
const ROWS_PER_INSERT: usize = 100;

/// Dumps the tables that match a pattern with their rows, indexes and foreign keys, and views, from
/// one snapshot. Returns the number of rows.
pub fn dump(out: &mut Sink, connection: &mut Connection, pattern: Option<&str>) -> Result<u64> {
    let is_alone = connection.status() == cairn_sql::TransactionStatus::Idle;
    if is_alone {
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ", &[])?;
    }
    let dumped = write(out, connection, pattern);
    if is_alone {
        connection.execute("ROLLBACK", &[])?;
    }
    dumped
}

fn write(out: &mut Sink, connection: &mut Connection, pattern: Option<&str>) -> Result<u64> {
    let catalog = catalog(connection)?;
    let tables: Vec<&Arc<Table>> =
        tables_of(&catalog).filter(|table| fits(&table.def().name, pattern)).collect();
    let all = connection.sequences()?;
    let identities: HashSet<(String, String)> = tables_of(&catalog)
        .map(|table| table.def())
        .flat_map(|def| def.columns.iter().filter_map(|column| identity_sequence(def, column)))
        .collect();
    let owner = |((schema, _), sequence): &schema::Named| schema::owner_of(&catalog, schema, sequence);
    // A sequence is dumped with the table that owns it; one without an owner only in a full dump.
    let belongs =
        |kept: &schema::Named| owner(kept).map_or(pattern.is_none(), |(table, _)| fits(table, pattern));
    let sequences: Vec<_> = all.iter().filter(|kept| belongs(kept)).collect();
    out.line("BEGIN;")?;
    if pattern.is_none() {
        for schema in catalog.schemas().filter(|schema| *schema != "public" && is_users(schema)) {
            out.line(format_args!("CREATE SCHEMA {};", quote_ident(schema)))?;
        }
    }
    // Sequences come before the tables, whose defaults use them. Identity columns create their own.
    for (place, sequence) in sequences.iter().filter(|(place, _)| !identities.contains(place)) {
        out.line(schema::create_sequence(place, sequence))?;
    }
    for table in &tables {
        out.line(schema::create_table(&catalog, table.def(), false, &all))?;
    }
    let mut count = 0;
    for table in &tables {
        count += rows(out, connection, table)?;
    }
    for table in &tables {
        finish(out, &catalog, table)?;
    }
    for (_, view) in catalog.views().filter(|(_, view)| fits(&view.name, pattern)) {
        out.line(schema::create_view(view))?;
    }
    for kept @ (place, sequence) in &sequences {
        let owner = owner(kept).filter(|_| !identities.contains(place));
        out.line(schema::set_sequence(place, sequence, owner))?;
    }
    out.line("COMMIT;")?;
    Ok(count)
}

fn rows(out: &mut Sink, connection: &mut Connection, table: &Table) -> Result<u64> {
    let def = table.def();
    let table = qualified(&def.schema, &def.name);
    let is_always = def.columns.iter().any(|column| column.identity == Some(Identity::Always));
    let values = if is_always { "OVERRIDING SYSTEM VALUE VALUES" } else { "VALUES" };
    let mut rows = connection.query(&format!("SELECT * FROM {table}"), &[])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        out.text(&match count % ROWS_PER_INSERT {
            0 if count > 0 => format!(";\nINSERT INTO {table} {values}\n"),
            0 => format!("INSERT INTO {table} {values}\n"),
            _ => ",\n".to_owned(),
        })?;
        let values: Vec<String> = (0..row.len()).map(|at| literal::value(row.get(at))).collect();
        out.text(&format!("({})", values.join(", ")))?;
        count += 1;
    }
    if count > 0 {
        out.text(";\n")?;
    }
    Ok(count as u64)
}

/// Writes the statements that are faster, or only possible, once the rows exist.
fn finish(out: &mut Sink, catalog: &Catalog, table: &Table) -> Result<()> {
    let def = table.def();
    for index in def.indexes.iter().filter(|index| !index.is_constraint) {
        out.line(schema::create_index(def, index))?;
    }
    for foreign in &def.foreign_keys {
        let constraint = schema::foreign_key(catalog, def, foreign);
        out.line(format_args!("ALTER TABLE {} ADD {constraint};", qualified(&def.schema, &def.name)))?;
    }
    Ok(())
}
