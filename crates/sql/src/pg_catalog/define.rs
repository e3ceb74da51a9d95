//! Definitions of database objects as SQL, in PostgreSQL's words.

use cairn_table::row::Type;
use cairn_table::schema::{ColumnDef, ColumnType, IndexDef, KeyColumn, Referential, TableDef};
use cairn_table::{Catalog, Table};

use super::oids;
use super::relations::type_by_oid;
use crate::syntax::quote_ident;

/// Returns the OID of a column's type, and its type modifier.
pub(super) fn type_of(kind: &ColumnType) -> (i64, i64) {
    if kind.is_json {
        return (114, -1);
    }
    // The precision of a time.
    let digits = kind.length.map_or(-1, i64::from);
    match kind.kind {
        Type::Boolean => (16, -1),
        Type::SmallInt => (21, -1),
        Type::Int => (23, -1),
        Type::BigInt => (20, -1),
        Type::Real => (700, -1),
        Type::Double => (701, -1),
        Type::Decimal => (
            1700,
            kind.decimal.map_or(-1, |(precision, scale)| (i64::from(precision) << 16 | i64::from(scale)) + 4),
        ),
        Type::Text => kind.length.map_or((25, -1), |length| (1043, i64::from(length) + 4)),
        Type::Blob => (17, -1),
        Type::Date => (1082, -1),
        Type::Time => (1083, digits),
        Type::Timestamp if kind.is_zoned => (1184, digits),
        Type::Timestamp => (1114, digits),
        Type::Interval => (1186, -1),
        Type::Uuid => (2950, -1),
        _ => (705, -1),
    }
}

/// Returns the SQL name of a type. A `modifier` of -1 or `None` means none.
pub(super) fn format_type(oid: i64, modifier: Option<i64>) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let Some(kind) = type_by_oid(oid) else { return "???".to_owned() };
    let element: i64 = kind.get("typelem").parse().unwrap_or_default();
    if kind.get("typcategory") == "A" && element != 0 && kind.name.starts_with('_') {
        return format!("{}[]", format_type(element, modifier));
    }
    let modifier = modifier.filter(|modifier| *modifier >= 0);
    let limits = match (oid, modifier) {
        (1043 | 1042, Some(modifier)) => format!("({})", modifier - 4),
        (1700, Some(modifier)) => format!("({},{})", (modifier - 4) >> 16 & 0xffff, (modifier - 4) & 0x7ff),
        (1083 | 1114 | 1184 | 1266, Some(modifier)) => format!("({modifier})"),
        _ => String::new(),
    };
    let (name, after) = match oid {
        16 => ("boolean", ""),
        18 => ("\"char\"", ""),
        20 => ("bigint", ""),
        21 => ("smallint", ""),
        23 => ("integer", ""),
        700 => ("real", ""),
        701 => ("double precision", ""),
        1042 => ("character", ""),
        1043 => ("character varying", ""),
        1083 => ("time", " without time zone"),
        1114 => ("timestamp", " without time zone"),
        1184 => ("timestamp", " with time zone"),
        1266 => ("time", " with time zone"),
        1560 => ("bit", ""),
        1562 => ("bit varying", ""),
        _ => (kind.name, ""),
    };
    format!("{name}{limits}{after}")
}

/// Returns a column's default; identity columns have none. PostgreSQL prints the sequence of a
/// serial column as a `regclass`, and clients search for that.
pub(super) fn default_of(column: &ColumnDef) -> Option<String> {
    let text = column.default.as_deref().filter(|_| column.identity.is_none())?;
    Some(match text.strip_prefix("nextval('").and_then(|rest| rest.strip_suffix("')")) {
        Some(sequence) => format!("nextval('{sequence}'::regclass)"),
        None => text.to_owned(),
    })
}

/// Returns a table's name, with its namespace if the search path does not include that.
pub(super) fn table_name(def: &TableDef, search_path: &[String]) -> String {
    match search_path.contains(&def.schema) {
        true => quote_ident(&def.name),
        false => format!("{}.{}", quote_ident(&def.schema), quote_ident(&def.name)),
    }
}

pub(super) fn column_name(def: &TableDef, column: usize) -> String {
    def.columns.get(column).map_or_else(String::new, |column| quote_ident(&column.name))
}

