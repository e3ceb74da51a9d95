//! Conditions that name no column, above an aggregate without groups.
//!
//! DataFusion moves a condition below an aggregate when it names columns of groups only, and one that names no column does. With groups that is right: no rows, no groups. An
//! aggregate without groups has a row of nothing, too: `SELECT 1 FROM (SELECT max(x) FROM t) AS q WHERE $1` would have one for a false `$1`. No condition is moved below a limit,
//! and the limit of one row changes nothing there.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// Keeps such conditions where they are.
#[derive(Debug)]
pub(super) struct LoneRows;

impl AnalyzerRule for LoneRows {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(mut filter)
                if names_no_column(&filter.predicate) && is_lone_row(&filter.input) =>
            {
                let input = LogicalPlan::clone(&filter.input);
                filter.input = LogicalPlanBuilder::from(input).limit(0, Some(1))?.build()?.into();
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_lone_rows"
    }
}

/// Whether a part of it does not.
fn names_no_column(condition: &Expr) -> bool {
    let names_none = |part: &&Expr| part.column_refs().is_empty() && !part.any_column_refs();
    split_conjunction(condition).iter().any(names_none)
}

/// The one row of an aggregate without groups, under other names. What stands right above it is HAVING, which is met in the same way.
fn is_lone_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::SubqueryAlias(alias) => is_lone_row(&alias.input),
        LogicalPlan::Projection(projection) => is_lone_row(&projection.input),
        LogicalPlan::Filter(filter) => is_lone_row(&filter.input),
        LogicalPlan::Sort(sort) => is_lone_row(&sort.input),
        _ => false,
    }
}
