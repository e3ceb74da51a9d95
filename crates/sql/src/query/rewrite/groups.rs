//! Groups: ROLLUP and CUBE, whose columns may be there twice, and results of groups that are sorted by.
//!
//! DataFusion takes the columns of ROLLUP and CUBE as they are listed, and those of GROUPING SETS once. What is sorted by its number it looks for among the columns of groups.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Ident, OrderByExpr, SelectItem, SetExpr, Value};

use crate::syntax::build::take;
use crate::syntax::shape::groups;

/// PostgreSQL has no CUBE of more.
const MOST_IN_CUBE: usize = 12;

/// Says which sets of columns ROLLUP and CUBE stand for.
pub(super) fn spell_out(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(all, _) = group_by else { return };
    for by in all {
        let sets: Vec<Vec<Expr>> = match by {
            Expr::Rollup(parts) => {
                (0..=parts.len()).rev().filter_map(|count| parts.get(..count)).map(once).collect()
            }
            Expr::Cube(parts) if parts.len() <= MOST_IN_CUBE => {
                let chosen = |mask: usize| {
                    let parts = parts.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1);
                    parts.map(|(_, part)| part.clone()).collect::<Vec<_>>()
                };
                (0..1 << parts.len()).map(|mask| once(&chosen(mask))).collect()
            }
            Expr::GroupingSets(sets) => sets.iter().map(|set| once(std::slice::from_ref(set))).collect(),
            _ => continue,
        };
        *by = Expr::GroupingSets(sets);
    }
}

/// All columns of some parts, each once.
fn once(parts: &[Vec<Expr>]) -> Vec<Expr> {
    let mut columns: Vec<Expr> = Vec::new();
    for column in parts.iter().flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}

/// Gives results of groups that are sorted by their number a name, and sorts by that.
pub(super) fn name_ordered(body: &mut SetExpr, order: &mut [OrderByExpr]) {
    let SetExpr::Select(select) = body else { return };
    let is_one =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if !groups(select) || !select.projection.iter().all(is_one) {
        return;
    }
    for by in order {
        let Some(at) = number_of(&by.expr) else { continue };
        let Some(item @ SelectItem::UnnamedExpr(_)) = select.projection.get_mut(at) else { continue };
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            continue;
        }
        let alias = Ident::with_quote('"', format!("cairn result {at}"));
        *item = SelectItem::ExprWithAlias { expr: take(expr), alias: alias.clone() };
        by.expr = Expr::Identifier(alias);
    }
}

/// The place of a result that is meant by its number.
fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(digits, _) = &value.value else { return None };
    digits.parse::<usize>().ok()?.checked_sub(1)
}
