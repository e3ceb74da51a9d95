//! GROUP BY: ROLLUP and CUBE with duplicate columns, and groups sorted by result number.
//!
//! DataFusion keeps duplicate columns in ROLLUP and CUBE, but removes them from GROUPING SETS. It
//! resolves the number of a sorted result among the grouping columns. It forms a single group of
//! all rows only if there is an aggregate.

use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, OrderByExpr, Select, SelectItem, SetExpr, Value,
};

use super::subqueries::{binary, each_own};
use crate::error::{Error, Result};
use crate::sqlstate::STATEMENT_TOO_COMPLEX;
use crate::syntax::build::{call, number, take};
use crate::syntax::shape::{groups, is_call_of_aggregate};

/// The limit of PostgreSQL on columns in a CUBE.
const MOST_IN_CUBE: usize = 12;

/// The limit of PostgreSQL on grouping sets.
const MOST_SETS: usize = 4096;

/// Expands ROLLUP and CUBE to grouping sets. Several of them, and other columns beside them,
/// combine to the cross product of their sets.
///
/// Errors: 54001 for more sets than PostgreSQL allows.
pub(super) fn spell_out(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(all, _) = &mut select.group_by else { return Ok(()) };
    let mut parts: Vec<Vec<Vec<Expr>>> = Vec::with_capacity(all.len());
    let mut has_sets = false;
    for by in all.iter() {
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
            Expr::Cube(_) => return Err(too_many()),
            column => {
                parts.push(vec![vec![column.clone()]]);
                continue;
            }
        };
        has_sets = true;
        parts.push(sets);
    }
    if !has_sets {
        return Ok(());
    }
    let mut product: Vec<Vec<Expr>> = vec![Vec::new()];
    for sets in parts {
        if product.len().saturating_mul(sets.len()) > MOST_SETS {
            return Err(too_many());
        }
        let joined = |set: &Vec<Expr>| {
            sets.iter().map(|other| once(&[set.clone(), other.clone()])).collect::<Vec<_>>()
        };
        product = product.iter().flat_map(joined).collect();
    }
    // DataFusion resolves result numbers only outside of grouping sets.
    for column in product.iter_mut().flatten() {
        let result = number_of(column).and_then(|at| select.projection.get(at));
        if let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = result {
            *column = expr.clone();
        }
    }
    *all = vec![Expr::GroupingSets(product)];
    Ok(())
}

fn too_many() -> Error {
    Error::new(STATEMENT_TOO_COMPLEX, format!("too many grouping sets present (maximum {MOST_SETS})"))
}

/// Forms a single group of all rows where `GROUP BY ()` or HAVING requires it but there is no
/// aggregate.
pub(super) fn group_all(select: &mut Select) {
    let GroupByExpr::Expressions(all, _) = &mut select.group_by else { return };
    let is_nothing = |by: &Expr| matches!(by, Expr::Tuple(columns) if columns.is_empty());
    let had_nothing = all.iter().any(is_nothing);
    all.retain(|by| !is_nothing(by));
    if !all.is_empty() || !(had_nothing || select.having.is_some()) {
        return;
    }
    let mut has_aggregate = false;
    let items = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    for expr in items.chain(&mut select.having) {
        each_own(expr, |expr| has_aggregate |= is_call_of_aggregate(expr));
    }
    if !has_aggregate {
        let any = binary(call("count", vec![number(1)]), BinaryOperator::GtEq, number(0));
        select.having = Some(match select.having.take() {
            Some(condition) => binary(condition, BinaryOperator::And, any),
            None => any,
        });
    }
}

/// Returns the columns of several sets without duplicates.
fn once(parts: &[Vec<Expr>]) -> Vec<Expr> {
    let mut columns: Vec<Expr> = Vec::new();
    for column in parts.iter().flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}

/// Names results that are sorted by number, and sorts by the name instead.
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

/// Returns the position of a result referred to by number.
fn number_of(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(digits, _) = &value.value else { return None };
    digits.parse::<usize>().ok()?.checked_sub(1)
}
