//! Runs SELECTs of the direct path.

use std::sync::Arc as StdArc;

use super::first_rows::FirstRows;
use super::run::Started;
use crate::datum::{Datum, DatumRef};
use crate::direct::{
    Access, Aggregate, Cursor, Grouped, JoinCursor, LeafRows, Level, Locks, Output, Ranges, Select,
    SelectPlan, Sort, cells,
};
use crate::error::{Error, Result};
use crate::expr::{Cells, Env};
use crate::rows::Source;
use crate::session::Session;
use crate::sqlstate::{INTERNAL_ERROR, LOCK_NOT_AVAILABLE};

/// The divisor of the memory limit of queries that gives the limit for a sort of the direct path.
const SORTS: u64 = 16;

/// The least memory of such a sort. The sorts of the general path need more than that.
const LEAST_SORT_BYTES: usize = 4 << 20;

impl Session {
    /// Starts a SELECT. `None` means that it needs the general path.
    pub(super) fn select(&mut self, plan: &StdArc<SelectPlan>, params: &[Datum]) -> Result<Option<Started>> {
        let select = &plan.select;
        if let (Some(access), Output::Groups(groups)) = (&select.access, &select.output) {
            return self.grouped(select, access, groups, params);
        }
        let Some(access) = &select.access else { return self.select_values(select, params).map(Some) };
        if select.locks.is_some() {
            let rows = self.lock_rows(select, params)?;
            return Ok(Some(Started::Rows(Source::datums(rows), "SELECT", false)));
        }
        if let Some((levels, count)) = &select.joined {
            return self.joined(select, (levels, access, *count), plan, params);
        }
        if let Output::Aggregates(aggregates) = &select.output {
            return self.aggregates(select, access, aggregates, params).map(Some);
        }
        if let Some(sort) = &select.sort {
            return self.sorted(select, access, sort, params);
        }
        self.select_rows(select, access, plan, params).map(Some)
    }

    /// Returns rows of a table in the order of their tree.
    fn select_rows(
        &mut self,
        select: &Select,
        access: &Access,
        plan: &StdArc<SelectPlan>,
        params: &[Datum],
    ) -> Result<Started> {
        let (skip, left) = self.limits(select, params)?;
        if access.range.is_point && access.index.is_none() {
            let found = left > 0 && skip == 0 && self.point(access, params)?;
            let params = if select.keeps_params { params.to_vec() } else { Vec::new() };
            let row = std::mem::take(&mut self.row);
            let source = Source::Point { plan: StdArc::clone(plan), row, found, current: Vec::new(), params };
            // The remaining computation may fail, or draw from a sequence, so it is a part of the
            // statement.
            let goes_on = !matches!(select.output, Output::Columns(_));
            return Ok(Started::Rows(source, "SELECT", goes_on));
        }
        let env = Env::new(Cells::None, params, &self.context);
        let open = self.open.as_ref().ok_or_else(|| Error::new(INTERNAL_ERROR, "there is no transaction"))?;
        let view = open.transaction.view();
        if let Some(rows) = LeafRows::new(select, access, view, &env, skip.saturating_add(left))? {
            let plan = StdArc::clone(plan);
            return Ok(Started::Rows(
                Source::Leaves { plan, rows: Box::new(rows), skip, left },
                "SELECT",
                true,
            ));
        }
        let key = std::mem::take(&mut self.key);
        let cursor = Box::new(Cursor::new(access, view, &env, key, Default::default())?);
        let params = if select.keeps_params { params.to_vec() } else { Vec::new() };
        let source =
            Source::Scan { plan: StdArc::clone(plan), cursor, params, skip, left, current: Vec::new() };
        Ok(Started::Rows(source, "SELECT", true))
    }

    /// Reads the row of a key into the session's buffer.
    fn point(&mut self, access: &Access, params: &[Datum]) -> Result<bool> {
        let open = self.open.as_ref().ok_or_else(|| Error::new(INTERNAL_ERROR, "there is no transaction"))?;
        let env = Env::new(Cells::None, params, &self.context);
        if access.ranges(&env, &mut self.key)? != Ranges::Point {
            return Ok(false);
        }
        let view = open.transaction.view();
        if !view.get_columns(&access.table, &self.key, &access.columns, &mut self.row)? {
            return Ok(false);
        }
        match &access.residual {
            None => Ok(true),
            Some(residual) => residual.holds(&Env { row: Cells::Row(self.row.row(&access.table)), ..env }),
        }
    }

    /// Evaluates OFFSET and LIMIT: the number of rows to skip, and the number to return.
    fn limits(&self, select: &Select, params: &[Datum]) -> Result<(u64, u64)> {
        let env = Env::new(Cells::None, params, &self.context);
        let count = |node: &Option<crate::expr::Node>, what: &str| match node {
            None => Ok(None),
            Some(node) => crate::direct::row_count(node, &env, what),
        };
        let skip = count(&select.offset, "OFFSET")?.unwrap_or(0);
        Ok((skip, count(&select.limit, "LIMIT")?.unwrap_or(u64::MAX)))
    }

