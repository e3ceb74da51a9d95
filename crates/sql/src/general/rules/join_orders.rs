//! The orderings of join results.
//!
//! A hash join returns rows in the order of its probe (right) side, and for each of them the
//! partners in the order of the other side. DataFusion concludes that rows with one value of the
//! probe order are in the other side's order. For `u JOIN c` with `c` in the order of `a` and `u`
//! in that of `a, b`, it assumes the order `a, b` for the result. But many rows of `c` may have the
//! same `a`, and the partners of each start over. Where both sides have an order, the other side's
//! is hidden.
//!
//! An outer join returns rows in which the columns of one side are NULL. DataFusion keeps the
//! properties of that side, for example that a column is 1 in all rows and need not be sorted by.
//! Therefore the constants of such a side are hidden.

use cairn_vfs::sync::Arc;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::grouping_orders::{Unordered, with_children};
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// Hides such orderings from joins. It runs before the rule that places sorts, and after the one
/// that chooses the sides of a join.
#[derive(Debug)]
pub(crate) struct JoinOrders;

impl PhysicalOptimizerRule for JoinOrders {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let hides = |plan: Plan| {
            let plan = without_constants(plan)?;
            let (plan, is_changed) = (plan.data, plan.transformed);
            let hidden = if plan.is::<SortMergeJoinExec>() {
                1
            } else if plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<CrossJoinExec>()
            {
                0
            } else {
                return Ok(Transformed::new_transformed(plan, is_changed));
            };
            let mut children: Vec<Plan> = plan.children().into_iter().map(Arc::clone).collect();
            if children.iter().any(|child| child.output_ordering().is_none()) {
                return Ok(Transformed::new_transformed(plan, is_changed));
            }
            if let Some(side) = children.get_mut(hidden) {
                *side = Arc::new(Unordered::new(side));
            }
            with_children(plan, children).map(Transformed::yes)
        };
        Ok(plan.walk_up(hides)?.data)
    }

    fn name(&self) -> &str {
        "cairn_join_orders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Hides constants from an outer join on the sides whose columns may be NULL.
fn without_constants(plan: Plan) -> Result<Transformed<Plan>> {
    let join_type = plan
        .downcast_ref::<HashJoinExec>()
        .map(|join| *join.join_type())
        .or_else(|| plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()))
        .or_else(|| plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type()));
    let may_be_null = match join_type {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return Ok(Transformed::no(plan)),
    };
    let mut children: Vec<Plan> = plan.children().into_iter().map(Arc::clone).collect();
    let mut is_changed = false;
    for (child, _) in children.iter_mut().zip(may_be_null).filter(|(_, may_be_null)| *may_be_null) {
        if !child.equivalence_properties().constants().is_empty() {
            *child = Arc::new(Unordered::in_order(child));
            is_changed = true;
        }
    }
    Ok(if is_changed { Transformed::yes(with_children(plan, children)?) } else { Transformed::no(plan) })
}
