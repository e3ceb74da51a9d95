//! Rewrites correlated subqueries to forms that DataFusion can turn into joins: aggregates, whose
//! only conditions on outer columns are equalities.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value,
    helpers::attached_token::AttachedToken,
};

use super::rewrite::{orders_by, parts, select_mut};
use crate::syntax::build::{call, null, text};
use crate::syntax::ident;
use crate::syntax::shape::{groups, is_aggregate};
use crate::syntax::walk::{visit_expressions, visit_expressions_mut};

/// Relations that are always empty.
const EMPTY: &[&str] = &[
    "pg_policy",
    "pg_trigger",
    "pg_publication",
    "pg_publication_rel",
    "pg_publication_namespace",
    "pg_inherits",
    "pg_statistic_ext",
    "pg_enum",
    "pg_description",
    "pg_shdescription",
    "pg_foreign_table",
    "pg_partitioned_table",
    "pg_foreign_server",
    "pg_foreign_data_wrapper",
];

/// Returns the names by which a select refers to its tables.
fn tables(select: &Select) -> Vec<String> {
    let name = |factor: &TableFactor| match factor {
        TableFactor::Table { name, alias, .. } => {
            alias.as_ref().map(|alias| ident(&alias.name)).or_else(|| parts(name).pop())
        }
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| ident(&alias.name)),
        _ => None,
    };
    select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
        .filter_map(name)
        .collect()
}

/// Array columns that subqueries expand although they are always NULL, or belong to an empty
/// relation.
const NEVER: &[&str] = &["polroles", "prattrs", "reloptions"];

/// Whether the select is always empty, because it reads an empty relation or expands such a column.
fn is_empty(select: &Select) -> bool {
    let empty = |factor: &TableFactor| matches!(factor, TableFactor::Table { name, .. } if parts(name).last().is_some_and(|name| EMPTY.contains(&name.as_str())));
    let mut never = false;
    let mut look = |expr: &Expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        never |= name.is_some_and(|name| NEVER.contains(&ident(name).as_str()));
        ControlFlow::<()>::Continue(())
    };
    let _ = visit_expressions(&select.from, &mut look);
    let _ = visit_expressions(&select.selection, &mut look);
    never || select.from.iter().any(|from| empty(&from.relation))
}

/// Removes `LATERAL (SELECT x) AS o(n)` from a select, and replaces `o.n` by `x`.
pub(super) fn inline_laterals(select: &mut Select) {
    let mut inlined = Vec::new();
    for from in &mut select.from {
        from.joins.retain_mut(|join| {
            let TableFactor::Derived { lateral: true, subquery, alias: Some(alias), .. } = &mut join.relation
            else {
                return true;
            };
            let Some(inner) =
                select_mut(subquery).filter(|inner| inner.from.is_empty() && inner.selection.is_none())
            else {
                return true;
            };
            let ([column], Some(value)) = (alias.columns.as_slice(), single(inner)) else { return true };
            inlined.push((ident(&alias.name), ident(&column.name), value.clone()));
            false
        });
    }
    for (table, column, value) in inlined {
        let _: ControlFlow<()> = visit_expressions_mut(select, |expr| {
            if let Expr::CompoundIdentifier(names) = expr
                && let [of, name] = names.as_slice()
                && (ident(of), ident(name)) == (table.clone(), column.clone())
            {
                *expr = Expr::Nested(Box::new(value.clone()));
            }
            ControlFlow::Continue(())
        });
    }
}

/// Returns the table of a qualified column.
fn table_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(names) => names.len().checked_sub(2).and_then(|at| names.get(at)).map(ident),
        _ => None,
    }
}

fn conjuncts(expr: Expr, to: &mut Vec<Expr>) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(*left, to);
            conjuncts(*right, to);
        }
        other => to.push(other),
    }
}

fn conjunction(all: Vec<Expr>) -> Option<Expr> {
    all.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
}

/// Whether an expression has columns, all of them of outer tables.
fn is_outer(expr: &Expr, local: &[String]) -> bool {
    let (mut outer, mut other) = (false, false);
    let _: ControlFlow<()> = visit_expressions(expr, |expr| {
        match expr {
            Expr::CompoundIdentifier(_) if table_of(expr).is_some_and(|table| !local.contains(&table)) => {
                outer = true
            }
            Expr::CompoundIdentifier(_) | Expr::Identifier(_) | Expr::Subquery(_) => other = true,
            _ => {}
        }
        ControlFlow::Continue(())
    });
    outer && !other
}

/// Removes conditions on outer rows alone from a select and returns them. In the others, outer
/// columns are replaced by inner columns that are equal to them.
fn untangle(select: &mut Select) -> Option<Expr> {
    let local = tables(select);
    let mut all = Vec::new();
    conjuncts(select.selection.take()?, &mut all);
    let (outer, mut inner): (Vec<Expr>, Vec<Expr>) =
        all.into_iter().partition(|condition| is_outer(condition, &local));
    let mut equal: Vec<(Expr, Expr)> = Vec::new();
    for condition in &inner {
        if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition {
            match (is_outer(left, &local), is_outer(right, &local)) {
                (true, false) => equal.push(((**left).clone(), (**right).clone())),
                (false, true) => equal.push(((**right).clone(), (**left).clone())),
                _ => {}
            }
        }
    }
    for condition in &mut inner {
        if matches!(condition, Expr::BinaryOp { op: BinaryOperator::Eq, .. }) {
            continue;
        }
        let _: ControlFlow<()> = visit_expressions_mut(condition, |expr| {
            if let Some((_, local)) = equal.iter().find(|(outer, _)| outer == expr) {
                *expr = local.clone();
            }
            ControlFlow::Continue(())
        });
    }
    select.selection = conjunction(inner);
    conjunction(outer)
}

