//! The rule that gives scans the join filters from the other side of hash joins.

use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::grouping_orders::Unordered;
use crate::general::operators::aggregate_scan::AggregateScan;
use crate::general::operators::join_filter::{JoinFilterKeys, JoinKeysExec, can_be_collected, is_wider};
use crate::general::operators::yielding::YieldExec;
use crate::general::scan::TableScan;
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// Puts [`JoinKeysExec`] on top of the smaller (build) side of a hash join, where that side drops
/// rows and the larger side comes from a scan that can use join filters. It runs after all rules
/// that would have to preserve the link between the two.
#[derive(Debug)]
pub(crate) struct PushJoinFilters;

impl PhysicalOptimizerRule for PushJoinFilters {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        push_join_filters(plan)
    }

    fn name(&self) -> &str {
        "cairn_tell_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the plan with join filters in its scans where possible.
pub(crate) fn push_join_filters(plan: Plan) -> Result<Plan> {
    // Top down: a scan with a join filter drops rows, so that its own keys become a useful filter
    // for the joins below.
    Ok(plan.walk_down(push_filters)?.data)
}

/// Returns the input of a [`JoinKeysExec`]; `None` for other operators.
pub(crate) fn without_join_keys(plan: &Plan) -> Option<Plan> {
    plan.downcast_ref::<JoinKeysExec>().and_then(|keys| keys.children().into_iter().next().map(Arc::clone))
}

fn push_filters(plan: Plan) -> Result<Transformed<Plan>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
    // In these joins, rows of the larger side without a partner produce nothing. A NULL key has no
    // partner.
    let are_dropped = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    );
    let is_plain = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
    if !are_dropped || !is_plain {
        return Ok(Transformed::no(plan));
    }
    // Where the build side is partitioned by its keys, they are collected below the repartitioning:
    // above it, a partition ends only when the whole input of the repartitioning has ended.
    let divided = join.left().downcast_ref::<RepartitionExec>().map(RepartitionExec::input);
    let build_side = divided.unwrap_or(join.left());
    let is_part = drops_rows(build_side);
    let (mut right, mut filtered) = (Arc::clone(join.right()), Vec::new());
    for (left_key, right_key) in join.on() {
        let (Some(left_key), Some(right_key)) =
            (left_key.downcast_ref::<Column>(), right_key.downcast_ref::<Column>())
        else {
            continue;
        };
        let schema = build_side.schema();
        let Some(kind) = schema.fields().get(left_key.index()).map(|field| field.data_type()) else {
            continue;
        };
        if !can_be_collected(kind) {
            continue;
        }
        let keys = JoinFilterKeys::of(build_side.output_partitioning().partition_count(), kind);
        if let Some(new) = with_filtered_scan(&right, right_key.index(), &keys, is_part)? {
            right = new;
            filtered.push((left_key.index(), keys));
        }
    }
    if filtered.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let collecting: Plan = Arc::new(JoinKeysExec::new(Arc::clone(build_side), filtered));
    let left = if divided.is_some() { with_children(join.left(), vec![collecting])? } else { collecting };
    Ok(Transformed::yes(with_children(&plan, vec![left, right])?))
}

fn with_children(plan: &Plan, children: Vec<Plan>) -> Result<Plan> {
    Arc::clone(plan).replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

/// Whether a plan drops rows of its tables. If it does not, most keys of the other side have a
/// partner and a join filter gains little.
fn drops_rows(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
        || plan.fetch().is_some()
        || plan.downcast_ref::<TableScan>().is_some_and(TableScan::drops_rows)
        || plan.children().into_iter().any(drops_rows)
}

/// Returns the plan with a join filter on the scan that the column comes from. `None` where the
/// column does not come unchanged from a scan that supports join filters, or where an operator in
/// between would return other rows for a smaller input. `is_part`: a filter with many keys may
/// still drop rows.
fn with_filtered_scan(
    plan: &Plan,
    column: usize,
    keys: &Arc<JoinFilterKeys>,
    is_part: bool,
) -> Result<Option<Plan>> {
    if plan.fetch().is_some() {
        return Ok(None);
    }
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        return Ok(scan.with_join_filter(column, keys, is_part).map(|scan| Arc::new(scan) as Plan));
    }
    let Some((child, column)) = comes_from(plan, column) else { return Ok(None) };
    let mut children: Vec<Plan> = plan.children().into_iter().map(Arc::clone).collect();
    let Some(place) = children.get_mut(child) else { return Ok(None) };
    match with_filtered_scan(place, column, keys, is_part)? {
        Some(filtered) => {
            *place = filtered;
            with_children(plan, children).map(Some)
        }
        None => Ok(None),
    }
}

/// Returns the child that a column comes from, and its number there.
fn comes_from(plan: &Plan, column: usize) -> Option<(usize, usize)> {
    let is_passed_on = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<JoinKeysExec>()
        || plan.is::<YieldExec>()
        || plan.is::<Unordered>()
        || plan.is::<AggregateScan>();
    if is_passed_on {
        return Some((0, column));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Some((0, projected(filter.projection().as_deref(), column)?));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let of = &projection.expr().get(column)?.expr;
        // Widening an integer for the join does not change its value.
        let of = match of.downcast_ref::<CastExpr>() {
            Some(cast) => {
                let inner = cast.expr().data_type(&projection.input().schema()).ok()?;
                Some(cast.expr()).filter(|_| is_wider(cast.cast_type(), &inner))?
            }
            None => of,
        };
        return Some((0, of.downcast_ref::<Column>()?.index()));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // A group whose key has no partner can be dropped, whatever its other grouping columns are.
        let groups = aggregate.group_expr();
        let of = groups.expr().get(column).filter(|_| !groups.has_grouping_set())?;
        return Some((0, of.0.downcast_ref::<Column>()?.index()));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let column = projected(join.projection.as_deref(), column)?;
        let left = join.left().schema().fields().len();
        return match join.join_type() {
            JoinType::Inner if column >= left => Some((1, column - left)),
            JoinType::Inner | JoinType::LeftSemi => Some((0, column)),
            JoinType::RightSemi => Some((1, column)),
            _ => None,
        };
    }
    None
}

fn projected(projection: Option<&[usize]>, column: usize) -> Option<usize> {
    match projection {
        Some(projection) => projection.get(column).copied(),
        None => Some(column),
    }
}
