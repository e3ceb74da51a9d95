//! `JOIN … USING` and `NATURAL JOIN`, rewritten as `JOIN … ON`. In PostgreSQL a merged column has
//! the value of the side that has a row.
//!
//! DataFusion takes the left side's value, which is NULL where a RIGHT or FULL JOIN found no left
//! row. It also resolves merged columns in results only, not in conditions.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, SelectItem, SetExpr, TableFactor, Value,
    VisitorMut,
};

use super::scope::{From, Lookup};
use super::subqueries::binary;
use crate::error::{Error, Result};
use crate::general::internal_names::MARK;
use crate::sqlstate::{AMBIGUOUS_COLUMN, UNDEFINED_COLUMN};
use crate::syntax::build::call;
use crate::syntax::walk;
use crate::syntax::{ident, last_name};

/// A column that an unqualified name may refer to.
#[derive(Debug, Clone)]
struct Visible {
    name: String,
    is: Expr,
    is_merged: bool,
}

/// The columns of a table, or of joined tables.
#[derive(Debug, Default)]
struct Side {
    columns: Vec<Visible>,
    /// Tables with unknown columns, by name if they have one.
    open: Vec<Option<String>>,
}

/// Why a join is not rewritten.
enum Stop {
    /// Too little is known about the tables.
    Unknown,
    Failed(Error),
}

impl std::convert::From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

/// The side that provides the value of a merged column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Left,
    Right,
    Either,
}

fn constraint_of(join: &mut ast::Join) -> Option<(&mut JoinConstraint, Taken)> {
    Some(match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => (constraint, Taken::Left),
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, Taken::Right),
        JoinOperator::FullOuter(constraint) => (constraint, Taken::Either),
        _ => return None,
    })
}

/// Whether a join merges columns, and whether DataFusion would take the wrong side's value.
fn merges(from: &mut ast::TableWithJoins) -> (bool, bool) {
    let within = |factor: &mut TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, .. } => merges(table_with_joins),
        _ => (false, false),
    };
    let either = |one: (bool, bool), other: (bool, bool)| (one.0 || other.0, one.1 || other.1);
    let mut found = within(&mut from.relation);
    for join in &mut from.joins {
        found = either(found, within(&mut join.relation));
        if let Some((JoinConstraint::Using(_) | JoinConstraint::Natural, taken)) = constraint_of(join) {
            found = either(found, (true, taken != Taken::Left));
        }
    }
    found
}

/// Rewrites the joins of a query's own SELECTs.
///
/// Errors: 42703 and 42702 for columns of USING; 0A000 where too little is known about the tables.
pub(super) fn merge(query: &mut ast::Query, lookup: Lookup<'_>) -> Result<()> {
    let order = match &mut query.order_by {
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) => Some(order),
        _ => None,
    };
    in_body(&mut query.body, order.map_or(&mut [], Vec::as_mut_slice), lookup)
}

fn in_body(body: &mut SetExpr, order: &mut [ast::OrderByExpr], lookup: Lookup<'_>) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left, &mut [], lookup)?;
            in_body(right, &mut [], lookup)
        }
        SetExpr::Select(select) => in_select(select, order, lookup),
        _ => Ok(()),
    }
}

