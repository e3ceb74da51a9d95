//! Joins that follow keys: for each row of one table, the rows of the next table are looked up in a
//! tree by values that are already known.
//!
//! The everyday joins of an application have few rows, such as an order and its items. A general
//! plan takes longer to make than these rows to read. Here, each table after the first must have a
//! tree whose key begins with columns to which the join gives values. Joins of many rows are left
//! to the general path, which hashes.
//!
//! To a table, the columns of earlier tables are parameters that follow the statement's own. So
//! lookups in one table know nothing of joins.

use cairn_table::{Table, View};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{
    Expr, Join as JoinTree, JoinConstraint, JoinOperator, ObjectName, TableFactor, TableWithJoins,
};

use super::{Access, Binder, Cursor, Wanted};
use crate::datum::{Datum, DatumRef};
use crate::error::Result;
use crate::expr::{Cells, Context, Env, Failure, Node, Scope};
use crate::syntax::ident;

/// The estimated number of result rows above which the general path is faster.
const MANY: f64 = 10_000.0;

/// The most rows of a table that may be read whole for each row before it.
const TINY: u64 = 16;

/// The most tables of a statement: each one is tried at each position of the order.
const MOST_TABLES: usize = 8;

/// A table that is read before the last one.
#[derive(Debug)]
pub(crate) struct Level {
    pub access: Access,
    /// The columns that later tables read: their positions, their scales, and the parameters that
    /// they become.
    exports: Vec<(usize, u8, usize)>,
}

/// Tables and their join conditions, in the order of the statement.
#[derive(Debug)]
pub(super) struct Tables {
    tables: Vec<Arc<Table>>,
    pub scope: Scope,
    /// Conditions of ON.
    pub conditions: Vec<Node>,
}

/// A join in its order of execution.
#[derive(Debug)]
pub(super) struct Ordered {
    pub levels: Vec<Level>,
    pub last: Access,
    /// The number of parameters, including the statement's own.
    pub params: usize,
    /// The slots of the last table.
    last_slots: std::ops::Range<usize>,
    own_params: usize,
}

impl Tables {
    /// Returns the tables of FROM, if all are plain tables and all joins are inner joins.
    pub fn of(from: &[TableWithJoins], binder: &mut Binder<'_>) -> Result<Tables, Failure> {
        let mut factors: Vec<(&TableFactor, Option<&Expr>)> = Vec::new();
        for part in from {
            factors.push((&part.relation, None));
            for join in &part.joins {
                factors.push((&join.relation, condition_of(join)?));
            }
        }
        if factors.len() > MOST_TABLES {
            return Err(Failure::Unknown);
        }
        let mut all = Tables { tables: Vec::new(), scope: Scope::empty(), conditions: Vec::new() };
        for (factor, _) in &factors {
            let (name, alias) = plain(factor)?;
            let table = binder.table(name)?;
            let first = all.tables.iter().map(|table| table.def().columns.len()).sum();
            if !all.scope.push(&table, alias.as_deref(), first) {
                // The general path reports the error.
                return Err(Failure::Unknown);
            }
            all.tables.push(table);
        }
        for condition in factors.iter().filter_map(|(_, condition)| *condition) {
            let scope = all.scope.clone();
            all.conditions.extend(binder.compiler(&scope).condition(condition)?.conjuncts());
        }
        Ok(all)
    }

