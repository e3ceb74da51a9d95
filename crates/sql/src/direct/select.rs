//! SELECT from tables whose rows are found by keys, or without FROM.

use cairn_table::Table;
use cairn_table::row::{Order, Type};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, LockClause, NonBlock, OrderBy, OrderByKind, Query, Select as SelectTree,
    SelectFlavor, SetExpr, Value,
};

use super::columnar::Columnar;
use super::join::{Level, Tables};
use super::row::slots;
use super::{Access, Aggregate, Binder, Grouped, Wanted};
use crate::column::Column;
use crate::error::Error;
use crate::expr::{Failure, Node, Scope};
use crate::sqlstate::UNDEFINED_TABLE;
use crate::syntax::{deep, ident, last_name};

type Result<T, E = Failure> = std::result::Result<T, E>;

/// Tables with more rows are left to the general path if all of them have to be read and tested. It
/// uses all processors.
const LARGE: u64 = 20_000;

/// A compiled SELECT.
#[derive(Debug)]
pub(crate) struct Select {
    /// `None` for SELECT without FROM.
    pub access: Option<Access>,
    /// The tables that are read before this one, and the number of parameters including their
    /// columns.
    pub joined: Option<(Vec<Level>, usize)>,
    /// The condition of a SELECT without FROM; with FOR UPDATE, the condition to test again on
    /// locked rows.
    pub condition: Option<Node>,
    /// FOR UPDATE.
    pub locks: Option<Locks>,
    pub output: Output,
    pub sort: Option<Sort>,
    pub limit: Option<Node>,
    pub offset: Option<Node>,
    /// Whether parameters are needed after the bounds have been computed.
    pub keeps_params: bool,
    /// The plan for computing aggregates column by column.
    pub columnar: Option<Columnar>,
}

/// A compiled SELECT and its columns, shared by the statement and by the rows that it has started.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    pub select: Select,
    pub columns: Arc<[Column]>,
    /// An upper limit of its nesting depth.
    levels: usize,
}

impl SelectPlan {
    pub fn new(select: Select, columns: Arc<[Column]>, levels: usize) -> Self {
        SelectPlan { select, columns, levels }
    }
}

impl Drop for SelectPlan {
    /// Drops the plan with enough stack for its depth, on whichever thread that happens.
    fn drop(&mut self) {
        let nothing = Select {
            access: None,
            joined: None,
            condition: None,
            locks: None,
            output: Output::Columns(Vec::new()),
            sort: None,
            limit: None,
            offset: None,
            keeps_params: false,
            columnar: None,
        };
        let select = std::mem::replace(&mut self.select, nothing);
        deep(self.levels, || drop(select));
    }
}

/// The output of a SELECT.
#[derive(Debug)]
pub(crate) enum Output {
    /// Plain columns: their positions, and the scales of decimals.
    Columns(Vec<(usize, u8)>),
    Nodes(Vec<Node>),
    Aggregates(Vec<Aggregate>),
    /// One row per group.
    Groups(Grouped),
}

/// An order that no tree provides.
#[derive(Debug)]
pub(crate) struct Sort {
    pub keys: Vec<(Node, Order)>,
}

/// The behavior of FOR UPDATE on a row that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    Wait,
    /// NOWAIT.
    Fail,
    /// SKIP LOCKED.
    Skip,
}

impl Locks {
    /// Returns the strictest of several clauses, the one that waits least, as in PostgreSQL.
    fn of(clauses: &[LockClause]) -> Option<Locks> {
        let of_one = |clause: &LockClause| match clause.nonblock {
            None => Locks::Wait,
            Some(NonBlock::SkipLocked) => Locks::Skip,
            Some(NonBlock::Nowait) => Locks::Fail,
        };
        let mut all = clauses.iter().map(of_one);
        let first = all.next()?;
        Some(all.fold(first, |one, other| match (one, other) {
            (Locks::Fail, _) | (_, Locks::Fail) => Locks::Fail,
            (Locks::Skip, _) | (_, Locks::Skip) => Locks::Skip,
            (Locks::Wait, Locks::Wait) => Locks::Wait,
        }))
    }
}

/// The parts of a query that this path supports. Queries with others are left to the general path.
pub(super) struct Parts<'a> {
    /// FOR UPDATE and the like.
    pub locks: Option<Locks>,
    pub select: &'a SelectTree,
    pub groups: &'a [Expr],
    pub order: Option<&'a OrderBy>,
    pub limit: Option<&'a Expr>,
    pub offset: Option<&'a Expr>,
}

