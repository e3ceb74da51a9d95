//! What DataFusion believes to be a key of groups, and is none.
//!
//! It notes which columns of a plan determine others, as those of a group do. Where a plan with
//! such columns is joined, and what comes of it is grouped by some of them and by others, it takes
//! the first of these for a key of the new groups: of `SELECT DISTINCT d.id, t.e FROM (SELECT
//! DISTINCT id FROM a) d CROSS JOIN t` it concludes that `id` is there once, leaves out `DISTINCT
//! id` above it, other columns of GROUP BY, and joins that could give no row twice. So below such
//! groups stands [`UnknownKeys`], an operator that passes rows on and says nothing of keys. It is
//! gone when the plan has operators.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use crate::query::walk::{Walk, WalkPlan};
use async_trait::async_trait;
use cairn_vfs::sync::Arc;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, FunctionalDependencies};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Distinct, Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

/// Puts it there.
#[derive(Debug)]
pub(super) struct HideKeys;

impl AnalyzerRule for HideKeys {
    fn name(&self) -> &str {
        "cairn_hide_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !groups_a_join_of_groups(&plan)? {
            return Ok(plan);
        }
        Ok(plan.walk_up_with_subqueries(hidden)?.data)
    }
}

/// Whether groups are there somewhere above a join of other groups.
fn groups_a_join_of_groups(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|plan| {
        if makes_groups(plan) {
            for input in plan.inputs() {
                found |= joins_groups(input)?;
            }
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

fn makes_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.is_empty(),
        LogicalPlan::Distinct(_) => true,
        _ => false,
    }
}

/// Whether a plan has a join, or something else that repeats rows, of what has groups.
fn joins_groups(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look(|plan| {
        if matches!(plan, LogicalPlan::Join(_) | LogicalPlan::Unnest(_)) {
            plan.look(|below| {
                found |= makes_groups(below);
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Groups of one column have that for a key in any case.
fn hidden(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.len() > 1 => &aggregate.input,
        LogicalPlan::Distinct(Distinct::All(input)) if input.schema().fields().len() > 1 => input,
        LogicalPlan::Distinct(Distinct::On(on)) => &on.input,
        // What was concluded of groups below goes up with the columns.
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Window(_) => {
            return plan.recompute_schema().map(Transformed::yes);
        }
        _ => return Ok(Transformed::no(plan)),
    };
    // What looks outside is for a rule that has to see all of it.
    let mut looks_outside = false;
    input.look(|plan| {
        looks_outside |= plan.contains_outer_reference();
        Ok(if looks_outside { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if looks_outside || !joins_groups(input)? {
        return Ok(Transformed::no(plan));
    }
    let node = UnknownKeys::new(LogicalPlan::clone(input))?;
    let input = Arc::new(LogicalPlan::Extension(Extension { node: Arc::new(node) }));
    let changed = match plan {
        LogicalPlan::Aggregate(mut aggregate) => {
            aggregate.input = input;
            LogicalPlan::Aggregate(aggregate).recompute_schema()?
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            on.input = input;
            LogicalPlan::Distinct(Distinct::On(on))
        }
        _ => LogicalPlan::Distinct(Distinct::All(input)),
    };
    Ok(Transformed::yes(changed))
}

/// Its input, without what is known of its keys.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct UnknownKeys {
    input: LogicalPlan,
    schema: DFSchemaRef,
}

impl UnknownKeys {
    fn new(input: LogicalPlan) -> Result<Self> {
        let schema = input.schema().as_ref().clone();
        let schema = schema.with_functional_dependencies(FunctionalDependencies::empty())?;
        Ok(UnknownKeys { input, schema: Arc::new(schema) })
    }
}

impl PartialOrd for UnknownKeys {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for UnknownKeys {
    fn name(&self) -> &str {
        "UnknownKeys"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnknownKeys")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.into_iter().next();
        UnknownKeys::new(input.ok_or_else(|| DataFusionError::Internal("keys of nothing".to_owned()))?)
    }

    fn necessary_children_exprs(&self, columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![columns.to_vec()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }
}

/// Leaves it out.
#[derive(Debug)]
pub(super) struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        Ok(node.as_any().is::<UnknownKeys>().then(|| inputs.first().cloned()).flatten())
    }
}
