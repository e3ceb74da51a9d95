//! Which subqueries DataFusion makes right joins of.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Cast, Distinct, Expr, LogicalPlan, Operator};

use super::{has, has_subquery, outer_columns, subquery_of};
use crate::query::walk::Walk;

/// Whether an expression has a subquery that looks outside, of a shape that DataFusion is not
/// trusted with. `within_filter`: it is a condition's, so that DataFusion sees to `EXISTS` and `IN`
/// as well.
pub(super) fn has_untrusted(expr: &Expr, around: &DFSchema, within_filter: bool) -> Result<bool> {
    let mut found = false;
    expr.look(|expr| {
        if let Some(subquery) = subquery_of(expr) {
            let outer = outer_columns(&subquery.subquery)?;
            // One value is computed before all others; no join is made of EXISTS and IN but in a
            // condition.
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

/// Whether DataFusion sees where `NOT IN` may meet NULL: it looks at the columns on both sides, and
/// not at what an expression like `nullif(a, b)` makes of them (its issue 25024).
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

/// A column, whatever its type is made.
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
    // Of a query around that one as well it finds nothing.
    if !outer.iter().all(|column| has(around, column)) {
        return Ok(false);
    }
    let mut path = Path { totals: false, inner: Vec::new() };
    let is_right = match expr {
        Expr::Exists(_) => within_filter && path.is_right(plan)?,
        // A value that is not there is for three-valued logic to know of.
        Expr::InSubquery(within) => within_filter && !within.negated && path.is_right(plan)?,
        Expr::ScalarSubquery(_) => path.is_one_total(plan)?,
        _ => false,
    };
    Ok(is_right && path.names_differ() && path.leaves_names(plan)?)
}

/// The way from the top of a subquery to the conditions that look outside.
#[derive(Debug)]
struct Path {
    /// An aggregate is above.
    totals: bool,
    /// The subquery's own columns in these conditions: they become columns of its result.
    inner: Vec<Column>,
}

impl Path {
    /// `SELECT f(max(x), count(*)) FROM ... WHERE y = outer`.
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

    /// Whether conditions that look outside may be met above as well.
    fn is_right(&mut self, plan: &LogicalPlan) -> Result<bool> {
        if outer_columns(plan)?.is_empty() {
            return Ok(true);
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                for part in split_conjunction(&filter.predicate) {
                    if !part.contains_outer() {
                        // A subquery in there is judged by itself, by what is around it.
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

    /// Whether the columns of conditions can be told apart by their names alone, which is all that
    /// is left of them above the subquery.
    fn names_differ(&self) -> bool {
        self.inner
            .iter()
            .enumerate()
            .all(|(at, column)| self.inner.iter().take(at).all(|other| other.name != column.name))
    }

    /// Whether nothing else on the way has the name of such a column.
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

/// Whether an operator itself does, and not only what is below.
fn looks_outside(plan: &LogicalPlan) -> bool {
    plan.contains_outer_reference()
}

/// `column = outer`, for which rows of one outer row are the rows of one group.
fn is_equality(part: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = part else { return false };
    is_column(left) && !right.any_column_refs() || is_column(right) && !left.any_column_refs()
}
