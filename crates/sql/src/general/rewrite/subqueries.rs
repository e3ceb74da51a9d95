//! Subqueries that DataFusion does not support, or evaluates differently than PostgreSQL.
//!
//! | PostgreSQL | here |
//! |---|---|
//! | condition `x NOT IN (Q)` | `NOT EXISTS` of rows that equal x; NULLs count as equal |
//! | condition `(x, y) IN (Q)` | `EXISTS (SELECT FROM (Q) s(a, b) WHERE a = x AND b = y)` |
//! | `x IN (Q)` where NULL differs from false | a CASE over counts of rows of Q |
//! | `x = ANY (Q)`, `x <> ALL (Q)` | `x IN (Q)`, `x NOT IN (Q)` |
//! | `x < ANY (Q)`, `x >= ALL (Q)` ... | minimum or maximum of Q, and counts (`quantified.rs`) |
//! | correlated scalar `(Q)` | `cairn_one((SELECT array_agg(..) ..))`, which rejects two rows |
//! | correlated `(Q ORDER BY b LIMIT 1)` | `(SELECT first_value(.. ORDER BY b) ..)` |
//!
//! If Q is correlated and simple, the condition goes into Q itself, so that DataFusion turns it
//! into a join. `general/rules/unnest` handles other correlated subqueries.
//!
//! DataFusion turns `IN` into joins. Where `IN` is only a part of a condition, the join marks rows
//! with true or false, but never NULL.

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArgumentClause, FunctionArguments, Ident, UnaryOperator, Value,
    VisitorMut,
};

use super::quantified;
use super::rows;
use super::scope::{From, Lookup};
use crate::error::{Error, Result};
use crate::general::markers::{NULLABLE, SINGLE_VALUE};
use crate::sqlstate::SYNTAX_ERROR;
use crate::syntax::build::{call, nested, null, number, take};
use crate::syntax::shape::{groups, is_aggregate};
use crate::syntax::walk;
use crate::syntax::{Plain, ident, last_name, one};

/// Reserved names, so that references into the wrapped subquery are not resolved within it.
const TABLE: &str = "cairn subquery";
const COLUMN: &str = "cairn value";

pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(nested(left)), op, right: Box::new(nested(right)) }
}

pub(super) fn or(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::Or, right)
}

pub(super) fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(nested(expr)))
}

/// Returns a column of a subquery, by its position.
fn value(at: usize) -> Expr {
    Expr::CompoundIdentifier(vec![
        Ident::with_quote('"', TABLE),
        Ident::with_quote('"', format!("{COLUMN} {at}")),
    ])
}

/// The query around subqueries, with the tables that its names refer to.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub lookup: Lookup<'a>,
    pub tables: Vec<From>,
}

impl Around<'_> {
    /// Qualifies the columns of an expression with their tables, so that nothing in a subquery
    /// captures them. `None` where the table of a column is not known.
    fn qualified(&self, expr: &Expr) -> Option<Expr> {
        let mut expr = expr.clone();
        let mut is_known = true;
        each_own(&mut expr, |expr| {
            let Expr::Identifier(name) = expr else { return };
            let column = ident(name);
            let has = |from: &&From| from.columns.as_ref().is_some_and(|columns| columns.contains(&column));
            let owners: Vec<&From> = self.tables.iter().filter(has).collect();
            match owners.as_slice() {
                [From { name: Some(table), .. }] => {
                    let table = Ident::with_quote('"', table);
                    *expr = Expr::CompoundIdentifier(vec![table, name.clone()]);
                }
                _ => is_known = false,
            }
        });
        is_known.then_some(expr)
    }

    /// Returns the expression for use inside a subquery with columns of its own, or without any.
    pub(super) fn named(&self, expr: &Expr, beside: bool) -> Option<Expr> {
        if beside { self.qualified(expr) } else { Some(expr.clone()) }
    }

    /// Returns a query for `result` over the values of a subquery that meet a condition. `None`
    /// where that cannot be expressed.
    pub(super) fn of_rows(
        &self,
        query: &ast::Query,
        result: impl Fn(Expr) -> Expr,
        condition: impl Fn(Expr) -> Option<Expr>,
    ) -> Option<Box<ast::Query>> {
        let only = |values: &[Expr]| values.first().cloned().unwrap_or_else(null);
        self.of_all(query, 1, |values| result(only(values)), |values| condition(only(values)))
    }

    /// Like [`Around::of_rows`], for rows of several columns.
    fn of_all(
        &self,
        query: &ast::Query,
        columns: usize,
        result: impl Fn(&[Expr]) -> Expr,
        condition: impl Fn(&[Expr]) -> Option<Expr>,
    ) -> Option<Box<ast::Query>> {
        if !self.lookup.looks_outside(query) {
            let values: Vec<Expr> = (0..columns).map(value).collect();
            return over(query, columns, result(&values), condition(&values));
        }
        self.within(query, columns, &result, &condition).or_else(|| {
            let values: Vec<Expr> = (0..columns).map(value).collect();
            over(query, columns, result(&values), condition(&values))
        })
    }

    /// Like [`Around::of_all`], with the condition in the query itself. `None` where that would
    /// change its meaning.
    fn within(
        &self,
        query: &ast::Query,
        columns: usize,
        result: impl Fn(&[Expr]) -> Expr,
        condition: impl Fn(&[Expr]) -> Option<Expr>,
    ) -> Option<Box<ast::Query>> {
        let plain = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let mut query = Box::new(query.clone());
        query.order_by = None;
        let ast::SetExpr::Select(select) = &mut *query.body else { return None };
        let plain = plain && !groups(select) && select.having.is_none() && !select.from.is_empty();
        let plain = plain && matches!(select.distinct, None | Some(ast::Distinct::Distinct));
        let item = |item: &ast::SelectItem| match item {
            ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. } => {
                Some(item.clone())
            }
            _ => None,
        };
        let items = select.projection.iter().map(item).collect::<Option<Vec<Expr>>>()?;
        if !plain || items.len() != columns || !items.iter().all(is_of_row) {
            return None;
        }
        let wanted = condition(&items);
        select.selection = match (select.selection.take(), wanted) {
            (Some(own), Some(wanted)) => Some(binary(own, BinaryOperator::And, wanted)),
            (own, wanted) => own.or(wanted),
        };
        select.distinct = None;
        select.projection = vec![ast::SelectItem::UnnamedExpr(result(&items))];
        Some(query)
    }
}

