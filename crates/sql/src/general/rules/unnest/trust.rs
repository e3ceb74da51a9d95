//! Recognizes the subqueries that DataFusion turns into correct joins.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Distinct, Expr, LogicalPlan, Operator};

use super::{has, has_subquery, outer_columns, subquery_of};
use crate::general::tree::walk::Walk;

/// Whether an expression contains a subquery with a shape that DataFusion is not trusted with.
/// `within_filter`: the expression is part of a condition, where DataFusion handles `EXISTS` and
/// `IN` as well.
pub(super) fn has_untrusted(expr: &Expr, around: &DFSchema, within_filter: bool) -> Result<bool> {
    let mut found = false;
    expr.look(|expr| {
        if let Some(subquery) = subquery_of(expr) {
            let outer = outer_columns(&subquery.subquery)?;
            // DataFusion computes uncorrelated scalar subqueries up front, and turns EXISTS and IN
            // into joins only in conditions.
            found |= match outer.is_empty() {
                true => match expr {
                    Expr::Exists(_) => !within_filter,
                    Expr::InSubquery(within) => {
                        !within_filter || within.negated && !tells_nulls(&within.expr, &subquery.subquery)
                    }
                    _ => false,
                },
                false => !is_trusted(expr, &subquery.subquery, &outer, around, within_filter)?,
            };
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether DataFusion recognizes where `NOT IN` may meet NULL. It checks the columns on both sides,
/// but not expressions on them such as `nullif(a, b)` (its issue 25024).
fn tells_nulls(left: &Expr, plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_column(left) && projection.expr.iter().all(is_column),
        LogicalPlan::Distinct(Distinct::All(input)) => tells_nulls(left, input),
        LogicalPlan::SubqueryAlias(alias) => tells_nulls(left, &alias.input),
        LogicalPlan::Filter(filter) => tells_nulls(left, &filter.input),
        LogicalPlan::TableScan(_) | LogicalPlan::Aggregate(_) => is_column(left),
        _ => false,
    }
}

/// Whether an expression is a column, possibly under casts.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(Cast { expr, .. }) => is_column(expr),
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

fn is_trusted(
    expr: &Expr,
    plan: &LogicalPlan,
    outer: &[Column],
    around: &DFSchema,
    within_filter: bool,
) -> Result<bool> {
    // DataFusion does not resolve references to queries further out.
    if !outer.iter().all(|column| has(around, column)) {
        return Ok(false);
    }
    let mut path = Path { totals: false, inner: Vec::new() };
    let is_right = match expr {
        Expr::Exists(_) => within_filter && path.is_right(plan)?,
        // NOT IN needs three-valued logic, which the join lacks.
        Expr::InSubquery(within) => within_filter && !within.negated && path.is_right(plan)?,
        Expr::ScalarSubquery(_) => path.is_one_total(plan)?,
        _ => false,
    };
    Ok(is_right && path.names_differ() && path.leaves_names(plan)?)
}

/// The operators from the top of a subquery down to its correlated conditions.
#[derive(Debug)]
struct Path {
    /// Whether an aggregate is among them.
    totals: bool,
    /// The subquery's own columns in these conditions, which become columns of its result.
    inner: Vec<Column>,
}

impl Path {
    /// Whether a plan has the shape `SELECT f(max(x), count(*)) FROM ... WHERE y = outer`.
    fn is_one_total(&mut self, plan: &LogicalPlan) -> Result<bool> {
        match plan {
            LogicalPlan::Projection(projection) => {
                let is_plain = projection.expr.iter().all(|expr| !has_subquery(expr) && !expr.is_volatile());
                match &*projection.input {
                    LogicalPlan::Aggregate(_) | LogicalPlan::Projection(_)
                        if is_plain && !looks_outside(plan) =>
                    {
                        self.is_one_total(&projection.input)
                    }
                    _ => Ok(false),
                }
            }
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() && !looks_outside(plan) => {
                self.totals = true;
                self.is_right(&aggregate.input)
            }
            _ => Ok(false),
        }
    }

    /// Whether correlated conditions may be evaluated above the plan instead.
    fn is_right(&mut self, plan: &LogicalPlan) -> Result<bool> {
        if outer_columns(plan)?.is_empty() {
            return Ok(true);
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                for part in split_conjunction(&filter.predicate) {
                    if !part.contains_outer() {
                        // A nested subquery is checked separately, against its own surroundings.
                        if has_subquery(part) && !super::looks_outside(part)? {
                            continue;
                        }
                        if has_subquery(part) && has_untrusted(part, filter.input.schema(), true)? {
                            return Ok(false);
                        }
                        continue;
                    }
                    if has_subquery(part) || part.is_volatile() || self.totals && !is_equality(part) {
                        return Ok(false);
                    }
                    for column in part.column_refs() {
                        if !self.inner.contains(column) {
                            self.inner.push(column.clone());
                        }
                    }
                }
                self.is_right(&filter.input)
            }
            LogicalPlan::Projection(projection) => Ok(!looks_outside(plan)
                && !projection.expr.iter().any(|expr| has_subquery(expr) || expr.is_volatile())
                && self.is_right(&projection.input)?),
            LogicalPlan::Distinct(Distinct::All(input)) if !self.totals => self.is_right(input),
            LogicalPlan::Join(join) => Ok(join.join_type == JoinType::Inner
                && !looks_outside(plan)
                && !matches!(&*join.right, LogicalPlan::Subquery(_))
                && self.is_right(&join.left)?
                && self.is_right(&join.right)?),
            _ => Ok(false),
        }
    }

    /// Whether the names of the columns in the conditions differ, because above the subquery only
    /// the name is left of a column.
    fn names_differ(&self) -> bool {
        self.inner
            .iter()
            .enumerate()
            .all(|(at, column)| self.inner.iter().take(at).all(|other| other.name != column.name))
    }

    /// Whether no other expression on the path has the name of such a column.
    fn leaves_names(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut leaves = true;
        plan.look(|plan| {
            let exprs: Vec<&Expr> = match plan {
                LogicalPlan::Projection(projection) => projection.expr.iter().collect(),
                LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.iter().collect(),
                _ => Vec::new(),
            };
            for expr in exprs {
                let (_, name) = expr.qualified_name();
                let same = self.inner.iter().find(|column| column.name == name);
                leaves &= same.is_none_or(|column| match expr {
                    Expr::Column(own) => own == column,
                    _ => false,
                });
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(leaves)
    }
}

/// Whether the operator itself contains an outer reference, not only its inputs.
fn looks_outside(plan: &LogicalPlan) -> bool {
    plan.contains_outer_reference()
}

/// Whether a condition is `column = outer`. Then the rows for one outer row are those of one group.
fn is_equality(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    is_column(left) && !right.any_column_refs() || is_column(right) && !left.any_column_refs()
}
