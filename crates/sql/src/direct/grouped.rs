//! GROUP BY columns of one table.

use cairn_table::Table;
use cairn_table::row::{Order, Value};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{Expr, OrderBy, OrderByKind, SelectItem, Value as Literal};

use super::aggregate::one;
use super::columnar::{Columnar, GroupRow};
use super::row::slots;
use super::select::{Output, Parts, Select, Sort};
use super::source::{name_of, origin};
use super::{Access, Binder, Wanted};
use crate::column::Column;
use crate::datum::Datum;
use crate::expr::{Failure, Node, Scope};
use crate::syntax::ident;

/// Groups, and the result columns of each.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub columnar: Columnar,
    /// Positions in a group's row, which has the columns of GROUP BY, followed by the aggregates.
    items: Vec<usize>,
}

type Result<T> = std::result::Result<T, Failure>;

impl Grouped {
    /// Compiles a query with GROUP BY.
    ///
    /// Errors: [`Failure::Unknown`] for anything that this path does not support, and for mistakes,
    /// which the general path reports better.
    pub(super) fn plan(
        parts: &Parts<'_>,
        (table, scope): (&Arc<Table>, &Scope),
        conjuncts: Vec<Node>,
        (limit, offset): (Option<Node>, Option<Node>),
        binder: &mut Binder<'_>,
    ) -> Result<(Select, Vec<Column>)> {
        if parts.locks.is_some() {
            return Err(Failure::Unknown);
        }
        let slot_of = |expr: &Expr, binder: &mut Binder<'_>| match binder.compiler(scope).output(expr) {
            Ok((Node::Slot { slot, .. }, kind)) => Ok((slot, kind)),
            _ => Err(Failure::Unknown),
        };
        let mut groups = Vec::with_capacity(parts.groups.len());
        for expr in parts.groups {
            groups.push(slot_of(expr, binder)?.0);
        }
        let (mut items, mut columns, mut aggregates) = (Vec::new(), Vec::new(), Vec::new());
        for item in &parts.select.projection {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, name_of(expr)),
                SelectItem::ExprWithAlias { expr, alias } => (expr, ident(alias)),
                _ => return Err(Failure::Unknown),
            };
            let aggregate = match expr {
                Expr::Function(function) => one(function, scope, binder)?,
                _ => None,
            };
            if let Some((aggregate, kind)) = aggregate {
                items.push(groups.len() + aggregates.len());
                columns.push(Column::new(name, kind));
                aggregates.push(aggregate);
                continue;
            }
            let (slot, kind) = slot_of(expr, binder)?;
            items.push(groups.iter().position(|group| *group == slot).ok_or(Failure::Unknown)?);
            columns.push(Column { table: origin(table, slot), ..Column::new(name, kind) });
        }
        let sort = match parts.order {
            Some(order) => Some(Sort { keys: sort_keys(order, parts, &columns)? }),
            None => None,
        };
        let inputs = aggregates.iter().filter_map(|aggregate| aggregate.input.as_ref());
        let mut looked_at = slots(inputs.chain(&conjuncts));
        looked_at.extend(&groups);
        let (access, _) = Access::plan(table, conjuncts, &Wanted { columns: &looked_at, order: &[] });
        let columnar = Columnar::plan(&access, &aggregates, &groups).ok_or(Failure::Unknown)?;
        let select = Select {
            access: Some(access),
            joined: None,
            condition: None,
            locks: None,
            output: Output::Groups(Grouped { columnar, items }),
            sort,
            limit,
            offset,
            keeps_params: true,
            columnar: None,
        };
        Ok((select, columns))
    }

    /// Returns the result row of a group.
    pub fn output(&self, group: &GroupRow) -> Vec<Datum> {
        self.items.iter().map(|item| group.get(*item).cloned().unwrap_or(Datum::Null)).collect()
    }
}

/// Resolves the expressions of ORDER BY to result columns: by number, by name, or by equal text.
fn sort_keys(order: &OrderBy, parts: &Parts<'_>, columns: &[Column]) -> Result<Vec<(Node, Order)>> {
    let OrderByKind::Expressions(exprs) = &order.kind else { return Err(Failure::Unknown) };
    let mut keys = Vec::with_capacity(exprs.len());
    for by in exprs {
        if by.with_fill.is_some() {
            return Err(Failure::Unknown);
        }
        let descending = by.options.asc == Some(false);
        let nulls_first = by.options.nulls_first.unwrap_or(descending);
        let is_item = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => *expr == by.expr,
            SelectItem::ExprWithAlias { expr, alias } => {
                *expr == by.expr || matches!(&by.expr, Expr::Identifier(name) if ident(name) == ident(alias))
            }
            _ => false,
        };
        let at = match &by.expr {
            Expr::Value(value) => match &value.value {
                Literal::Number(digits, _) => {
                    digits.parse().ok().and_then(|number: usize| number.checked_sub(1))
                }
                _ => None,
            },
            _ => {
                let mut named = parts.select.projection.iter().enumerate().filter(|(_, item)| is_item(item));
                let first = named.next().map(|(at, _)| at);
                // If two columns have this name, the general path decides whether it is ambiguous.
                first.filter(|_| named.next().is_none())
            }
        };
        let at = at.filter(|at| *at < columns.len()).ok_or(Failure::Unknown)?;
        let scale = columns.get(at).and_then(|column| column.kind.decimal).map_or(0, |(_, scale)| scale);
        keys.push((Node::Slot { slot: at, scale }, Order { descending, nulls_first }));
    }
    Ok(keys)
}

/// Converts a result row to values, which its sort keys are computed from.
pub(crate) fn cells(row: &[Datum]) -> Vec<Value<'_>> {
    row.iter().map(|datum| datum.borrow().to_value()).collect()
}
