//! References from a subquery to a table of an enclosing query, where a column of the subquery has
//! the name of that table.
//!
//! In `SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a = a.id)`, DataFusion reads `a.id` as
//! the field `id` of the column `a`. Columns here never have fields, so the table is meant.

use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow::datatypes::{Field, SchemaRef};
use cairn_vfs::sync::Arc;
use datafusion::common::{Column, TableReference, not_impl_err};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{Expr, TableSource};
use sqlparser::ast::{self, Statement as Tree, TableFactor};

use crate::syntax::walk;
use crate::syntax::{TableName, ident, qualified};

/// The tables of a statement by name. Ambiguous names are left out.
#[derive(Debug, Default)]
pub(crate) struct Enclosing {
    tables: HashMap<String, (TableReference, SchemaRef)>,
}

impl Enclosing {
    /// Collects the tables of a statement with subqueries; other statements need none. `source`
    /// looks up a table.
    pub fn new(tree: &Tree, source: impl Fn(&TableName) -> Option<Arc<dyn TableSource>>) -> Self {
        let mut named = Named::default();
        let _ = walk::visit(tree, &mut named);
        let is_query = matches!(tree, Tree::Query(_));
        if named.queries <= usize::from(is_query) {
            return Enclosing::default();
        }
        let mut tables = HashMap::new();
        for (called, meaning) in named.tables {
            let [name] = meaning.as_slice() else { continue };
            let Some(name) = name.as_ref().filter(|_| !named.own.contains(&called)) else { continue };
            let Some(source) = source(&name.table) else { continue };
            let reference = match (&name.table.schema, name.is_alias) {
                (Some(schema), false) => TableReference::partial(schema.as_str(), called.as_str()),
                _ => TableReference::bare(called.as_str()),
            };
            tables.insert(called, (reference, source.schema()));
        }
        Enclosing { tables }
    }
}

impl ExprPlanner for Enclosing {
    fn plan_compound_identifier(
        &self,
        field: &Field,
        _: Option<&TableReference>,
        nested: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let found = match nested {
            [column] => self.tables.get(field.name()).and_then(|(table, schema)| {
                let field = schema.fields().iter().find(|field| field.name() == column)?;
                let column = Column::new(Some(table.clone()), column);
                Some(Expr::OuterReferenceColumn(Arc::clone(field), column))
            }),
            _ => None,
        };
        match found {
            Some(expr) => Ok(PlannerResult::Planned(expr)),
            None => not_impl_err!("fields of columns"),
        }
    }
}

/// A table of a statement.
#[derive(Debug, PartialEq)]
struct Meaning {
    table: TableName,
    is_alias: bool,
}

/// The names that a statement gives to its tables. `None` stands for an item that is not a table of
/// the catalog, or that has a list of column aliases.
#[derive(Debug, Default)]
struct Named {
    tables: HashMap<String, Vec<Option<Meaning>>>,
    /// Names defined by WITH.
    own: Vec<String>,
    queries: usize,
}

impl ast::Visitor for Named {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        self.queries += 1;
        self.own
            .extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| ident(&cte.alias.name)));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (called, meaning) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let Ok(table) = qualified(name) else { return ControlFlow::Continue(()) };
                match alias {
                    None => (table.name.clone(), Some(Meaning { table, is_alias: false })),
                    Some(alias) if alias.columns.is_empty() => {
                        (ident(&alias.name), Some(Meaning { table, is_alias: true }))
                    }
                    Some(alias) => (ident(&alias.name), None),
                }
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Derived { alias: Some(alias), .. } => (ident(&alias.name), None),
            _ => return ControlFlow::Continue(()),
        };
        let meanings = self.tables.entry(called).or_default();
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
        ControlFlow::Continue(())
    }
}
