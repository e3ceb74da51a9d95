//! Definitions as SQL that makes them.

use cairn_table::Catalog;
use cairn_table::schema::{ForeignKeyDef, KeyColumn, Referential, TableDef, ViewDef};

/// A name, in quotes if it needs them.
pub(crate) fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn names(def: &TableDef, columns: &[usize]) -> String {
    let names: Vec<String> =
        columns.iter().filter_map(|&at| def.columns.get(at)).map(|column| quoted(&column.name)).collect();
    names.join(", ")
}

fn keys(def: &TableDef, columns: &[KeyColumn]) -> String {
    let one = |key: &KeyColumn| {
        let name = def.columns.get(key.column).map(|column| quoted(&column.name)).unwrap_or_default();
        let order = if key.order.descending { " DESC" } else { "" };
        let nulls = match (key.order.descending, key.order.nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        format!("{name}{order}{nulls}")
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `pg_get_indexdef`; `None` is the primary key.
pub(super) fn index_def(def: &TableDef, at: Option<usize>) -> String {
    let index = at.and_then(|at| def.indexes.get(at));
    let unique = if index.is_none_or(|index| index.unique) { "UNIQUE " } else { "" };
    let name = index.map(|index| index.name.as_str()).or(def.primary_key_name.as_deref()).unwrap_or_default();
    let columns = index.map_or(&def.primary_key, |index| &index.columns);
    let include = match index.map(|index| index.include.as_slice()).unwrap_or_default() {
        [] => String::new(),
        include => format!(" INCLUDE ({})", names(def, include)),
    };
    let table = format!("{}.{}", quoted(&def.schema), quoted(&def.name));
    format!("CREATE {unique}INDEX {} ON {table} USING btree ({}){include}", quoted(name), keys(def, columns))
}

/// `pg_get_constraintdef` of a primary key (`None`) or UNIQUE constraint.
pub(super) fn unique_def(def: &TableDef, at: Option<usize>) -> String {
    let (word, columns) = match at.and_then(|at| def.indexes.get(at)) {
        Some(index) => ("UNIQUE", &index.columns),
        None => ("PRIMARY KEY", &def.primary_key),
    };
    let columns: Vec<usize> = columns.iter().map(|key| key.column).collect();
    format!("{word} ({})", names(def, &columns))
}

/// `pg_get_constraintdef` of a foreign key.
pub(super) fn foreign_def(catalog: &Catalog, def: &TableDef, key: &ForeignKeyDef) -> String {
    let (table, columns) = match catalog.table_by_id(key.table) {
        Some(parent) => (quoted(&parent.def().name), names(parent.def(), &key.references)),
        None => Default::default(),
    };
    let action = |word: &str, action: Referential| match action {
        Referential::Restrict => String::new(),
        Referential::Cascade => format!(" ON {word} CASCADE"),
        Referential::SetNull => format!(" ON {word} SET NULL"),
        Referential::SetDefault => format!(" ON {word} SET DEFAULT"),
    };
    let actions = action("UPDATE", key.on_update) + &action("DELETE", key.on_delete);
    format!("FOREIGN KEY ({}) REFERENCES {table}({columns}){actions}", names(def, &key.columns))
}

/// `pg_get_viewdef`.
pub(super) fn view_def(view: &ViewDef) -> String {
    format!(" {};", view.query)
}