fn parts(query: &Query) -> Option<Parts<'_>> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let plain_query = query.with.is_none()
        && query.fetch.is_none()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    let plain_select = select.distinct.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
        && select.flavor == SelectFlavor::Standard;
    let groups = match &select.group_by {
        GroupByExpr::Expressions(groups, modifiers) if modifiers.is_empty() => groups,
        _ => return None,
    };
    if !plain_query || !plain_select {
        return None;
    }
    let (limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
            (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
        }
        Some(_) => return None,
    };
    let locks = Locks::of(&query.locks);
    Some(Parts { locks, select, groups, order: query.order_by.as_ref(), limit, offset })
}

impl Select {
    /// Compiles a query.
    ///
    /// Errors: [`Failure::Unknown`] for anything that this path does not support, or that the
    /// general path does faster.
    pub fn plan(query: &Query, binder: &mut Binder<'_>) -> Result<(Select, Vec<Column>)> {
        let parts = parts(query).ok_or(Failure::Unknown)?;
        let is_single = matches!(&parts.select.from[..], [from] if from.joins.is_empty());
        if !is_single && !parts.groups.is_empty() {
            return Err(Failure::Unknown);
        }
        if parts.select.from.is_empty() {
            return without_table(&parts, binder);
        }
        if !is_single {
            return join(&parts, binder);
        }
        let (table, alias) = binder.only_table(&parts.select.from)?;
        check_of(&query.locks, alias.as_deref().unwrap_or(&table.def().name))?;
        let scope = Scope::of_table(&table, alias.as_deref());
        let conjuncts = match &parts.select.selection {
            Some(expr) => binder.compiler(&scope).condition(expr)?.conjuncts(),
            None => Vec::new(),
        };
        let limit = count(parts.limit, binder)?;
        let offset = count(parts.offset, binder)?;
        if !parts.groups.is_empty() {
            return Grouped::plan(&parts, (&table, &scope), conjuncts, (limit, offset), binder);
        }
        if parts.locks.is_none()
            && let Some((aggregates, columns)) = Aggregate::all(&parts.select.projection, &scope, binder)?
        {
            if parts.order.is_some() || limit.is_some() || offset.is_some() {
                return Err(Failure::Unknown);
            }
            return aggregate(&table, conjuncts, aggregates).map(|select| (select, columns));
        }
        let (nodes, columns) = binder.outputs(&parts.select.projection, &scope, Some(&table))?;
        let order = match parts.order {
            Some(order) => sort_keys(order, &nodes, &columns, &scope, binder)?,
            None => Vec::new(),
        };
        let looked_at = slots(nodes.iter().chain(&conjuncts).chain(order.iter().map(|(node, _)| node)));
        let by_columns = by_columns(&order);
        let wanted = Wanted { columns: &looked_at, order: by_columns.as_deref().unwrap_or_default() };
        let has_condition = !conjuncts.is_empty();
        let condition = if parts.locks.is_some() { Node::all(conjuncts.clone()) } else { None };
        let (access, mut ordered) = Access::plan(&table, conjuncts, &wanted);
        ordered &= by_columns.is_some();
        let sort = if ordered { None } else { Some(Sort { keys: order }) };
        let is_large = parts.locks.is_none() && table.rows() > LARGE;
        // Sorting many rows needs a sort that can spill.
        let sorts_much = sort.is_some() && access.range.prefix.is_empty() && access.range.any_of.is_none();
        if is_large && !access.range.is_point && (access.is_full() && has_condition || sorts_much) {
            return Err(Failure::Unknown);
        }
        let keeps_params = access.residual.as_ref().is_some_and(Node::has_params)
            || nodes.iter().any(Node::has_params)
            || sort.as_ref().is_some_and(|sort| sort.keys.iter().any(|(node, _)| node.has_params()));
        let select = Select {
            access: Some(access),
            joined: None,
            condition,
            locks: parts.locks,
            output: output(nodes),
            sort,
            limit,
            offset,
            keeps_params,
            columnar: None,
        };
        Ok((select, columns))
    }
}

/// Returns the columns of an order; `None` if it has computed keys.
fn by_columns(order: &[(Node, Order)]) -> Option<Vec<(usize, Order)>> {
    let column = |(node, order): &(Node, Order)| match node {
        Node::Slot { slot, .. } => Some((*slot, *order)),
        _ => None,
    };
    order.iter().map(column).collect()
}

