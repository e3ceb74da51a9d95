//! Statements with subqueries that lock rows: `UPDATE job SET .. WHERE id IN (SELECT id FROM job ..
//! LIMIT 1 FOR UPDATE SKIP LOCKED)`.
//!
//! What DataFusion plans only reads. So these subqueries are run first, by the direct path, and the
//! statement is planned each time with parameters in their places: a list or a value in an
//! expression, VALUES in WITH and FROM. What they find is the same whatever row the statement is
//! at, since a subquery that looks at the statement's own row is refused.

use std::ops::ControlFlow;

use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{Expr, Query, Statement as Tree, Value, Visitor, VisitorMut};

use super::prepare::Found;
use super::{Plan, Session};
use crate::datum::Datum;
use crate::direct::{Binder, Select};
use crate::error::{Error, Result};
use crate::expr::{Failure, MOST_PARAMETERS, parameter};
use crate::sqlstate::{CARDINALITY_VIOLATION, STATEMENT_TOO_COMPLEX, SYNTAX_ERROR};
use crate::syntax::walk;
use crate::syntax::{Plain, one, quote_ident};

/// A statement whose subqueries lock rows.
#[derive(Debug)]
pub(crate) struct Staged {
    tree: Box<Tree>,
    subqueries: Vec<Subquery>,
    /// Of its own parameters; those in places of subqueries come behind them.
    params: Vec<Option<ColumnType>>,
}

#[derive(Debug)]
struct Subquery {
    select: Select,
    names: Vec<String>,
    kinds: Vec<ColumnType>,
    place: Place,
}

/// Where a subquery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind IN.
    List,
    /// For one value.
    Value,
    /// In WITH, or in FROM.
    Rows,
}

impl Staged {
    /// `None` for a statement without such subqueries.
    ///
    /// Errors: whatever is wrong with it.
    pub fn plan(session: &mut Session, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Option<Found>> {
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
        let staged = Staged { tree: Box::new(tree.clone()), subqueries, params };
        // What it takes and gives does not depend on how many rows there are.
        let counts = vec![1; staged.subqueries.len()];
        let (_, mut params, columns) = staged.fill(session, &counts)?;
        params.truncate(staged.params.len());
        Ok(Some((Plan::Staged(staged), params, columns)))
    }

    /// Locks the rows. The statement's plan for what they gave, and the parameters that it takes.
    ///
    /// Errors: those of locking; 21000 for a value of several rows.
    pub fn start(&self, session: &mut Session, params: &[Datum]) -> Result<(Found, Vec<Datum>)> {
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
            if all.len() > MOST_PARAMETERS {
                let what = format!("a subquery locks more than the {MOST_PARAMETERS} rows that it may");
                return Err(
                    Error::new(STATEMENT_TOO_COMPLEX, what).with_hint("Lock them in parts, with LIMIT.")
                );
            }
        }
        Ok((self.fill(session, &counts)?, all))
    }

    /// The plan for so many rows of each subquery.
    fn fill(&self, session: &mut Session, counts: &[usize]) -> Result<Found> {
        let mut types = self.params.clone();
        for (subquery, count) in self.subqueries.iter().zip(counts) {
            let row = subquery.kinds.iter().cloned().map(Some);
            types.extend(std::iter::repeat_n(row, subquery.stands_for(*count)).flatten());
        }
        let mut tree = self.tree.clone();
        let filled = self.subqueries.iter().zip(counts.iter().copied());
        let mut filler = Filler { left: filled, next: self.params.len() + 1, depth: 0 };
        let _ = walk::visit_mut(&mut *tree, &mut filler);
        session.plan_unstaged(&tree, &types)
    }
}

impl Subquery {
    /// How many rows of parameters there are for so many rows: one of NULLs where there is none and
    /// something has to be there.
    fn stands_for(&self, rows: usize) -> usize {
        if self.place == Place::List { rows } else { rows.max(1) }
    }
}

/// The subquery of an expression that locks rows.
fn locking(expr: &Expr) -> Option<(&Query, Place)> {
    let (query, place) = match expr {
        Expr::InSubquery { subquery, .. } => (subquery, Place::List),
        Expr::Subquery(subquery) => (subquery, Place::Value),
        _ => return None,
    };
    (!query.locks.is_empty()).then_some((query, place))
}

/// Finds them, and how many parameters there are.
struct Finder {
    queries: Vec<(Query, Place)>,
    params: usize,
    /// Where those of expressions are, which are visited as queries as well.
    of_expressions: Vec<*const Query>,
    /// How many queries it is within.
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

/// Puts parameters into their places, in the order in which they are found.
struct Filler<'s, I: Iterator<Item = (&'s Subquery, usize)>> {
    /// Those that are still to come, and how many rows they have.
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

    /// What stands for an expression's subquery of so many rows.
    fn list(&mut self, subquery: &Subquery, rows: usize) -> Vec<Expr> {
        let value = |name| Expr::Value(Value::Placeholder(name).into());
        (0..subquery.stands_for(rows)).map(|_| value(self.placeholder())).collect()
    }

    /// What stands for a query of so many rows. `None` for none, which there is not.
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
                // Of no rows none is it, be it NULL itself.
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
