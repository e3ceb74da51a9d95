//! `x IN (a, f(b))`: items that are not constants are compared one by one.
//!
//! DataFusion evaluates the items of a list on an empty batch, and treats an item that yields a
//! scalar as a constant. But `CASE WHEN b THEN 1 END` yields a scalar NULL on an empty batch, and
//! `random()` yields a scalar as well.

use crate::general::tree::walk::{Walk, WalkPlan};
use datafusion::common::config::ConfigOptions;
use datafusion::common::not_impl_err;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, not};
use datafusion::optimizer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(crate) struct InLists;

impl AnalyzerRule for InLists {
    fn name(&self) -> &str {
        "cairn_in_lists"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            plan.walk_expressions(|expr| {
                let name = names.save(&expr);
                let done = expr.walk_up(one_by_one)?;
                Ok(done.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(changed.data)
    }
}

fn one_by_one(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr: of, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    if list.iter().all(is_constant) {
        return Ok(Transformed::no(Expr::InList(InList { expr: of, list, negated })));
    }
    if of.is_volatile() {
        // Separate comparisons would evaluate the volatile operand anew for each item.
        if list.iter().any(differs_by_row) {
            return not_impl_err!("IN with a volatile function on its left and items that differ by row");
        }
        return Ok(Transformed::no(Expr::InList(InList { expr: of, list, negated })));
    }
    let (constants, others): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_constant);
    let among = (!constants.is_empty())
        .then(|| Expr::InList(InList { expr: of.clone(), list: constants, negated: false }));
    let equal = others.into_iter().map(|item| of.as_ref().clone().eq(item));
    Ok(match disjunction(among.into_iter().chain(equal)) {
        Some(found) if negated => Transformed::yes(not(found)),
        Some(found) => Transformed::yes(found),
        None => Transformed::no(Expr::InList(InList { expr: of, list: Vec::new(), negated })),
    })
}

/// Whether an item cannot be folded to a constant before the statement runs.
fn differs_by_row(item: &Expr) -> bool {
    item.any_column_refs() || item.is_volatile() || item.contains_outer()
}

/// Whether an item has a single value while the statement runs.
fn is_constant(item: &Expr) -> bool {
    match item {
        Expr::Literal(..) | Expr::Placeholder(_) => true,
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::Negative(of) => is_constant(of),
        Expr::Alias(alias) => is_constant(&alias.expr),
        _ => false,
    }
}