/// Checks that FOR UPDATE OF names no table but the only one.
fn check_of(clauses: &[LockClause], only: &str) -> Result<()> {
    let mut named = clauses.iter().filter_map(|clause| clause.of.as_ref()).map(last_name);
    match named.find(|name| name != only) {
        None => Ok(()),
        Some(other) => {
            let what = format!("relation \"{other}\" in FOR UPDATE clause not found in FROM clause");
            Err(Error::new(UNDEFINED_TABLE, what).into())
        }
    }
}

fn output(nodes: Vec<Node>) -> Output {
    let columns: Option<Vec<_>> = nodes
        .iter()
        .map(|node| match node {
            Node::Slot { slot, scale } => Some((*slot, *scale)),
            _ => None,
        })
        .collect();
    columns.map_or(Output::Nodes(nodes), Output::Columns)
}

fn count(expr: Option<&Expr>, binder: &mut Binder<'_>) -> Result<Option<Node>> {
    let Some(expr) = expr else { return Ok(None) };
    if matches!(expr, Expr::Value(value) if value.value == Value::Null) {
        return Ok(None);
    }
    let scope = Scope::empty();
    let mut compiler = binder.compiler(&scope);
    let typed = compiler.compile(expr)?;
    let kind = Type::BigInt.into();
    compiler.coerced(typed, &kind).map(Some)
}

fn without_table(parts: &Parts<'_>, binder: &mut Binder<'_>) -> Result<(Select, Vec<Column>)> {
    let scope = Scope::empty();
    if parts.order.is_some() || parts.select.projection.is_empty() {
        return Err(Failure::Unknown);
    }
    let (nodes, columns) = binder.outputs(&parts.select.projection, &scope, None)?;
    let condition = match &parts.select.selection {
        Some(expr) => Some(binder.compiler(&scope).condition(expr)?),
        None => None,
    };
    let (limit, offset) = (count(parts.limit, binder)?, count(parts.offset, binder)?);
    let select = Select {
        access: None,
        joined: None,
        condition,
        locks: None,
        output: Output::Nodes(nodes),
        sort: None,
        limit,
        offset,
        keeps_params: true,
        columnar: None,
    };
    Ok((select, columns))
}

/// Compiles a join, in which each table is found by keys of those before it.
fn join(parts: &Parts<'_>, binder: &mut Binder<'_>) -> Result<(Select, Vec<Column>)> {
    if parts.locks.is_some() {
        return Err(Failure::Unknown);
    }
    let tables = Tables::of(&parts.select.from, binder)?;
    let scope = tables.scope.clone();
    let mut conditions = tables.conditions.clone();
    if let Some(expr) = &parts.select.selection {
        conditions.extend(binder.compiler(&scope).condition(expr)?.conjuncts());
    }
    let (limit, offset) = (count(parts.limit, binder)?, count(parts.offset, binder)?);
    let aggregates = Aggregate::all(&parts.select.projection, &scope, binder)?;
    let (mut output, columns, order) = match aggregates {
        Some((aggregates, columns)) => {
            if parts.order.is_some() || limit.is_some() || offset.is_some() {
                return Err(Failure::Unknown);
            }
            (Output::Aggregates(aggregates), columns, Vec::new())
        }
        None => {
            let (nodes, columns) = binder.outputs(&parts.select.projection, &scope, None)?;
            let order = match parts.order {
                Some(order) => sort_keys(order, &nodes, &columns, &scope, binder)?,
                None => Vec::new(),
            };
            (Output::Nodes(nodes), columns, order)
        }
    };
    let looked_at = match &output {
        Output::Nodes(nodes) => slots(nodes.iter().chain(order.iter().map(|(node, _)| node))),
        Output::Aggregates(aggregates) => slots(aggregates.iter().filter_map(|it| it.input.as_ref())),
        Output::Columns(_) | Output::Groups(_) => Vec::new(),
    };
    let ordered = tables.ordered(conditions, &looked_at, binder.params.len())?;
    match &mut output {
        Output::Nodes(nodes) => {
            *nodes = std::mem::take(nodes).into_iter().map(|node| ordered.localized(node)).collect();
        }
        Output::Aggregates(aggregates) => {
            for aggregate in aggregates {
                aggregate.input = aggregate.input.take().map(|node| ordered.localized(node));
            }
        }
        Output::Columns(_) | Output::Groups(_) => {}
    }
    let order: Vec<_> = order.into_iter().map(|(node, order)| (ordered.localized(node), order)).collect();
    let select = Select {
        access: Some(ordered.last),
        joined: Some((ordered.levels, ordered.params)),
        condition: None,
        locks: None,
        output,
        sort: if order.is_empty() { None } else { Some(Sort { keys: order }) },
        limit,
        offset,
        keeps_params: true,
        columnar: None,
    };
    Ok((select, columns))
}

