//! Checks where aggregates, window functions and set-returning functions are allowed.
//!
//! This happens before planning: the direct path has no such functions, and DataFusion mistakes
//! some of them for something else.

use std::ops::ControlFlow;

use sqlparser::ast::{
    self, ColumnOption, Expr, Function, FunctionArguments, GroupByExpr, JoinConstraint, JoinOperator,
    LimitClause, SelectItem, SetExpr, Statement, TableConstraint, TableFactor, Visitor,
};

use super::{ident, last_name};
use crate::error::{Error, Result};
use crate::sqlstate::{
    DUPLICATE_ALIAS, FEATURE_NOT_SUPPORTED, GROUPING_ERROR, INVALID_COLUMN_REFERENCE, INVALID_RECURSION,
    WINDOWING_ERROR, WRONG_OBJECT_TYPE,
};
use crate::syntax::walk;

const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "max",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "variance",
    "var_pop",
];

const WINDOWS: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// Functions of one row that could be mistaken for others.
const NEITHER: &[&str] = &[
    "abs",
    "ceil",
    "ceiling",
    "coalesce",
    "concat",
    "floor",
    "greatest",
    "least",
    "length",
    "lower",
    "mod",
    "now",
    "nullif",
    "power",
    "random",
    "replace",
    "round",
    "sign",
    "sqrt",
    "substr",
    "substring",
    "trim",
    "trunc",
    "upper",
];

const SETS: &[&str] =
    &["generate_series", "generate_subscripts", "regexp_matches", "regexp_split_to_table", "unnest"];

/// The kind of a call that is not allowed in all clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Aggregate,
    Window,
    Set,
}

fn kind_of(function: &Function) -> Option<Kind> {
    if function.over.is_some() {
        return Some(Kind::Window);
    }
    let name = last_name(&function.name);
    let is_among = |names: &[&str]| names.contains(&name.as_str());
    if is_among(AGGREGATES) || name == "var_samp" {
        return Some(Kind::Aggregate);
    }
    is_among(SETS).then_some(Kind::Set)
}

impl Kind {
    fn refused(self, place: &str) -> Error {
        let (sqlstate, what) = match self {
            Kind::Aggregate => (GROUPING_ERROR, "aggregate functions"),
            Kind::Window => (WINDOWING_ERROR, "window functions"),
            Kind::Set => (FEATURE_NOT_SUPPORTED, "set-returning functions"),
        };
        Error::new(sqlstate, format!("{what} are not allowed in {place}"))
    }
}

/// Checks that such calls are only where they are allowed.
///
/// Errors: 42803 for aggregates, 42P20 for window functions, 0A000 for set-returning functions;
/// 42809 for a window function without OVER.
pub(crate) fn check(tree: &Statement) -> Result<()> {
    let all = [Kind::Aggregate, Kind::Window, Kind::Set];
    match tree {
        Statement::Update(update) => {
            for assignment in &update.assignments {
                refuse(&assignment.value, &all, "UPDATE", None)?;
            }
            refuse_in(&update.selection, &all, "WHERE")?;
            returning(update.returning.as_deref())?;
        }
        Statement::Delete(delete) => {
            refuse_in(&delete.selection, &all, "WHERE")?;
            returning(delete.returning.as_deref())?;
        }
        Statement::Insert(insert) => returning(insert.returning.as_deref())?,
        Statement::CreateTable(create) => table(create)?,
        _ => {}
    }
    let mut places = Places;
    match walk::visit(tree, &mut places) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

fn returning(items: Option<&[SelectItem]>) -> Result<()> {
    for item in items.unwrap_or_default() {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            refuse(expr, &[Kind::Aggregate, Kind::Window, Kind::Set], "RETURNING", None)?;
        }
    }
    Ok(())
}

fn table(create: &ast::CreateTable) -> Result<()> {
    let all = [Kind::Aggregate, Kind::Window, Kind::Set];
    for option in create.columns.iter().flat_map(|column| &column.options) {
        match &option.option {
            ColumnOption::Default(expr) => refuse(expr, &all, "DEFAULT expressions", None)?,
            ColumnOption::Check(check) => refuse(&check.expr, &all, "check constraints", None)?,
            _ => {}
        }
    }
    for constraint in &create.constraints {
        if let TableConstraint::Check(check) = constraint {
            refuse(&check.expr, &all, "check constraints", None)?;
        }
    }
    Ok(())
}

fn refuse_in(expr: &Option<Expr>, kinds: &[Kind], place: &str) -> Result<()> {
    expr.as_ref().map_or(Ok(()), |expr| refuse(expr, kinds, place, None))
}

/// Errors: an expression has a call of one of these kinds, outside of subqueries. An aggregate of
/// an outer query's columns belongs to that query.
fn refuse(expr: &Expr, kinds: &[Kind], place: &str, tables: Option<&[String]>) -> Result<()> {
    let mut calls = Calls { depth: 0, found: None, kinds, tables };
    let _ = walk::visit(expr, &mut calls);
    calls.found.map_or(Ok(()), |kind| Err(kind.refused(place)))
}

