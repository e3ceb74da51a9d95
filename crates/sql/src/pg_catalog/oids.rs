//! The OIDs of database objects in PostgreSQL's catalogs.
//!
//! OIDs of tables, views and namespaces derive from their numbers in the catalog. Those of a
//! table's parts derive from the table's OID and their position in the table. None of them collides
//! with PostgreSQL's own, which are below 16,384.
//!
//! ```text
//! 16384 + id * 1024 + | 0         the table, view or namespace itself
//!                     | 2, 3      the primary key: its index, its constraint
//!                     | 4 ...     indexes: the index, its constraint
//!                     | 260 ...   checks
//!                     | 512 ...   foreign keys
//!                     | 768 ...   defaults of columns
//! 3000000000 + place      sequences, in the order of their names
//! ```

use cairn_table::{Catalog, PUBLIC, Table};

const FIRST: i64 = 16_384;
const SPAN: i64 = 1_024;
const SEQUENCES: i64 = 3_000_000_000;

/// The namespaces that always exist.
pub(super) const PG_CATALOG: i64 = 11;
pub(super) const PG_TOAST: i64 = 99;
pub(super) const PG_PUBLIC: i64 = 2_200;
pub(super) const INFORMATION_SCHEMA: i64 = 13_207;
/// The one user.
pub(super) const USER: i64 = 10;
/// The one database.
pub(super) const DATABASE: i64 = 5;
/// The access method of indexes.
pub(super) const BTREE: i64 = 403;
/// The access method of tables.
pub(super) const HEAP: i64 = 2;

/// The OID of a table or view.
pub(super) fn relation(id: u32) -> i64 {
    FIRST + i64::from(id) * SPAN
}

pub(super) fn primary_index(table: &Table) -> i64 {
    relation(table.id()) + 2
}

pub(super) fn primary_constraint(table: &Table) -> i64 {
    relation(table.id()) + 3
}

pub(super) fn index(table: &Table, at: usize) -> i64 {
    relation(table.id()) + 4 + 2 * at as i64
}

pub(super) fn index_constraint(table: &Table, at: usize) -> i64 {
    index(table, at) + 1
}

pub(super) fn check(table: &Table, at: usize) -> i64 {
    relation(table.id()) + 260 + at as i64
}

pub(super) fn foreign_key(table: &Table, at: usize) -> i64 {
    relation(table.id()) + 512 + at as i64
}

pub(super) fn default(table: &Table, column: usize) -> i64 {
    relation(table.id()) + 768 + column as i64
}

pub(super) fn sequence(at: usize) -> i64 {
    SEQUENCES + at as i64
}

/// The OID of a namespace.
pub(super) fn namespace(catalog: &Catalog, name: &str) -> i64 {
    match name {
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        "pg_toast" => PG_TOAST,
        PUBLIC => PG_PUBLIC,
        _ => catalog.schema_id(name).map_or(0, relation),
    }
}
