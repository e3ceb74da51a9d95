//! Aggregates with several grouping sets: hides input orderings from them, and false keys from
//! operators above.
//!
//! DataFusion assumes that a column in all sets follows the order of the input, and emits a group
//! when the input has passed its value. But it processes each batch once per set, so the values
//! start over: groups are emitted twice, and out of order. It also treats the grouping columns
//! together as a key, although a column that a set leaves out is NULL there, and the same NULL may
//! occur in a row of another set. [`Unordered`] goes below and above such an aggregate and declares
//! neither.

use std::fmt;

use crate::general::operators::unary::{no_expressions, unary};
use crate::general::tree::walk::Walk;
use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};

type Plan = Arc<dyn ExecutionPlan>;

/// Hides the input order from such aggregates, and their output properties from operators above.
#[derive(Debug)]
pub(crate) struct GroupingOrders;

impl PhysicalOptimizerRule for GroupingOrders {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let has_sets = |plan: &Plan| {
            plan.downcast_ref::<AggregateExec>()
                .is_some_and(|aggregate| aggregate.group_expr().has_grouping_set())
        };
        let sees = |plan: Plan| {
            let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(plan));
            };
            let reads_rows = matches!(
                aggregate.mode(),
                AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
            );
            let ends = !matches!(aggregate.mode(), AggregateMode::Partial | AggregateMode::PartialReduce);
            let is_of_sets = has_sets(&plan) || !reads_rows && is_of_partial_sets(aggregate.input());
            if !is_of_sets {
                return Ok(Transformed::no(plan));
            }
            let plan = match reads_rows {
                true => {
                    let input: Plan = Arc::new(Unordered::new(aggregate.input()));
                    with_children(plan, vec![input])?
                }
                false => plan,
            };
            let plan = if ends { Arc::new(Unordered::new(&plan)) } else { plan };
            Ok(Transformed::yes(plan))
        };
        Ok(plan.walk_up(sees)?.data)
    }

    fn name(&self) -> &str {
        "cairn_grouping_orders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether an aggregate merges partial groups of grouping sets.
fn is_of_partial_sets(plan: &Plan) -> bool {
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) => aggregate.group_expr().has_grouping_set() || is_of_partial_sets(aggregate.input()),
        None => match plan.children().as_slice() {
            [input] if plan.maintains_input_order().is_empty() || plan.name().contains("Repartition") => {
                is_of_partial_sets(input)
            }
            _ => false,
        },
    }
}

/// Replaces the inputs of an operator, and recomputes its properties.
pub(crate) fn with_children(plan: Plan, children: Vec<Plan>) -> Result<Plan> {
    plan.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Passes batches on. It declares no equal or constant columns and, unless `has_order`, no
/// ordering.
#[derive(Debug)]
pub(crate) struct Unordered {
    input: Plan,
    has_order: bool,
    properties: Arc<PlanProperties>,
}

impl Unordered {
    pub fn new(input: &Plan) -> Self {
        Unordered::with(input, false)
    }

    /// Creates one that declares the ordering of its input.
    pub fn in_order(input: &Plan) -> Self {
        Unordered::with(input, true)
    }

    fn with(input: &Plan, has_order: bool) -> Self {
        let mut known = EquivalenceProperties::new(input.schema());
        if has_order {
            known.add_orderings(input.equivalence_properties().oeq_class().iter().cloned());
        }
        let properties = PlanProperties::new(
            known,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Unordered { input: Arc::clone(input), has_order, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Unordered {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Unordered {
    /// Returns the operator above another input.
    fn with_input(&self, input: Plan) -> Plan {
        Arc::new(Unordered::with(&input, self.has_order))
    }
}

impl ExecutionPlan for Unordered {
    fn name(&self) -> &str {
        if self.has_order { "Unequal" } else { "Unordered" }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.has_order]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    unary!();
    no_expressions!();
}
