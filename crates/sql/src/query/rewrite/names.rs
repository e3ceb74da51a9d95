//! What results are called: PostgreSQL's names, which DataFusion does not give, and which it wants to differ.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, Ident, Statement as Tree};

use crate::syntax::build::take;
use crate::syntax::ident;

/// Gives results of one SELECT that have the same name names of their own.
pub(super) fn unique_names(body: &mut ast::SetExpr) {
    match body {
        ast::SetExpr::Select(select) => {
            let mut seen = std::collections::HashSet::new();
            for item in &mut select.projection {
                let name = match item {
                    ast::SelectItem::UnnamedExpr(expr) => without_casts(expr),
                    ast::SelectItem::ExprWithAlias { alias, .. } => ident(alias),
                    _ => continue,
                };
                if seen.insert(name.clone()) {
                    continue;
                }
                let free =
                    (1..).map(|number| format!("{name}:{number}")).find(|name| seen.insert(name.clone()));
                let alias = Ident::with_quote('"', free.unwrap_or(name));
                let expr = match item {
                    ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                        take(expr)
                    }
                    _ => continue,
                };
                *item = ast::SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            unique_names(left);
            unique_names(right);
            numbered(right);
        }
        _ => {}
    }
}

/// Gives results of a table that is a query PostgreSQL's names: the query around it asks for them by these.
pub(super) fn name_results(body: &mut ast::SetExpr) {
    match body {
        ast::SetExpr::Select(select) => {
            for item in &mut select.projection {
                let ast::SelectItem::UnnamedExpr(expr) = item else { continue };
                if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                    continue;
                }
                let alias = Ident::with_quote('"', crate::direct::name_of(expr));
                *item = ast::SelectItem::ExprWithAlias { expr: take(expr), alias };
            }
        }
        ast::SetExpr::SetOperation { left, .. } => name_results(left),
        ast::SetExpr::Query(query) => name_results(&mut query.body),
        _ => {}
    }
}

/// Names on the right of UNION and the like count for nothing, and are not to be those on the left.
fn numbered(body: &mut ast::SetExpr) {
    let ast::SetExpr::Select(select) = body else { return };
    let plain = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    if !select.projection.iter().all(plain) || select.distinct.is_some() {
        return;
    }
    for (at, item) in select.projection.iter_mut().enumerate() {
        if let ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } = item {
            *item = ast::SelectItem::ExprWithAlias {
                expr: take(expr),
                alias: Ident::with_quote('"', format!("right:{at}")),
            };
        }
    }
}

/// An expression's text, as DataFusion names columns by it.
fn without_casts(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = ast::visit_expressions_mut(&mut expr, |expr| {
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = take(inner);
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

/// What PostgreSQL calls the columns of a query; `None` where only the tables tell.
pub(in crate::query) fn result_names(tree: &Tree) -> Option<Vec<String>> {
    let Tree::Query(query) = tree else { return None };
    let mut body = &*query.body;
    loop {
        match body {
            ast::SetExpr::SetOperation { left, .. } => body = left,
            ast::SetExpr::Query(query) => body = &query.body,
            ast::SetExpr::Select(select) => {
                return select
                    .projection
                    .iter()
                    .map(|item| match item {
                        ast::SelectItem::UnnamedExpr(expr) => Some(crate::direct::name_of(expr)),
                        ast::SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
                        _ => None,
                    })
                    .collect();
            }
            _ => return None,
        }
    }
}
