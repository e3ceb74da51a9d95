//! Turns correlated subqueries into joins.
//!
//! DataFusion pulls correlated conditions up through the subquery and joins by them. That is
//! correct where no operator between such a condition and the top of the subquery depends on which
//! rows occur together. `trust.rs` recognizes these shapes and leaves them to DataFusion.
//! Everywhere else the result is wrong, or DataFusion gives up: an aggregate without groups returns
//! a row for no input, a limit counts the rows of a single outer row, and a window sees only those.
//!
//! Here the subquery is computed for all outer rows together (Neumann, Kemper, "Unnesting Arbitrary
//! Queries", BTW 2015). The *domain* is the set of distinct outer values for which the subquery is
//! needed: `SELECT DISTINCT a, b FROM outer`. It is joined with the subquery's tables, and each
//! operator above keeps the rows of different values apart (`push.rs`): groups include these
//! columns, and windows and limits are partitioned by them. Finally the outer rows are joined with
//! the result by the same values (`attach.rs`). The outer rows are computed twice, which costs time
//! but does not change the result; volatile expressions such as `random()` are rejected.

mod attach;
mod push;
mod trust;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Sort, Subquery, Window, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::error::Error;
use crate::general::errors::external;
use crate::general::tree::walk::{Walk, WalkPlan};

/// The rule.
#[derive(Debug)]
pub(crate) struct Unnest;

impl AnalyzerRule for Unnest {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if has_subqueries(&plan)? { Unnesting::default().plan(plan) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        "cairn_unnest"
    }
}

