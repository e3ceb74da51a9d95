//! Hides false keys of groups from DataFusion.
//!
//! DataFusion tracks functional dependencies between columns, for example those of groups. If a
//! plan with dependencies is joined, and the result is grouped by some of those columns and by
//! others, it treats the former as a key of the new groups. From `SELECT DISTINCT d.id, t.e FROM
//! (SELECT DISTINCT id FROM a) d CROSS JOIN t` it concludes that `id` is unique. It then removes a
//! `DISTINCT id` above, other GROUP BY columns, and joins that could not duplicate rows. Therefore
//! [`UnknownKeys`] goes below such groups, an operator that passes rows on and declares no keys. It
//! does not appear in the physical plan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use crate::general::tree::walk::{Walk, WalkPlan};
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

/// Inserts the operator.
#[derive(Debug)]
pub(crate) struct HideKeys;

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

/// Whether there is a grouping above a join of other groups.
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

/// Whether a plan contains a join, or another operator that repeats rows, above a grouping.
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

/// Hides the keys below a grouping. With a single column, that column is a key in any case.
fn hidden(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &plan {
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.len() > 1 => &aggregate.input,
        LogicalPlan::Distinct(Distinct::All(input)) if input.schema().fields().len() > 1 => input,
        LogicalPlan::Distinct(Distinct::On(on)) => &on.input,
        // Dependencies of groups below are passed up with the columns, so they must be recomputed.
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Window(_) => {
            return plan.recompute_schema().map(Transformed::yes);
        }
        _ => return Ok(Transformed::no(plan)),
    };
    // Correlated plans are left to the decorrelation rule, which must see all operators.
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

/// Its input without the functional dependencies.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnknownKeys {
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

/// Removes the operator from the physical plan.
#[derive(Debug)]
pub(crate) struct Planner;

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
