//! `EXCEPT ALL` and `INTERSECT ALL`, which count duplicates.
//!
//! DataFusion turns both into a join that keeps or drops each left row by whether the right side
//! contains it at all: `(1), (1) EXCEPT ALL (1)` would be empty. Therefore equal rows are numbered
//! on both sides, and the join compares the numbers too: with m and n equal rows, the third left
//! row has a partner if there is a third right row. That leaves max(m - n, 0) and min(m, n) rows.

use crate::general::tree::walk::WalkPlan;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// The name of the column that numbers equal rows. No statement can refer to it.
const NUMBER: &str = "number of the row among its equals";

/// Makes such joins compare the row numbers too.
#[derive(Debug)]
pub(crate) struct Multisets;

impl AnalyzerRule for Multisets {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if counts_rows(&join) => numbered(join).map(Transformed::yes),
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_multisets"
    }
}

/// Whether a join is an `ALL` set operation. Before optimization, only set operations compare all
/// columns with NULLs as equal. Without `ALL` the left side is a DISTINCT.
fn counts_rows(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(&*join.left, LogicalPlan::Distinct(_))
}

fn numbered(join: Join) -> Result<LogicalPlan> {
    let columns = join.left.schema().columns();
    let (left, right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let left_plan = with_numbers(LogicalPlan::clone(&join.left), left)?;
    let right_plan = with_numbers(LogicalPlan::clone(&join.right), right)?;
    let number = Expr::Column(Column::from_name(NUMBER));
    let mut on = join.on;
    on.push((number.clone(), number));
    let joined = Join::try_new(
        left_plan.into(),
        right_plan.into(),
        on,
        None,
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?;
    LogicalPlanBuilder::from(LogicalPlan::Join(joined))
        .project(columns.into_iter().map(Expr::Column))?
        .build()
}

fn with_numbers(plan: LogicalPlan, equal_by: Vec<Expr>) -> Result<LogicalPlan> {
    let number = row_number().partition_by(equal_by).build()?.alias(NUMBER);
    LogicalPlanBuilder::from(plan).window([number])?.build()
}