    /// Orders the tables such that keys lead from one to the next. `looked_at` are the slots that
    /// the result needs. `own_params` is the number of the statement's own parameters.
    ///
    /// Errors: [`Failure::Unknown`] if there is no such order, or the result would be too large.
    pub fn ordered(
        self,
        conditions: Vec<Node>,
        looked_at: &[usize],
        own_params: usize,
    ) -> Result<Ordered, Failure> {
        let mut starts = Vec::with_capacity(self.tables.len());
        let mut width = 0;
        for table in &self.tables {
            starts.push(width);
            width += table.def().columns.len();
        }
        let slots_of = |table: usize| {
            let start = starts.get(table).copied().unwrap_or(width);
            start..start + self.tables.get(table).map_or(0, |table| table.def().columns.len())
        };
        let mut left: Vec<Option<Node>> = conditions.into_iter().map(Some).collect();
        let mut waiting: Vec<usize> = (0..self.tables.len()).collect();
        let mut known = vec![false; width];
        let (mut done, mut rows) = (Vec::new(), 1.0_f64);
        while !waiting.is_empty() {
            let next = self.cheapest(&waiting, &left, &known, (looked_at, own_params), &slots_of);
            let (estimate, at, access, fits) = next.ok_or(Failure::Unknown)?;
            rows *= estimate;
            if rows > MANY {
                return Err(Failure::Unknown);
            }
            for at in fits {
                if let Some(place) = left.get_mut(at) {
                    *place = None;
                }
            }
            let table = waiting.remove(at);
            slots_of(table).for_each(|slot| known[slot] = true);
            done.push((table, access));
        }
        let (last, access) = done.pop().ok_or(Failure::Unknown)?;
        let mut needed: Vec<usize> = looked_at.to_vec();
        // References of later access paths to this table have become parameters.
        for node in done.iter().map(|(_, access)| access).chain([&access]).flat_map(nodes_of) {
            node.walk(&mut |node| {
                if let Node::Param(param) = node {
                    needed.extend(param.checked_sub(own_params));
                }
            });
        }
        let level = |(table, access): (usize, Access)| {
            let own = slots_of(table);
            let columns = &access.table.def().columns;
            let scale =
                |at: usize| columns.get(at).and_then(|column| column.kind.decimal).map_or(0, |it| it.1);
            let exports = own.clone().filter(|slot| needed.contains(slot));
            let exports =
                exports.map(|slot| (slot - own.start, scale(slot - own.start), own_params + slot)).collect();
            Level { access, exports }
        };
        Ok(Ordered {
            levels: done.into_iter().map(level).collect(),
            last: access,
            params: own_params + width,
            last_slots: slots_of(last),
            own_params,
        })
    }

    /// Returns the table to read next: the one with the fewest rows for each combination of those
    /// before it, as its estimate, its place in `waiting`, its access path, and the conditions that
    /// it tests. `None` if no table has an estimate.
    fn cheapest(
        &self,
        waiting: &[usize],
        left: &[Option<Node>],
        known: &[bool],
        (looked_at, own_params): (&[usize], usize),
        slots_of: &dyn Fn(usize) -> std::ops::Range<usize>,
    ) -> Option<(f64, usize, Access, Vec<usize>)> {
        let mut best: Option<(f64, usize, Access, Vec<usize>)> = None;
        for (at, &table) in waiting.iter().enumerate() {
            let own = slots_of(table);
            let fits: Vec<usize> = (0..left.len())
                .filter(|&at| {
                    let within = |slot: usize| own.contains(&slot) || known.get(slot) == Some(&true);
                    left.get(at).and_then(Option::as_ref).is_some_and(|node| slots(node).all(within))
                })
                .collect();
            let conjuncts = fits.iter().filter_map(|&at| left.get(at).cloned().flatten());
            let conjuncts = conjuncts.map(|node| localized(node, &own, own_params)).collect();
            let columns: Vec<usize> =
                looked_at.iter().filter(|slot| own.contains(slot)).map(|slot| slot - own.start).collect();
            let later = left.iter().flatten().flat_map(slots);
            let mut columns: Vec<usize> =
                later.filter(|slot| own.contains(slot)).map(|slot| slot - own.start).chain(columns).collect();
            columns.sort_unstable();
            columns.dedup();
            let Some(source) = self.tables.get(table) else { continue };
            let (access, _) = Access::plan(source, conjuncts, &Wanted { columns: &columns, order: &[] });
            let Some(estimate) = estimate(&access) else { continue };
            if best.as_ref().is_none_or(|(least, ..)| estimate < *least) {
                best = Some((estimate, at, access, fits));
            }
        }
        best
    }
}

impl Ordered {
    /// Rewrites an expression over all tables for rows of the last one, with the other tables as
    /// parameters.
    pub fn localized(&self, node: Node) -> Node {
        localized(node, &self.last_slots, self.own_params)
    }
}

fn slots(node: &Node) -> impl Iterator<Item = usize> + use<> {
    let mut slots = Vec::new();
    node.walk(&mut |node| {
        if let Node::Slot { slot, .. } = node {
            slots.push(*slot);
        }
    });
    slots.into_iter()
}

/// Returns all expressions of an access path.
fn nodes_of(access: &Access) -> impl Iterator<Item = &Node> {
    let range = &access.range;
    let bounds = range.lower.iter().chain(&range.upper).map(|(node, _)| node);
    range.prefix.iter().chain(range.any_of.iter().flatten()).chain(bounds).chain(&access.residual)
}

/// Makes slots in `own` relative to that table, and others parameters.
fn localized(mut node: Node, own: &std::ops::Range<usize>, own_params: usize) -> Node {
    node.change(&mut |node| {
        if let Node::Slot { slot, .. } = node {
            match own.contains(slot) {
                true => *slot -= own.start,
                false => *node = Node::Param(own_params + *slot),
            }
        }
    });
    node
}

