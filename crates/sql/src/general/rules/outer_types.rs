//! Types of the outer columns that subqueries refer to.
//!
//! An outer reference carries the type of its column. Rules that change column types (the scale of
//! numerics, averages that are numerics) do not update the references in subqueries. A numeric of
//! one scale would then be compared with one of another.

use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::wide_sums::WideSums;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::walk::{Walk, WalkPlan};

/// How deep chains of references between columns with changed types may be.
const MOST_ROUNDS: usize = 8;

/// Updates the types of outer references. Expressions on them may change type as a result, and may
/// be referred to in turn, so the rule runs in rounds.
#[derive(Debug)]
pub(crate) struct OuterTypes;

impl AnalyzerRule for OuterTypes {
    fn name(&self) -> &str {
        "cairn_outer_types"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut plan = plan;
        for _ in 0..MOST_ROUNDS {
            if !has_references(&plan)? {
                break;
            }
            let mut is_changed = false;
            plan = in_plan(plan, &[], &mut is_changed)?;
            if !is_changed {
                break;
            }
            plan = WideSums.analyze(plan, config)?;
        }
        Ok(plan)
    }
}

fn has_references(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|plan| {
        found |= plan.contains_outer_reference();
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Returns an outer reference with the current type of its column. `around`: the schemas of the
/// enclosing queries, innermost last.
pub(crate) fn reference(expr: Expr, around: &[DFSchema]) -> Expr {
    let Expr::OuterReferenceColumn(field, column) = expr else { return expr };
    let now = around.iter().rev().find_map(|schema| schema.field_from_column(&column).ok());
    Expr::OuterReferenceColumn(now.map_or(field, Arc::clone), column)
}

/// Rewrites a plan within queries that have the columns `around`.
fn in_plan(plan: LogicalPlan, around: &[DFSchema], is_changed: &mut bool) -> Result<LogicalPlan> {
    let plan = match plan {
        // A LATERAL subquery on the right side refers to columns of the left side.
        LogicalPlan::Join(mut join) => {
            join.left = Arc::new(in_plan(Arc::unwrap_or_clone(join.left), around, is_changed)?);
            let within: Vec<DFSchema> =
                around.iter().cloned().chain([(**join.left.schema()).clone()]).collect();
            join.right = Arc::new(in_plan(Arc::unwrap_or_clone(join.right), &within, is_changed)?);
            LogicalPlan::Join(join)
        }
        plan => plan.walk_children(|child| in_plan(child, around, is_changed).map(Transformed::yes))?.data,
    };
    let schema = operand_schema(&plan)?;
    let within: Vec<DFSchema> = around.iter().cloned().chain([schema]).collect();
    let plan = plan.walk_subqueries(|plan| subquery(plan, &within, is_changed).map(Transformed::yes))?.data;
    let plan = match plan {
        // A subquery in FROM is not part of an expression.
        LogicalPlan::Subquery(mut subquery) => {
            let references = std::mem::take(&mut subquery.outer_ref_columns).into_iter();
            subquery.outer_ref_columns = references.map(|expr| reference(expr, around)).collect();
            return Ok(LogicalPlan::Subquery(subquery));
        }
        plan => plan,
    };
    let names = NamePreserver::new(&plan);
    let changed = plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.walk_up(|expr| {
            if !matches!(expr, Expr::OuterReferenceColumn(..)) {
                return Ok(Transformed::no(expr));
            }
            let now = reference(expr.clone(), around);
            *is_changed |= now != expr;
            Ok(Transformed::new_transformed(now.clone(), now != expr))
        })?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    // `WideSums` runs next and recomputes all schemas, but reads the columns of this one first.
    if *is_changed { changed.data.recompute_schema() } else { Ok(changed.data) }
}

/// Rewrites a subquery in an expression.
fn subquery(plan: LogicalPlan, within: &[DFSchema], is_changed: &mut bool) -> Result<LogicalPlan> {
    let LogicalPlan::Subquery(mut subquery) = plan else { return in_plan(plan, within, is_changed) };
    subquery.subquery = Arc::new(in_plan(Arc::unwrap_or_clone(subquery.subquery), within, is_changed)?);
    let references = std::mem::take(&mut subquery.outer_ref_columns).into_iter();
    subquery.outer_ref_columns = references.map(|expr| reference(expr, within)).collect();
    Ok(LogicalPlan::Subquery(subquery))
}