/// Finds the first call of some kinds.
struct Calls<'a> {
    depth: usize,
    found: Option<Kind>,
    kinds: &'a [Kind],
    tables: Option<&'a [String]>,
}

impl Visitor for Calls<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let kind = kind_of(function).filter(|kind| self.depth == 0 && self.kinds.contains(kind));
        let is_elsewhere = kind == Some(Kind::Aggregate)
            && self.tables.is_some_and(|tables| looks_outside(function, tables));
        if is_elsewhere || kind.is_none() {
            return ControlFlow::Continue(());
        }
        self.found = kind;
        ControlFlow::Break(())
    }
}

/// Whether a call refers to a table other than these.
fn looks_outside(function: &Function, tables: &[String]) -> bool {
    let found = walk::visit_expressions(function, |expr| match expr {
        Expr::CompoundIdentifier(names) => match names.first() {
            Some(table) if !tables.contains(&ident(table)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Checks the clauses of all queries in a statement.
struct Places;

type Flow = ControlFlow<Box<Error>>;

fn flow(result: Result<()>) -> Flow {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

impl Visitor for Places {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, query: &ast::Query) -> Flow {
        flow(of_query(query))
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> Flow {
        flow(of_select(select))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        match expr {
            Expr::Function(function) => flow(of_call(function)),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn of_query(query: &ast::Query) -> Result<()> {
    let all = [Kind::Aggregate, Kind::Window, Kind::Set];
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
        let counts = [("LIMIT", limit.as_ref()), ("OFFSET", offset.as_ref().map(|offset| &offset.value))];
        for (place, count) in counts.into_iter().filter_map(|(place, count)| Some((place, count?))) {
            refuse(count, &all, place, None)?;
            if matches!(count, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
                let what = format!("argument of {place} must not contain variables");
                return Err(Error::new(INVALID_COLUMN_REFERENCE, what));
            }
        }
    }
    for cte in query.with.iter().filter(|with| with.recursive).flat_map(|with| &with.cte_tables) {
        recursion(&ident(&cte.alias.name), &cte.query)?;
    }
    positions(query)?;
    if let SetExpr::Values(values) = &*query.body {
        for expr in values.rows.iter().flat_map(|row| row.iter()) {
            refuse(expr, &[Kind::Aggregate, Kind::Window], "VALUES", Some(&[]))?;
        }
    }
    Ok(())
}

/// Checks that numbers in ORDER BY and GROUP BY are positions of result columns.
///
/// Errors: 42P10.
fn positions(query: &ast::Query) -> Result<()> {
    let SetExpr::Select(select) = &*query.body else { return Ok(()) };
    let is_plain =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if !select.projection.iter().all(is_plain) {
        return Ok(());
    }
    let check = |expr: &Expr, clause: &str| {
        let Expr::Value(value) = expr else { return Ok(()) };
        let ast::Value::Number(digits, _) = &value.value else { return Ok(()) };
        match digits.parse::<usize>() {
            Ok(at) if !(1..=select.projection.len()).contains(&at) => {
                let what = format!("{clause} position {at} is not in select list");
                Err(Error::new(INVALID_COLUMN_REFERENCE, what))
            }
            _ => Ok(()),
        }
    };
    if let Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) = &query.order_by {
        order.iter().try_for_each(|by| check(&by.expr, "ORDER BY"))?;
    }
    match &select.group_by {
        GroupByExpr::Expressions(groups, _) => groups.iter().try_for_each(|group| check(group, "GROUP BY")),
        GroupByExpr::All(_) => Ok(()),
    }
}

/// Checks that a recursive query refers to itself once, in the second part of a UNION, and outside
/// of subqueries.
///
/// Errors: 42P19.
fn recursion(name: &str, query: &ast::Query) -> Result<()> {
    let SetExpr::SetOperation { left, right, .. } = &*query.body else { return Ok(()) };
    let refused = |what: &str| {
        let what = format!("recursive reference to query \"{name}\" must not appear {what}");
        Err(Error::new(INVALID_RECURSION, what))
    };
    if references(name, left) > 0 {
        return refused("within its non-recursive term");
    }
    let SetExpr::Select(select) = &**right else { return Ok(()) };
    let is_it = |factor: &TableFactor| match factor {
        TableFactor::Table { name: of, args: None, .. } => of.0.len() == 1 && last_name(of) == name,
        _ => false,
    };
    let is_query =
        |factor: &TableFactor| matches!(factor, TableFactor::Derived { .. } | TableFactor::NestedJoin { .. });
    let factors: Vec<&TableFactor> = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
        .collect();
    let (own, all) = (factors.iter().filter(|factor| is_it(factor)).count(), references(name, right));
    if own > 1 {
        return refused("more than once");
    }
    if all > own && !factors.iter().any(|factor| is_query(factor)) {
        return refused("within a subquery");
    }
    let mut calls = Calls { depth: 0, found: None, kinds: &[Kind::Aggregate], tables: None };
    for item in &select.projection {
        let _ = walk::visit(item, &mut calls);
    }
    if calls.found.is_some() && own > 0 {
        let what = "aggregate functions are not allowed in a recursive query's recursive term";
        return Err(Error::new(INVALID_RECURSION, what));
    }
    Ok(())
}

/// Counts the references to a table name.
fn references(name: &str, body: &SetExpr) -> usize {
    let mut count = 0;
    let _ = walk::visit_relations(body, |relation| {
        count += usize::from(relation.0.len() == 1 && last_name(relation) == name);
        ControlFlow::<()>::Continue(())
    });
    count
}

fn of_select(select: &ast::Select) -> Result<()> {
    let all = [Kind::Aggregate, Kind::Window, Kind::Set];
    let tables: Vec<String> = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
        .filter_map(name_of)
        .collect();
    for (at, table) in tables.iter().enumerate() {
        if tables.iter().skip(at + 1).any(|other| other == table) && !is_qualified(select) {
            let what = format!("table name \"{table}\" specified more than once");
            return Err(Error::new(DUPLICATE_ALIAS, what));
        }
    }
    let refuse = |expr: &Expr, kinds: &[Kind], place: &str| refuse(expr, kinds, place, Some(&tables));
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on))
        | JoinOperator::FullOuter(JoinConstraint::On(on)) = &join.join_operator
        {
            refuse(on, &all, "JOIN conditions")?;
        }
    }
    if let Some(condition) = &select.selection {
        refuse(condition, &all, "WHERE")?;
    }
    if let GroupByExpr::Expressions(groups, _) = &select.group_by {
        for group in groups {
            refuse(group, &[Kind::Aggregate, Kind::Window], "GROUP BY")?;
        }
    }
    if let Some(condition) = &select.having {
        refuse(condition, &[Kind::Window, Kind::Set], "HAVING")?;
    }
    Ok(())
}

/// Whether tables are qualified with their namespace. Two of them may then have the same name.
fn is_qualified(select: &ast::Select) -> bool {
    let is_it = |factor: &TableFactor| matches!(factor, TableFactor::Table { name, alias: None, .. } if name.0.len() > 1);
    select
        .from
        .iter()
        .any(|from| is_it(&from.relation) || from.joins.iter().any(|join| is_it(&join.relation)))
}

/// Returns the name of a table within its query.
fn name_of(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { name, alias, .. } => {
            Some(alias.as_ref().map_or_else(|| last_name(name), |alias| ident(&alias.name)))
        }
        TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. } => alias.as_ref().map(|alias| ident(&alias.name)),
        _ => None,
    }
}

fn of_call(function: &Function) -> Result<()> {
    let name = last_name(&function.name);
    let is_plain = function.over.is_none() && function.within_group.is_empty();
    if is_plain && WINDOWS.contains(&name.as_str()) && function.name.0.len() == 1 {
        let what = format!("window function {name} requires an OVER clause");
        return Err(Error::new(WRONG_OBJECT_TYPE, what));
    }
    if let Some(over) = &function.over {
        if let FunctionArguments::List(list) = &function.args
            && list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct)
        {
            let what = "DISTINCT is not implemented for window functions";
            return Err(Error::new(FEATURE_NOT_SUPPORTED, what));
        }
        if NEITHER.contains(&name.as_str()) {
            let what =
                format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(Error::new(WRONG_OBJECT_TYPE, what));
        }
        let mut calls = Calls { depth: 0, found: None, kinds: &[Kind::Window], tables: None };
        let _ = walk::visit(over, &mut calls);
        if let Some(kind) = calls.found {
            return Err(kind.refused("window definitions"));
        }
    }
    if let Some(filter) = &function.filter {
        refuse(filter, &[Kind::Aggregate, Kind::Window, Kind::Set], "FILTER", None)?;
    }
    let within = |kind: Kind| {
        let mut calls = Calls { depth: 0, found: None, kinds: &[kind], tables: None };
        if let FunctionArguments::List(list) = &function.args {
            let _ = walk::visit(list, &mut calls);
        }
        calls.found.is_some()
    };
    match kind_of(function) {
        Some(Kind::Aggregate) if within(Kind::Aggregate) => {
            Err(Error::new(GROUPING_ERROR, "aggregate function calls cannot be nested"))
        }
        Some(Kind::Aggregate) if within(Kind::Window) => {
            let what = "aggregate function calls cannot contain window function calls";
            Err(Error::new(GROUPING_ERROR, what))
        }
        Some(Kind::Window) if within(Kind::Window) => {
            Err(Error::new(WINDOWING_ERROR, "window function calls cannot be nested"))
        }
        _ => Ok(()),
    }
}
