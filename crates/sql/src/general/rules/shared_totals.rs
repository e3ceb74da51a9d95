//! The rule that computes equal aggregates of a plan only once, for example those of a view or a
//! `WITH` query with two references.

use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::aggregate_scans::Recipe;
use crate::general::operators::aggregate_scan::{AggregateScan, SharedTotals};
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// Computes equal aggregates over tables once. It runs after the rule that adds join filters,
/// because a scan with a join filter does not return all rows.
#[derive(Debug)]
pub(crate) struct ShareTotals;

impl PhysicalOptimizerRule for ShareTotals {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        share_totals(plan)
    }

    fn name(&self) -> &str {
        "cairn_share_totals"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the plan with the totals of equal aggregates shared.
pub(crate) fn share_totals(plan: Plan) -> Result<Plan> {
    let mut recipes: Vec<(Recipe, usize)> = Vec::new();
    plan.look(|plan| {
        if let Some(scan) = plan.downcast_ref::<AggregateScan>() {
            match recipes.iter_mut().find(|(recipe, _)| recipe.has_same_totals(scan.recipe())) {
                Some((_, count)) => *count += 1,
                None => recipes.push((scan.recipe().clone(), 1)),
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    recipes.retain(|(_, count)| *count > 1);
    if recipes.is_empty() {
        return Ok(plan);
    }
    let shared_totals: Vec<(Recipe, Arc<SharedTotals>)> = recipes
        .into_iter()
        .map(|(recipe, _)| {
            let partitions = recipe.scan.output_partitioning().partition_count();
            (recipe, Arc::new(SharedTotals::new(partitions)))
        })
        .collect();
    let share = |plan: Plan| {
        let Some(scan) = plan.downcast_ref::<AggregateScan>() else { return Ok(Transformed::no(plan)) };
        let found = shared_totals.iter().find(|(recipe, _)| recipe.has_same_totals(scan.recipe()));
        Ok(match found {
            Some((_, shared_totals)) => Transformed::yes(Arc::new(scan.shared(shared_totals)) as Plan),
            None => Transformed::no(plan),
        })
    };
    Ok(plan.walk_up(share)?.data)
}
