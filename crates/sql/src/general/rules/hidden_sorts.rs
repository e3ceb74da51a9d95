//! Hides top-N sorts, OFFSET and sorts by constants from the DataFusion rule that places sorts.
//!
//! That rule pushes sorts down to where they cost least, and drops those whose input is sorted
//! already. It pushes the row limit of a sort along, even past operators that drop or combine rows.
//! For example, in `SELECT DISTINCT x ... ORDER BY x LIMIT 3` over groups in the order of `x`, it
//! kept three rows below the last step of DISTINCT, duplicates among them. Therefore the limit is
//! hidden from the rule. A sort that is needed is wrapped in [`HiddenSort`], an operator of which
//! the rule sees only the order. Where the rows are sorted already, [`RequireOrderAndLimit`]
//! replaces the sort and requires that order.
//!
//! The rule also moves sorts past OFFSET, which then skips other rows: in `SELECT * FROM (SELECT b
//! FROM t ORDER BY a OFFSET 6) q ORDER BY b` those with the least `b`. Therefore an OFFSET is
//! sealed as well, and requires the order of its input.
//!
//! A sort by nothing but constants reports no order, which ends the rule with an error. And where
//! the rule adds a sort, it drops columns that are constant in each part of a UNION, even if the
//! parts have different constants. Both sorts are sealed too.

use std::fmt;

use cairn_vfs::sync::Arc;
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{
    AcrossPartitions, Distribution, LexOrdering, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream, StatisticsArgs,
};

use super::grouping_orders::with_children;
use crate::general::operators::unary::unary;
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// The name of the rule that [`HideSorts`] wraps.
pub(crate) const INSTEAD_OF: &str = "EnsureRequirements";

