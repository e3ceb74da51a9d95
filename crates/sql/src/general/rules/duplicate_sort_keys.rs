//! Duplicate sort keys and grouping columns.
//!
//! DataFusion's rule also removes columns that those before them determine. But it assumes that a
//! key among other GROUP BY columns determines all results of the groups. If the groups of a
//! subquery by `x` are joined with a table and grouped by `x, y`, it would conclude that `x`
//! determines `y`, and not sort by `y`.

use std::collections::HashSet;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, LogicalPlan, Sort};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The name of the rule that this one replaces.
pub(crate) const INSTEAD_OF: &str = "eliminate_duplicated_expr";

/// Removes duplicate sort keys and grouping columns.
#[derive(Debug)]
pub(crate) struct DuplicateSortKeys;

impl OptimizerRule for DuplicateSortKeys {
    fn name(&self) -> &str {
        "cairn_sorted_once"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        Ok(match plan {
            LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
                let before = expr.len();
                let mut seen = HashSet::with_capacity(before);
                expr.retain(|by| seen.insert(by.expr.clone()));
                let is_changed = expr.len() < before;
                Transformed::new_transformed(LogicalPlan::Sort(Sort { expr, input, fetch }), is_changed)
            }
            LogicalPlan::Aggregate(aggregate) => {
                let mut seen = HashSet::with_capacity(aggregate.group_expr.len());
                let mut groups = aggregate.group_expr.clone();
                groups.retain(|by| seen.insert(by.clone()));
                if groups.len() == aggregate.group_expr.len() {
                    return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
                }
                let once = Aggregate::try_new(aggregate.input, groups, aggregate.aggr_expr)?;
                Transformed::yes(LogicalPlan::Aggregate(once))
            }
            plan => Transformed::no(plan),
        })
    }
}
