//! The system catalogs that PostgreSQL's clients query: `pg_catalog` and `information_schema`, with
//! the functions and notations in these queries.
//!
//! The rows of a relation are computed from the catalog when it is scanned; its columns are those
//! of PostgreSQL 15. Statements that use the catalogs are rewritten first, because DataFusion has
//! no `regclass`, no subqueries of one value, and so on:
//!
//! ```text
//! if pg_catalog::is_about(&statement) {
//!     pg_catalog::rewrite(&mut statement, &world);   // to a tree that DataFusion can plan
//! }
//! SystemTable::named(&name, &world), function(name)
//! for change in changes.take() { session.set(..) }   // set_config, at the statement's end
//! ```

mod about;
mod cell;
pub(crate) mod comments;
mod define;
mod descriptions;
mod facts;
mod functions;
mod information;
mod lookup;
mod oids;
mod procedures;
mod relations;
mod rewrite;
mod row;
mod rows;
mod sequences;
mod subquery;
mod table;

pub(crate) use about::is_about;
pub(crate) use facts::World;
pub(crate) use functions::{SystemFunction, function};
pub(crate) use rewrite::rewrite;
pub(crate) use subquery::count_instead_of_exists;
pub(crate) use table::SystemTable;

use crate::syntax::TableName;

/// Returns the names of a system relation's columns.
pub(crate) fn system_columns(name: &TableName) -> Option<Vec<String>> {
    let relation = relations::find(name.schema.as_deref().unwrap_or("pg_catalog"), &name.name)?;
    Some(relation.columns.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// Returns the documented functions: name, types of arguments, documentation.
#[cfg(test)]
pub(crate) fn documented() -> impl Iterator<Item = (&'static str, &'static [crate::expr::Kind], &'static str)>
{
    functions::all().filter_map(|function| Some((function.name, function.arguments?, function.doc)))
}