fn single(select: &mut Select) -> Option<&mut Expr> {
    match select.projection.as_mut_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => Some(expr),
        _ => None,
    }
}

/// Returns an expression for a value under a condition, NULL otherwise.
fn when(condition: Option<Expr>, result: Expr) -> Expr {
    let Some(condition) = condition else { return result };
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result }],
        else_result: None,
    }
}

/// Wraps a subquery in the conditions that were removed from it.
fn under(condition: Option<Expr>, query: &Query) -> Expr {
    when(condition, Expr::Subquery(Box::new(query.clone())))
}

/// Replaces a subquery on the row of `pg_sequence` with an OID from outer rows by function calls
/// that look its columns up. The result can therefore refer to columns of outer rows. `None` for
/// other subqueries.
fn of_sequence(select: &mut Select) -> Option<Expr> {
    let [TableWithJoins { relation: TableFactor::Table { name, args: None, .. }, joins }] =
        select.from.as_slice()
    else {
        return None;
    };
    if parts(name).last().is_none_or(|name| name != "pg_sequence") || !joins.is_empty() || groups(select) {
        return None;
    }
    let local = tables(select);
    let mut all = Vec::new();
    conjuncts(select.selection.clone()?, &mut all);
    let is_number = |expr: &Expr| column_of(expr, &local).is_some_and(|column| column == "seqrelid");
    let number = |condition: &Expr| match condition {
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if is_number(left) => Some((**right).clone()),
        Expr::BinaryOp { left, op: BinaryOperator::Eq, right } if is_number(right) => Some((**left).clone()),
        _ => None,
    };
    let (mut outer, inner): (Vec<Expr>, Vec<Expr>) =
        all.into_iter().partition(|condition| is_outer(condition, &local));
    let [only] = inner.as_slice() else { return None };
    let number = number(only).filter(|number| is_outer(number, &local))?;
    let mut value = single(select).filter(|value| !is_aggregate(value))?.clone();
    let _ = visit_expressions_mut(&mut value, |expr| {
        if let Some(column) = column_of(expr, &local) {
            let function =
                if column == "seqcycle" { "cairn_sequence_cycles" } else { "cairn_sequence_number" };
            *expr = call(function, vec![number.clone(), text(&column)]);
        }
        ControlFlow::<()>::Continue(())
    });
    let there = call("cairn_sequence_number", vec![number, text("seqrelid")]);
    outer.push(Expr::IsNotNull(Box::new(there)));
    Some(when(conjunction(outer), value))
}

/// Returns the column that an expression is, if it belongs to one of these tables.
fn column_of(expr: &Expr, tables: &[String]) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(names) if table_of(expr).is_some_and(|table| tables.contains(&table)) => {
            names.last().map(ident)
        }
        _ => None,
    }
}

/// Rewrites a scalar subquery to an aggregate. `None` means that it already is one.
pub(super) fn scalar(query: &mut Query) -> Option<Expr> {
    let select = select_mut(query)?;
    if is_empty(select) {
        return Some(null());
    }
    if let Some(value) = of_sequence(select) {
        return Some(value);
    }
    if select.from.is_empty() || groups(select) || is_aggregate(single(select)?) {
        return None;
    }
    let condition = untangle(select);
    let value = single(select)?;
    *value = call("max", vec![value.clone()]);
    query.order_by = None;
    query.limit_clause = None;
    Some(under(condition, query))
}

/// Rewrites `ARRAY(SELECT ...)` to an aggregate.
pub(super) fn array(query: &mut Query) -> Expr {
    let order = orders_by(query);
    query.order_by = None;
    let Some(select) = select_mut(query) else { return null() };
    if is_empty(select) {
        return null();
    }
    let condition = untangle(select);
    if let Some(value) = single(select) {
        let by = match order {
            Some(Expr::Value(place)) if matches!(place.value, Value::Number(..)) => Some(value.clone()),
            other => other,
        };
        // Sorted as in PostgreSQL, if the value itself is the sort key.
        *value = match by {
            Some(by) if by == *value => call("array_sort", vec![call("array_agg", vec![value.clone()])]),
            _ => call("array_agg", vec![value.clone()]),
        };
    }
    // No rows give an empty array.
    call("coalesce", vec![under(condition, query), call("cairn_no_texts", Vec::new())])
}

/// Rewrites `EXISTS (...)` to a count, for places where DataFusion does not turn it into a join.
pub(crate) fn count_instead_of_exists(expr: &mut Expr) {
    let Expr::Exists { subquery, negated } = expr else { return };
    let limited = subquery.limit_clause.is_some() || subquery.fetch.is_some();
    let SetExpr::Select(select) = &mut *subquery.body else { return };
    // An aggregate returns a row even for no rows.
    let is_total = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_aggregate(expr),
        _ => false,
    });
    if groups(select) || select.having.is_some() || limited || is_total {
        return;
    }
    select.distinct = None;
    select.projection = vec![SelectItem::UnnamedExpr(call(
        "count",
        vec![Expr::Value(Value::Number("1".to_owned(), false).into())],
    ))];
    let condition = untangle(select);
    let op = if *negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
    let count = Expr::Subquery(subquery.clone());
    let compared = Expr::BinaryOp {
        left: Box::new(count),
        op,
        right: Box::new(Expr::Value(Value::Number("0".to_owned(), false).into())),
    };
    // An unknown condition selects no rows, and the result of EXISTS is never unknown.
    *expr = match condition {
        None => compared,
        Some(condition) if *negated => Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(condition))))),
            op: BinaryOperator::Or,
            right: Box::new(compared),
        })),
        Some(condition) => Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::IsTrue(Box::new(Expr::Nested(Box::new(condition))))),
            op: BinaryOperator::And,
            right: Box::new(compared),
        })),
    };
}
