//! Fallback plans for a query that ran out of memory: operators that can spill, and are slower when
//! memory suffices.
//!
//! ```text
//!   hash join                     ─►  sort-merge join (by the planner, with `Engine::sorting`)
//!   sort that keeps the first n   ─►  full sort, and a limit to the first n
//! ```

use crate::general::tree::walk::Walk;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;

type Plan = Arc<dyn ExecutionPlan>;

/// The kind of operators that a run is planned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operators {
    /// The fastest ones, assuming sufficient memory.
    Fast,
    /// Operators that can spill, where they exist.
    OnDisk,
}

/// Whether a plan has an operator that may run out of memory and can be replaced by one that
/// spills.
pub(crate) fn helps(plan: &Plan) -> Result<bool> {
    plan.holds(|plan| Ok(plan.is::<HashJoinExec>() || first_of(plan).is_some()))
}

/// Returns the number of rows that a top-N sort keeps, all of them in memory; `None` for other
/// operators.
fn first_of(plan: &Plan) -> Option<usize> {
    plan.downcast_ref::<SortExec>()?.fetch()
}

/// Replaces top-N sorts by full sorts with a limit on top.
pub(crate) fn whole_sorts(plan: Plan) -> Result<Plan> {
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
