//! The commands `\d` and its variants.

use cairn_sql::Connection;
use cairn_table::Catalog;
use cairn_table::schema::TableDef;

use crate::error::Result;

use super::catalog::{catalog, find_table, fits, parse_name, tables_of};
use super::command::Kinds;
use super::grid::Grid;
use super::schema;
use super::sink::Sink;

/// Lists tables, views or indexes whose names match a pattern.
pub fn list(out: &mut Sink, connection: &mut Connection, kinds: Kinds, pattern: Option<&str>) -> Result<()> {
    let catalog = catalog(connection)?;
    let mut rows = Vec::new();
    for table in tables_of(&catalog) {
        let def = table.def();
        if kinds.tables && fits(&def.name, pattern) {
            rows.push(vec![def.schema.clone(), def.name.clone(), "table".to_owned(), String::new()]);
        }
        if kinds.indexes {
            let primary = def.primary_key_name.iter();
            let names =
                primary.chain(def.indexes.iter().map(|index| &index.name)).filter(|name| fits(name, pattern));
            rows.extend(
                names
                    .map(|name| vec![def.schema.clone(), name.clone(), "index".to_owned(), def.name.clone()]),
            );
        }
    }
    let views = catalog.views().filter(|(_, view)| kinds.views && fits(&view.name, pattern));
    rows.extend(
        views.map(|(_, view)| vec![view.schema.clone(), view.name.clone(), "view".to_owned(), String::new()]),
    );
    rows.sort();
    if rows.is_empty() {
        return out.line("Did not find any relations.");
    }
    let names: &[&str] =
        if kinds.indexes { &["Schema", "Name", "Type", "Table"] } else { &["Schema", "Name", "Type"] };
    rows.iter_mut().for_each(|row| row.truncate(names.len()));
    let count = rows.len();
    Grid::print(out, names, rows)?;
    out.line(format_args!("({count} {})\n", if count == 1 { "row" } else { "rows" }))
}

/// Lists only names, one per line.
pub fn names(out: &mut Sink, connection: &mut Connection, pattern: Option<&str>) -> Result<()> {
    let catalog = catalog(connection)?;
    let tables = tables_of(&catalog).map(|table| (&table.def().schema, &table.def().name));
    let views = catalog.views().map(|(_, view)| (&view.schema, &view.name));
    let mut names: Vec<String> = tables
        .chain(views)
        .filter(|(_, name)| fits(name, pattern))
        .map(|(schema, name)| if schema == "public" { name.clone() } else { format!("{schema}.{name}") })
        .collect();
    names.sort();
    names.into_iter().try_for_each(|name| out.line(name))
}

/// Lists the names of indexes, of one table or all.
pub fn indexes(out: &mut Sink, connection: &mut Connection, table: Option<&str>) -> Result<()> {
    let catalog = catalog(connection)?;
    let mut names = Vec::new();
    for table in tables_of(&catalog).filter(|it| table.is_none_or(|name| parse_name(name).1 == it.def().name))
    {
        names.extend(table.def().primary_key_name.clone());
        names.extend(table.def().indexes.iter().map(|index| index.name.clone()));
    }
    names.sort();
    names.into_iter().try_for_each(|name| out.line(name))
}

/// Describes a table or view in full.
pub fn describe(out: &mut Sink, connection: &mut Connection, name: &str) -> Result<()> {
    let catalog = catalog(connection)?;
    let (schema, bare) = parse_name(name);
    if let Some(view) = catalog.view(&schema.unwrap_or_else(|| "public".to_owned()), &bare) {
        let (schema, name) = (view.schema.clone(), view.name.clone());
        let statement =
            connection.prepare(&format!("SELECT * FROM {}", super::literal::qualified(&schema, &name)))?;
        out.line(format_args!("View \"{schema}.{name}\""))?;
        let rows =
            statement.columns().iter().map(|column| vec![column.name.clone(), column.kind.to_string()]);
        Grid::print(out, &["Column", "Type"], rows.collect())?;
        return out.line(format_args!("View definition:\n    {}\n", view.query));
    }
    let table = find_table(&catalog, name)?;
    let def = table.def();
    out.line(format_args!("Table \"{}.{}\"", def.schema, def.name))?;
    let rows = def.columns.iter().map(|column| {
        let nullable = if column.nullable { "" } else { "not null" };
        let default = match column.identity {
            Some(identity) => format!("generated {identity} as identity").to_lowercase(),
            None => column.default.clone().unwrap_or_default(),
        };
        vec![column.name.clone(), column.kind.to_string(), nullable.to_owned(), default]
    });
    Grid::print(out, &["Column", "Type", "Nullable", "Default"], rows.collect())?;
    section(out, "Indexes:", index_lines(def))?;
    let checks = def.checks.iter().map(|check| format!("\"{}\" CHECK ({})", check.name, check.expression));
    section(out, "Check constraints:", checks.collect())?;
    let foreign = def.foreign_keys.iter().map(|foreign| schema::foreign_key(&catalog, def, foreign));
    section(out, "Foreign-key constraints:", foreign.map(|text| without_constraint(&text)).collect())?;
    section(out, "Referenced by:", referenced_by(&catalog, table.id()))?;
    out.text("\n")
}

fn section(out: &mut Sink, title: &str, lines: Vec<String>) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    out.line(title)?;
    lines.into_iter().try_for_each(|line| out.line(format_args!("    {line}")))
}

fn index_lines(def: &TableDef) -> Vec<String> {
    let primary = def
        .primary_key_name
        .iter()
        .map(|name| format!("\"{name}\" PRIMARY KEY ({})", schema::key(def, &def.primary_key)));
    let others = def.indexes.iter().map(|index| {
        let kind = match (index.is_constraint, index.unique) {
            (true, _) => "UNIQUE CONSTRAINT",
            (false, true) => "UNIQUE",
            (false, false) => "btree",
        };
        format!("\"{}\" {kind} ({})", index.name, schema::key(def, &index.columns))
    });
    primary.chain(others).collect()
}

/// Converts a constraint to psql's notation: the quoted name, without the keyword before it.
fn without_constraint(text: &str) -> String {
    let text = text.strip_prefix("CONSTRAINT ").unwrap_or(text);
    let (name, rest) = text.split_once(" FOREIGN KEY").unwrap_or((text, ""));
    format!("\"{}\" FOREIGN KEY{rest}", name.trim_matches('"'))
}

fn referenced_by(catalog: &Catalog, id: u32) -> Vec<String> {
    let line = |(table, at): (&std::sync::Arc<cairn_table::Table>, usize)| {
        let def = table.def();
        let foreign = def.foreign_keys.get(at)?;
        let text = without_constraint(&schema::foreign_key(catalog, def, foreign));
        Some(format!("TABLE \"{}\" CONSTRAINT {text}", def.name))
    };
    catalog.references_to(id).filter_map(line).collect()
}

/// Prints the statements that create the tables, indexes and views whose names match a pattern.
pub fn schema(out: &mut Sink, connection: &mut Connection, pattern: Option<&str>) -> Result<()> {
    let catalog = catalog(connection)?;
    let sequences = connection.sequences()?;
    for table in tables_of(&catalog).filter(|table| fits(&table.def().name, pattern)) {
        let def = table.def();
        out.line(schema::create_table(&catalog, def, true, &sequences))?;
        for index in def.indexes.iter().filter(|index| !index.is_constraint) {
            out.line(schema::create_index(def, index))?;
        }
    }
    let mut views = catalog.views().filter(|(_, view)| fits(&view.name, pattern));
    views.try_for_each(|(_, view)| out.line(schema::create_view(view)))
}