fn in_select(select: &mut ast::Select, order: &mut [ast::OrderByExpr], lookup: Lookup<'_>) -> Result<()> {
    let found = select.from.iter_mut().map(merges);
    let (is_merged, is_wrong) = found.fold((false, false), |all, one| (all.0 || one.0, all.1 || one.1));
    if !is_merged {
        return Ok(());
    }
    match merged(select, order, lookup) {
        Ok(()) => Ok(()),
        Err(Stop::Unknown) if !is_wrong => Ok(()),
        Err(Stop::Unknown) => Err(Error::unsupported("a merged column of this RIGHT or FULL JOIN")),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn merged(
    select: &mut ast::Select,
    order: &mut [ast::OrderByExpr],
    lookup: Lookup<'_>,
) -> std::result::Result<(), Stop> {
    let mut from = select.from.clone();
    let mut all = Side::default();
    for tables in &mut from {
        let side = joined(tables, lookup)?;
        all.columns.extend(side.columns);
        all.open.extend(side.open);
    }
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_));
    let projection = if select.projection.iter().any(is_star) {
        if !all.open.is_empty() {
            return Err(Stop::Unknown);
        }
        let items = std::mem::take(&mut select.projection);
        let spelled = |item: SelectItem| match item {
            SelectItem::Wildcard(_) => all.columns.iter().map(shown).collect(),
            item => vec![item],
        };
        items.into_iter().flat_map(spelled).collect()
    } else {
        std::mem::take(&mut select.projection)
    };
    (select.projection, select.from) = (projection, from);
    let mut names = Merged::of(all, lookup);
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
            && let Some(column) = names.find(&ident(name))
        {
            *item = shown(column);
        }
    }
    differ(&mut select.projection);
    let joins = std::mem::take(&mut select.from);
    let _ = walk::visit_mut(select, &mut names);
    select.from = joins;
    let is_result = |name: &Ident| {
        select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => ident(alias) == ident(name),
            SelectItem::UnnamedExpr(expr) => crate::direct::name_of(expr) == ident(name),
            _ => false,
        })
    };
    for by in order {
        // The name of a result refers to the result.
        if !matches!(&by.expr, Expr::Identifier(name) if is_result(name)) {
            let _ = walk::visit_mut(by, &mut names);
        }
    }
    Ok(())
}

/// Renames merged columns if the results also contain the column of a side. The name is ambiguous
/// anyway, and DataFusion could not tell them apart.
fn differ(items: &mut [SelectItem]) {
    let name_of = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) => Some(crate::direct::name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(ident(alias)),
        _ => None,
    };
    let all: Vec<Option<String>> = items.iter().map(name_of).collect();
    for (at, item) in items.iter_mut().enumerate() {
        if let SelectItem::ExprWithAlias { alias, .. } = item
            && all.iter().flatten().filter(|name| **name == ident(alias)).count() > 1
        {
            *alias = Ident::with_quote('"', format!("{}{MARK}{at}", ident(alias)));
        }
    }
}

/// Returns a column as a result.
fn shown(column: &Visible) -> SelectItem {
    match &column.is {
        Expr::CompoundIdentifier(_) => SelectItem::UnnamedExpr(column.is.clone()),
        other => SelectItem::ExprWithAlias {
            expr: other.clone(),
            alias: Ident::with_quote('"', column.name.as_str()),
        },
    }
}

/// Rewrites joins, and returns their columns.
fn joined(from: &mut ast::TableWithJoins, lookup: Lookup<'_>) -> std::result::Result<Side, Stop> {
    let mut left = table(&mut from.relation, lookup)?;
    for join in &mut from.joins {
        let right = table(&mut join.relation, lookup)?;
        let Some((constraint, taken)) = constraint_of(join) else {
            left.columns.extend(right.columns);
            left.open.extend(right.open);
            continue;
        };
        let names: Vec<String> = match constraint {
            JoinConstraint::Using(names) => names.iter().map(last_name).collect(),
            JoinConstraint::Natural if left.open.is_empty() && right.open.is_empty() => {
                let is_common = |name: &&String| right.columns.iter().any(|column| column.name == **name);
                let mut names: Vec<String> = Vec::new();
                for name in left.columns.iter().map(|column| &column.name).filter(is_common) {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                names
            }
            JoinConstraint::Natural => return Err(Stop::Unknown),
            _ => Vec::new(),
        };
        let is_merging = matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural);
        let (mut columns, mut conditions) = (Vec::with_capacity(names.len()), Vec::new());
        for name in &names {
            let (one, other) = (left.find(name, "left")?, right.find(name, "right")?);
            conditions.push(binary(one.clone(), BinaryOperator::Eq, other.clone()));
            let is = match taken {
                Taken::Left => one,
                Taken::Right => other,
                Taken::Either => call("coalesce", vec![one, other]),
            };
            columns.push(Visible { name: name.clone(), is, is_merged: true });
        }
        let rest = left.columns.into_iter().chain(right.columns);
        columns.extend(rest.filter(|column| !names.contains(&column.name)));
        let open = left.open.into_iter().chain(right.open).collect();
        left = Side { columns, open };
        if is_merging {
            let all = conditions.into_iter().reduce(|all, one| binary(all, BinaryOperator::And, one));
            let all = all.unwrap_or_else(|| Expr::Value(Value::Boolean(true).into()));
            *constraint = JoinConstraint::On(all);
        } else if let JoinConstraint::On(condition) = constraint {
            let side = Side { columns: left.columns.clone(), open: Vec::new() };
            let _ = walk::visit_mut(condition, &mut Merged::of(side, lookup));
        }
    }
    Ok(left)
}

