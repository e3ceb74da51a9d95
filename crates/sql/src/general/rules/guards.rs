//! Evaluates conditions that may fail only for rows that pass the conditions written before them,
//! as in `a <> 0 AND 10 / a > 1`.
//!
//! DataFusion evaluates every part of a conjunction on whole batches. PostgreSQL evaluates row by
//! row in the written order, and programs rely on it. So does the direct path, and the result must
//! not depend on which path a statement takes.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{HashSet, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, lit, when};
use datafusion::optimizer::AnalyzerRule;

use super::text_casts;
use crate::general::functions::{exact_functions, number_functions};
use crate::general::tree::walk::{Walk, WalkPlan};

/// The rule.
#[derive(Debug)]
pub(crate) struct Guards;

impl AnalyzerRule for Guards {
    fn name(&self) -> &str {
        "cairn_guards"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| match plan {
            LogicalPlan::Filter(mut filter) => Ok(match guarded(&filter.predicate)? {
                Some(predicate) => {
                    filter.predicate = predicate;
                    Transformed::yes(LogicalPlan::Filter(filter))
                }
                None => Transformed::no(LogicalPlan::Filter(filter)),
            }),
            // In the condition of an outer join, NULL and false have the same effect as well.
            LogicalPlan::Join(mut join)
                if !matches!(join.join_type, JoinType::LeftMark | JoinType::RightMark) =>
            {
                let predicate = join.filter.as_ref().map(guarded).transpose()?.flatten();
                let is_changed = predicate.is_some();
                join.filter = predicate.or(join.filter);
                Ok(Transformed::new_transformed(LogicalPlan::Join(join), is_changed))
            }
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(changed.data)
    }
}

/// Returns a conjunction in which no part fails for a row that an earlier part rejects; `None`
/// where no change is needed.
fn guarded(predicate: &Expr) -> Result<Option<Expr>> {
    let parts = split_conjunction(predicate);
    let (mut safe, mut done, mut is_changed) = (Vec::new(), Vec::new(), false);
    for part in parts {
        if !may_fail(part) {
            safe.push(part);
            done.push(part.clone());
            continue;
        }
        // A guard on other tables would keep the part from being pushed down to its own table.
        // PostgreSQL, too, evaluates it before the join.
        let tables = tables_of(part);
        let before =
            safe.iter().filter(|guard| !asks_elsewhere(guard) && tables_of(guard).is_subset(&tables));
        match conjunction(before.map(|guard| Expr::clone(guard))) {
            Some(guard) if !asks_elsewhere(part) => {
                done.push(after(guard, part.clone())?);
                is_changed = true;
            }
            _ => done.push(part.clone()),
        }
    }
    Ok(if is_changed { conjunction(done) } else { None })
}

/// Returns a condition that is evaluated only where the guard holds, and is false elsewhere. The
/// CASE yields integers because the optimizer turns a boolean CASE back into a conjunction.
fn after(guard: Expr, part: Expr) -> Result<Expr> {
    let holds = Expr::Cast(Cast::new(Box::new(part), DataType::Int32));
    Ok(when(guard, holds).otherwise(lit(0_i32))?.eq(lit(1_i32)))
}

/// Whether it divides by a non-constant, or parses a non-constant text as another type.
fn may_fail(expr: &Expr) -> bool {
    let fails = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => is_open(right),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let by = args.last().is_some_and(is_open);
            by && (number_functions::divides(func)
                || exact_functions::divides(func)
                || text_casts::reads(func))
        }
        _ => false,
    };
    expr.holds(|expr| Ok(fails(expr))).unwrap_or(true)
}

/// Whether its value depends on a row or a parameter.
fn is_open(expr: &Expr) -> bool {
    expr.holds(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::Placeholder(_)))).unwrap_or(true)
}

/// Returns the tables whose columns it uses.
fn tables_of(expr: &Expr) -> HashSet<Option<&TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.as_ref()).collect()
}

/// Whether it contains a subquery or refers to an outer query.
fn asks_elsewhere(expr: &Expr) -> bool {
    expr.holds(|expr| {
        Ok(matches!(
            expr,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        ))
    })
    .unwrap_or(true)
}
