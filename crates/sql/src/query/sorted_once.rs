//! What rows are sorted by more than once.
//!
//! DataFusion's rule for this leaves out more: columns that those before them tell. It knows that a table's primary key tells its other columns, but takes it to tell all columns of groups that it is among. Of
//! `GROUP BY a.id, b.id ORDER BY a.id, b.id` it would leave `b.id` out.

use std::collections::HashSet;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, Sort};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The name of the rule that this one stands for.
pub(super) const INSTEAD_OF: &str = "eliminate_duplicated_expr";

/// Sorts by the first of equal expressions only.
#[derive(Debug)]
pub(super) struct SortedOnce;

impl OptimizerRule for SortedOnce {
    fn name(&self) -> &str {
        "cairn_sorted_once"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Sort(Sort { mut expr, input, fetch }) = plan else {
            return Ok(Transformed::no(plan));
        };
        let before = expr.len();
        let mut seen = HashSet::with_capacity(before);
        expr.retain(|by| seen.insert(by.expr.clone()));
        let is_changed = expr.len() < before;
        Ok(Transformed::new_transformed(LogicalPlan::Sort(Sort { expr, input, fetch }), is_changed))
    }
}
