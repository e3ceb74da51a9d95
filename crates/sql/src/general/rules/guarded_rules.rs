//! Keeps rules of DataFusion's optimizer away from plans that they would break.
//!
//! - `push_down_filter`, on a filter above an aggregate that returns a row even for no input: it
//!   moves the filter below the aggregate, which then still returns its row for no input.
//! - `push_down_filter`, on a filter without columns above a query that is computed once: it
//!   filters the rows of all references.
//! - `extract_equijoin_predicate`, on `a = b` in a join whose keys treat NULLs as equal: it makes
//!   `a` and `b` such keys.
//! - `eliminate_cross_join`, on a join of that kind among others: it gives all keys the same
//!   treatment of NULL.
//! - `eliminate_cross_join`, on many joins that all have keys: it takes seconds for nothing.
//! - `single_distinct_aggregation_to_group_by`, where the plan's columns would change their types.
//!
//! `SELECT * FROM (SELECT count(*), 1 AS d FROM t) q WHERE d = 2` is an example of the first. Once
//! `d` is replaced by `1`, the filter has no columns, and DataFusion treats it as a filter on
//! grouping columns.

use std::fmt;

use arrow::datatypes::DataType;
use cairn_vfs::sync::Arc;
use datafusion::common::NullEquality;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Join, JoinType, Limit, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::general::operators::shared_cte::SharedCte;
use crate::general::tree::walk::WalkPlan;

type Rule = std::sync::Arc<dyn OptimizerRule + Send + Sync>;

/// Wraps a rule if it is one of those.
pub(crate) fn guarded(rule: Rule) -> Rule {
    let rewrite = match rule.name() {
        "push_down_filter" => push_filter,
        "extract_equijoin_predicate" => extract_keys,
        "eliminate_cross_join" => reorder_joins,
        "single_distinct_aggregation_to_group_by" => separate_distinct,
        _ => return rule,
    };
    std::sync::Arc::new(GuardedRule { rule, rewrite })
}

type Rewrite = fn(&Rule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A rule of DataFusion's, and the check that runs before it.
struct GuardedRule {
    rule: Rule,
    rewrite: Rewrite,
}

impl fmt::Debug for GuardedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spared").field(&self.rule).finish()
    }
}

impl OptimizerRule for GuardedRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }
}

/// Wraps `push_down_filter`.
fn push_filter(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if must_skip(&plan) { Ok(Transformed::no(plan)) } else { rule.rewrite(plan, config) }
}

/// Wraps `single_distinct_aggregation_to_group_by`, which adds the sums of groups once more. The
/// sum of a sum of numerics has more digits, so the columns of the plan would change their types,
/// and expressions that were coerced to the old types would fail.
fn separate_distinct(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    if !matches!(plan, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(plan));
    }
    let changed = rule.rewrite(plan.clone(), config)?;
    let types = |plan: &LogicalPlan| -> Vec<DataType> {
        plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    let is_same = types(&changed.data) == types(&plan);
    Ok(if is_same { changed } else { Transformed::no(plan) })
}

/// Whether a plan is a filter above an operator that the rule would break. The rule merges a chain
/// of filters by itself, so the whole chain is checked.
fn must_skip(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    match &*filter.input {
        LogicalPlan::Aggregate(aggregate) => {
            let is_set = |by: &Expr| matches!(by, Expr::GroupingSet(_));
            aggregate.group_expr.is_empty() || aggregate.group_expr.iter().any(is_set)
        }
        LogicalPlan::Extension(extension) => extension.node.as_any().is::<SharedCte>(),
        input => must_skip(input),
    }
}

fn takes_nulls_for_equal(join: &Join) -> bool {
    join.null_equality == NullEquality::NullEqualsNull && !join.on.is_empty()
}

/// Wraps `extract_equijoin_predicate`.
fn extract_keys(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if takes_nulls_for_equal(&join) => {
            Ok(Transformed::no(LogicalPlan::Join(join)))
        }
        plan => rule.rewrite(plan, config),
    }
}

/// More joins than this stay as they are if all have keys: the work of `eliminate_cross_join` is
/// cubic in their number.
const MANY_JOINS: usize = 24;

/// Wraps `eliminate_cross_join`, which walks from one inner join to the next by itself. No-op
/// limits end such a walk; they temporarily fence the joins in question.
fn reorder_joins(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let (mut is_affected, mut joins, mut has_cross) = (false, 0, false);
    plan.look_with_subqueries(|plan| {
        if let LogicalPlan::Join(join) = plan {
            is_affected |= is_apart(join);
            joins += 1;
            has_cross |= join.join_type == JoinType::Inner && join.on.is_empty();
        }
        Ok(if is_affected { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if joins > MANY_JOINS && !has_cross {
        return Ok(Transformed::no(plan));
    }
    if !is_affected {
        return rule.rewrite(plan, config);
    }
    let apart = plan.walk_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(mut join) if is_apart(&join) => {
            join.left = Arc::new(fenced(join.left));
            join.right = Arc::new(fenced(join.right));
            Ok(Transformed::yes(fenced(Arc::new(LogicalPlan::Join(join)))))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    let done = rule.rewrite(apart.data, config)?;
    let is_changed = done.transformed;
    let open = done.data.walk_up_with_subqueries(|plan| match plan {
        LogicalPlan::Limit(Limit { skip: None, fetch: None, input }) => {
            Ok(Transformed::yes(Arc::unwrap_or_clone(input)))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(Transformed::new_transformed(open.data, is_changed))
}

fn is_apart(join: &Join) -> bool {
    join.join_type == JoinType::Inner && takes_nulls_for_equal(join)
}

fn fenced(input: Arc<LogicalPlan>) -> LogicalPlan {
    LogicalPlan::Limit(Limit { skip: None, fetch: None, input })
}
