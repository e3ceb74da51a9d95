//! Statements with subqueries that lock rows: `UPDATE job SET .. WHERE id IN (SELECT id FROM job .. LIMIT 1 FOR UPDATE SKIP LOCKED)`.
//!
//! What DataFusion plans only reads. So these subqueries are run first, by the direct path, and the statement is planned each time with parameters in their places: as many as there are rows.
//! What they find is the same whatever row the statement is at, since a subquery that looks at the statement's own row is refused.

use std::ops::ControlFlow;

use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Statement as Tree, Value, Visit, VisitMut, Visitor, VisitorMut,
};

use super::prepare::Found;
use super::{Plan, Session};
use crate::datum::Datum;
use crate::direct::{Binder, Select};
use crate::error::{Error, Result};
use crate::expr::{Failure, parameter};
use crate::sqlstate::{CARDINALITY_VIOLATION, SYNTAX_ERROR};

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
    kind: ColumnType,
    /// It stands for one value, not for a list.
    is_scalar: bool,
}

impl Staged {
    /// `None` for a statement without such subqueries.
    ///
    /// Errors: whatever is wrong with it.
    pub fn plan(session: &mut Session, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Option<Found>> {
        let mut finder = Finder { queries: Vec::new(), params: types.len() };
        let _ = tree.visit(&mut finder);
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
        for (query, is_scalar) in &finder.queries {
            let (select, columns) = Select::plan(query, &mut binder).map_err(|failure| match failure {
                Failure::Unknown => Error::unsupported("FOR UPDATE in this subquery"),
                Failure::Error(error) => error,
            })?;
            let [column] = &columns[..] else {
                return Err(Error::new(SYNTAX_ERROR, "subquery must return only one column"));
            };
            subqueries.push(Subquery { select, kind: column.kind.clone(), is_scalar: *is_scalar });
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
            let mut values: Vec<Datum> =
                session.lock_rows(&subquery.select, params)?.into_iter().flatten().collect();
            if subquery.is_scalar && values.len() > 1 {
                let what = "more than one row returned by a subquery used as an expression";
                return Err(Error::new(CARDINALITY_VIOLATION, what));
            }
            if subquery.is_scalar && values.is_empty() {
                values.push(Datum::Null);
            }
            counts.push(values.len());
            all.extend(values);
        }
        Ok((self.fill(session, &counts)?, all))
    }

    /// The plan for so many rows of each subquery.
    fn fill(&self, session: &mut Session, counts: &[usize]) -> Result<Found> {
        let mut types = self.params.clone();
        for (subquery, count) in self.subqueries.iter().zip(counts) {
            types.extend(std::iter::repeat_n(Some(subquery.kind.clone()), *count));
        }
        let mut tree = self.tree.clone();
        let mut filler = Filler { counts: counts.iter(), next: self.params.len() + 1 };
        let _ = VisitMut::visit(&mut *tree, &mut filler);
        session.plan_unstaged(&tree, &types)
    }
}

/// The subquery of an expression that locks rows, and whether it stands for one value.
fn locking(expr: &Expr) -> Option<(&Query, bool)> {
    let (query, is_scalar) = match expr {
        Expr::InSubquery { subquery, .. } => (subquery, false),
        Expr::Subquery(subquery) => (subquery, true),
        _ => return None,
    };
    (!query.locks.is_empty()).then_some((query, is_scalar))
}

/// Finds them, and how many parameters there are.
struct Finder {
    queries: Vec<(Query, bool)>,
    params: usize,
}

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.queries.extend(locking(expr).map(|(query, is_scalar)| (query.clone(), is_scalar)));
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
struct Filler<'c> {
    counts: std::slice::Iter<'c, usize>,
    next: usize,
}

impl Filler<'_> {
    fn placeholder(&mut self) -> Expr {
        let name = format!("${}", self.next);
        self.next += 1;
        Expr::Value(Value::Placeholder(name).into())
    }
}

impl VisitorMut for Filler<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if locking(expr).is_none() {
            return ControlFlow::Continue(());
        }
        let count = self.counts.next().copied().unwrap_or_default();
        let list: Vec<Expr> = (0..count).map(|_| self.placeholder()).collect();
        *expr = match (std::mem::replace(expr, Expr::Value(Value::Null.into())), list) {
            // Of no rows none is it, be it NULL itself.
            (Expr::InSubquery { negated, .. }, list) if list.is_empty() => {
                Expr::Value(Value::Boolean(negated).into())
            }
            (Expr::InSubquery { expr, negated, .. }, list) => Expr::InList { expr, list, negated },
            (_, list) => list.into_iter().next().unwrap_or_else(|| Expr::Value(Value::Null.into())),
        };
        ControlFlow::Continue(())
    }
}