/// Returns `SELECT result FROM (query) s(y, z) WHERE condition`.
fn over(
    query: &ast::Query,
    columns: usize,
    result: Expr,
    condition: Option<Expr>,
) -> Option<Box<ast::Query>> {
    let names: Vec<String> = (0..columns).map(|at| format!("\"{COLUMN} {at}\"")).collect();
    let sql = format!("SELECT 1 FROM (SELECT 1) AS \"{TABLE}\" ({})", names.join(", "));
    let parsed = one(&sql).ok()?;
    let Plain::Tree(ast::Statement::Query(parsed)) = &*parsed.statement else { return None };
    let mut over = parsed.clone();
    let ast::SetExpr::Select(select) = &mut *over.body else { return None };
    let ast::TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    **subquery = query.clone();
    select.projection = vec![ast::SelectItem::UnnamedExpr(result)];
    select.selection = condition;
    Some(over)
}

/// Visits the expressions of one query, without those of nested queries.
struct Own<F>(usize, F);

impl<F: FnMut(&mut Expr)> VisitorMut for Own<F> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.0 == 0 {
            (self.1)(expr);
        }
        ControlFlow::Continue(())
    }
}

/// Visits an expression and its parts, except for those in subqueries.
pub(super) fn each_own(expr: &mut Expr, see: impl FnMut(&mut Expr)) {
    let _ = walk::visit_mut(expr, &mut Own(0, see));
}

/// Whether an expression refers to columns.
fn has_columns(expr: &Expr) -> bool {
    let mut found = false;
    each_own(&mut expr.clone(), |expr| {
        found |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    });
    found
}

/// Whether an expression depends on a single row, and yields one value for it.
fn is_of_row(expr: &Expr) -> bool {
    let mut is_of_row = !is_aggregate(expr);
    each_own(&mut expr.clone(), |expr| {
        if let Expr::Function(function) = expr {
            let name = last_name(&function.name);
            let is_set = ["unnest", "generate_series", "regexp_matches", "regexp_split_to_table"];
            is_of_row &= function.over.is_none() && !is_set.contains(&name.as_str());
        }
    });
    is_of_row
}

fn refused() -> Error {
    Error::unsupported("IN with a correlated subquery in this context")
}

/// Rewrites the subqueries of a condition, where NULL has the effect of false.
///
/// Errors: 0A000 where the rows would be wrong.
pub(super) fn condition(expr: &mut Expr, around: &Around<'_>) -> Result<()> {
    quantified::as_in(expr);
    part(expr, around, true)
}

