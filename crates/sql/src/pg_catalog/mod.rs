//! The system catalogs that clients of PostgreSQL ask for: `pg_catalog` and `information_schema`, and the functions and notations of their queries.
//!
//! Relations are made from the catalog when somebody scans them. Statements that ask for them are rewritten first, because DataFusion has no `regclass`, no
//! `OPERATOR(pg_catalog.~)` and so on:
//!
//! ```text
//! if pg_catalog::is_about(&statement) {
//!     pg_catalog::rewrite(&mut statement, &catalog, &facts)?;     // a syntax tree that DataFusion plans
//! }
//! pg_catalog::register(&context, &catalog, &facts);               // schemas and functions of a SessionContext; cheap
//! for change in facts.take_changes() { session.set(..) }          // set_config
//! ```

mod facts;

use cairn_table::Catalog;
use cairn_vfs::sync::Arc;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Statement;

pub(crate) use facts::{SessionFacts, SettingChange};

use crate::Result;

/// Whether a statement names relations of the system catalogs, or functions and types that only these have.
pub(crate) fn is_about(statement: &Statement) -> bool {
    let _ = statement;
    false
}

/// Turns what PostgreSQL's clients write into what DataFusion plans, with the same meaning.
///
/// Errors: 42P01 for `'...'::regclass` that names nothing, and its kin.
pub(crate) fn rewrite(statement: &mut Statement, catalog: &Catalog, facts: &SessionFacts) -> Result<()> {
    let _ = (statement, catalog, facts);
    Ok(())
}

/// Registers the schemas `pg_catalog` and `information_schema` in the context's default catalog, and the functions.
pub(crate) fn register(context: &SessionContext, catalog: &Arc<Catalog>, facts: &Arc<SessionFacts>) {
    let _ = (context, catalog, facts);
}
