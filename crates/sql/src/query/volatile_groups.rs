//! Groups by something that differs from call to call: `GROUP BY random()`.
//!
//! DataFusion moves a condition on the result of such a group below the aggregate, where it would be computed once more
//! and be another value (its issue 25415). So it is computed by a projection first, and groups are made by that column.

use cairn_vfs::sync::Arc;
use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(super) struct VolatileGroups;

impl AnalyzerRule for VolatileGroups {
    fn name(&self) -> &str {
        "cairn_volatile_groups"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(in_plan)?.data)
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
    if !aggregate.group_expr.iter().any(Expr::is_volatile) || aggregate.group_expr.iter().any(is_set) {
        return Ok(Transformed::no(plan));
    }
    let mut computed: Vec<Expr> = aggregate.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut groups = Vec::with_capacity(aggregate.group_expr.len());
    for (at, expr) in aggregate.group_expr.iter().enumerate() {
        groups.push(if expr.is_volatile() {
            let name = format!("cairn group {at}");
            computed.push(expr.clone().alias(&name));
            Expr::Column(Column::new_unqualified(name))
        } else {
            expr.clone()
        });
    }
    let input = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).project(computed)?.build()?;
    let grouped = Aggregate::try_new(Arc::new(input), groups, aggregate.aggr_expr.clone())?;
    // Under the names that the results had.
    let results = grouped.schema.columns().into_iter().zip(aggregate.schema.columns()).map(|(own, asked)| {
        let is_same = own == asked;
        let own = Expr::Column(own);
        if is_same { own } else { own.alias_qualified(asked.relation, asked.name) }
    });
    let results: Vec<Expr> = results.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped)).project(results)?.build()?;
    Ok(Transformed::yes(plan))
}
