//! Whole rows as values: `count(r.*)`, `r.* IS NULL`, and the same with `r`.
//!
//! `r.* IS NULL` holds if all columns are NULL, and `IS NOT NULL` if none is. `count(r.*)` counts
//! the rows that exist, even those of NULLs only, but not a row for which an outer join found no
//! partner. The test for existence is a column that is NOT NULL in the table, or one that the join
//! compares. Without an outer join, all rows exist.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, TableFactor, VisitorMut,
};

use super::scope::{From, Lookup};
use super::subqueries::binary;
use crate::error::{Error, Result};
use crate::syntax::build::{nested, text};
use crate::syntax::walk;
use crate::syntax::{ident, last_name};

/// Rewrites whole rows in the expressions of a SELECT itself.
///
/// Errors: 0A000 for a row with unknown columns, and for other functions of a whole row.
pub(super) fn see(select: &mut ast::Select, lookup: Lookup<'_>) -> Result<()> {
    let present = select.from.iter().flat_map(|from| presence(from, lookup)).collect();
    let mut rows = Rows { tables: lookup.tables(select), present, depth: 0 };
    match walk::visit_mut(select, &mut rows) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// How to test whether a row of a table exists.
#[derive(Debug)]
enum Presence {
    Always,
    /// A column that is not NULL if the row exists.
    Column(String),
    Unknown,
}

/// Returns the test for each table of a FROM item.
fn presence(from: &ast::TableWithJoins, lookup: Lookup<'_>) -> Vec<Presence> {
    let factors = || std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
    let each = factors().enumerate().map(|(at, factor)| {
        if matches!(factor, TableFactor::NestedJoin { .. }) {
            return Presence::Unknown;
        }
        // Whether a join may return rows without this table, and the conditions that an existing
        // row has met.
        let (mut may_lack, mut met) = (false, Vec::new());
        for (join_at, join) in from.joins.iter().enumerate() {
            let is_own = join_at + 1 == at;
            if join_at + 1 < at {
                continue;
            }
            match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => met.push(on),
                JoinOperator::CrossJoin(_) => {}
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => {
                    may_lack |= is_own;
                    if is_own {
                        met.push(on);
                    }
                }
                JoinOperator::Right(on) | JoinOperator::RightOuter(on) => {
                    may_lack |= !is_own;
                    if !is_own {
                        met.push(on);
                    }
                }
                JoinOperator::FullOuter(_) => {
                    may_lack = true;
                    met.clear();
                }
                _ => return Presence::Unknown,
            }
        }
        if !may_lack {
            return Presence::Always;
        }
        let table = lookup.table(factor);
        let compared = || met.iter().find_map(|on| compared_column(on, &table));
        match lookup.never_null(factor).or_else(compared) {
            Some(column) => Presence::Column(column),
            None => Presence::Unknown,
        }
    });
    each.collect()
}

/// Returns a column of a table that a join condition compares with something, so that it cannot be
/// NULL.
fn compared_column(on: &JoinConstraint, table: &From) -> Option<String> {
    match on {
        JoinConstraint::Using(names) => names.first().map(last_name),
        JoinConstraint::On(condition) => compared_in(condition, table),
        _ => None,
    }
}

fn compared_in(condition: &Expr, table: &From) -> Option<String> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let column = |mut expr: &Expr| {
        // The rewrite of USING puts both sides into parentheses.
        while let Expr::Nested(inner) = expr {
            expr = inner;
        }
        match expr {
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [of, column] if table.name.as_ref() == Some(&ident(of)) => Some(ident(column)),
                _ => None,
            },
            _ => None,
        }
    };
    match condition {
        Expr::Nested(inner) => compared_in(inner, table),
        Expr::BinaryOp { left, op: And, right } => {
            compared_in(left, table).or_else(|| compared_in(right, table))
        }
        Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right } => {
            column(left).or_else(|| column(right))
        }
        _ => None,
    }
}

struct Rows {
    tables: Vec<From>,
    present: Vec<Presence>,
    depth: usize,
}

impl VisitorMut for Rows {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Self::Break> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Self::Break> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        match self.rewritten(expr) {
            Ok(Some(other)) => *expr = other,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(Box::new(error)),
        }
        ControlFlow::Continue(())
    }
}

impl Rows {
    fn rewritten(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::IsNull(row) => self.are_null(row, true),
            Expr::IsNotNull(row) => self.are_null(row, false),
            Expr::Function(function) if function.over.is_none() => {
                let FunctionArguments::List(list) = &function.args else { return Ok(None) };
                let [FunctionArg::Unnamed(only)] = list.args.as_slice() else { return Ok(None) };
                let at = match only {
                    FunctionArgExpr::QualifiedWildcard(name) => Some(self.table(&last_name(name))?),
                    FunctionArgExpr::Expr(row) => self.row(row)?,
                    _ => None,
                };
                let Some(at) = at else { return Ok(None) };
                if last_name(&function.name) != "count" || list.duplicate_treatment.is_some() {
                    return Err(Error::unsupported("a function of a whole row"));
                }
                let counted = match (self.present.get(at), self.tables.get(at)) {
                    // Not `count(*)`, which may be among the results as well: DataFusion rejects
                    // duplicates.
                    (Some(Presence::Always), Some(From { name: Some(table), .. })) => {
                        FunctionArgExpr::Expr(text(table))
                    }
                    (Some(Presence::Column(column)), Some(From { name: Some(table), .. })) => {
                        FunctionArgExpr::Expr(column_of(table, column))
                    }
                    _ => {
                        let what = "count of whole rows on the nullable side of an outer join \
                                    without a NOT NULL column";
                        return Err(Error::unsupported(what));
                    }
                };
                let mut function = function.clone();
                if let FunctionArguments::List(list) = &mut function.args {
                    list.args = vec![FunctionArg::Unnamed(counted)];
                }
                Ok(Some(Expr::Function(function)))
            }
            _ => Ok(None),
        }
    }

    fn are_null(&self, row: &Expr, is_null: bool) -> Result<Option<Expr>> {
        let Some(at) = self.row(row)? else { return Ok(None) };
        let Some(From { name: Some(table), columns: Some(columns) }) = self.tables.get(at) else {
            return Err(Error::unsupported("a row whose columns are not known"));
        };
        let test = |column: &String| {
            let column = Box::new(column_of(table, column));
            if is_null { Expr::IsNull(column) } else { Expr::IsNotNull(column) }
        };
        let all = columns.iter().map(test).reduce(|all, one| binary(all, BinaryOperator::And, one));
        Ok(all.map(nested))
    }

    /// Returns the table whose whole row an expression is, if it is one.
    fn row(&self, expr: &Expr) -> Result<Option<usize>> {
        match expr {
            Expr::Nested(inner) => self.row(inner),
            Expr::QualifiedWildcard(name, _) => self.table(&last_name(name)).map(Some),
            Expr::Identifier(name) => {
                let name = ident(name);
                // A column of that name takes precedence.
                let may_be_column =
                    |from: &From| from.columns.as_ref().is_none_or(|columns| columns.contains(&name));
                if self.tables.iter().any(may_be_column) {
                    return Ok(None);
                }
                Ok(self.tables.iter().position(|from| from.name.as_ref() == Some(&name)))
            }
            _ => Ok(None),
        }
    }

    fn table(&self, name: &str) -> Result<usize> {
        let at = self.tables.iter().position(|from| from.name.as_deref() == Some(name));
        at.ok_or_else(|| Error::unsupported("a whole-row reference to an outer query"))
    }
}

fn column_of(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), Ident::with_quote('"', column)])
}
