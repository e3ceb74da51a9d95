//! The system catalogs that clients of PostgreSQL ask for: `pg_catalog` and `information_schema`, and the functions and notations of their queries.
//!
//! Relations are made from the catalog when somebody scans them; their columns are PostgreSQL 15's. Statements that ask for them are rewritten first, because
//! DataFusion has no `regclass`, no `OPERATOR(pg_catalog.~)` and so on:
//!
//! ```text
//! if pg_catalog::is_about(&statement) {
//!     pg_catalog::rewrite(&mut statement, &catalog, &facts);      // a syntax tree that DataFusion plans
//! }
//! pg_catalog::register(&context, &catalog, &facts);               // schemas and functions of a SessionContext; cheap
//! for change in facts.take_changes() { session.set(..) }          // set_config
//! ```

mod about;
mod cell;
mod define;
mod facts;
mod functions;
mod information;
mod oids;
mod provider;
mod relations;
mod rewrite;
mod rows;
mod subquery;

use cairn_table::Catalog;
use cairn_vfs::sync::Arc;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::Statement;

pub(crate) use about::is_about;
pub(crate) use facts::{SessionFacts, SettingChange};
pub(crate) use oids::relation as table_oid;

/// Turns what PostgreSQL's clients write into what DataFusion plans, with the same meaning.
pub(crate) fn rewrite(statement: &mut Statement, catalog: &Catalog, facts: &SessionFacts) {
    rewrite::rewrite(statement, catalog, &facts.search_path);
}

/// The relations of a schema: `pg_catalog` or `information_schema`.
pub(crate) fn schema(
    name: &'static str,
    catalog: &Arc<Catalog>,
    facts: &Arc<SessionFacts>,
) -> Arc<dyn SchemaProvider> {
    Arc::new(provider::System { schema: name, catalog: Arc::clone(catalog), facts: Arc::clone(facts) })
}

/// One relation, for planners that look tables up by themselves. `schema` is `pg_catalog` or `information_schema`.
pub(crate) fn table(
    schema: &str,
    name: &str,
    catalog: &Arc<Catalog>,
    facts: &Arc<SessionFacts>,
) -> Option<Arc<dyn TableProvider>> {
    let relation = relations::find(schema, name)?;
    provider::System { schema: relation.schema, catalog: Arc::clone(catalog), facts: Arc::clone(facts) }
        .find(name)
}

/// The functions.
pub(crate) fn functions(catalog: &Arc<Catalog>, facts: &Arc<SessionFacts>) -> Vec<ScalarUDF> {
    let world = Arc::new(functions::World { catalog: Arc::clone(catalog), facts: Arc::clone(facts) });
    functions::functions(&world).collect()
}

/// Registers the schemas `pg_catalog` and `information_schema` in the context's default catalog, and the functions.
///
/// Errors: there is no such catalog, or it takes no schemas.
pub(crate) fn register(
    context: &SessionContext,
    catalog: &Arc<Catalog>,
    facts: &Arc<SessionFacts>,
) -> Result<()> {
    let name = context.state().config_options().catalog.default_catalog.clone();
    if let Some(to) = context.catalog(&name) {
        for name in ["pg_catalog", "information_schema"] {
            to.register_schema(name, schema(name, catalog, facts))?;
        }
    }
    functions(catalog, facts).into_iter().for_each(|function| context.register_udf(function));
    Ok(())
}

#[cfg(test)]
mod tests;
