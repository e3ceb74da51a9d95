//! Formats tables, indexes and views as the statements that create them.

use cairn_sql::{Sequence, identity_sequence, quote_ident};
use cairn_table::Catalog;
use cairn_table::schema::{ColumnDef, ForeignKeyDef, IndexDef, KeyColumn, Referential, TableDef, ViewDef};

use super::catalog::tables_of;
use super::literal::{qualified, text};

/// Returns the names of the columns with these indexes.
fn names(def: &TableDef, columns: &[usize]) -> String {
    let name_of =
        |at: &usize| def.columns.get(*at).map_or_else(String::new, |column| quote_ident(&column.name));
    columns.iter().map(name_of).collect::<Vec<_>>().join(", ")
}

/// Returns the columns of a key, each with its order if that is not the default.
pub fn key(def: &TableDef, key: &[KeyColumn]) -> String {
    let column = |key: &KeyColumn| {
        let order = match (key.order.descending, key.order.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        format!("{}{order}", names(def, &[key.column]))
    };
    key.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// A sequence with its schema and name.
pub type Named = ((String, String), Sequence);

/// Returns the clause of a column for its identity, with its sequence, or for its default.
fn default(def: &TableDef, column: &ColumnDef, sequences: &[Named]) -> String {
    let own = identity_sequence(def, column);
    if let (Some(identity), Some(own)) = (column.identity, own) {
        let found = sequences.iter().find(|(place, _)| *place == own);
        let options = found.map_or_else(String::new, |((schema, name), is)| {
            format!(" (SEQUENCE NAME {} {})", qualified(schema, name), options(is))
        });
        return format!(" GENERATED {identity} AS IDENTITY{options}");
    }
    column.default.as_ref().map(|text| format!(" DEFAULT {text}")).unwrap_or_default()
}

/// Formats CREATE TABLE, with foreign keys only if `has_references`. The sequences of identity
/// columns are created with their tables.
pub fn create_table(catalog: &Catalog, def: &TableDef, has_references: bool, sequences: &[Named]) -> String {
    let mut parts: Vec<String> = def
        .columns
        .iter()
        .map(|column| {
            let default = default(def, column, sequences);
            let not_null = if column.nullable { "" } else { " NOT NULL" };
            format!("{} {}{default}{not_null}", quote_ident(&column.name), column.kind)
        })
        .collect();
    if !def.primary_key.is_empty() {
        let constraint = def
            .primary_key_name
            .as_ref()
            .map(|it| format!("CONSTRAINT {} ", quote_ident(it)))
            .unwrap_or_default();
        parts.push(format!("{constraint}PRIMARY KEY ({})", key(def, &def.primary_key)));
    }
    for index in def.indexes.iter().filter(|index| index.is_constraint) {
        parts.push(format!("CONSTRAINT {} UNIQUE ({})", quote_ident(&index.name), key(def, &index.columns)));
    }
    for check in &def.checks {
        parts.push(format!("CONSTRAINT {} CHECK ({})", quote_ident(&check.name), check.expression));
    }
    if has_references {
        parts.extend(def.foreign_keys.iter().map(|foreign| foreign_key(catalog, def, foreign)));
    }
    format!("CREATE TABLE {} (\n    {}\n);", qualified(&def.schema, &def.name), parts.join(",\n    "))
}

/// Formats a foreign key as a table constraint.
pub fn foreign_key(catalog: &Catalog, def: &TableDef, foreign: &ForeignKeyDef) -> String {
    let other = catalog.table_by_id(foreign.table).map(|table| table.def());
    let (table, columns) = other.map_or_else(Default::default, |other| {
        (qualified(&other.schema, &other.name), names(other, &foreign.references))
    });
    let act = |when: &str, what: Referential| match what {
        Referential::NoAction => String::new(),
        Referential::Restrict => format!(" ON {when} RESTRICT"),
        Referential::Cascade => format!(" ON {when} CASCADE"),
        Referential::SetNull => format!(" ON {when} SET NULL"),
        Referential::SetDefault => format!(" ON {when} SET DEFAULT"),
    };
    format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {table} ({columns}){}{}",
        quote_ident(&foreign.name),
        names(def, &foreign.columns),
        act("DELETE", foreign.on_delete),
        act("UPDATE", foreign.on_update)
    )
}

/// Formats CREATE INDEX.
pub fn create_index(def: &TableDef, index: &IndexDef) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    let include = match index.include.as_slice() {
        [] => String::new(),
        columns => format!(" INCLUDE ({})", names(def, columns)),
    };
    let table = qualified(&def.schema, &def.name);
    format!(
        "CREATE {unique}INDEX {} ON {table} ({}){include};",
        quote_ident(&index.name),
        key(def, &index.columns)
    )
}

/// Formats CREATE VIEW.
pub fn create_view(view: &ViewDef) -> String {
    let columns = match view.columns.as_slice() {
        [] => String::new(),
        columns => {
            format!(" ({})", columns.iter().map(|column| quote_ident(column)).collect::<Vec<_>>().join(", "))
        }
    };
    format!("CREATE VIEW {}{columns} AS {};", qualified(&view.schema, &view.name), view.query)
}

/// Formats the options of a sequence.
fn options(is: &Sequence) -> String {
    let cycle = if is.cycles { " CYCLE" } else { "" };
    format!(
        "INCREMENT BY {} MINVALUE {} MAXVALUE {} START WITH {}{cycle}",
        is.increment, is.minimum, is.maximum, is.start
    )
}

/// Formats CREATE SEQUENCE.
pub fn create_sequence((schema, sequence): &(String, String), is: &Sequence) -> String {
    format!("CREATE SEQUENCE {} {};", qualified(schema, sequence), options(is))
}

/// Returns the table and column that own a sequence of `schema`. Names may contain points, so whole
/// names are compared.
pub fn owner_of<'a>(catalog: &'a Catalog, schema: &str, is: &Sequence) -> Option<(&'a str, &'a str)> {
    let owner = is.owner.as_deref()?;
    let defs = tables_of(catalog).map(|table| table.def()).filter(|def| def.schema == schema);
    let mut columns = defs.flat_map(|def| def.columns.iter().map(|column| (&*def.name, &*column.name)));
    columns.find(|(table, column)| {
        owner.strip_prefix(table).and_then(|rest| rest.strip_prefix('.')) == Some(column)
    })
}

/// Formats the statements that set the position of a sequence, and its owner unless an identity
/// column created it.
pub fn set_sequence(
    (schema, sequence): &(String, String),
    is: &Sequence,
    owner: Option<(&str, &str)>,
) -> String {
    let place = qualified(schema, sequence);
    let owner = match owner {
        Some((table, column)) => {
            format!("ALTER SEQUENCE {place} OWNED BY {}.{};\n", qualified(schema, table), quote_ident(column))
        }
        None => String::new(),
    };
    let (value, is_called) = match is.next {
        Some(next) => (next, false),
        None if is.increment > 0 => (is.maximum, true),
        None => (is.minimum, true),
    };
    format!("{owner}SELECT setval({}, {value}, {is_called});", text(&place))
}
