//! Conditions that may fail are computed only for rows that the conditions written before them let
//! through: `a <> 0 AND 10 / a > 1`.
//!
//! DataFusion computes every part of a conjunction for whole batches. PostgreSQL goes from row to
//! row in the order that was written, and programs count on it, as does the direct path; the answer
//! may not depend on which of the two a statement takes.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{HashSet, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, lit, when};
use datafusion::optimizer::AnalyzerRule;

use super::{numbers, quotients, read};
use crate::query::walk::{Walk, WalkPlan};

/// Has them wait for each other.
#[derive(Debug)]
pub(super) struct Guards;

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
            // Of an outer join NULL and false are the same, too.
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

/// A conjunction in which no part fails for a row that those before it refuse; `None` for one that
/// needs no change.
fn guarded(predicate: &Expr) -> Result<Option<Expr>> {
    let parts = split_conjunction(predicate);
    let (mut safe, mut done, mut is_changed) = (Vec::new(), Vec::new(), false);
    for part in parts {
        if !may_fail(part) {
            safe.push(part);
            done.push(part.clone());
            continue;
        }
        // A part of other tables keeps it from being moved to its own, where PostgreSQL asks about
        // it before tables are joined, too.
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

/// A condition that is computed where another one holds, and false elsewhere. Of a CASE of truth
/// values the optimizer would make a conjunction again.
fn after(guard: Expr, part: Expr) -> Result<Expr> {
    let holds = Expr::Cast(Cast::new(Box::new(part), DataType::Int32));
    Ok(when(guard, holds).otherwise(lit(0_i32))?.eq(lit(1_i32)))
}

/// Whether it divides by what is not known, or reads a text as something else.
fn may_fail(expr: &Expr) -> bool {
    let fails = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, right, .. }) => is_open(right),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let by = args.last().is_some_and(is_open);
            by && (numbers::divides(func) || quotients::divides(func) || read::reads(func))
        }
        _ => false,
    };
    expr.holds(|expr| Ok(fails(expr))).unwrap_or(true)
}

/// Whether its value is of a row, or a parameter's.
fn is_open(expr: &Expr) -> bool {
    expr.holds(|expr| Ok(matches!(expr, Expr::Column(_) | Expr::Placeholder(_)))).unwrap_or(true)
}

/// The tables whose columns it has.
fn tables_of(expr: &Expr) -> HashSet<Option<&TableReference>> {
    expr.column_refs().into_iter().map(|column| column.relation.as_ref()).collect()
}

/// Whether it has a query of its own, or columns of one around it.
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
