//! Marks the WITH queries that are computed once, so that they are found again in the plan
//! (`general/operators/shared_cte`).

use std::ops::ControlFlow;

use sqlparser::ast::{self, CteAsMaterialized, TableFactor, Visit};

use crate::general::markers::SHARED_CTE;
use crate::syntax::build::{call, number};
use crate::syntax::walk;
use crate::syntax::{Plain, ident, one};

/// Marks the queries of a WITH. `marks`: the number of markers in the statement so far.
pub(super) fn mark(query: &mut ast::Query, marks: &mut i64) {
    let Some(with) = &query.with else { return };
    let names: Vec<String> = with.cte_tables.iter().map(|cte| ident(&cte.alias.name)).collect();
    let looks: Vec<usize> = names.iter().map(|name| count(&*query, name)).collect();
    let recursive = with.recursive;
    let Some(with) = &mut query.with else { return };
    for ((cte, name), looks) in with.cte_tables.iter_mut().zip(&names).zip(looks) {
        // A recursive query must stay recognizable as one.
        if recursive && count(&*cte.query, name) > 0 {
            continue;
        }
        *marks += 1;
        let always = match cte.materialized {
            Some(CteAsMaterialized::Materialized) => true,
            Some(CteAsMaterialized::NotMaterialized) => false,
            None => looks > 1,
        };
        cte.materialized = None;
        let Some(mut around) = empty() else { continue };
        let inner = std::mem::replace(&mut cte.query, empty().unwrap_or_else(|| around.clone()));
        around.body = Box::new(ast::SetExpr::Query(inner));
        let mark = call(SHARED_CTE, vec![number(*marks * 2 + i64::from(!always))]);
        around.limit_clause =
            Some(ast::LimitClause::LimitOffset { limit: Some(mark), offset: None, limit_by: Vec::new() });
        cte.query = around;
    }
}

fn empty() -> Option<Box<ast::Query>> {
    let parsed = one("SELECT 1").ok()?;
    match &*parsed.statement {
        Plain::Tree(ast::Statement::Query(query)) => Some(query.clone()),
        _ => None,
    }
}

/// Counts the references to a name as a table.
pub(super) fn count(tree: &impl Visit, name: &str) -> usize {
    struct Looks<'a>(&'a str, usize);
    impl ast::Visitor for Looks<'_> {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            if let TableFactor::Table { name, args: None, .. } = factor
                && let [ast::ObjectNamePart::Identifier(only)] = name.0.as_slice()
                && ident(only) == self.0
            {
                self.1 += 1;
            }
            ControlFlow::Continue(())
        }
    }
    let mut looks = Looks(name, 0);
    let _ = walk::visit(tree, &mut looks);
    looks.1
}