    fn select_values(&mut self, select: &Select, params: &[Datum]) -> Result<Started> {
        let env = Env::new(Cells::None, params, &self.context);
        let (skip, left) = self.limits(select, params)?;
        let holds = match &select.condition {
            Some(condition) => condition.holds(&env)?,
            None => true,
        };
        let mut rows = Vec::new();
        if let Output::Nodes(nodes) = &select.output
            && holds
            && skip == 0
            && left > 0
        {
            rows.push(nodes.iter().map(|node| Ok(node.eval(&env)?.into_datum())).collect::<Result<_>>()?);
        }
        Ok(Started::Rows(Source::datums(rows), "SELECT", false))
    }

    fn aggregates(
        &mut self,
        select: &Select,
        access: &Access,
        aggregates: &[Aggregate],
        params: &[Datum],
    ) -> Result<Started> {
        let threads = self.shared.threads;
        let (transaction, context) = self.parts()?;
        let env = Env::new(Cells::None, params, context);
        if let Some(columnar) = &select.columnar
            && let Some(rows) = columnar.run(access, transaction.view(), &env, threads)?
        {
            return Ok(Started::Rows(Source::datums(rows), "SELECT", false));
        }
        let mut totals: Vec<_> = aggregates.iter().map(Aggregate::begin).collect();
        if access.residual.is_none() && aggregates.iter().all(|aggregate| aggregate.input.is_none()) {
            let count = access.count(transaction.view(), &env)?;
            let row = vec![Datum::BigInt(i64::try_from(count).unwrap_or(i64::MAX)); aggregates.len()];
            return Ok(Started::Rows(Source::datums(vec![row]), "SELECT", false));
        }
        let mut cursor = Cursor::new(access, transaction.view(), &env, Vec::new(), Default::default())?;
        while cursor.advance(access, &env)? {
            let row = Env { row: Cells::Row(cursor.row(access)?), ..env };
            let mut enough = true;
            for (aggregate, total) in aggregates.iter().zip(&mut totals) {
                enough &= aggregate.add(total, &row)?;
            }
            if enough {
                break;
            }
        }
        let row = Aggregate::end_all(aggregates, totals)?;
        Ok(Started::Rows(Source::datums(vec![row]), "SELECT", false))
    }

    /// Runs GROUP BY; `None` if there are too many groups.
    fn grouped(
        &mut self,
        select: &Select,
        access: &Access,
        groups: &Grouped,
        params: &[Datum],
    ) -> Result<Option<Started>> {
        let (skip, left) = self.limits(select, params)?;
        let threads = self.shared.threads;
        let (transaction, context) = self.parts()?;
        let env = Env::new(Cells::None, params, context);
        let Some(found) = groups.columnar.run(access, transaction.view(), &env, threads)? else {
            return Ok(None);
        };
        let mut rows = FirstRows::new(select.sort.as_ref(), skip, left);
        for group in &found {
            let row = groups.output(group);
            let cells = cells(&row);
            let env = Env { row: Cells::Values(&cells), ..env };
            rows.push(&env, row.clone())?;
        }
        Ok(Some(Started::Rows(Source::datums(rows.finish()), "SELECT", false)))
    }

    /// Runs FOR UPDATE. It locks rows one by one until it has as many as it needs, and returns each
    /// as it is after locking.
    pub(super) fn lock_rows(&mut self, select: &Select, params: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        let (Some(access), Some(locks)) = (&select.access, select.locks) else { return Ok(Vec::new()) };
        self.check_writable("SELECT FOR UPDATE")?;
        let (skip, left) = self.limits(select, params)?;
        let (transaction, context) = self.parts()?;
        let env = Env::new(Cells::None, params, context);
        let mut cursor = Cursor::new(access, transaction.view(), &env, Vec::new(), Default::default())?;
        let mut sorted = match &select.sort {
            Some(sort) => Some(keys_in_order(&mut cursor, access, sort, &env)?.into_iter()),
            None => None,
        };
        let mut buffer = cairn_table::RowBuf::default();
        let (mut rows, mut key) = (Vec::new(), Vec::new());
        let mut skipped = 0;
        while (rows.len() as u64) < left {
            match &mut sorted {
                Some(keys) => match keys.next() {
                    Some(next) => key = next,
                    None => break,
                },
                None if cursor.advance(access, &env)? => {
                    key.clear();
                    key.extend_from_slice(cursor.row(access)?.key());
                }
                None => break,
            }
            let found = match locks {
                Locks::Wait => transaction.lock(&access.table, &key, &mut buffer)?,
                Locks::Skip | Locks::Fail => match transaction.try_lock(&access.table, &key, &mut buffer)? {
                    Some(found) => found,
                    None if locks == Locks::Skip => continue,
                    None => return Err(not_available(access)),
                },
            };
            if !found {
                continue;
            }
            let row = buffer.row(&access.table);
            let env = Env { row: Cells::Row(row), ..env };
            if let Some(condition) = &select.condition
                && !condition.holds(&env)?
            {
                continue;
            }
            if skipped < skip {
                skipped += 1;
            } else {
                rows.push(values_of(&select.output, row, &env)?);
            }
        }
        Ok(rows)
    }

