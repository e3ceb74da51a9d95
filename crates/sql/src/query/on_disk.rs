//! How a query is run that had not memory enough: with operators that go to the disk, which take
//! longer where there is.
//!
//! ```text
//!   hash join                     ─►  sort-merge join (the planner's own choice, with `Engine::sorting`)
//!   sort that keeps the first n   ─►  whole sort, and the first n of it
//! ```

use crate::query::walk::Walk;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

type Plan = Arc<dyn ExecutionPlan>;

/// What a run is planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operators {
    /// As if there were memory enough.
    Fast,
    /// That can go to the disk, as far as there are such.
    OnDisk,
}

/// Whether a plan has an operator that may not have memory enough, and can be had otherwise.
pub(super) fn helps(plan: &Plan) -> Result<bool> {
    plan.holds(|plan| Ok(plan.is::<HashJoinExec>() || first_of(plan).is_some()))
}

/// How many rows a sort keeps, which are in memory then; `None` for all, and for other operators.
fn first_of(plan: &Plan) -> Option<usize> {
    plan.downcast_ref::<SortExec>()?.fetch()
}

/// Sorts whole what is cut off afterwards.
pub(super) fn whole_sorts(plan: Plan) -> Result<Plan> {
    let whole = |plan: Plan| {
        let (Some(sort), Some(first)) = (plan.downcast_ref::<SortExec>(), first_of(&plan)) else {
            return Ok(Transformed::no(plan));
        };
        let whole: Plan = Arc::new(sort.with_fetch(None));
        let cut: Plan = match sort.preserve_partitioning() {
            true => Arc::new(LocalLimitExec::new(whole, first)),
            false => Arc::new(GlobalLimitExec::new(whole, 0, Some(first))),
        };
        Ok(Transformed::yes(cut))
    };
    Ok(plan.walk_up(whole)?.data)
}
