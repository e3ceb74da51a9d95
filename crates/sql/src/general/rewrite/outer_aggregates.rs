//! Aggregates in a subquery that belong to an outer query.
//!
//! An aggregate is computed over the rows of the query that its columns come from: in `SELECT
//! (SELECT sum(t.a) FROM u) FROM t` that is the outer query (PostgreSQL's manual, 4.2.7).
//! DataFusion would compute it over the rows of the subquery instead, so such a statement is
//! rejected.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Select, Statement, Visitor};

use super::scope::{From, Lookup};
use crate::error::{Error, Result};
use crate::syntax::ident;
use crate::syntax::shape::is_call_of_aggregate;
use crate::syntax::walk::{self, visit_expressions};

/// Rejects aggregates of an outer query's columns.
///
/// Errors: 0A000.
pub(super) fn refuse(tree: &Statement, lookup: Lookup<'_>) -> Result<()> {
    match walk::visit(tree, &mut Finder { lookup, around: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(Error::unsupported("an aggregate of an outer query's columns within a subquery"))
        }
    }
}

struct Finder<'a> {
    lookup: Lookup<'a>,
    /// The tables of each enclosing SELECT, outermost first.
    around: Vec<Vec<From>>,
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.around.push(self.lookup.tables(select));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Some((own, outer)) = self.around.split_last() else { return ControlFlow::Continue(()) };
        if outer.is_empty() || !is_call_of_aggregate(expr) {
            return ControlFlow::Continue(());
        }
        let (mut columns, mut outer_columns) = (0, 0);
        let _ = visit_expressions(expr, |part| {
            if let Some(column) = column(part) {
                columns += 1;
                let is_outer = !own.iter().any(|from| may_have(from, &column))
                    && outer.iter().flatten().any(|from| has(from, &column));
                outer_columns += usize::from(is_outer);
            }
            ControlFlow::<()>::Continue(())
        });
        // With a column of the subquery among its arguments, the aggregate belongs to the subquery.
        if columns > 0 && columns == outer_columns {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Returns a column reference: the table, if given, and the column.
fn column(expr: &Expr) -> Option<(Option<String>, String)> {
    match expr {
        Expr::Identifier(name) => Some((None, ident(name))),
        Expr::CompoundIdentifier(names) => {
            let [.., table, name]: &[Ident] = names else { return None };
            Some((Some(ident(table)), ident(name)))
        }
        _ => None,
    }
}

/// Whether a table is known to have a column.
fn has(from: &From, (table, column): &(Option<String>, String)) -> bool {
    match table {
        Some(table) => from.name.as_ref() == Some(table),
        None => from.columns.as_ref().is_some_and(|columns| columns.contains(column)),
    }
}

/// Whether a table may have a column, as far as its columns are known.
fn may_have(from: &From, column: &(Option<String>, String)) -> bool {
    let is_unknown = match column.0 {
        Some(_) => from.name.is_none(),
        None => from.columns.is_none(),
    };
    is_unknown || has(from, column)
}
