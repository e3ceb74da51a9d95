//! A row of a system relation, and the parts from which several relations are made.

use cairn_table::row::Type;
use cairn_table::schema::{ColumnType, IndexDef, ViewDef};
use cairn_table::{Catalog, Table};
use cairn_vfs::sync::Arc;

use super::cell::Cell;
use super::facts::SessionFacts;
use super::{define, oids};
use crate::runtime::sequence::HIDDEN;

/// A row: the values of columns that differ from their default.
pub(super) type Row = Vec<(&'static str, Cell)>;

macro_rules! row {
    ($($name:literal: $value:expr),* $(,)?) => { vec![$(($name, $crate::pg_catalog::cell::Cell::from($value))),*] };
}
pub(super) use row;

/// Returns the tables that are visible to users.
pub(super) fn tables(catalog: &Catalog) -> impl Iterator<Item = &Arc<Table>> {
    catalog.tables().filter(|table| table.def().schema != HIDDEN)
}

/// Returns the namespaces that are visible to users, without those of the system.
pub(super) fn schemas(catalog: &Catalog) -> impl Iterator<Item = &str> {
    catalog.schemas().filter(|schema| *schema != HIDDEN)
}

/// Returns a table's indexes with their OIDs, and whether each is the primary key, which comes
/// first.
pub(super) fn indexes_of(table: &Table) -> Vec<(i64, IndexDef, bool)> {
    let def = table.def();
    let primary =
        (!def.primary_key.is_empty()).then(|| (oids::primary_index(table), define::primary_index(def), true));
    let others =
        def.indexes.iter().enumerate().map(|(at, index)| (oids::index(table, at), index.clone(), false));
    primary.into_iter().chain(others).collect()
}

/// The row of `pg_attribute` for a column of a type.
pub(super) fn attribute(relation: i64, at: usize, name: &str, oid: i64, modifier: i64) -> Row {
    let kind = super::relations::type_by_oid(oid);
    let get = |column: &str| kind.map_or("", |kind| kind.get(column));
    let number = |column: &str| get(column).parse::<i64>().unwrap_or_default();
    row! {
        "attrelid": relation, "attname": name, "atttypid": oid, "attstattarget": -1_i64, "attlen": number("typlen"), "attnum": at + 1, "attcacheoff": -1_i64, "atttypmod": modifier,
        "attbyval": get("typbyval") == "t", "attalign": get("typalign"), "attstorage": get("typstorage"), "attislocal": true, "attcollation": number("typcollation"),
    }
}

/// Returns the columns of a view. Their types become known when it is planned. Until then they are
/// reported as text.
pub(super) fn view_columns(facts: &SessionFacts, id: u32, view: &ViewDef) -> Vec<(String, ColumnType)> {
    facts
        .views
        .get(&id)
        .cloned()
        .unwrap_or_else(|| view.columns.iter().map(|name| (name.clone(), Type::Text.into())).collect())
}
