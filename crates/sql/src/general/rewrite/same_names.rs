//! Tables with the same name in several schemas: `SELECT * FROM t, s1.t`.
//!
//! DataFusion resolves the name `t` to `s1.t` as well, so that it would take the first table's
//! columns for both. Each table gets a unique alias that contains its schema.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, OrderBy, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins,
};

use super::scope::Lookup;
use super::subqueries::each_own;
use crate::error::{Error, Result};
use crate::sqlstate::AMBIGUOUS_ALIAS;
use crate::syntax::walk::visit_expressions_mut;
use crate::syntax::{ident, qualified};

/// A table that shares its name with one of another schema.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Twin {
    schema: String,
    name: String,
}

impl Twin {
    fn alias(&self) -> Ident {
        Ident::with_quote('"', format!("{}.{}", self.schema, self.name))
    }
}

/// Adds aliases to the tables of a query's own SELECTs where their names alone are ambiguous.
///
/// Errors: 42P09 for a column qualified by the ambiguous name.
pub(super) fn tell_apart(query: &mut Query, lookup: Lookup<'_>) -> Result<()> {
    let order = match &mut query.order_by {
        Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) => order.as_mut_slice(),
        _ => &mut [],
    };
    let mut order: Vec<&mut Expr> = order.iter_mut().map(|by| &mut by.expr).collect();
    in_body(&mut query.body, &mut order, lookup)
}

fn in_body(body: &mut SetExpr, order: &mut [&mut Expr], lookup: Lookup<'_>) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left, &mut [], lookup)?;
            in_body(right, &mut [], lookup)
        }
        SetExpr::Select(select) => in_select(select, order, lookup),
        _ => Ok(()),
    }
}

fn in_select(select: &mut Select, order: &mut [&mut Expr], lookup: Lookup<'_>) -> Result<()> {
    let mut tables = Vec::new();
    for from in &mut select.from {
        each_table(from, &mut |name, _| tables.extend(twin(name, lookup)));
    }
    let is_twin =
        |table: &Twin| tables.iter().any(|other| other.name == table.name && other.schema != table.schema);
    let twins: Vec<Twin> = tables.iter().filter(|table| is_twin(table)).cloned().collect();
    if twins.is_empty() {
        return Ok(());
    }
    for from in &mut select.from {
        each_table(from, &mut |name, alias| {
            if let Some(twin) = twin(name, lookup).filter(|twin| twins.contains(twin)) {
                *alias =
                    Some(TableAlias { explicit: true, name: twin.alias(), columns: Vec::new(), at: None });
            }
        });
    }
    for item in &mut select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item {
            let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            if let Some(renamed) = renamed(&parts, &twins)? {
                *name = ObjectName::from(vec![renamed]);
            }
        }
    }
    let mut result = Ok(());
    let mut rename = |expr: &mut Expr, is_own: bool| {
        let Expr::CompoundIdentifier(names) = expr else { return };
        let Some((column, table)) = names.split_last() else { return };
        match renamed(table, &twins) {
            Ok(Some(alias)) => *names = vec![alias, column.clone()],
            Ok(None) => {}
            // In a subquery the name may refer to a table there.
            Err(error) if is_own && result.is_ok() => result = Err(error),
            Err(_) => {}
        }
    };
    // Schema-qualified references first: whatever still has the shared name afterwards was written
    // without a schema.
    let _ = visit_expressions_mut(select, |expr| {
        rename(expr, false);
        ControlFlow::<()>::Continue(())
    });
    let items = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let conditions = select.selection.iter_mut().chain(&mut select.having);
    for expr in items.chain(conditions) {
        each_own(expr, |expr| rename(expr, true));
    }
    for by in order {
        each_own(by, |expr| rename(expr, true));
    }
    result
}

/// Returns the alias for a table name, which may be qualified by a schema.
///
/// Errors: 42P09 for an unqualified name that several tables have.
fn renamed(table: &[Ident], twins: &[Twin]) -> Result<Option<Ident>> {
    match table {
        [schema, name] => {
            let (schema, name) = (ident(schema), ident(name));
            Ok(twins.iter().find(|twin| twin.schema == schema && twin.name == name).map(Twin::alias))
        }
        [name] if twins.iter().any(|twin| twin.name == ident(name)) => {
            let what = format!("table reference \"{}\" is ambiguous", ident(name));
            Err(Error::new(AMBIGUOUS_ALIAS, what))
        }
        _ => Ok(None),
    }
}

/// Returns the schema and name that a table reference resolves to; `None` for names of WITH and for
/// relations that do not exist.
fn twin(name: &ObjectName, lookup: Lookup<'_>) -> Option<Twin> {
    let written = qualified(name).ok()?;
    let schema = lookup.schema_of(&written)?;
    Some(Twin { schema, name: written.name })
}

/// Visits the tables of FROM that have no alias, with the place for one.
fn each_table(from: &mut TableWithJoins, see: &mut impl FnMut(&ObjectName, &mut Option<TableAlias>)) {
    let joined = from.joins.iter_mut().map(|join| &mut join.relation);
    for factor in std::iter::once(&mut from.relation).chain(joined) {
        match factor {
            TableFactor::Table { name, alias: alias @ None, args: None, .. } => see(name, alias),
            TableFactor::NestedJoin { table_with_joins, alias: None } => each_table(table_with_joins, see),
            _ => {}
        }
    }
}
