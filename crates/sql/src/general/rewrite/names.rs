//! Names of result columns: PostgreSQL's names, which DataFusion does not produce, made unique as
//! DataFusion requires.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{self, Expr, Ident, Statement as Tree};

use super::scope::Lookup;
use crate::general::internal_names::MARK;
use crate::syntax::build::take;
use crate::syntax::walk;
use crate::syntax::{ident, last_name};

/// Makes the names of the results of a SELECT unique.
pub(super) fn unique_names(body: &mut ast::SetExpr, lookup: Lookup<'_>) {
    match body {
        ast::SetExpr::Select(select) => {
            let has_star = select.projection.iter().any(is_star);
            let mut seen = HashSet::new();
            for item in &mut select.projection {
                let (name, is_open) = match item {
                    // The expansion of `*` may contain the column again.
                    ast::SelectItem::UnnamedExpr(Expr::Identifier(name)) if has_star => (ident(name), true),
                    ast::SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) if has_star => {
                        (names.last().map(ident).unwrap_or_default(), true)
                    }
                    // All subqueries have the same name.
                    ast::SelectItem::UnnamedExpr(expr) if has_subquery(expr) || becomes_another(expr) => {
                        (crate::direct::name_of(expr), true)
                    }
                    ast::SelectItem::UnnamedExpr(expr) => (without_casts(expr), false),
                    ast::SelectItem::ExprWithAlias { alias, .. } => (ident(alias), false),
                    _ => continue,
                };
                if seen.insert(name.clone()) && !is_open {
                    continue;
                }
                rename(item, &name, &mut seen);
            }
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            for side in [&mut **left, &mut **right] {
                expand_stars(side, lookup);
                unique_names(side, lookup);
            }
            differing(left);
            numbered(right);
        }
        ast::SetExpr::Query(query) => unique_names(&mut query.body, lookup),
        _ => {}
    }
}

fn is_star(item: &ast::SelectItem) -> bool {
    !matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
}

fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    let _ = walk::visit_expressions(expr, |expr| {
        found |= matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
        ControlFlow::<()>::Continue(())
    });
    found
}

/// Whether an expression is rewritten into one that another result may have as well: a window
/// function with a NULL argument, or a count of whole rows.
fn becomes_another(expr: &Expr) -> bool {
    let mut found = false;
    let _ = walk::visit_expressions(expr, |expr| {
        if let Expr::Function(called) = expr
            && let ast::FunctionArguments::List(list) = &called.args
        {
            let is_row = |argument: &ast::FunctionArg| {
                matches!(argument, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(_)))
            };
            found |= list.args.iter().any(is_row);
        }
        if let Expr::Function(called) = expr
            && called.over.is_some()
        {
            found |= walk::visit_expressions(&called.args, |expr| match expr {
                Expr::Value(value) if value.value == ast::Value::Null => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
            .is_break();
        }
        ControlFlow::<()>::Continue(())
    });
    found
}

/// Gives a result the first free name with the given prefix.
fn rename(item: &mut ast::SelectItem, name: &str, seen: &mut HashSet<String>) {
    let free = (1..).map(|number| format!("{name}{MARK}{number}")).find(|name| seen.insert(name.clone()));
    let alias = Ident::with_quote('"', free.unwrap_or_else(|| name.to_owned()));
    if let ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } = item {
        *item = ast::SelectItem::ExprWithAlias { expr: take(expr), alias };
    }
}

/// Renames duplicate columns. Columns of different tables may share a name, but not in UNION and
/// similar operations, where columns have no table.
fn differing(body: &mut ast::SetExpr) {
    let ast::SetExpr::Select(select) = body else { return };
    if select.projection.iter().any(is_star) {
        return;
    }
    let mut seen = HashSet::new();
    for item in &mut select.projection {
        let name = match item {
            ast::SelectItem::UnnamedExpr(expr) => crate::direct::name_of(expr),
            ast::SelectItem::ExprWithAlias { alias, .. } => ident(alias),
            _ => continue,
        };
        if !seen.insert(name.clone()) {
            rename(item, &name, &mut seen);
        }
    }
}