fn aggregate(table: &Arc<Table>, conjuncts: Vec<Node>, aggregates: Vec<Aggregate>) -> Result<Select> {
    let inputs = aggregates.iter().filter_map(|aggregate| aggregate.input.as_ref());
    let looked_at = slots(inputs.chain(&conjuncts));
    // The least and the greatest value of a column are at the ends of a tree ordered by it.
    let order: Vec<(usize, Order)> = match aggregates.as_slice() {
        [only] => only.end_of().into_iter().collect(),
        _ => Vec::new(),
    };
    let wanted = Wanted { columns: &looked_at, order: &order };
    let (access, ordered) = Access::plan(table, conjuncts, &wanted);
    let by_end = !order.is_empty() && ordered;
    // Counting reads only the headers of leaves.
    let counts = access.residual.is_none() && aggregates.iter().all(|aggregate| aggregate.input.is_none());
    let columnar = match by_end || counts || access.range.is_point {
        true => None,
        false => Columnar::plan(&access, &aggregates, &[]),
    };
    if !by_end && !counts && columnar.is_none() && access.is_full() && table.rows() > LARGE {
        return Err(Failure::Unknown);
    }
    let mut aggregates = aggregates;
    if by_end {
        aggregates.iter_mut().for_each(|aggregate| aggregate.first_is_enough = true);
    }
    Ok(Select {
        access: Some(access),
        joined: None,
        condition: None,
        locks: None,
        output: Output::Aggregates(aggregates),
        sort: None,
        limit: None,
        offset: None,
        keeps_params: true,
        columnar,
    })
}

/// Returns the result column that a bare name refers to. Result columns come before table columns:
/// `ORDER BY lower` in `SELECT lower(name)`.
///
/// Errors: 42702 for a name of several results, unless they are the same column.
fn result_named(expr: &Expr, nodes: &[Node], columns: &[Column]) -> Result<Option<Node>> {
    let Expr::Identifier(name) = expr else { return Ok(None) };
    let name = ident(name);
    let mut named = nodes.iter().zip(columns).filter(|(_, column)| column.name == name).map(|(node, _)| node);
    let Some(first) = named.next() else { return Ok(None) };
    let is_same = |other: &Node| match (first, other) {
        (Node::Slot { slot: one, .. }, Node::Slot { slot: other, .. }) => one == other,
        _ => false,
    };
    match named.all(is_same) {
        true => Ok(Some(first.clone())),
        false => {
            Err(Error::new(crate::sqlstate::AMBIGUOUS_COLUMN, format!("ORDER BY \"{name}\" is ambiguous"))
                .into())
        }
    }
}

/// Resolves the expressions of ORDER BY: results by number or name, or expressions over the table.
fn sort_keys(
    order: &OrderBy,
    nodes: &[Node],
    columns: &[Column],
    scope: &Scope,
    binder: &mut Binder<'_>,
) -> Result<Vec<(Node, Order)>> {
    let OrderByKind::Expressions(exprs) = &order.kind else { return Err(Failure::Unknown) };
    let mut keys = Vec::with_capacity(exprs.len());
    for by in exprs {
        let descending = by.options.asc == Some(false);
        let nulls_first = by.options.nulls_first.unwrap_or(descending);
        let node = match &by.expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => {
                    let number: usize = digits.parse().map_err(|_| Failure::Unknown)?;
                    number.checked_sub(1).and_then(|at| nodes.get(at)).cloned().ok_or(Failure::Unknown)?
                }
                _ => return Err(Failure::Unknown),
            },
            expr => match result_named(expr, nodes, columns)? {
                Some(node) => node,
                None => binder.compiler(scope).output(expr)?.0,
            },
        };
        if node.is_volatile() || by.with_fill.is_some() {
            return Err(Failure::Unknown);
        }
        keys.push((node, Order { descending, nulls_first }));
    }
    Ok(keys)
}
