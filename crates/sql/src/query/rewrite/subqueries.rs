//! Subqueries that DataFusion answers otherwise than PostgreSQL, or not at all.
//!
//! | PostgreSQL                                  | here                                                                       |
//! |---------------------------------------------|----------------------------------------------------------------------------|
//! | `x NOT IN (Q)` as a condition               | `NOT EXISTS (SELECT FROM (Q) s(y) WHERE y = x OR y IS NULL OR x IS NULL)`  |
//! | `x IN (Q)` where NULL is not as good as false | what counts of the rows of Q say                                         |
//! | `(Q)` of one value that looks outside       | `cairn_one((SELECT array_agg(..) ..))`, which refuses a second row         |
//! | `(Q ORDER BY b LIMIT 1)` that looks outside | `(SELECT first_value(.. ORDER BY b) ..)`                                   |
//!
//! The rows of Q are asked for in Q itself where it looks outside, as DataFusion finds outer columns no deeper. What cannot be said so is refused.
//!
//! DataFusion turns `IN` into joins, and where it is not a condition by itself into one that marks rows with true or false, never NULL.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArgumentClause, FunctionArguments, Ident, UnaryOperator, Value,
    VisitMut, VisitorMut,
};

use super::scope::{From, Lookup};
use crate::error::{Error, Result};
use crate::syntax::build::{call, nested, null, number, take};
use crate::syntax::shape::{groups, is_aggregate};
use crate::syntax::{Plain, ident, one};

/// What refuses a second row of a subquery of one value.
pub(in crate::query) const ONE: &str = "cairn_one";

/// What gives its argument, or NULL.
pub(in crate::query) const MAYBE: &str = "cairn_maybe";

/// Names that nobody else has: what is asked for outside is not to be taken for something in the subquery.
const TABLE: &str = "cairn subquery";
const COLUMN: &str = "cairn value";

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(nested(left)), op, right: Box::new(nested(right)) }
}

fn or(left: Expr, right: Expr) -> Expr {
    binary(left, BinaryOperator::Or, right)
}

fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(nested(expr)))
}

fn value() -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', TABLE), Ident::with_quote('"', COLUMN)])
}

/// A query around subqueries: what names in it mean.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub lookup: Lookup<'a>,
    pub tables: Vec<From>,
}

impl Around<'_> {
    /// The expression with its tables before its columns, so that nothing within a subquery is taken for them. `None` where it is not known whose they are.
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

    /// The expression as it may stand beside a subquery's own columns, or where there are none.
    fn named(&self, expr: &Expr, beside: bool) -> Option<Expr> {
        if beside { self.qualified(expr) } else { Some(expr.clone()) }
    }

    /// What is `result` of the rows of a subquery for which a condition on their value holds. `None` where that cannot be said.
    fn of_rows(
        &self,
        query: &ast::Query,
        result: Expr,
        condition: impl Fn(Expr) -> Option<Expr>,
    ) -> Option<Box<ast::Query>> {
        if !self.lookup.looks_outside(query) {
            return over(query, result, condition(value()));
        }
        let plain = query.with.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let mut query = Box::new(query.clone());
        query.order_by = None;
        let ast::SetExpr::Select(select) = &mut *query.body else { return None };
        let plain = plain && !groups(select) && select.having.is_none();
        let [ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. }] =
            select.projection.as_mut_slice()
        else {
            return None;
        };
        if !plain || is_aggregate(item) {
            return None;
        }
        let wanted = condition(take(item));
        select.selection = match (select.selection.take(), wanted) {
            (Some(own), Some(wanted)) => Some(binary(own, BinaryOperator::And, wanted)),
            (own, wanted) => own.or(wanted),
        };
        select.distinct = None;
        select.projection = vec![ast::SelectItem::UnnamedExpr(result)];
        Some(query)
    }
}

