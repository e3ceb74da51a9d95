//! Rewrites PostgreSQL syntax that DataFusion does not support into equivalent syntax that it does.

mod arrays;
mod branches;
mod casts;
mod dependents;
mod functions;
mod groups;
mod names;
mod notation;
mod numbered;
mod outer_aggregates;
mod quantified;
mod rows;
mod same_names;
mod scope;
mod subqueries;
mod using;
mod whole_rows;
mod windows;
mod withs;

use std::ops::ControlFlow;

use crate::syntax::walk;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, BinaryOperator, DataType, Expr, Ident, Statement as Tree, Value, VisitorMut};

pub(super) use branches::retype;
pub(super) use names::result_names;
pub(super) use notation::{escaped, similar};
pub(super) use scope::Lookup;
use subqueries::Around;

use crate::error::{Error, Result};
use crate::general::functions::list_markers::ListUse;
use crate::general::markers::{NULLABLE, WITHOUT_METADATA};
use crate::pg_catalog::count_instead_of_exists;
use crate::syntax::build::{nested, null, number, string, take, text, with_type};
use crate::syntax::{check_collation, last_name};

/// Rewrites a statement, given the types of its parameters as far as they are known. Returns the
/// list parameters.
///
/// Errors: those of constructs that cannot be rewritten.
pub(super) fn rewrite(
    tree: &mut Tree,
    types: &[Option<ColumnType>],
    lookup: Lookup<'_>,
) -> Result<Vec<ListUse>> {
    let own = scope::own_names(tree, lookup);
    let lookup = Lookup { own: &own, ..lookup };
    outer_aggregates::refuse(tree, lookup)?;
    let mut rewriter = Rewriter { types, lookup, lists: Vec::new(), marks: 0 };
    match walk::visit_mut(tree, &mut rewriter) {
        ControlFlow::Continue(()) => Ok(rewriter.lists),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Rewriter<'a> {
    types: &'a [Option<ColumnType>],
    lookup: Lookup<'a>,
    lists: Vec<ListUse>,
    /// Number of WITH queries marked so far.
    marks: i64,
}

impl VisitorMut for Rewriter<'_> {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Self::Break> {
        if !query.locks.is_empty() {
            return ControlFlow::Break(Box::new(Error::unsupported("FOR UPDATE in this query")));
        }
        if let Some(fetch) = query.fetch.take() {
            if fetch.with_ties {
                return ControlFlow::Break(Box::new(Error::unsupported("FETCH FIRST … WITH TIES")));
            }
            let limit = fetch.quantity.or_else(|| Some(number(1)));
            match &mut query.limit_clause {
                Some(ast::LimitClause::LimitOffset { limit: place, .. }) => *place = limit,
                clause => {
                    *clause =
                        Some(ast::LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() })
                }
            }
        }
        if let Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) = &mut query.order_by {
            distinct_keys(order);
            groups::name_ordered(&mut query.body, order);
            names::name_ordered(&mut query.body, order);
        }
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            names::name_results(&mut cte.query.body);
            if cte.alias.columns.is_empty() {
                names::apart(&mut cte.query.body);
            }
        }
        if let Err(error) = self.query(query) {
            return ControlFlow::Break(Box::new(error));
        }
        if let ast::SetExpr::Values(values) = &mut *query.body {
            notation::one_type(&mut values.rows);
            let name = if values.rows.len() == 1 { NULLABLE } else { WITHOUT_METADATA };
            for expr in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
                subqueries::nullable(expr, name, self.lookup);
            }
        }
        names::unique_names(&mut query.body, self.lookup);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Self::Break> {
        branches::mark(query);
        withs::mark(query, &mut self.marks);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Self::Break> {
        match self.select(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        subqueries::scalar(expr, self.lookup);
        rows::are_null(expr);
        match arrays::mark(expr, &mut self.lists) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            ast::TableFactor::Derived { subquery, alias, .. } => {
                names::name_results(&mut subquery.body);
                names::spell_out_twins(&mut subquery.body, self.lookup);
                if alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) {
                    names::apart(&mut subquery.body);
                }
            }
            ast::TableFactor::Table { args: Some(_), with_ordinality: true, .. } => {
                numbered::spell_out(factor);
            }
            ast::TableFactor::UNNEST { with_ordinality: true, array_exprs, .. } if array_exprs.len() == 1 => {
                numbered::unnested(factor);
            }
            // The column of a function with a single result column is named after the function, or
            // its alias.
            ast::TableFactor::Table { name, alias, args: Some(_), .. } => {
                let alias = alias.get_or_insert_with(|| ast::TableAlias {
                    explicit: true,
                    name: Ident::new(last_name(name)),
                    columns: Vec::new(),
                    at: None,
                });
                if alias.columns.is_empty() {
                    alias
                        .columns
                        .push(ast::TableAliasColumnDef { name: alias.name.clone(), data_type: None });
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match self.expr(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

impl Rewriter<'_> {
    /// Rewrites the parts that depend on ORDER BY as well as on the query body.
    fn query(&self, query: &mut ast::Query) -> Result<()> {
        same_names::tell_apart(query, self.lookup)?;
        using::merge(query, self.lookup)?;
        dependents::list(query, self.lookup);
        match &mut *query.body {
            ast::SetExpr::Select(select) => windows::spell_out(select, query.order_by.as_mut()),
            _ => Ok(()),
        }
    }

    /// Rewrites the grouping, windows and subqueries of a SELECT.
    fn select(&self, select: &mut ast::Select) -> Result<()> {
        windows::spell_out(select, None)?;
        whole_rows::see(select, self.lookup)?;
        groups::group_all(select);
        groups::spell_out(select)?;
        let around = Around { lookup: self.lookup, tables: self.lookup.tables(select) };
        for item in &mut select.projection {
            let (ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. }) = item
            else {
                continue;
            };
            subqueries::values(expr, &around)?;
            subqueries::nullable(expr, NULLABLE, self.lookup);
            subqueries::each_own(expr, count_instead_of_exists);
        }
        for condition in select.selection.iter_mut().chain(&mut select.having) {
            subqueries::condition(condition, &around)?;
            subqueries::maybe_in_condition(condition, self.lookup);
        }
        Ok(())
    }

    fn expr(&self, expr: &mut Expr) -> Result<()> {
        match expr {
            Expr::Function(called) => {
                if let Some(arguments) = crate::expr::positional(called)? {
                    *expr = crate::syntax::build::call(&last_name(&called.name), arguments);
                }
                functions::called(expr)
            }
            Expr::Substring { .. }
            | Expr::Position { .. }
            | Expr::Overlay { .. }
            | Expr::Extract { .. }
            | Expr::AtTimeZone { .. } => {
                functions::spelt(expr);
                Ok(())
            }
            Expr::Cast { .. } => casts::cast(expr),
            Expr::TypedString(_) => {
                casts::typed(expr);
                Ok(())
            }
            Expr::Interval(_) => interval(expr),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right)
                if rows::columns_of(left).is_some() && rows::columns_of(right).is_some() =>
            {
                rows::distinct(expr)
            }
            Expr::InList { expr: row, list, negated } if rows::columns_of(row).is_some() => {
                *expr = rows::is_in(row, list, *negated)?;
                Ok(())
            }
            Expr::Collate { expr: inner, collation } => {
                check_collation(collation)?;
                *expr = take(inner);
                Ok(())
            }
            Expr::BinaryOp { op: op @ BinaryOperator::PGCustomBinaryOperator(_), .. }
            | Expr::AnyOp { compare_op: op @ BinaryOperator::PGCustomBinaryOperator(_), .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(names) = op {
                    let symbol = names.last().cloned().unwrap_or_default();
                    *op = notation::operator(&symbol)?;
                }
                // The new operator may need a rewrite as well.
                self.expr(expr)
            }
            Expr::UnaryOp { .. } => {
                unary(expr);
                Ok(())
            }
            Expr::BinaryOp { .. } => binary(expr),
            Expr::AnyOp { .. } | Expr::AllOp { .. } => of_list(expr),
            Expr::Like { .. } | Expr::ILike { .. } | Expr::SimilarTo { .. } => pattern(expr),
            Expr::Value(ast::ValueWithSpan { value: Value::Number(digits, _), .. }) => {
                // As on the direct path. DataFusion would read it as a decimal that is out of
                // range.
                if crate::expr::double(digits)?.is_some() {
                    *expr = with_type(text(digits), DataType::DoublePrecision);
                }
                Ok(())
            }
            Expr::Value(ast::ValueWithSpan { value: Value::Placeholder(placeholder), .. }) => {
                let at = crate::expr::parameter(placeholder)?;
                if let Some(Some(kind)) = self.types.get(at) {
                    casts::parameter(expr, kind);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Evaluates literals of intervals.
///
/// Errors: those of reading it.
fn interval(expr: &mut Expr) -> Result<()> {
    if let Expr::Interval(interval) = expr
        && let Some(value) = crate::expr::interval_literal(interval)?
    {
        let kind = DataType::Interval { fields: None, precision: None };
        *expr = with_type(text(&value.to_string()), kind);
    }
    Ok(())
}

/// Rewrites operators before an operand.
fn unary(expr: &mut Expr) {
    let Expr::UnaryOp { op, expr: of } = expr else { return };
    let name = match op {
        ast::UnaryOperator::PGSquareRoot => "sqrt",
        ast::UnaryOperator::PGCubeRoot => "cbrt",
        ast::UnaryOperator::PGAbs => "abs",
        ast::UnaryOperator::BitwiseNot => {
            let ones = Box::new(number(-1));
            let left = Box::new(nested(take(of)));
            *expr = nested(Expr::BinaryOp { left, op: BinaryOperator::PGBitwiseXor, right: ones });
            return;
        }
        _ => return,
    };
    *expr = crate::syntax::build::call(name, vec![take(of)]);
}

/// Rewrites operators between two operands.
///
/// Errors: those of comparing rows.
fn binary(expr: &mut Expr) -> Result<()> {
    match expr {
        // DataFusion would simplify a match against `.*` to IS NOT NULL.
        Expr::BinaryOp {
            op: BinaryOperator::PGRegexMatch | BinaryOperator::PGRegexIMatch,
            right: pattern,
            ..
        } if string(pattern) == Some(".*") => {
            **pattern = text("(.*)");
            Ok(())
        }
        Expr::BinaryOp { left, op, right } => {
            if let (Some(left), Some(right)) = (rows::columns_of(left), rows::columns_of(right)) {
                *expr = rows::compared(&left, op, &right)?;
            } else if let Some(other) = notation::matched(expr) {
                *expr = other;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Rewrites `ANY` and `ALL` of lists.
///
/// Errors: lists that cannot be searched.
fn of_list(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
            if !matches!(**right, Expr::Subquery(_)) =>
        {
            *expr = arrays::member(take(left), take(right))?;
            Ok(())
        }
        Expr::AnyOp { compare_op, right, .. } | Expr::AllOp { compare_op, right, .. }
            if !matches!(**right, Expr::Subquery(_))
                && !matches!(compare_op, BinaryOperator::Eq | BinaryOperator::NotEq)
                && arrays::is_spelt(right) =>
        {
            if let Some(other) = arrays::each_item(expr) {
                *expr = other;
            }
            Ok(())
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right }
            if !matches!(**right, Expr::Subquery(_)) =>
        {
            let member = nested(arrays::member(take(left), take(right))?);
            *expr = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(member) };
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Rewrites matches against patterns.
///
/// Errors: invalid patterns and escape characters.
fn pattern(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::Like { any: true, .. }
        | Expr::ILike { any: true, .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
            if arrays::is_of_several(expr) =>
        {
            if let Some(other) = arrays::like_any(expr) {
                *expr = other;
            }
            Ok(())
        }
        Expr::Like { escape_char: Some(escape), .. }
        | Expr::ILike { escape_char: Some(escape), .. }
        | Expr::SimilarTo { escape_char: Some(escape), .. }
            if escape.value == Value::Null =>
        {
            *expr = with_type(null(), DataType::Boolean);
            Ok(())
        }
        Expr::Like { pattern, escape_char: None, .. } | Expr::ILike { pattern, escape_char: None, .. }
            if notation::is_computed(pattern) =>
        {
            *expr = notation::like(expr);
            Ok(())
        }
        Expr::Like { pattern, escape_char: escape @ Some(_), .. }
        | Expr::ILike { pattern, escape_char: escape @ Some(_), .. } => {
            let character = escape.take().and_then(|value| value.value.into_string()).unwrap_or_default();
            notation::escape(pattern, &character)?;
            if notation::is_computed(pattern) {
                *expr = notation::like(expr);
            }
            Ok(())
        }
        Expr::SimilarTo { .. } => notation::similar_to(expr),
        _ => Ok(()),
    }
}

/// Removes duplicate sort keys, with which DataFusion's operators miscount.
fn distinct_keys(order: &mut Vec<ast::OrderByExpr>) {
    let mut seen: Vec<Expr> = Vec::with_capacity(order.len());
    order.retain(|by| {
        let is_new = !seen.contains(&by.expr);
        if is_new {
            seen.push(by.expr.clone());
        }
        is_new
    });
}