/// Estimates the number of rows of an access path; `None` if it would read too much for each row
/// before it.
fn estimate(access: &Access) -> Option<f64> {
    let (range, table) = (&access.range, &access.table);
    if range.is_point {
        return Some(1.0);
    }
    let rows = table.rows();
    if rows <= TINY {
        return Some(rows as f64);
    }
    if range.prefix.is_empty() && range.any_of.is_none() {
        return None;
    }
    let statistics = table.statistics();
    let columns = match access.index.and_then(|index| table.def().indexes.get(index)) {
        None => &table.def().primary_key,
        Some(index) => &index.columns,
    };
    let mut distinct = 1.0;
    for key in columns.iter().take(range.prefix.len()) {
        let of_column = statistics.and_then(|all| all.columns.get(key.column)).map(|column| column.distinct);
        // Without statistics, a key is assumed to have a hundred rows.
        distinct *= of_column.filter(|&distinct| distinct > 0).map_or(rows as f64 / 100.0, |it| it as f64);
    }
    let each = (rows as f64 / distinct.max(1.0)).max(1.0);
    Some(range.any_of.as_ref().map_or(each, |list| each * list.len() as f64))
}

fn plain(factor: &TableFactor) -> Result<(&ObjectName, Option<String>), Failure> {
    let TableFactor::Table {
        name,
        alias,
        args: None,
        version: None,
        with_ordinality: false,
        sample: None,
        json_path: None,
        ..
    } = factor
    else {
        return Err(Failure::Unknown);
    };
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        return Err(Failure::Unknown);
    }
    Ok((name, alias.as_ref().map(|alias| ident(&alias.name))))
}

fn condition_of(join: &JoinTree) -> Result<Option<&Expr>, Failure> {
    match &join.join_operator {
        JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition)) => Ok(Some(condition)),
        JoinOperator::CrossJoin(JoinConstraint::None) => Ok(None),
        _ => Err(Failure::Unknown),
    }
}

/// The rows of a join: the current row of the last table, with those of the others as parameters.
#[derive(Debug)]
pub(crate) struct JoinCursor {
    view: View,
    params: Vec<Datum>,
    /// One for each table that has begun.
    cursors: Vec<Cursor>,
    has_begun: bool,
}

impl JoinCursor {
    /// Returns a cursor before the first row. `count` is the number of parameters, including those
    /// of the tables.
    pub fn new(view: &View, params: &[Datum], count: usize) -> Self {
        let mut params = params.to_vec();
        params.resize(count, Datum::Null);
        JoinCursor { view: view.clone(), params, cursors: Vec::new(), has_begun: false }
    }

    /// Advances to the next row; false after the last one.
    ///
    /// Errors: of the tables, and of computing conditions.
    pub fn advance(&mut self, levels: &[Level], last: &Access, context: &dyn Context) -> Result<bool> {
        if !self.has_begun {
            self.has_begun = true;
            self.begin_next(levels, last, context)?;
        }
        while let Some(depth) = self.cursors.len().checked_sub(1) {
            let access = levels.get(depth).map_or(last, |level| &level.access);
            let env = Env::new(Cells::None, &self.params, context);
            let found = match self.cursors.last_mut() {
                Some(cursor) => cursor.advance(access, &env)?,
                None => false,
            };
            match (found, levels.get(depth)) {
                (false, _) => _ = self.cursors.pop(),
                (true, None) => return Ok(true),
                (true, Some(level)) => {
                    if let Some(cursor) = self.cursors.last() {
                        let row = cursor.row(access)?;
                        for &(column, scale, param) in &level.exports {
                            if let Some(place) = self.params.get_mut(param) {
                                *place = DatumRef::from_value(row.get(column), scale).to_owned();
                            }
                        }
                    }
                    self.begin_next(levels, last, context)?;
                }
            }
        }
        Ok(false)
    }

    fn begin_next(&mut self, levels: &[Level], last: &Access, context: &dyn Context) -> Result<()> {
        let access = levels.get(self.cursors.len()).map_or(last, |level| &level.access);
        let env = Env::new(Cells::None, &self.params, context);
        let cursor = Cursor::new(access, &self.view, &env, Vec::new(), Default::default())?;
        self.cursors.push(cursor);
        Ok(())
    }

    /// Returns the environment for expressions on the current row.
    ///
    /// Errors: those of the table.
    #[inline]
    pub fn env<'a>(&'a self, last: &'a Access, context: &'a dyn Context) -> Result<Env<'a>> {
        let row = match self.cursors.last() {
            Some(cursor) => Cells::Row(cursor.row(last)?),
            None => Cells::None,
        };
        Ok(Env::new(row, &self.params, context))
    }
}
