//! Statements with subqueries that lock rows: `UPDATE job SET .. WHERE id IN (SELECT id FROM job ..
//! LIMIT 1 FOR UPDATE SKIP LOCKED)`.
//!
//! DataFusion's plans can only read. So the direct path runs these subqueries first. The statement
//! is then planned, for each run, with parameters in their places: a list or a value in an
//! expression, VALUES in WITH and FROM. The result of such a subquery is the same for all rows of
//! the statement, because correlated ones are rejected.

use std::ops::ControlFlow;

use cairn_table::schema::ColumnType;
use sqlparser::ast::{Expr, Query, Statement as Tree, Value, Visitor, VisitorMut};

use super::Executor;
use super::plan::{Found, LockingSubqueries, Place, Plan, Subquery};
use crate::datum::Datum;
use crate::direct::{Binder, Select};
use crate::error::{Error, Result};
use crate::expr::{Failure, MAX_PARAMETERS, parameter};
use crate::sqlstate::{CARDINALITY_VIOLATION, STATEMENT_TOO_COMPLEX, SYNTAX_ERROR};
use crate::syntax::walk;
use crate::syntax::{Plain, one, quote_ident};

impl LockingSubqueries {
    /// Plans a statement; `None` if it has no such subqueries.
    ///
    /// Errors: any error of the statement.
    pub fn plan(session: &mut Executor, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Option<Found>> {
        let mut finder =
            Finder { queries: Vec::new(), params: types.len(), of_expressions: Vec::new(), depth: 0 };
        let _ = walk::visit(tree, &mut finder);
        if finder.queries.is_empty() {
            return Ok(None);
        }
        let catalog = std::sync::Arc::clone(session.transaction()?.view().catalog());
        let mut binder = Binder {
            catalog: &catalog,
            search_path: &session.context.settings.search_path,
            params: types.to_vec(),
        };
        let mut subqueries = Vec::new();
        for (query, place) in &finder.queries {
            let (select, columns) = Select::plan(query, &mut binder).map_err(|failure| match failure {
                Failure::Unknown => Error::unsupported("FOR UPDATE in this subquery"),
                Failure::Error(error) => error,
            })?;
            if *place != Place::Rows && columns.len() != 1 {
                return Err(Error::new(SYNTAX_ERROR, "subquery must return only one column"));
            }
            let (names, kinds) = columns.into_iter().map(|column| (column.name, column.kind)).unzip();
            subqueries.push(Subquery { select, names, kinds, place: *place });
        }
        let mut params = binder.params;
        params.resize(finder.params.max(params.len()), None);
        let statement = LockingSubqueries { tree: Box::new(tree.clone()), subqueries, params };
        // Parameters and columns do not depend on the number of rows.
        let counts = vec![1; statement.subqueries.len()];
        let (_, mut params, columns) = statement.fill(session, &counts)?;
        params.truncate(statement.params.len());
        Ok(Some((Plan::LockingSubqueries(statement), params, columns)))
    }

    /// Locks the rows. Returns the statement's plan for the results of its subqueries, and the
    /// parameters for that plan.
    ///
    /// Errors: those of locking; 21000 for a scalar subquery with several rows.
    pub fn start(&self, session: &mut Executor, params: &[Datum]) -> Result<(Found, Vec<Datum>)> {
        let (mut all, mut counts) = (params.to_vec(), Vec::new());
        all.resize(self.params.len(), Datum::Null);
        for subquery in &self.subqueries {
            let mut rows = session.lock_rows(&subquery.select, params)?;
            if subquery.place == Place::Value && rows.len() > 1 {
                let what = "more than one row returned by a subquery used as an expression";
                return Err(Error::new(CARDINALITY_VIOLATION, what));
            }
            counts.push(rows.len());
            if subquery.stands_for(rows.len()) > rows.len() {
                rows.push(vec![Datum::Null; subquery.kinds.len()]);
            }
            all.extend(rows.into_iter().flatten());
            if all.len() > MAX_PARAMETERS {
                let what = format!("a subquery locks more than the {MAX_PARAMETERS} rows that it may");
                return Err(
                    Error::new(STATEMENT_TOO_COMPLEX, what).with_hint("Lock them in parts, with LIMIT.")
                );
            }
        }
        Ok((self.fill(session, &counts)?, all))
    }

    /// Plans the statement for these numbers of rows of the subqueries.
    fn fill(&self, session: &mut Executor, counts: &[usize]) -> Result<Found> {
        let mut types = self.params.clone();
        for (subquery, count) in self.subqueries.iter().zip(counts) {
            let row = subquery.kinds.iter().cloned().map(Some);
            types.extend(std::iter::repeat_n(row, subquery.stands_for(*count)).flatten());
        }
        let mut tree = self.tree.clone();
        let filled = self.subqueries.iter().zip(counts.iter().copied());
        let mut filler = Filler { left: filled, next: self.params.len() + 1, depth: 0 };
        let _ = walk::visit_mut(&mut *tree, &mut filler);
        session.plan_without_locking(&tree, &types)
    }
}

impl Subquery {
    /// Returns the number of rows of parameters for `rows` rows. Where the place cannot be left
    /// empty, that is at least one, which then has NULLs.
    fn stands_for(&self, rows: usize) -> usize {
        if self.place == Place::List { rows } else { rows.max(1) }
    }
}

/// Returns the subquery of an expression, if it locks rows.
fn locking(expr: &Expr) -> Option<(&Query, Place)> {
    let (query, place) = match expr {
        Expr::InSubquery { subquery, .. } => (subquery, Place::List),
        Expr::Subquery(subquery) => (subquery, Place::Value),
        _ => return None,
    };
    (!query.locks.is_empty()).then_some((query, place))
}

/// Collects the locking subqueries, and counts parameters.
struct Finder {
    queries: Vec<(Query, Place)>,
    params: usize,
    /// The subqueries of expressions, which the visitor visits again as queries.
    of_expressions: Vec<*const Query>,
    /// The number of enclosing queries.
    depth: usize,
}

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1
            && !query.locks.is_empty()
            && !self.of_expressions.contains(&std::ptr::from_ref(query))
        {
            self.queries.push((query.clone(), Place::Rows));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Some((query, place)) = locking(expr) {
            self.of_expressions.push(query);
            self.queries.push((query.clone(), place));
        }
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Ok(number) = parameter(name)
        {
            self.params = self.params.max(number + 1);
        }
        ControlFlow::Continue(())
    }
}

