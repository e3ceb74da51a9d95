//! The orders that rows of joins have.
//!
//! A hash join gives rows in the order of the side that asks (its right one), and for each of these its partners, in the order of the other side. DataFusion concludes that rows of one value of the former order are in the
//! latter: of `u JOIN c` with `c` in the order of `a`, and `u` in that of `a, b`, that all are in the order of `a, b`. But many rows of `c` may have one `a`, and the partners of each begin anew. Where both sides have an order the other
//! side's is not told.

use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::grouping_orders::{Unordered, with_children};

type Plan = Arc<dyn ExecutionPlan>;

/// Keeps such orders from joins. It stands before the rule that looks for where to sort, and behind the one that says which side of a join is which.
#[derive(Debug)]
pub(super) struct JoinOrders;

impl PhysicalOptimizerRule for JoinOrders {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let hides = |plan: Plan| {
            let hidden = if plan.is::<SortMergeJoinExec>() {
                1
            } else if plan.is::<HashJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<CrossJoinExec>()
            {
                0
            } else {
                return Ok(Transformed::no(plan));
            };
            let mut children: Vec<Plan> = plan.children().into_iter().map(Arc::clone).collect();
            if children.iter().any(|child| child.output_ordering().is_none()) {
                return Ok(Transformed::no(plan));
            }
            if let Some(side) = children.get_mut(hidden) {
                *side = Arc::new(Unordered::new(side));
            }
            with_children(plan, children).map(Transformed::yes)
        };
        Ok(plan.transform_up(hides)?.data)
    }

    fn name(&self) -> &str {
        "cairn_join_orders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