/// Expands `*` where all tables are known: only explicit columns can be renamed.
fn expand_stars(body: &mut ast::SetExpr, lookup: Lookup<'_>) {
    let ast::SetExpr::Select(select) = body else { return };
    let merges = |join: &ast::Join| {
        let constraint = match &join.join_operator {
            ast::JoinOperator::Join(constraint)
            | ast::JoinOperator::Inner(constraint)
            | ast::JoinOperator::Left(constraint)
            | ast::JoinOperator::LeftOuter(constraint)
            | ast::JoinOperator::Right(constraint)
            | ast::JoinOperator::RightOuter(constraint)
            | ast::JoinOperator::FullOuter(constraint)
            | ast::JoinOperator::CrossJoin(constraint) => constraint,
            _ => return true,
        };
        matches!(constraint, ast::JoinConstraint::Using(_) | ast::JoinConstraint::Natural)
    };
    if !select.projection.iter().any(is_star) || select.from.iter().any(|from| from.joins.iter().any(merges))
    {
        return;
    }
    let tables = lookup.tables(select);
    let mut all = Vec::new();
    for table in &tables {
        let (Some(name), Some(columns)) = (&table.name, &table.columns) else { return };
        // Columns with the same name could not be referred to.
        if columns.iter().collect::<HashSet<_>>().len() < columns.len() {
            return;
        }
        all.extend(columns.iter().map(|column| (name.clone(), column.clone())));
    }
    let mut projection = Vec::new();
    for item in &select.projection {
        let wanted: Option<String> = match item {
            ast::SelectItem::Wildcard(_) => None,
            ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                Some(last_name(name))
            }
            other => {
                projection.push(other.clone());
                continue;
            }
        };
        let quoted = |name: &String| Ident::with_quote('"', name);
        projection.extend(
            all.iter().filter(|(table, _)| wanted.as_ref().is_none_or(|name| name == table)).map(
                |(table, column)| {
                    ast::SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![
                        quoted(table),
                        quoted(column),
                    ]))
                },
            ),
        );
    }
    select.projection = projection;
}

/// Gives the results of a subquery in FROM PostgreSQL's names, by which the outer query refers to
/// them.
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

/// Expands `*` in a subquery in FROM if several of its columns have the same name.
pub(super) fn spell_out_twins(body: &mut ast::SetExpr, lookup: Lookup<'_>) {
    let ast::SetExpr::Select(select) = &*body else { return };
    if select.from.iter().map(|from| from.joins.len() + 1).sum::<usize>() < 2 {
        return;
    }
    let mut spelt = body.clone();
    expand_stars(&mut spelt, lookup);
    let ast::SetExpr::Select(select) = &spelt else { return };
    let names: Vec<String> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            ast::SelectItem::UnnamedExpr(expr) => Some(crate::direct::name_of(expr)),
            ast::SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
            _ => None,
        })
        .collect();
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        *body = spelt;
    }
}

/// Renames all results of a subquery in FROM that share a name: a reference to that name is
/// ambiguous.
pub(super) fn apart(body: &mut ast::SetExpr) {
    match body {
        ast::SetExpr::Select(select) => {
            let name = |item: &ast::SelectItem| match item {
                ast::SelectItem::UnnamedExpr(expr) => Some(crate::direct::name_of(expr)),
                ast::SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
                _ => None,
            };
            let names: Vec<Option<String>> = select.projection.iter().map(name).collect();
            let is_twice = |name: &String| names.iter().flatten().filter(|other| *other == name).count() > 1;
            let mut seen = HashSet::new();
            for (item, name) in select.projection.iter_mut().zip(&names) {
                if let Some(name) = name.as_ref().filter(|name| is_twice(name)) {
                    rename(item, name, &mut seen);
                }
            }
        }
        ast::SetExpr::SetOperation { left, .. } => apart(left),
        ast::SetExpr::Query(query) => apart(&mut query.body),
        _ => {}
    }
}

/// Aliases a result that ORDER BY refers to by its implicit name, as in `SELECT lower(a) … ORDER BY
/// lower`.
pub(super) fn name_ordered(body: &mut ast::SetExpr, order: &[ast::OrderByExpr]) {
    let ast::SetExpr::Select(select) = body else { return };
    for by in order {
        let Expr::Identifier(name) = &by.expr else { continue };
        let is_it = |item: &ast::SelectItem| match item {
            ast::SelectItem::UnnamedExpr(expr) => crate::direct::name_of(expr) == ident(name),
            ast::SelectItem::ExprWithAlias { alias, .. } => ident(alias) == ident(name),
            _ => false,
        };
        let mut named = select.projection.iter_mut().filter(|item| is_it(item));
        // With several, the name is ambiguous.
        let (Some(item), None) = (named.next(), named.next()) else { continue };
        let ast::SelectItem::UnnamedExpr(expr) = item else { continue };
        if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            *item = ast::SelectItem::ExprWithAlias { expr: take(expr), alias: name.clone() };
        }
    }
}

/// Renames the columns on the right of UNION and similar operations: their names are ignored, and
/// must differ from those on the left.
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

/// Returns the text of an expression without the parts that DataFusion may leave out of column
/// names: casts and signs, of which it drops a unary plus and the sign of a zero.
fn without_casts(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = walk::visit_expressions_mut(&mut expr, |expr| {
        if let Expr::Function(called) = expr
            && let Some(name) = super::functions::other_name(&last_name(&called.name))
        {
            called.name = ast::ObjectName::from(vec![Ident::new(name)]);
        }
        if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } = expr
        {
            *expr = take(inner);
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

/// Returns PostgreSQL's names of the columns of a query; `None` where they depend on the tables.
pub(in crate::general) fn result_names(tree: &Tree) -> Option<Vec<String>> {
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