/// `SELECT result FROM (query) s(y) WHERE condition`.
fn over(query: &ast::Query, result: Expr, condition: Option<Expr>) -> Option<Box<ast::Query>> {
    let sql = format!("SELECT 1 FROM (SELECT 1) AS \"{TABLE}\" (\"{COLUMN}\")");
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

/// Expressions of one query, without those of the queries within.
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

/// Looks at an expression and those in it, but for the ones of subqueries.
pub(super) fn each_own(expr: &mut Expr, see: impl FnMut(&mut Expr)) {
    let _ = expr.visit(&mut Own(0, see));
}

/// Whether an expression is of a row.
fn has_columns(expr: &Expr) -> bool {
    let mut found = false;
    each_own(&mut expr.clone(), |expr| {
        found |= matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    });
    found
}

fn refused() -> Error {
    Error::unsupported("IN with a subquery that looks outside, in this place")
}

/// Sees to the subqueries of a condition, for which NULL is as good as false.
///
/// Errors: 0A000 where the rows would be wrong.
pub(super) fn condition(expr: &mut Expr, around: &Around<'_>) -> Result<()> {
    part(expr, around, true)
}

/// `alone`: nothing but AND is around it.
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
        Expr::InSubquery { negated: false, .. } | Expr::Exists { .. } => Ok(()),
        Expr::InSubquery { expr: outer, subquery, negated: true } => {
            let looks_outside = around.lookup.looks_outside(subquery);
            // Alone and without outer columns it is an antijoin that knows of NULL, but not of one that is written there.
            if alone && !looks_outside && has_columns(outer) {
                return Ok(());
            }
            if matches!(**outer, Expr::Tuple(_)) {
                return Err(refused());
            }
            let outer = around.named(outer, looks_outside).ok_or_else(refused)?;
            let matches = |value: Expr| {
                let equal = binary(value.clone(), BinaryOperator::Eq, outer.clone());
                Some(or(or(equal, is_null(value)), is_null(outer.clone())))
            };
            let subquery = around.of_rows(subquery, number(1), matches).ok_or_else(refused)?;
            *expr = Expr::Exists { subquery, negated: true };
            Ok(())
        }
        other => values(other, around),
    }
}

/// Sees to the subqueries of an expression whose value counts, NULL as well.
///
/// Errors: 0A000 where the value would be wrong.
pub(super) fn values(expr: &mut Expr, around: &Around<'_>) -> Result<()> {
    let mut result = Ok(());
    each_own(expr, |expr| {
        if let Expr::InSubquery { expr: outer, subquery, negated } = expr {
            match counted(outer, subquery, *negated, around) {
                Some(counted) => *expr = counted,
                None => result = Err(refused()),
            }
        }
    });
    result
}

/// `x IN (Q)` with its three values.
fn counted(outer: &Expr, query: &ast::Query, negated: bool, around: &Around<'_>) -> Option<Expr> {
    if matches!(outer, Expr::Tuple(_)) {
        return None;
    }
    let outer = around.named(outer, around.lookup.looks_outside(query))?;
    let some = |condition: &dyn Fn(Expr) -> Option<Expr>| {
        let count = around.of_rows(query, call("count", vec![number(1)]), condition)?;
        Some(binary(Expr::Subquery(count), BinaryOperator::Gt, number(0)))
    };
    let found = some(&|value| Some(binary(value, BinaryOperator::Eq, outer.clone())))?;
    let unknown = or(
        some(&|value| Some(is_null(value)))?,
        binary(is_null(outer.clone()), BinaryOperator::And, some(&|_| None)?),
    );
    let boolean = |value: bool| Expr::Value(Value::Boolean(value).into());
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            ast::CaseWhen { condition: found, result: boolean(!negated) },
            ast::CaseWhen { condition: unknown, result: null() },
        ],
        else_result: Some(Box::new(boolean(negated))),
    })
}

/// A subquery of one value among results: it may give none, which DataFusion forgets where its column cannot be NULL.
pub(super) fn maybe(expr: &mut Expr, lookup: Lookup<'_>) {
    each_own(expr, |expr| {
        if let Expr::Subquery(query) = expr
            && !lookup.looks_outside(query)
        {
            *expr = call(MAYBE, vec![take(expr)]);
        }
    });
}

/// A subquery of one value that looks outside: DataFusion wants an aggregate.
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
    let [ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_mut_slice()
    else {
        return;
    };
    if !plain || select.from.is_empty() || is_aggregate(item) {
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
        *expr = call(ONE, vec![take(expr)]);
    }
}
