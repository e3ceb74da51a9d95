//! The order of a subquery, where results computed from its rows depend on it.
//!
//! In `SELECT array_agg(x) FROM (SELECT x FROM t ORDER BY y) AS q`, PostgreSQL aggregates the rows
//! in the subquery's order. DataFusion sorts only for operators that require an order, and an
//! aggregate without an `ORDER BY` of its own requires none. Therefore the rows of such a subquery
//! are numbered in its order, and the aggregate is ordered by the number. The same goes for
//! `row_number() OVER ()` and similar window functions.

use std::sync::Arc;

use crate::general::tree::walk::{Walk, WalkPlan};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
    Window,
};
use datafusion::optimizer::AnalyzerRule;

/// The name of the column of row numbers. No statement can refer to it.
const NUMBER: &str = "number of the row in its order";

/// Aggregates whose result depends on the order of rows.
const AGGREGATES: &[&str] = &["array_agg", "string_agg", "json_agg", "jsonb_agg"];

/// Window functions whose result depends on the order of rows.
const WINDOWS: &[&str] = &[
    "row_number",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
    "array_agg",
    "string_agg",
];

/// The rule.
#[derive(Debug)]
pub(crate) struct InnerOrders;

impl AnalyzerRule for InnerOrders {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| match plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(goes_by_order) => {
                let Some((input, number)) = numbered(&aggregate.input)? else {
                    return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
                };
                let exprs = aggregate.aggr_expr.into_iter().map(|expr| by_number(expr, &number));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                let plan = Aggregate::try_new(input.into(), aggregate.group_expr, exprs)?;
                under_names(LogicalPlan::Aggregate(plan), &aggregate.schema, None).map(Transformed::yes)
            }
            LogicalPlan::Window(window) if window.window_expr.iter().any(goes_by_order) => {
                let Some((input, number)) = numbered(&window.input)? else {
                    return Ok(Transformed::no(LogicalPlan::Window(window)));
                };
                let exprs = window.window_expr.into_iter().map(|expr| by_number(expr, &number));
                let exprs = exprs.collect::<Result<Vec<_>>>()?;
                let plan = LogicalPlan::Window(Window::try_new(exprs, input.into())?);
                under_names(plan, &window.schema, Some(&number)).map(Transformed::yes)
            }
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_inner_orders"
    }
}

/// Whether an expression calls a function that depends on the order of rows and does not specify
/// one.
fn goes_by_order(expr: &Expr) -> bool {
    let goes = |expr: &Expr| match expr {
        Expr::AggregateFunction(function) => {
            AGGREGATES.contains(&function.func.name())
                && function.params.order_by.is_empty()
                && !function.params.distinct
        }
        Expr::WindowFunction(function) => {
            WINDOWS.contains(&function.fun.name())
                && function.params.order_by.is_empty()
                && function.params.partition_by.is_empty()
        }
        _ => false,
    };
    expr.holds(|expr| Ok(goes(expr))).unwrap_or(false)
}

/// Orders the calls in an expression by the row number.
fn by_number(expr: Expr, number: &Column) -> Result<Expr> {
    let by = By::new(Expr::Column(number.clone()), true, false);
    let changed = expr.walk_up(|expr| {
        if !matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_)) || !goes_by_order(&expr) {
            return Ok(Transformed::no(expr));
        }
        Ok(Transformed::yes(match expr {
            Expr::AggregateFunction(mut function) => {
                function.params.order_by = vec![by.clone()];
                Expr::AggregateFunction(function)
            }
            Expr::WindowFunction(mut function) => {
                function.params.order_by = vec![by.clone()];
                Expr::WindowFunction(function)
            }
            expr => expr,
        }))
    })?;
    Ok(changed.data)
}

/// Returns the plan with its rows numbered in the order of the subquery in it, and the column of
/// the numbers. `None` where the subquery has no order.
fn numbered(plan: &LogicalPlan) -> Result<Option<(LogicalPlan, Column)>> {
    let number = Column::new_unqualified(NUMBER);
    match plan {
        LogicalPlan::Sort(sort) => with_numbers(plan, &sort.expr).map(Some),
        LogicalPlan::Limit(limit) => match &*limit.input {
            LogicalPlan::Sort(sort) => with_numbers(plan, &sort.expr).map(Some),
            _ => Ok(None),
        },
        LogicalPlan::Projection(projection) => {
            let Some((input, below)) = numbered(&projection.input)? else { return Ok(None) };
            let mut exprs = projection.expr.clone();
            exprs.push(Expr::Column(below).alias(NUMBER));
            let plan = Projection::try_new(exprs, input.into())?;
            Ok(Some((LogicalPlan::Projection(plan), number)))
        }
        LogicalPlan::Filter(filter) => {
            let Some((input, below)) = numbered(&filter.input)? else { return Ok(None) };
            let plan = Filter::try_new(filter.predicate.clone(), input.into())?;
            Ok(Some((LogicalPlan::Filter(plan), below)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some((input, below)) = numbered(&alias.input)? else { return Ok(None) };
            let plan = SubqueryAlias::try_new(input.into(), alias.alias.clone())?;
            let below = Column::new(Some(alias.alias.clone()), below.name);
            Ok(Some((LogicalPlan::SubqueryAlias(plan), below)))
        }
        _ => Ok(None),
    }
}

fn with_numbers(plan: &LogicalPlan, order: &[By]) -> Result<(LogicalPlan, Column)> {
    let number = row_number().order_by(order.to_vec()).build()?.alias(NUMBER);
    let plan = LogicalPlanBuilder::from(plan.clone()).window([number])?.build()?;
    Ok((plan, Column::new_unqualified(NUMBER)))
}

/// Renames the columns of a plan, except for `without`, to the names of a schema.
fn under_names(plan: LogicalPlan, schema: &Arc<DFSchema>, without: Option<&Column>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().filter(|column| Some(column) != without);
    let named = columns.zip(schema.iter()).map(|(column, (qualifier, field))| {
        if column.relation.as_ref() == qualifier && column.name == *field.name() {
            return Expr::Column(column);
        }
        Expr::Column(column).alias_qualified(qualifier.cloned(), field.name().clone())
    });
    let named: Vec<Expr> = named.collect();
    LogicalPlanBuilder::from(plan).project(named)?.build()
}
