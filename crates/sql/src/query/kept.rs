//! Plans of operators that outlive a run: a query that comes again is not planned again.
//!
//! DataFusion's plans are made for one run: operators have the state of it, and our scans a view of the database. What is kept is the plan before it ran, whose scans are *at rest*: they
//! see nothing, so that no vacuum and no change of the schema waits for them. A run gets operators of its own, and scans that see what its statement does. Planning takes one to ten
//! milliseconds, this some tens of microseconds.

use cairn_table::View;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use super::join_keys::{tell_keys, without_keys};
use super::scan::TableScan;

type Plan = Arc<dyn ExecutionPlan>;

/// A plan without a run, to be kept; `None` for one with operators that may know more than their inputs.
///
/// Errors: what putting operators together meets.
pub(super) fn at_rest(plan: &Plan) -> Result<Option<Plan>> {
    let mut can_be_kept = true;
    plan.apply(|plan| {
        can_be_kept &= plan.is::<TableScan>() || without_keys(plan).is_some() || begins_anew(plan);
        Ok(if can_be_kept { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    if !can_be_kept {
        return Ok(None);
    }
    let rests = Arc::clone(plan).transform_up(|plan| {
        Ok(match (plan.downcast_ref::<TableScan>(), without_keys(&plan)) {
            (Some(scan), _) => Transformed::yes(Arc::new(scan.at_rest()) as Plan),
            (None, Some(input)) => Transformed::yes(input),
            (None, None) => Transformed::no(plan),
        })
    })?;
    Ok(Some(rests.data))
}

/// A kept plan for a run that sees this; `None` when tables have changed so much that it should be planned anew.
///
/// Errors: those of looking for where to divide tables.
pub(super) fn awake(plan: &Plan, view: &View) -> Result<Option<Plan>> {
    let mut fits = true;
    let run = Arc::clone(plan).transform_up(|plan| {
        let Some(scan) = plan.downcast_ref::<TableScan>() else {
            return plan.reset_state().map(Transformed::yes);
        };
        Ok(match scan.seeing(view)? {
            Some(scan) => Transformed::yes(Arc::new(scan) as Plan),
            None => {
                fits = false;
                Transformed::new(plan, false, TreeNodeRecursion::Stop)
            }
        })
    })?;
    if fits { tell_keys(run.data).map(Some) } else { Ok(None) }
}

/// Operators that have nothing of a run after [`ExecutionPlan::reset_state`].
fn begins_anew(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<UnionExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<CooperativeExec>()
}