fn columns(def: &TableDef, columns: impl Iterator<Item = usize>) -> String {
    columns.map(|column| column_name(def, column)).collect::<Vec<_>>().join(", ")
}

/// Returns the primary key as an [`IndexDef`].
pub(super) fn primary_index(def: &TableDef) -> IndexDef {
    let name = primary_name(def);
    IndexDef {
        name,
        columns: def.primary_key.clone(),
        include: Vec::new(),
        unique: true,
        is_constraint: true,
    }
}

pub(super) fn primary_name(def: &TableDef) -> String {
    def.primary_key_name.clone().unwrap_or_else(|| format!("{}_pkey", def.name))
}

/// Returns PostgreSQL's bits for the order of an index column and the position of NULLs.
pub(super) fn index_option(key: &KeyColumn) -> i64 {
    i64::from(key.order.descending) | i64::from(key.order.nulls_first) << 1
}

/// Returns the `CREATE INDEX` statement of an index. `shown` is the name of its table.
pub(super) fn index(table: &TableDef, index: &IndexDef, shown: &str) -> String {
    let key = |key: &KeyColumn| {
        let order = match (key.order.descending, key.order.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        format!("{}{order}", column_name(table, key.column))
    };
    let unique = if index.unique { "UNIQUE " } else { "" };
    let keys: Vec<String> = index.columns.iter().map(key).collect();
    let include = match index.include.is_empty() {
        true => String::new(),
        false => format!(" INCLUDE ({})", columns(table, index.include.iter().copied())),
    };
    format!(
        "CREATE {unique}INDEX {} ON {shown} USING btree ({}){include}",
        quote_ident(&index.name),
        keys.join(", ")
    )
}

/// Finds an index by its OID. Also returns its table.
pub(super) fn find_index(catalog: &Catalog, oid: i64) -> Option<(&Table, IndexDef)> {
    catalog.tables().find_map(|table| {
        let def = table.def();
        if oids::primary_index(table) == oid && !def.primary_key.is_empty() {
            return Some((&**table, primary_index(def)));
        }
        let at = (0..def.indexes.len()).find(|at| oids::index(table, *at) == oid)?;
        Some((&**table, def.indexes.get(at)?.clone()))
    })
}

/// Returns a constraint's definition in the form of CREATE TABLE.
pub(super) fn constraint(
    catalog: &Catalog,
    oid: i64,
    search_path: &[String],
    pretty: bool,
) -> Option<String> {
    catalog.tables().find_map(|table| {
        let def = table.def();
        if oids::primary_constraint(table) == oid && !def.primary_key.is_empty() {
            return Some(format!(
                "PRIMARY KEY ({})",
                columns(def, def.primary_key.iter().map(|key| key.column))
            ));
        }
        let places =
            |count: usize, number: fn(&Table, usize) -> i64| (0..count).find(|at| number(table, *at) == oid);
        if let Some(index) =
            places(def.indexes.len(), oids::index_constraint).and_then(|at| def.indexes.get(at))
        {
            return Some(format!("UNIQUE ({})", columns(def, index.columns.iter().map(|key| key.column))));
        }
        if let Some(check) = places(def.checks.len(), oids::check).and_then(|at| def.checks.get(at)) {
            return Some(if pretty {
                format!("CHECK ({})", check.expression)
            } else {
                format!("CHECK (({}))", check.expression)
            });
        }
        let key =
            places(def.foreign_keys.len(), oids::foreign_key).and_then(|at| def.foreign_keys.get(at))?;
        let there = catalog.table_by_id(key.table)?.def();
        let (from, to) =
            (columns(def, key.columns.iter().copied()), columns(there, key.references.iter().copied()));
        let action = |what: &str, action: Referential| match action {
            Referential::NoAction => String::new(),
            Referential::Restrict => format!(" ON {what} RESTRICT"),
            Referential::Cascade => format!(" ON {what} CASCADE"),
            Referential::SetNull => format!(" ON {what} SET NULL"),
            Referential::SetDefault => format!(" ON {what} SET DEFAULT"),
        };
        let (update, delete) = (action("UPDATE", key.on_update), action("DELETE", key.on_delete));
        Some(format!(
            "FOREIGN KEY ({from}) REFERENCES {}({to}){update}{delete}",
            table_name(there, search_path)
        ))
    })
}
