//! The system's own tables and functions, as clients of PostgreSQL ask for them.
//!
//! Made from the catalog whenever a statement names them. Numbers (`oid`) follow from those of tables, so that they stay the same.

mod constraints;
mod functions;
mod information;
mod relations;
mod system;
mod table;
mod text;
mod types;

use cairn_vfs::sync::Arc;
use datafusion::catalog::TableProvider;

pub(crate) use functions::function;
pub(crate) use system::System;
pub(crate) use types::type_oid;

use crate::syntax::TableName;

/// A table of the system; `None` where there is none of this name.
pub(crate) fn table(system: &System, name: &TableName) -> Option<Arc<dyn TableProvider>> {
    let found = match name.schema.as_deref() {
        Some("information_schema") => information::table(system, &name.name),
        None | Some("pg_catalog") => relations::table(system, &name.name)
            .or_else(|| constraints::table(system, &name.name))
            .or_else(|| types::table(system, &name.name)),
        Some(_) => None,
    };
    found.and_then(table::Relation::provider)
}