fn table(factor: &mut TableFactor, lookup: Lookup<'_>) -> std::result::Result<Side, Stop> {
    if let TableFactor::NestedJoin { table_with_joins, alias: None } = factor {
        return joined(table_with_joins, lookup);
    }
    let From { name, columns } = lookup.table(factor);
    let (Some(name), Some(columns)) = (&name, columns) else {
        return Ok(Side { columns: Vec::new(), open: vec![name] });
    };
    let column = |column: String| Visible { is: qualified(name, &column), name: column, is_merged: false };
    Ok(Side { columns: columns.into_iter().map(column).collect(), open: Vec::new() })
}

fn qualified(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), Ident::with_quote('"', column)])
}

impl Side {
    /// Resolves a name of USING.
    fn find(&self, name: &str, side: &str) -> std::result::Result<Expr, Stop> {
        let mut found = self.columns.iter().filter(|column| column.name == name);
        match (found.next(), found.next(), self.open.as_slice()) {
            (Some(column), None, _) => Ok(column.is.clone()),
            (Some(_), Some(_), _) => {
                let what = format!("common column name \"{name}\" appears more than once in {side} table");
                Err(Error::new(AMBIGUOUS_COLUMN, what).into())
            }
            (None, _, []) => {
                let what =
                    format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                Err(Error::new(UNDEFINED_COLUMN, what).into())
            }
            (None, _, [Some(table)]) => Ok(qualified(table, name)),
            (None, ..) => Err(Stop::Unknown),
        }
    }
}

/// Replaces the names of merged columns by their expressions.
struct Merged<'a> {
    columns: Vec<Visible>,
    lookup: Lookup<'a>,
    /// The tables of nested queries, whose columns take precedence.
    within: Vec<Vec<From>>,
}

impl<'a> Merged<'a> {
    /// Keeps only merged columns whose name is unambiguous.
    fn of(side: Side, lookup: Lookup<'a>) -> Self {
        let is_alone = |column: &Visible| {
            column.is_merged && side.columns.iter().filter(|other| other.name == column.name).count() == 1
        };
        let columns = side.columns.iter().filter(|column| is_alone(column)).cloned().collect();
        Merged { columns, lookup, within: Vec::new() }
    }

    fn find(&self, name: &str) -> Option<&Visible> {
        let is_elsewhere =
            |from: &From| from.columns.as_ref().is_none_or(|columns| columns.iter().any(|own| own == name));
        match self.within.iter().flatten().any(is_elsewhere) {
            true => None,
            false => self.columns.iter().find(|column| column.name == name),
        }
    }

    fn tables(&self, body: &SetExpr) -> Vec<From> {
        match body {
            SetExpr::Select(select) => self.lookup.tables(select),
            SetExpr::SetOperation { left, right, .. } => {
                self.tables(left).into_iter().chain(self.tables(right)).collect()
            }
            SetExpr::Query(query) => self.tables(&query.body),
            _ => Vec::new(),
        }
    }
}

impl VisitorMut for Merged<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let tables = self.tables(&query.body);
        self.within.push(tables);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.within.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(column) = self.find(&ident(name))
        {
            *expr = column.is.clone();
        }
        ControlFlow::Continue(())
    }
}