/// Whether a plan contains subqueries or outer references.
fn has_subqueries(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look(|plan| {
        found |= matches!(plan, LogicalPlan::Subquery(_)) || plan.contains_outer_reference();
        plan.look_at_expressions(|expr| {
            found |= has_subquery(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether DataFusion cannot plan a subquery outside of filters and projections: a correlated one,
/// or EXISTS and IN, which become joins only in conditions.
fn is_left_over(expr: &Expr) -> Result<bool> {
    Ok(match expr {
        Expr::Exists(_) | Expr::InSubquery(_) => true,
        expr => match subquery_of(expr) {
            Some(subquery) => !outer_columns(&subquery.subquery)?.is_empty(),
            None => false,
        },
    })
}

fn refused(what: &str) -> datafusion::error::DataFusionError {
    external(Error::unsupported(format!("a correlated subquery with {what}")))
}

/// Returns the subquery of a subquery expression.
fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

/// Returns the outer columns that a plan refers to, without duplicates.
pub(crate) fn outer_columns(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    gather(plan, &mut columns)?;
    Ok(columns)
}

fn gather(plan: &LogicalPlan, columns: &mut Vec<Column>) -> Result<()> {
    let inputs = plan.inputs();
    let is_here = |column: &Column| inputs.iter().any(|input| has(input.schema(), column));
    let mut add = |column: Column| {
        if !columns.contains(&column) {
            columns.push(column);
        }
    };
    plan.look_at_expressions(|expr| {
        expr.look(|expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                add(column.clone());
            }
            if let Some(subquery) = subquery_of(expr) {
                let inner = outer_columns(&subquery.subquery)?;
                inner.into_iter().filter(|column| !is_here(column)).for_each(&mut add);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    match plan {
        // The right side of a lateral join may refer to the left side.
        LogicalPlan::Join(join) if attach::lateral(&join.right).is_some() => {
            gather(&join.left, columns)?;
            let left = join.left.schema();
            for column in outer_columns(&join.right)? {
                if !has(left, &column) && !columns.contains(&column) {
                    columns.push(column);
                }
            }
            Ok(())
        }
        plan => plan.inputs().into_iter().try_for_each(|input| gather(input, columns)),
    }
}

fn has(schema: &DFSchema, column: &Column) -> bool {
    schema.index_of_column(column).is_ok()
}

/// Returns the columns of a plan as expressions.
fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The state of one analysis.
#[derive(Debug, Default)]
struct Unnesting {
    /// Number of unique names generated so far.
    names: usize,
}

impl Unnesting {
    /// Returns a unique name.
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what} {}", self.names)
    }

    /// Rewrites a plan so that DataFusion can turn the remaining subqueries into joins.
    fn plan(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let plan = plan.walk_children(|child| self.plan(child).map(Transformed::yes))?.data;
        let plan = plan.walk_subqueries(|subquery| self.plan(subquery).map(Transformed::yes))?.data;
        match plan {
            LogicalPlan::Subquery(mut subquery) => {
                subquery.outer_ref_columns = with_fields(&subquery.subquery)?;
                Ok(LogicalPlan::Subquery(subquery))
            }
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Join(join) => self.join(join),
            plan @ (LogicalPlan::Projection(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)) => self.expressions(plan),
            plan => Ok(plan),
        }
    }

    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let mut base = LogicalPlan::clone(&filter.input);
        let is_ours = |expr: &Expr| trust::has_untrusted(expr, filter.input.schema(), true);
        let parts = split_conjunction_owned(filter.predicate);
        let parts = parts.into_iter().map(counted).collect::<Result<Vec<Expr>>>()?;
        let mut ours = Vec::new();
        let mut others = Vec::new();
        for part in parts {
            if is_ours(&part)? { ours.push(part) } else { others.push(part) }
        }
        // Subqueries are computed for the rows that pass the other conditions, as PostgreSQL
        // evaluates them last.
        if let Some(predicate) = conjunction(others) {
            base = LogicalPlan::Filter(Filter::try_new(predicate, base.into())?);
        }
        if ours.is_empty() {
            return Ok(base);
        }
        let columns = columns_of(&base);
        let mut input = base.clone();
        let mut left = Vec::new();
        for part in ours {
            match self.semi_join(&base, input, part)? {
                (plan, None) => input = plan,
                (plan, Some(part)) => {
                    let (plan, part) = self.attached(&base, plan, part)?;
                    input = plan;
                    left.push(part);
                }
            }
        }
        let mut builder = LogicalPlanBuilder::from(input);
        if let Some(predicate) = conjunction(left) {
            builder = builder.filter(predicate)?;
        }
        builder.project(columns)?.build()
    }

    /// Joins a plan with the results of the untrusted subqueries in an expression, and replaces
    /// them by the result columns.
    fn attached(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        expr: Expr,
    ) -> Result<(LogicalPlan, Expr)> {
        let mut input = Some(input);
        let changed = expr.walk_up(|expr| {
            if subquery_of(&expr).is_none() || !trust::has_untrusted(&expr, base.schema(), false)? {
                return Ok(Transformed::no(expr));
            }
            let before = input.take().unwrap_or_default();
            let (plan, column) = self.attach(base, before, expr)?;
            input = Some(plan);
            Ok(Transformed::yes(column))
        })?;
        Ok((input.unwrap_or_default(), changed.data))
    }

    /// Rewrites the subqueries in the expressions of an operator with one input.
    fn expressions(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let Some(base) = plan.inputs().first().map(|input| LogicalPlan::clone(input)) else {
            return Ok(plan);
        };
        let is_projection = matches!(plan, LogicalPlan::Projection(_));
        let mut is_ours = false;
        plan.look_at_expressions(|expr| {
            is_ours |= has_subquery(expr)
                && match is_projection {
                    true => trust::has_untrusted(expr, base.schema(), false)?,
                    false => expr.holds(is_left_over)?,
                };
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_ours {
            return Ok(plan);
        }
        let schema = std::sync::Arc::clone(plan.schema());
        let mut input = Some(base.clone());
        let mut see = |expr: Expr| {
            let before = input.take().unwrap_or_default();
            let (plan, expr) = self.attached_all(&base, before, expr, !is_projection)?;
            input = Some(plan);
            Ok::<Expr, datafusion::error::DataFusionError>(expr)
        };
        match plan {
            LogicalPlan::Projection(projection) => {
                let exprs = projection.expr.into_iter().map(&mut see).collect::<Result<Vec<_>>>()?;
                let names = schema.iter();
                let exprs: Vec<Expr> =
                    exprs.into_iter().zip(names).map(|(expr, name)| named(expr, name)).collect();
                LogicalPlanBuilder::from(input.unwrap_or_default()).project(exprs)?.build()
            }
            LogicalPlan::Aggregate(aggregate) => {
                let groups = aggregate.group_expr.into_iter().map(&mut see).collect::<Result<Vec<_>>>()?;
                let totals = aggregate.aggr_expr.into_iter().map(&mut see).collect::<Result<Vec<_>>>()?;
                let input = input.unwrap_or_default().into();
                renamed(LogicalPlan::Aggregate(Aggregate::try_new(input, groups, totals)?), &schema)
            }
            LogicalPlan::Window(window) => {
                let windows = window.window_expr.into_iter().map(&mut see).collect::<Result<Vec<_>>>()?;
                let own = base.schema().fields().len();
                let plan = LogicalPlan::Window(Window::try_new(windows, input.unwrap_or_default().into())?);
                let columns = plan.schema().columns();
                let more = columns.len() - (schema.fields().len() - own);
                let kept = columns.into_iter().enumerate().filter(|(at, _)| *at < own || *at >= more);
                let kept =
                    kept.zip(schema.iter()).map(|((_, column), name)| named(Expr::Column(column), name));
                LogicalPlanBuilder::from(plan).project(kept.collect::<Vec<_>>())?.build()
            }
            LogicalPlan::Sort(sort) => {
                let mut by = sort.expr;
                for by in &mut by {
                    by.expr = see(by.expr.clone())?;
                }
                let plan = Sort { expr: by, input: input.unwrap_or_default().into(), fetch: sort.fetch };
                LogicalPlanBuilder::from(LogicalPlan::Sort(plan)).project(columns_of(&base))?.build()
            }
            plan => Ok(plan),
        }
    }

    /// Like [`Unnesting::attached`]; `all`: also the subqueries that DataFusion would handle in a
    /// filter or projection.
    fn attached_all(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        expr: Expr,
        all: bool,
    ) -> Result<(LogicalPlan, Expr)> {
        if !all {
            return self.attached(base, input, expr);
        }
        let mut input = Some(input);
        let changed = expr.walk_up(|expr| {
            if !is_left_over(&expr)? {
                return Ok(Transformed::no(expr));
            }
            let before = input.take().unwrap_or_default();
            let (plan, column) = self.attach(base, before, expr)?;
            input = Some(plan);
            Ok(Transformed::yes(column))
        })?;
        Ok((input.unwrap_or_default(), changed.data))
    }

    fn join(&mut self, join: Join) -> Result<LogicalPlan> {
        if attach::lateral(&join.right).is_some() {
            return self.lateral_join(join);
        }
        let Some(filter) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
        if !filter.holds(is_left_over)? {
            return Ok(LogicalPlan::Join(join));
        }
        if join.join_type == JoinType::Inner {
            let columns = join.schema.columns();
            let without = Join::try_new(
                join.left,
                join.right,
                join.on,
                None,
                join.join_type,
                join.join_constraint,
                join.null_equality,
                join.null_aware,
            )?;
            let filtered = self.filter(Filter::try_new(filter, LogicalPlan::Join(without).into())?)?;
            return LogicalPlanBuilder::from(filtered)
                .project(columns.into_iter().map(Expr::Column))?
                .build();
        }
        self.outer_join(join, filter)
    }

    /// Rewrites an outer join whose condition has subqueries, each of which refers to one side
    /// only.
    fn outer_join(&mut self, join: Join, filter: Expr) -> Result<LogicalPlan> {
        let columns = join.schema.columns();
        let (left_base, right_base) = (LogicalPlan::clone(&join.left), LogicalPlan::clone(&join.right));
        let (mut left, mut right) = (Some(left_base.clone()), Some(right_base.clone()));
        let changed = filter.walk_up(|expr| {
            let Some(subquery) = subquery_of(&expr) else { return Ok(Transformed::no(expr)) };
            if !is_left_over(&expr)? {
                return Ok(Transformed::no(expr));
            }
            let mut names: Vec<Column> = outer_columns(&subquery.subquery)?;
            names.extend(expr.column_refs().into_iter().cloned());
            let (side, base) = if names.iter().all(|column| !has(right_base.schema(), column)) {
                (&mut left, &left_base)
            } else if names.iter().all(|column| !has(left_base.schema(), column)) {
                (&mut right, &right_base)
            } else {
                return Err(refused("columns of both sides of an outer join"));
            };
            let before = side.take().unwrap_or_default();
            let (plan, column) = self.attach(base, before, expr)?;
            *side = Some(plan);
            Ok(Transformed::yes(column))
        })?;
        let joined = Join::try_new(
            left.unwrap_or_default().into(),
            right.unwrap_or_default().into(),
            join.on,
            Some(changed.data),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        LogicalPlanBuilder::from(LogicalPlan::Join(joined))
            .project(columns.into_iter().map(Expr::Column))?
            .build()
    }
}

/// Replaces uncorrelated EXISTS that are only a part of a condition by a count. DataFusion turns
/// those into joins, and fails where no other column of the rows is needed.
fn counted(part: Expr) -> Result<Expr> {
    let is_whole = |expr: &Expr| match expr {
        Expr::Not(inner) => matches!(**inner, Expr::Exists(_)),
        expr => matches!(expr, Expr::Exists(_)),
    };
    if is_whole(&part) {
        return Ok(part);
    }
    let changed = part.walk_up(|expr| {
        let Expr::Exists(exists) = expr else { return Ok(Transformed::no(expr)) };
        if !outer_columns(&exists.subquery.subquery)?.is_empty() {
            return Ok(Transformed::no(Expr::Exists(exists)));
        }
        let rows = count_udaf().call(vec![lit(1_i64)]).alias("rows");
        let plan = LogicalPlanBuilder::from(LogicalPlan::clone(&exists.subquery.subquery))
            .limit(0, Some(1))?
            .aggregate(Vec::<Expr>::new(), vec![rows])?
            .build()?;
        let spans = exists.subquery.spans;
        let count = Subquery { subquery: std::sync::Arc::new(plan), outer_ref_columns: Vec::new(), spans };
        let found = if exists.negated { 0_i64 } else { 1 };
        Ok(Transformed::yes(Expr::ScalarSubquery(count).eq(lit(found))))
    })?;
    Ok(changed.data)
}

fn has_subquery(expr: &Expr) -> bool {
    expr.holds(|expr| Ok(subquery_of(expr).is_some())).unwrap_or(true)
}

/// Whether an expression contains a correlated subquery.
fn looks_outside(expr: &Expr) -> Result<bool> {
    expr.holds(|expr| match subquery_of(expr) {
        Some(subquery) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        None => Ok(false),
    })
}

/// Returns the outer references of a plan as expressions.
fn with_fields(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let wanted = outer_columns(plan)?;
    let mut all: Vec<Expr> = Vec::with_capacity(wanted.len());
    plan.look_with_subqueries(|plan| {
        plan.look_at_expressions(|expr| {
            expr.look(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && wanted.contains(column)
                    && !all.contains(expr)
                {
                    all.push(expr.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(all)
}

/// The qualifier and field of a schema that provide a name.
type Named<'a> =
    (Option<&'a datafusion::common::TableReference>, &'a std::sync::Arc<arrow::datatypes::Field>);

/// Names an expression after a field.
fn named(expr: Expr, (qualifier, field): Named<'_>) -> Expr {
    if let Expr::Column(column) = &expr
        && column.relation.as_ref() == qualifier
        && column.name == *field.name()
    {
        return expr;
    }
    let expr = match expr {
        Expr::Alias(Alias { expr, metadata: None, .. }) => *expr,
        expr => expr,
    };
    expr.alias_qualified(qualifier.cloned(), field.name().clone())
}

/// Renames the columns of a plan to the names of a schema.
fn renamed(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().zip(schema.iter());
    let columns: Vec<Expr> = columns.map(|(column, name)| named(Expr::Column(column), name)).collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}