/// `alone`: the part is combined with others by AND only.
fn part(expr: &mut Expr, around: &Around<'_>, alone: bool) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            let alone = alone && *op == BinaryOperator::And;
            part(left, around, alone)?;
            part(right, around, alone)
        }
        Expr::Nested(inner) => part(inner, around, alone),
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
            let mut inner = take(inner);
            while let Expr::Nested(within) = inner {
                inner = *within;
            }
            if let Expr::InSubquery { negated, .. } = &mut inner {
                *negated = !*negated;
                *expr = inner;
                return part(expr, around, alone);
            }
            values(&mut inner, around)?;
            *expr = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(inner)) };
            Ok(())
        }
        Expr::InSubquery { expr: row, subquery, negated } if matches!(rows::bare(row), Expr::Tuple(_)) => {
            if let (Expr::Tuple(row), Some(width)) = (rows::bare(row), width(&subquery.body))
                && row.len() != width
            {
                let what = if width < row.len() { "few" } else { "many" };
                return Err(Error::new(SYNTAX_ERROR, format!("subquery has too {what} columns")));
            }
            let subquery = of_row(rows::bare(row), subquery, *negated, around).ok_or_else(refused)?;
            *expr = Expr::Exists { subquery, negated: *negated };
            Ok(())
        }
        Expr::InSubquery { negated: false, .. } | Expr::Exists { .. } => Ok(()),
        Expr::InSubquery { expr: outer, subquery, negated: true } => {
            let looks_outside = around.lookup.looks_outside(subquery);
            // DataFusion plans this case as an antijoin that handles NULL, unless the operand has
            // no columns, as a literal NULL.
            if alone && !looks_outside && has_columns(outer) {
                return Ok(());
            }
            // A case that cannot be expressed here is handled in the plan (`general/rules/unnest`).
            let Some(outer) = around.named(outer, looks_outside) else { return Ok(()) };
            let matches = |value: Expr| {
                let equal = binary(value.clone(), BinaryOperator::Eq, outer.clone());
                Some(or(or(equal, is_null(value)), is_null(outer.clone())))
            };
            if let Some(subquery) = around.of_rows(subquery, |_| number(1), matches) {
                *expr = Expr::Exists { subquery, negated: true };
            }
            Ok(())
        }
        other => values(other, around),
    }
}

/// Rewrites the subqueries of an expression whose value may be NULL.
///
/// Errors: 0A000 where the value would be wrong.
pub(super) fn values(expr: &mut Expr, around: &Around<'_>) -> Result<()> {
    let mut result = Ok(());
    quantified::as_in(expr);
    each_own(expr, |expr| {
        let counted = match expr {
            Expr::InSubquery { expr: outer, subquery, negated } => counted(outer, subquery, *negated, around),
            Expr::AnyOp { .. } | Expr::AllOp { .. } if quantified::is_of_subquery(expr) => {
                quantified::compared(expr, around)
            }
            _ => return,
        };
        let is_known =
            matches!(expr, Expr::InSubquery { expr: row, .. } if !matches!(rows::bare(row), Expr::Tuple(_)));
        match counted {
            Some(counted) => *expr = counted,
            None if is_known => {}
            None => result = Err(refused()),
        }
    });
    result
}

/// Returns the number of result columns of a query; `None` where its text does not determine it.
fn width(body: &ast::SetExpr) -> Option<usize> {
    match body {
        ast::SetExpr::Select(select) => {
            let is_one = |item: &ast::SelectItem| {
                matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
            };
            select.projection.iter().all(is_one).then_some(select.projection.len())
        }
        ast::SetExpr::SetOperation { left, .. } => width(left),
        ast::SetExpr::Query(query) => width(&query.body),
        ast::SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        _ => None,
    }
}

/// Returns the rows of a subquery that equal a row. With `nullable`, also those for which a NULL
/// makes the comparison unknown.
fn of_row(row: &Expr, query: &ast::Query, nullable: bool, around: &Around<'_>) -> Option<Box<ast::Query>> {
    let Expr::Tuple(row) = row else { return None };
    let beside = around.lookup.looks_outside(query);
    let row: Vec<Expr> = row.iter().map(|item| around.named(item, beside)).collect::<Option<_>>()?;
    let same = |(value, item): (&Expr, &Expr)| {
        let equal = binary(value.clone(), BinaryOperator::Eq, item.clone());
        match nullable {
            true => or(or(equal, is_null(value.clone())), is_null(item.clone())),
            false => equal,
        }
    };
    let all = |values: &[Expr]| {
        let each = values.iter().zip(&row).map(same);
        each.reduce(|all, one| binary(all, BinaryOperator::And, one))
    };
    around.of_all(query, row.len(), |_| number(1), all)
}

