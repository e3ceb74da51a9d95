//! GROUP BY on computed expressions. Where DataFusion would group incorrectly, a projection below
//! the aggregate computes the expression.
//!
//! - `GROUP BY random()`: a condition on the result would be pushed below the aggregate and
//!   evaluated again, with another value (DataFusion's issue 25415).
//! - `GROUP BY ROLLUP (a, b % 2)`: rules that rewrite expressions wrap all grouping sets in one
//!   alias, after which they are no longer recognized as grouping sets.

use crate::general::tree::walk::{Walk, WalkPlan};
use cairn_vfs::sync::Arc;
use datafusion::common::Column;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// The rule. It runs before any rule that rewrites expressions.
#[derive(Debug)]
pub(crate) struct ComputedGroups;

impl AnalyzerRule for ComputedGroups {
    fn name(&self) -> &str {
        "cairn_computed_groups"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.walk_up_with_subqueries(in_plan)?.data)
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let mut computed = Computed::default();
    let groups = aggregate.group_expr.iter().map(|expr| computed.group(expr)).collect();
    if computed.0.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let results = aggregate.aggr_expr.iter().map(|expr| computed.of_grouping(expr)).collect::<Result<_>>()?;
    let own = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let all: Vec<Expr> = own.chain(computed.0.iter().map(|(name, expr)| expr.clone().alias(name))).collect();
    let input = LogicalPlanBuilder::from(aggregate.input.as_ref().clone()).project(all)?.build()?;
    let grouped = Aggregate::try_new(Arc::new(input), groups, results)?;
    // Restores the names of the results. The internal grouping id can be left out: only grouping()
    // reads it, and the rule that expands grouping() has not run yet.
    let pairs = grouped.schema.columns().into_iter().zip(aggregate.schema.columns());
    let named = pairs.filter(|(own, _)| own.name != Aggregate::INTERNAL_GROUPING_ID).map(|(own, asked)| {
        let is_same = own == asked;
        let own = Expr::Column(own);
        if is_same { own } else { own.alias_qualified(asked.relation, asked.name) }
    });
    let named: Vec<Expr> = named.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped)).project(named)?.build()?;
    Ok(Transformed::yes(plan))
}

/// Expressions that are computed below an aggregate, with the names of their columns.
#[derive(Debug, Default)]
struct Computed(Vec<(String, Expr)>);

impl Computed {
    fn group(&mut self, expr: &Expr) -> Expr {
        match expr {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
                let sets = sets.iter().map(|set| set.iter().map(|expr| self.column(expr)).collect());
                Expr::GroupingSet(GroupingSet::GroupingSets(sets.collect()))
            }
            expr if expr.is_volatile() => self.column(expr),
            expr => expr.clone(),
        }
    }

    /// Returns the column that holds the value of an expression.
    fn column(&mut self, expr: &Expr) -> Expr {
        if matches!(expr, Expr::Column(_)) {
            return expr.clone();
        }
        let known = self.0.iter().find(|(_, other)| other == expr);
        let name = known.map_or_else(|| format!("cairn group {}", self.0.len()), |(name, _)| name.clone());
        if known.is_none() {
            self.0.push((name.clone(), expr.clone()));
        }
        Expr::Column(Column::new_unqualified(name))
    }

    /// Makes the arguments of grouping() refer to the new grouping columns.
    fn of_grouping(&mut self, expr: &Expr) -> Result<Expr> {
        let changed = expr.clone().walk_up(|expr| match expr {
            Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
                for argument in &mut call.params.args {
                    if self.0.iter().any(|(_, other)| other == argument) {
                        *argument = self.column(argument);
                    }
                }
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(changed.data)
    }
}