    /// The memory limit of a sort. Larger sorts are left to the general path, which can spill.
    fn sort_bytes(&self) -> usize {
        usize::try_from(self.shared.memory_limit / SORTS).unwrap_or(usize::MAX).max(LEAST_SORT_BYTES)
    }

    /// Returns rows in an order that no tree provides; `None` if the sort exceeds its memory.
    fn sorted(
        &mut self,
        select: &Select,
        access: &Access,
        sort: &Sort,
        params: &[Datum],
    ) -> Result<Option<Started>> {
        let (skip, left) = self.limits(select, params)?;
        let most = self.sort_bytes();
        let (transaction, context) = self.parts()?;
        let env = Env::new(Cells::None, params, context);
        let mut rows = FirstRows::new(Some(sort), skip, left);
        let mut cursor = Cursor::new(access, transaction.view(), &env, Vec::new(), Default::default())?;
        while cursor.advance(access, &env)? {
            let row = cursor.row(access)?;
            let env = Env { row: Cells::Row(row), ..env };
            let values = values_of(&select.output, row, &env)?;
            rows.push(&env, values)?;
            if rows.bytes() > most {
                return Ok(None);
            }
        }
        Ok(Some(Started::Rows(Source::datums(rows.finish()), "SELECT", false)))
    }

    /// Returns rows of a join; `None` if the sort exceeds its memory.
    fn joined(
        &mut self,
        select: &Select,
        (levels, last, count): (&[Level], &Access, usize),
        plan: &StdArc<SelectPlan>,
        params: &[Datum],
    ) -> Result<Option<Started>> {
        let (skip, left) = self.limits(select, params)?;
        let most = self.sort_bytes();
        let (transaction, context) = self.parts()?;
        let mut cursor = JoinCursor::new(transaction.view(), params, count);
        let rows = match &select.output {
            Output::Aggregates(aggregates) => {
                let mut totals: Vec<_> = aggregates.iter().map(Aggregate::begin).collect();
                while cursor.advance(levels, last, context)? {
                    let env = cursor.env(last, context)?;
                    for (aggregate, total) in aggregates.iter().zip(&mut totals) {
                        aggregate.add(total, &env)?;
                    }
                }
                vec![Aggregate::end_all(aggregates, totals)?]
            }
            Output::Nodes(nodes) => match &select.sort {
                Some(sort) => {
                    let mut rows = FirstRows::new(Some(sort), skip, left);
                    while cursor.advance(levels, last, context)? {
                        let env = cursor.env(last, context)?;
                        let values = nodes.iter().map(|node| Ok(node.eval(&env)?.into_datum()));
                        rows.push(&env, values.collect::<Result<_>>()?)?;
                        if rows.bytes() > most {
                            return Ok(None);
                        }
                    }
                    rows.finish()
                }
                None => {
                    let (plan, cursor) = (StdArc::clone(plan), Box::new(cursor));
                    let source = Source::join(plan, cursor, (skip, left));
                    return Ok(Some(Started::Rows(source, "SELECT", true)));
                }
            },
            Output::Columns(_) | Output::Groups(_) => Vec::new(),
        };
        Ok(Some(Started::Rows(Source::datums(rows), "SELECT", false)))
    }
}

/// Computes a result row.
fn values_of(output: &Output, row: cairn_table::RowRef<'_>, env: &Env<'_>) -> Result<Vec<Datum>> {
    match output {
        Output::Columns(columns) => Ok(columns
            .iter()
            .map(|&(at, scale)| DatumRef::from_value(row.get(at), scale).to_owned())
            .collect()),
        Output::Nodes(nodes) => nodes.iter().map(|node| Ok(node.eval(env)?.into_datum())).collect(),
        Output::Aggregates(_) | Output::Groups(_) => Ok(Vec::new()),
    }
}

/// Returns the keys of a cursor's rows in sort order.
fn keys_in_order(cursor: &mut Cursor, access: &Access, sort: &Sort, env: &Env<'_>) -> Result<Vec<Vec<u8>>> {
    let mut rows = FirstRows::new(Some(sort), 0, u64::MAX);
    while cursor.advance(access, env)? {
        let row = cursor.row(access)?;
        let env = Env { row: Cells::Row(row), ..*env };
        rows.push(&env, row.key().to_vec())?;
    }
    Ok(rows.finish())
}

fn not_available(access: &Access) -> Error {
    let table = &access.table.def().name;
    Error::new(LOCK_NOT_AVAILABLE, format!("could not obtain lock on row in relation \"{table}\""))
}