/// The wrapped rule, which does not see top-N sorts and OFFSETs.
#[derive(Debug)]
pub(crate) struct HideSorts(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for HideSorts {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let mut hides = false;
        let hidden = plan.walk_up(|plan| {
            if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>()
                && (limit.skip() > 0 || is_plain_sort(limit.input()))
            {
                hides = true;
                return hidden_offset(limit).map(Transformed::yes);
            }
            if let Some(required) = plan.downcast_ref::<OutputRequirementExec>()
                && required.input().is::<HiddenSort>()
            {
                return Ok(Transformed::yes(without_order(required)));
            }
            let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(Transformed::no(plan)) };
            let is_opaque = sort.properties().output_ordering().is_none() || differs_between_parts(sort);
            if is_opaque {
                hides = true;
                return Ok(Transformed::yes(Arc::new(HiddenSort { plan, order: None }) as Plan));
            }
            let Some(first) = sort.fetch() else { return Ok(Transformed::no(plan)) };
            hides = true;
            Ok(Transformed::yes(match is_sorted(sort)? {
                true => Arc::new(RequireOrderAndLimit {
                    first,
                    order: sort.expr().clone(),
                    input: Arc::clone(sort.input()),
                }) as Plan,
                false => Arc::new(HiddenSort { plan, order: None }),
            }))
        })?;
        let plan = self.0.optimize(hidden.data, config)?;
        if hides { Ok(plan.walk_up(shown)?.data) } else { Ok(plan) }
    }

    fn name(&self) -> &str {
        INSTEAD_OF
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a plan is a sort without a limit, below any projections. The rule would drop that sort,
/// because a limit does not require an order. The optimizer moves limits into sorts, so such plans
/// come from statements that run as they were written.
fn is_plain_sort(plan: &Plan) -> bool {
    match plan.downcast_ref::<ProjectionExec>() {
        Some(projection) => is_plain_sort(projection.input()),
        None => whole_sort(plan).is_some_and(|sort| sort.fetch().is_none()),
    }
}

/// Whether the input of a sort has its order already. For a UNION this is not known: a property of
/// all its parts need not hold for all its rows.
fn is_sorted(sort: &SortExec) -> Result<bool> {
    let input = sort.input();
    let is_satisfied = input.equivalence_properties().ordering_satisfy(sort.expr().clone())?;
    Ok(is_satisfied && !input.holds(|plan| Ok(plan.is::<UnionExec>()))?)
}

/// Whether a sort has a column that is constant in each part of a UNION, with several values.
fn differs_between_parts(sort: &SortExec) -> bool {
    let properties = sort.input().equivalence_properties();
    let differs = |expr: &Arc<dyn PhysicalExpr>| {
        matches!(properties.is_expr_constant(expr), Some(AcrossPartitions::Heterogeneous))
    };
    sort.expr().iter().any(|by| differs(&by.expr))
}

/// Whether a plan is a sealed operator, below any note of the query's order.
fn is_sealed(plan: &Plan) -> bool {
    match plan.downcast_ref::<OutputRequirementExec>() {
        Some(required) => is_sealed(&required.input()),
        None => plan.is::<HiddenSort>(),
    }
}

/// Requires no order of the rows of a query that a sealed operator returns. That operator stays in
/// any case, with nothing above it that could change the order, and the order that was noted for
/// the query lacks the columns that are constant in each part of a UNION.
fn without_order(required: &OutputRequirementExec) -> Plan {
    let fetch = required.fetch();
    Arc::new(OutputRequirementExec::new(required.input(), None, Distribution::SinglePartition, fetch))
}

/// Returns the sort that a plan is, or that it does by merging sorted partitions.
fn whole_sort(plan: &Plan) -> Option<SortExec> {
    // DataFusion notes the order of a query directly above its sort, below the limit.
    if let Some(required) = plan.downcast_ref::<OutputRequirementExec>() {
        return whole_sort(&required.input());
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let part = merge.input().downcast_ref::<SortExec>()?;
        let is_unlimited = merge.fetch().is_none() && part.fetch().is_none();
        return is_unlimited.then(|| SortExec::new(merge.expr().clone(), Arc::clone(part.input())));
    }
    plan.downcast_ref::<SortExec>().cloned()
}

/// Seals an OFFSET, below any projection. A projection may drop the columns by which the rows are
/// sorted, and then has no order to require.
fn hidden_offset(limit: &GlobalLimitExec) -> Result<Plan> {
    let input = limit.input();
    if let Some(projection) = input.downcast_ref::<ProjectionExec>() {
        let below = GlobalLimitExec::new(Arc::clone(projection.input()), limit.skip(), limit.fetch());
        return with_children(Arc::clone(input), vec![hidden_offset(&below)?]);
    }
    let sealed = match whole_sort(input) {
        Some(sort) if !is_sorted(&sort)? => {
            Arc::new(HiddenSort { plan: Arc::new(sort), order: None }) as Plan
        }
        _ => Arc::clone(input),
    };
    // A sealed sort stays where it is, so nothing is required of it.
    let order = match is_sealed(&sealed) {
        true => None,
        false => sealed.output_ordering().cloned(),
    };
    let plan = Arc::new(GlobalLimitExec::new(sealed, limit.skip(), limit.fetch()));
    Ok(Arc::new(HiddenSort { plan, order }))
}

/// Replaces a hidden operator by the final one.
fn shown(plan: Plan) -> Result<Transformed<Plan>> {
    if let Some(HiddenSort { plan, .. }) = plan.downcast_ref::<HiddenSort>() {
        return Ok(Transformed::yes(in_parts(plan)));
    }
    let Some(RequireOrderAndLimit { first, input, .. }) = plan.downcast_ref::<RequireOrderAndLimit>() else {
        return Ok(Transformed::no(plan));
    };
    let kept = input.is::<SortExec>() || input.is::<SortPreservingMergeExec>();
    // A lower limit of the input still holds.
    let fewest = input.fetch().map_or(*first, |already| already.min(*first));
    Ok(Transformed::yes(match kept.then(|| input.with_fetch(Some(fewest))).flatten() {
        Some(input) => input,
        None => Arc::new(GlobalLimitExec::new(Arc::clone(input), 0, Some(*first))),
    }))
}

/// Turns a top-N sort of merged partitions into a top-N sort of each partition and a merge of
/// those. Returns other operators unchanged.
fn in_parts(sort: &Plan) -> Plan {
    let Some(whole) = sort.downcast_ref::<SortExec>() else { return Arc::clone(sort) };
    let Some(together) = whole.input().downcast_ref::<CoalescePartitionsExec>() else {
        return Arc::clone(sort);
    };
    if together.fetch().is_some() {
        return Arc::clone(sort);
    }
    let parts = SortExec::new(whole.expr().clone(), Arc::clone(together.input()))
        .with_preserve_partitioning(true)
        .with_fetch(whole.fetch());
    let merged = SortPreservingMergeExec::new(whole.expr().clone(), Arc::new(parts));
    Arc::new(merged.with_fetch(whole.fetch()))
}

/// A hidden top-N sort or OFFSET.
#[derive(Debug)]
struct HiddenSort {
    plan: Plan,
    /// The required order: that of the rows of which an OFFSET skips some, where it is known.
    order: Option<LexOrdering>,
}

impl DisplayAs for HiddenSort {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealed")
    }
}

impl ExecutionPlan for HiddenSort {
    fn name(&self) -> &str {
        "Sealed"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        self.plan.children()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
    }

    /// The rule would move a sort that an operator above needs below one that claims to maintain
    /// the order, and skip other rows. A required order prevents that only where it is not trivial:
    /// of a union of constants the rule takes every order for compatible with every other.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        see: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plan.apply_expressions(see)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let plan = with_children(Arc::clone(&self.plan), children)?;
        Ok(Arc::new(HiddenSort { plan, order: self.order.clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, context)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        of: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.plan.statistics_from_inputs(inputs, of)
    }
}

/// The first rows of a sorted input.
#[derive(Debug)]
struct RequireOrderAndLimit {
    first: usize,
    order: LexOrdering,
    input: Plan,
}

impl DisplayAs for RequireOrderAndLimit {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "First: {}", self.first)
    }
}

impl RequireOrderAndLimit {
    /// Returns the operator above another input.
    fn with_input(&self, input: Plan) -> Plan {
        Arc::new(RequireOrderAndLimit { first: self.first, order: self.order.clone(), input })
    }
}

impl ExecutionPlan for RequireOrderAndLimit {
    fn name(&self) -> &str {
        "First"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.order.clone()))]
    }

    /// As in [`HiddenSort`].
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        see: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for by in &self.order {
            if see(&by.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Err(DataFusionError::Internal("the first rows of an unfinished plan".to_owned()))
    }

    unary!();
}