/// Returns `x IN (Q)` with three-valued logic.
fn counted(outer: &Expr, query: &ast::Query, negated: bool, around: &Around<'_>) -> Option<Expr> {
    if matches!(rows::bare(outer), Expr::Tuple(_)) {
        return None;
    }
    let outer = around.named(outer, around.lookup.looks_outside(query))?;
    let some = |condition: &dyn Fn(Expr) -> Option<Expr>| {
        let count = around.of_rows(query, |_| call("count", vec![number(1)]), condition)?;
        Some(binary(Expr::Subquery(count), BinaryOperator::Gt, number(0)))
    };
    let found = some(&|value| Some(binary(value, BinaryOperator::Eq, outer.clone())))?;
    let unknown = or(
        some(&|value| Some(is_null(value)))?,
        binary(is_null(outer.clone()), BinaryOperator::And, some(&|_| None)?),
    );
    Some(three_valued(found, unknown, !negated))
}

/// Returns `value` if something was found, NULL if the result is unknown, and the negation of
/// `value` otherwise.
pub(super) fn three_valued(found: Expr, unknown: Expr, value: bool) -> Expr {
    let boolean = |value: bool| Expr::Value(Value::Boolean(value).into());
    case(vec![(found, boolean(value)), (unknown, null())], boolean(!value))
}

/// Returns a searched CASE.
pub(super) fn case(when: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let when = when.into_iter().map(|(condition, result)| ast::CaseWhen { condition, result });
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: when.collect(),
        else_result: Some(Box::new(otherwise)),
    }
}

/// Wraps an uncorrelated scalar subquery. Without rows it is NULL, which DataFusion forgets if its
/// column is not nullable.
pub(super) fn nullable(expr: &mut Expr, name: &str, lookup: Lookup<'_>) {
    each_own(expr, |expr| {
        if let Expr::Subquery(query) = expr
            && !lookup.looks_outside(query)
        {
            *expr = call(name, vec![take(expr)]);
        }
    });
}

/// Like [`nullable`], for a condition. A scalar subquery that is an operand of a comparison needs
/// no wrapper: NULL rejects the row anyway, and without the wrapper the scan can use the value.
pub(super) fn maybe_in_condition(expr: &mut Expr, lookup: Lookup<'_>) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            maybe_in_condition(left, lookup);
            maybe_in_condition(right, lookup);
        }
        Expr::Nested(inner) => maybe_in_condition(inner, lookup),
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            for side in [left, right] {
                if !matches!(**side, Expr::Subquery(_)) {
                    nullable(side, NULLABLE, lookup);
                }
            }
        }
        other => nullable(other, NULLABLE, lookup),
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Rewrites a correlated scalar subquery as an aggregate, as DataFusion requires.
pub(super) fn scalar(expr: &mut Expr, lookup: Lookup<'_>) {
    let Expr::Subquery(query) = expr else { return };
    if query.with.is_some() || query.fetch.is_some() || !lookup.looks_outside(query) {
        return;
    }
    let first = match &query.limit_clause {
        None => false,
        Some(ast::LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), offset: None, limit_by })
            if limit_by.is_empty() && matches!(&limit.value, Value::Number(count, _) if count == "1") =>
        {
            true
        }
        Some(_) => return,
    };
    let order = match query.order_by.as_ref().map(|order| &order.kind) {
        None => Vec::new(),
        Some(ast::OrderByKind::Expressions(by)) => by.clone(),
        Some(_) => return,
    };
    let ast::SetExpr::Select(select) = &mut *query.body else { return };
    let plain = !groups(select) && select.having.is_none() && select.distinct.is_none();
    let (item, alias) = match select.projection.as_mut_slice() {
        [ast::SelectItem::UnnamedExpr(item)] => (item, None),
        [ast::SelectItem::ExprWithAlias { expr: item, alias }] => (item, Some(ident(alias))),
        _ => return,
    };
    if !plain || select.from.is_empty() || !is_of_row(item) {
        return;
    }
    // Result numbers and names have another meaning in the ORDER BY of an aggregate.
    let is_of_result = |by: &ast::OrderByExpr| match &by.expr {
        Expr::Identifier(name) => alias.as_ref() == Some(&ident(name)),
        Expr::Value(_) => true,
        _ => false,
    };
    if order.iter().any(is_of_result) {
        return;
    }
    query.order_by = None;
    if first {
        let mut function = call("first_value", vec![take(item)]);
        if let Expr::Function(function) = &mut function
            && let FunctionArguments::List(list) = &mut function.args
            && !order.is_empty()
        {
            list.clauses.push(FunctionArgumentClause::OrderBy(order));
        }
        *item = function;
        query.limit_clause = None;
    } else {
        *item = call("array_agg", vec![take(item)]);
        *expr = call(SINGLE_VALUE, vec![take(expr)]);
    }
}
