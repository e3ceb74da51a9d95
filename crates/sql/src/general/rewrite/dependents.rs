//! Columns that GROUP BY need not list, because a primary key in it determines them: `SELECT c.id,
//! c.name, count(*) FROM c JOIN ... GROUP BY c.id`.
//!
//! This module lists them explicitly. DataFusion could do so by functional dependencies that it
//! derives from constraints. But it assumes that a key among other GROUP BY columns determines all
//! results of the groups, and drops columns from later groups and sorts that the key does not
//! determine. Therefore DataFusion is given no constraints.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, OrderByExpr, SelectItem, SetExpr, TableFactor, Value, Visitor,
};

use super::rows::bare;
use super::scope::{From, Lookup};
use crate::syntax::shape::is_call_of_aggregate;
use crate::syntax::walk;
use crate::syntax::{ident, last_name};

/// A table of a SELECT.
struct Table {
    from: From,
    /// Positions of the primary key columns, for a table of the catalog.
    key: Vec<usize>,
}

/// A column of one of the tables: the positions of both.
type Place = (usize, usize);

/// Adds dependent columns to GROUP BY in the SELECTs of a query.
pub(super) fn list(query: &mut ast::Query, lookup: Lookup<'_>) {
    let order = match &query.order_by {
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) => order.as_slice(),
        _ => &[],
    };
    in_body(&mut query.body, order, lookup);
}

fn in_body(body: &mut SetExpr, order: &[OrderByExpr], lookup: Lookup<'_>) {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left, &[], lookup);
            in_body(right, &[], lookup);
        }
        SetExpr::Select(select) => {
            let more = missing(select, order, lookup);
            if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
                groups.extend(more);
            }
        }
        _ => {}
    }
}

/// Returns the columns to be added.
fn missing(select: &ast::Select, order: &[OrderByExpr], lookup: Lookup<'_>) -> Vec<Expr> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Vec::new() };
    let is_set = |by: &Expr| matches!(by, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
    if groups.is_empty() || groups.iter().any(is_set) {
        return Vec::new();
    }
    let mut tables = Vec::new();
    select.from.iter().for_each(|from| add_tables(from, lookup, &mut tables));
    let grouped: BTreeSet<Place> =
        groups.iter().filter_map(|by| place_of(by, &tables, Some(&select.projection))).collect();
    let is_told = |at: usize, table: &Table| {
        !table.key.is_empty() && table.key.iter().all(|column| grouped.contains(&(at, *column)))
    };
    let told: Vec<usize> =
        tables.iter().enumerate().filter(|(at, table)| is_told(*at, table)).map(|(at, _)| at).collect();
    if told.is_empty() {
        return Vec::new();
    }
    let mut used = Used { tables: &tables, places: BTreeSet::new(), aggregates: 0 };
    select.projection.iter().for_each(|item| used.add_item(item));
    let _ = walk::visit(&select.having, &mut used);
    let _ = order.iter().try_for_each(|by| walk::visit(&by.expr, &mut used));
    let missing = used.places.difference(&grouped).filter(|(table, _)| told.contains(table));
    missing.filter_map(|place| name_of(*place, &tables)).collect()
}

fn add_tables(from: &ast::TableWithJoins, lookup: Lookup<'_>, to: &mut Vec<Table>) {
    for factor in std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None, .. } => {
                add_tables(table_with_joins, lookup, to);
            }
            _ => to.push(Table { from: lookup.table(factor), key: lookup.primary_key(factor) }),
        }
    }
}

/// Resolves an expression to a column. If `results` are given, the name or number of a result
/// resolves to the column that it selects.
fn place_of(expr: &Expr, tables: &[Table], results: Option<&[SelectItem]>) -> Option<Place> {
    let result = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            place_of(expr, tables, None)
        }
        _ => None,
    };
    match bare(expr) {
        Expr::CompoundIdentifier(names) => {
            let [.., table, column] = names.as_slice() else { return None };
            let (table, column) = (ident(table), ident(column));
            let at = tables.iter().position(|known| known.from.name.as_ref() == Some(&table))?;
            Some((at, column_of(tables.get(at)?, &column)?))
        }
        Expr::Identifier(name) => {
            let name = ident(name);
            let mut found =
                tables.iter().enumerate().filter_map(|(at, table)| Some((at, column_of(table, &name)?)));
            match (found.next(), found.next()) {
                (Some(place), None) => Some(place),
                (Some(_), Some(_)) => None,
                (None, _) => results?.iter().find_map(|item| match item {
                    SelectItem::ExprWithAlias { alias, .. } if ident(alias) == name => result(item),
                    _ => None,
                }),
            }
        }
        Expr::Value(value) => {
            let Value::Number(digits, _) = &value.value else { return None };
            result(results?.get(digits.parse::<usize>().ok()?.checked_sub(1)?)?)
        }
        _ => None,
    }
}

fn column_of(table: &Table, name: &str) -> Option<usize> {
    table.from.columns.as_ref()?.iter().position(|column| column == name)
}

fn name_of((table, column): Place, tables: &[Table]) -> Option<Expr> {
    let from = &tables.get(table)?.from;
    let quoted = |name: &str| Ident::with_quote('"', name);
    Some(Expr::CompoundIdentifier(vec![
        quoted(from.name.as_ref()?),
        quoted(from.columns.as_ref()?.get(column)?),
    ]))
}

/// Collects the columns used outside of aggregates. A name in a subquery may refer to a table
/// there, but an additional grouping column does no harm.
struct Used<'t> {
    tables: &'t [Table],
    places: BTreeSet<Place>,
    /// Number of enclosing aggregates.
    aggregates: usize,
}

impl Used<'_> {
    fn add_item(&mut self, item: &SelectItem) {
        let of = match item {
            SelectItem::Wildcard(_) => None,
            SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                Some(last_name(name))
            }
            item => {
                let _ = walk::visit(item, self);
                return;
            }
        };
        for (at, table) in self.tables.iter().enumerate() {
            if of.is_none() || table.from.name == of {
                let count = table.from.columns.as_ref().map_or(0, Vec::len);
                self.places.extend((0..count).map(|column| (at, column)));
            }
        }
    }
}

impl Visitor for Used<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.aggregates += usize::from(is_call_of_aggregate(expr));
        if self.aggregates == 0 && matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            self.places.extend(place_of(expr, self.tables, None));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.aggregates -= usize::from(is_call_of_aggregate(expr));
        ControlFlow::Continue(())
    }
}
