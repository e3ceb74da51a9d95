//! Subqueries that DataFusion answers otherwise than PostgreSQL, or not at all.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr};

use crate::syntax::build::{number, take};
use crate::syntax::{ident, last_name};

/// `x NOT IN (SELECT y ...)` where the subquery looks outside, in a condition: as NOT EXISTS, which says the same there.
pub(super) fn not_in(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            not_in(left);
            not_in(right);
        }
        Expr::Nested(inner) => not_in(inner),
        Expr::InSubquery { expr, subquery, negated: true } if looks_outside(subquery) => {
            let plain = subquery.limit_clause.is_none() && subquery.with.is_none();
            let ast::SetExpr::Select(select) = &mut *subquery.body else { return };
            let grouped = !matches!(&select.group_by, ast::GroupByExpr::Expressions(by, _) if by.is_empty())
                || select.having.is_some();
            let [ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. }] =
                select.projection.as_mut_slice()
            else {
                return;
            };
            if !plain || grouped || matches!(item, Expr::Function(_)) {
                return;
            }
            let (item, outer) = (Expr::Nested(Box::new(take(item))), Expr::Nested(Box::new(take(expr))));
            let or = |left: Expr, right: Expr| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Or,
                right: Box::new(right),
            };
            let equal = Expr::BinaryOp {
                left: Box::new(item.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(outer.clone()),
            };
            let matches = or(or(equal, Expr::IsNull(Box::new(item))), Expr::IsNull(Box::new(outer)));
            let matches = Expr::Nested(Box::new(matches));
            select.selection = Some(match select.selection.take() {
                None => matches,
                Some(selection) => Expr::BinaryOp {
                    left: Box::new(Expr::Nested(Box::new(selection))),
                    op: BinaryOperator::And,
                    right: Box::new(matches),
                },
            });
            select.projection = vec![ast::SelectItem::UnnamedExpr(number(1))];
            let subquery = subquery.clone();
            *condition = Expr::Exists { subquery, negated: true };
        }
        _ => {}
    }
}

/// Whether a subquery names tables that are not in it.
fn looks_outside(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = &*query.body else { return false };
    let inside = names_of(select);
    let mut outside = false;
    let _ = ast::visit_expressions(query, |expr| {
        if let Expr::CompoundIdentifier(names) = expr {
            outside |= names.first().is_some_and(|first| !inside.contains(&ident(first)));
        }
        ControlFlow::<()>::Continue(())
    });
    outside
}

/// What the tables of a SELECT are called.
fn names_of(select: &ast::Select) -> Vec<String> {
    select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
        .filter_map(|relation| match relation {
            ast::TableFactor::Table { name, alias, .. } => {
                Some(alias.as_ref().map_or_else(|| last_name(name), |alias| ident(&alias.name)))
            }
            ast::TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| ident(&alias.name)),
            _ => None,
        })
        .collect()
}