/// Replaces subqueries by parameters, in the order in which they were found.
struct Filler<'s, I: Iterator<Item = (&'s Subquery, usize)>> {
    /// The remaining subqueries, with their numbers of rows.
    left: I,
    /// The number of the next parameter.
    next: usize,
    depth: usize,
}

impl<'s, I: Iterator<Item = (&'s Subquery, usize)>> Filler<'s, I> {
    fn placeholder(&mut self) -> String {
        let name = format!("${}", self.next);
        self.next += 1;
        name
    }

    /// Returns the parameters that replace an expression's subquery of `rows` rows.
    fn list(&mut self, subquery: &Subquery, rows: usize) -> Vec<Expr> {
        let value = |name| Expr::Value(Value::Placeholder(name).into());
        (0..subquery.stands_for(rows)).map(|_| value(self.placeholder())).collect()
    }

    /// Returns the VALUES query that replaces a subquery of `rows` rows; `None` if it cannot be
    /// parsed, which does not happen.
    fn rows(&mut self, subquery: &Subquery, rows: usize) -> Option<Query> {
        let row = |filler: &mut Self| {
            let values: Vec<String> = subquery.kinds.iter().map(|_| filler.placeholder()).collect();
            format!("({})", values.join(", "))
        };
        let values: Vec<String> = (0..subquery.stands_for(rows)).map(|_| row(self)).collect();
        let names: Vec<_> = subquery.names.iter().map(|name| quote_ident(name)).collect();
        let condition = if rows == 0 { " WHERE false" } else { "" };
        let (values, names) = (values.join(", "), names.join(", "));
        let text = format!("SELECT * FROM (VALUES {values}) AS locked({names}){condition}");
        match &*one(&text).ok()?.statement {
            Plain::Tree(Tree::Query(query)) => Some((**query).clone()),
            _ => None,
        }
    }
}

impl<'s, I: Iterator<Item = (&'s Subquery, usize)>> VisitorMut for Filler<'s, I> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1
            && !query.locks.is_empty()
            && let Some((subquery, rows)) = self.left.next()
            && let Some(filled) = self.rows(subquery, rows)
        {
            *query = filled;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if locking(expr).is_some()
            && let Some((subquery, rows)) = self.left.next()
        {
            let list = self.list(subquery, rows);
            *expr = match (std::mem::replace(expr, Expr::Value(Value::Null.into())), list) {
                // Nothing is IN an empty result, not even NULL.
                (Expr::InSubquery { negated, .. }, list) if list.is_empty() => {
                    Expr::Value(Value::Boolean(negated).into())
                }
                (Expr::InSubquery { expr, negated, .. }, list) => Expr::InList { expr, list, negated },
                (_, list) => list.into_iter().next().unwrap_or_else(|| Expr::Value(Value::Null.into())),
            };
        }
        ControlFlow::Continue(())
    }
}
