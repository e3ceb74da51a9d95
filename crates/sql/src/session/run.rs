//! Runs prepared statements.

use std::borrow::Cow;
use std::sync::Arc as StdArc;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::first_rows::FirstRows;
use super::{Plan, Planned, Session};
use crate::column::Column;
use crate::command_tag::CommandTag;
use crate::copy::Started as CopyStarted;
use crate::datum::{Datum, DatumRef};
use crate::direct::{
    Access, Aggregate, Cursor, Grouped, InsertRun, JoinCursor, LeafRows, Level, Locks, Output, Ranges,
    Select, Sort, cells,
};
use crate::error::{Error, Result};
use crate::expr::{Cells, Env, Val, assign, is_assignable};
use crate::outcome::{CopyIn, CopyOut, Outcome, Rows, Source};
use crate::sqlstate::{
    DISK_FULL, FEATURE_NOT_SUPPORTED, INTERNAL_ERROR, LOCK_NOT_AVAILABLE, PROTOCOL_VIOLATION, QUERY_CANCELED,
    READ_ONLY_SQL_TRANSACTION,
};
use crate::statement::Statement;
use crate::syntax::deep;

/// The divisor of the memory limit of queries that gives the limit for a sort of the direct path.
const SORTS: u64 = 16;

/// The least memory of such a sort. The sorts of the general path need more than that.
const LEAST_SORT_BYTES: usize = 4 << 20;

/// The result of starting a statement.
pub(super) enum Started {
    /// Rows, with the verb of their command tag, and whether the statement continues while they are
    /// read.
    Rows(Source, &'static str, bool),
    Done(CommandTag),
    Copy(CopyStarted),
}

impl Started {
    /// Returns the columns of the rows, unless their source knows them.
    pub(super) fn columns(&self, planned: &Planned) -> Option<StdArc<[Column]>> {
        match self {
            Started::Rows(source, ..) if source.columns().is_none() => Some(StdArc::clone(&planned.columns)),
            _ => None,
        }
    }
}

/// The longest part of a statement to include in an error, in bytes.
const NAMED_BYTES: usize = 1_000;

/// Adds the statement to an internal error, so that reports of it are complete.
pub(super) fn naming(error: Error, sql: &str) -> Error {
    if error.sqlstate() != INTERNAL_ERROR {
        return error;
    }
    let end = (0..=NAMED_BYTES.min(sql.len())).rev().find(|&at| sql.is_char_boundary(at)).unwrap_or(0);
    let statement = format!("The statement: {}", sql.get(..end).unwrap_or_default());
    match error.detail() {
        Some(detail) if detail.contains("The statement: ") => error,
        Some(detail) => {
            let detail = format!("{detail}\n{statement}");
            error.with_detail(detail)
        }
        None => error.with_detail(statement),
    }
}

impl Session {
    /// Runs a prepared statement. `strict` says that its rows must have the columns known to its
    /// caller.
    ///
    /// Errors: any error of the statement.
    pub fn run(&mut self, statement: &Statement, params: &[Datum], strict: bool) -> Result<Outcome<'_>> {
        self.running = Some(statement.clone());
        let last = self.last.take().filter(|last| statement.is_planned(last));
        let mut planned = last.unwrap_or_else(|| statement.planned());
        if let Plan::Utility(tree) = &planned.plan {
            return deep(planned.levels, move || self.utility(tree));
        }
        if let Plan::Empty = planned.plan {
            return Ok(Outcome::Done(CommandTag::new("")));
        }
        self.begin_statement()?;
        match self.start(statement, &mut planned, params, strict) {
            Ok(started) => {
                let columns = started.columns(&planned);
                self.last = Some(planned);
                self.outcome(started, columns)
            }
            Err(error) => {
                let error = self.explain(error);
                self.end_statement(false)?;
                Err(error)
            }
        }
    }

    /// Returns the outcome of a started statement. `columns` are those of rows whose source does
    /// not know them.
    pub(super) fn outcome(
        &mut self,
        started: Started,
        columns: Option<StdArc<[Column]>>,
    ) -> Result<Outcome<'_>> {
        match started {
            Started::Rows(source, verb, goes_on) => {
                if !goes_on {
                    self.end_statement(true)?;
                }
                Ok(Outcome::Rows(Rows::new(self, columns, source, verb, goes_on)))
            }
            Started::Done(tag) => {
                self.end_statement(true)?;
                Ok(Outcome::Done(tag))
            }
            Started::Copy(CopyStarted::In(reader)) => Ok(Outcome::CopyIn(CopyIn::new(self, reader))),
            Started::Copy(CopyStarted::Out(writer)) => Ok(Outcome::CopyOut(CopyOut::new(self, writer))),
            Started::Copy(CopyStarted::Done(rows)) => {
                self.end_statement(true)?;
                Ok(Outcome::Done(CommandTag::of_rows("COPY", rows)))
            }
        }
    }

    pub(super) fn start(
        &mut self,
        statement: &Statement,
        planned: &mut StdArc<Planned>,
        params: &[Datum],
        strict: bool,
    ) -> Result<Started> {
        let version = self.transaction()?.view().catalog().version();
        if planned.catalog != version || planned.settings != self.context.settings.version {
            *planned = self.replan(statement)?;
        }
        if strict && !statement.is_as_prepared(planned) {
            let what = "cached plan must not change result type";
            return Err(Error::new(FEATURE_NOT_SUPPORTED, what).in_routine("RevalidateCachedQuery"));
        }
        let levels = planned.levels;
        deep(levels, || self.start_planned(statement, planned, params))
    }

    fn start_planned(
        &mut self,
        statement: &Statement,
        planned: &mut StdArc<Planned>,
        given: &[Datum],
    ) -> Result<Started> {
        let params = &*bind(given, &planned.parameters)?;
        match &planned.plan {
            Plan::Select(select) => match self.select(select, planned, params)? {
                Some(started) => Ok(started),
                None => {
                    // The direct path has exceeded its memory. The new plan prevents another
                    // attempt.
                    *planned = self.replan_general(statement)?;
                    self.start_planned(statement, planned, given)
                }
            },
            Plan::Insert(insert) => {
                self.check_writable("INSERT")?;
                let (transaction, context) = self.parts()?;
                let mut run = InsertRun::new(insert, params, context);
                run.values(transaction)?;
                let (count, results) = (run.count, run.results);
                Ok(changed("INSERT 0", count, results, insert.returning.is_some()))
            }
            Plan::Update(update) => {
                self.check_writable("UPDATE")?;
                let (transaction, context) = self.parts()?;
                let (count, results) = update.run(transaction, params, context)?;
                Ok(changed("UPDATE", count, results, update.returning.is_some()))
            }
            Plan::Delete(delete) => {
                self.check_writable("DELETE")?;
                let (transaction, context) = self.parts()?;
                let (count, results) = delete.run(transaction, params, context)?;
                Ok(changed("DELETE", count, results, delete.returning.is_some()))
            }
            Plan::Query(query) => {
                let batches = query.run(self, params)?;
                Ok(Started::Rows(
                    Source::Batches { batches: Box::new(batches), reader: None, row: 0 },
                    query.verb(),
                    true,
                ))
            }
            Plan::Change(change) => {
                self.check_writable(change.verb())?;
                let (count, results) = change.run(self, params)?;
                Ok(changed(change.tag(), count, results, change.returns()))
            }
            Plan::LockingSubqueries(locking) => {
                let ((plan, kinds, _), params) = locking.start(self, params)?;
                let parameters = kinds.into_iter().map(|kind| kind.unwrap_or_else(|| Type::Text.into()));
                let filled = Planned {
                    catalog: planned.catalog,
                    settings: planned.settings,
                    plan,
                    parameters: parameters.collect(),
                    columns: StdArc::clone(&planned.columns),
                    kind: planned.kind,
                    levels: planned.levels,
                };
                *planned = StdArc::new(filled);
                self.start_planned(statement, planned, &params)
            }
            Plan::Copy(copy) => {
                if copy.writes() {
                    self.check_writable("COPY FROM")?;
                }
                copy.start(self).map(Started::Copy)
            }
            Plan::Declare(declare) => {
                self.declare(declare, statement.sql(), params)?;
                Ok(Started::Done(CommandTag::new("DECLARE CURSOR")))
            }
            Plan::Show(name) => self.show(name),
            Plan::Utility(_) | Plan::Empty => {
                Err(Error::new(INTERNAL_ERROR, "internal error: unexpected kind of plan"))
            }
        }
    }

    /// Rejects changes in read-only transactions.
    ///
    /// Errors: 25006.
    pub fn check_writable(&self, what: &str) -> Result<()> {
        if self.shared.is_full {
            let what = format!(
                "cannot execute {what}: the disk was full when the database was opened, \
                 so it is read-only; free space and reopen it"
            );
            return Err(Error::new(DISK_FULL, what));
        }
        if self.open.as_ref().is_some_and(|open| open.read_only) {
            let what = format!("cannot execute {what} in a read-only transaction");
            return Err(Error::new(READ_ONLY_SQL_TRANSACTION, what));
        }
        Ok(())
    }

    /// Adds information to an error that the tables lack, such as the reason for a cancellation.
    pub fn explain(&self, error: Error) -> Error {
        let timed_out = self.timer.as_ref().is_some_and(|timer| timer.has_fired());
        if error.sqlstate() == QUERY_CANCELED && timed_out {
            return Error::new(QUERY_CANCELED, "canceling statement due to statement timeout");
        }
        match &self.running {
            Some(running) => naming(error, running.sql()),
            None => error,
        }
    }

    /// Starts a SELECT. `None` means that it needs the general path.
    fn select(
        &mut self,
        select: &Select,
        planned: &StdArc<Planned>,
        params: &[Datum],
    ) -> Result<Option<Started>> {
        if let (Some(access), Output::Groups(groups)) = (&select.access, &select.output) {
            return self.grouped(select, access, groups, params);
        }
        let Some(access) = &select.access else { return self.select_values(select, params).map(Some) };
        if select.locks.is_some() {
            let rows = self.lock_rows(select, params)?;
            return Ok(Some(Started::Rows(Source::datums(rows), "SELECT", false)));
        }
        if let Some((levels, count)) = &select.joined {
            return self.joined(select, (levels, access, *count), planned, params);
        }
        if let Output::Aggregates(aggregates) = &select.output {
            return self.aggregates(select, access, aggregates, params).map(Some);
        }
        if let Some(sort) = &select.sort {
            return self.sorted(select, access, sort, params);
        }
        self.select_rows(select, access, planned, params).map(Some)
    }

    /// Returns rows of a table in the order of their tree.
    fn select_rows(
        &mut self,
        select: &Select,
        access: &Access,
        planned: &StdArc<Planned>,
        params: &[Datum],
    ) -> Result<Started> {
        let (skip, left) = self.limits(select, params)?;
        if access.range.is_point && access.index.is_none() {
            let found = left > 0 && skip == 0 && self.point(access, params)?;
            let params = if select.keeps_params { params.to_vec() } else { Vec::new() };
            let row = std::mem::take(&mut self.row);
            let source =
                Source::Point { planned: StdArc::clone(planned), row, found, current: Vec::new(), params };
            // The remaining computation may fail, or draw from a sequence, so it is a part of the
            // statement.
            let goes_on = !matches!(select.output, Output::Columns(_));
            return Ok(Started::Rows(source, "SELECT", goes_on));
        }
        let env = Env::new(Cells::None, params, &self.context);
        let open = self.open.as_ref().ok_or_else(|| Error::new(INTERNAL_ERROR, "there is no transaction"))?;
        let view = open.transaction.view();
        if let Some(rows) = LeafRows::new(select, access, view, &env, skip.saturating_add(left))? {
            let planned = StdArc::clone(planned);
            return Ok(Started::Rows(
                Source::Leaves { planned, rows: Box::new(rows), skip, left },
                "SELECT",
                true,
            ));
        }
        let key = std::mem::take(&mut self.key);
        let cursor = Box::new(Cursor::new(access, view, &env, key, Default::default())?);
        let params = if select.keeps_params { params.to_vec() } else { Vec::new() };
        let source =
            Source::Scan { planned: StdArc::clone(planned), cursor, params, skip, left, current: Vec::new() };
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
        planned: &StdArc<Planned>,
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
                    let (planned, cursor) = (StdArc::clone(planned), Box::new(cursor));
                    let source = Source::join(planned, cursor, (skip, left));
                    return Ok(Some(Started::Rows(source, "SELECT", true)));
                }
            },
            Output::Columns(_) | Output::Groups(_) => Vec::new(),
        };
        Ok(Some(Started::Rows(Source::datums(rows), "SELECT", false)))
    }

    fn show(&mut self, name: &str) -> Result<Started> {
        if name == "all" {
            let row = |(name, value)| vec![Datum::Text(name), Datum::Text(value), Datum::Text(String::new())];
            let rows = self.context.settings.all().into_iter().map(row).collect();
            return Ok(Started::Rows(Source::datums(rows), "SHOW", false));
        }
        let value = self.setting(name).ok_or_else(|| {
            let what = format!("unrecognized configuration parameter \"{name}\"");
            Error::new(crate::sqlstate::UNDEFINED_OBJECT, what)
        })?;
        Ok(Started::Rows(Source::datums(vec![vec![Datum::Text(value)]]), "SHOW", false))
    }

    /// Returns a setting, or the value that the open transaction overrides it with.
    pub fn setting(&self, name: &str) -> Option<String> {
        let block = self.open.as_ref().filter(|open| open.span != super::transaction::Span::Statement);
        match (name.to_ascii_lowercase().as_str(), block) {
            ("transaction_isolation", Some(open)) => {
                Some(crate::runtime::settings::isolation_name(open.transaction.isolation()).to_owned())
            }
            ("transaction_read_only", Some(open)) => {
                Some(if open.read_only { "on" } else { "off" }.to_owned())
            }
            _ => self.context.settings.get(name),
        }
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

fn changed(verb: &'static str, count: u64, results: Vec<Vec<Datum>>, returns: bool) -> Started {
    match returns {
        true => Started::Rows(Source::datums(results), verb, false),
        false => Started::Done(CommandTag::of_rows(verb, count)),
    }
}

/// Converts parameters to the types that the statement takes.
fn bind<'p>(params: &'p [Datum], types: &[ColumnType]) -> Result<Cow<'p, [Datum]>> {
    if params.len() < types.len() {
        let what = format!(
            "bind message supplies {} parameters, but prepared statement requires {}",
            params.len(),
            types.len()
        );
        return Err(Error::new(PROTOCOL_VIOLATION, what));
    }
    let fits = |(datum, kind): (&Datum, &ColumnType)| match datum {
        Datum::List(items) => kind.is_list && items.iter().all(|item| is_of(item, kind)),
        datum => datum.is_null() || !kind.is_list && is_of(datum, kind),
    };
    if params.iter().zip(types).all(fits) {
        return Ok(Cow::Borrowed(params));
    }
    let convert = |(datum, kind): (&Datum, &ColumnType)| match (datum, kind.element()) {
        (Datum::List(items), Some(element)) => {
            items.iter().map(|item| bound(item, &element)).collect::<Result<_>>().map(Datum::List)
        }
        _ => bound(datum, kind),
    };
    let bound = params.iter().zip(types).map(convert).collect::<Result<Vec<_>>>()?;
    Ok(Cow::Owned(bound))
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

/// Whether a value that is not a list has the given type, or is NULL.
fn is_of(datum: &Datum, kind: &ColumnType) -> bool {
    datum.is_null() || datum.type_of() == Some(kind.kind)
}

/// Converts a parameter, or an item of one, to a type.
fn bound(datum: &Datum, kind: &ColumnType) -> Result<Datum> {
    let mismatch = |from: &str| {
        let to = crate::types::name_of(kind);
        let what = format!("a parameter is of type {from}, but the statement takes {to}");
        Error::new(crate::sqlstate::DATATYPE_MISMATCH, what)
    };
    let Some(from) = datum.type_of() else {
        return if datum.is_null() { Ok(Datum::Null) } else { Err(mismatch("list")) };
    };
    let from = ColumnType::new(from);
    match datum {
        Datum::Text(text) => Datum::parse(text, kind),
        _ if kind.is_list => Err(mismatch(crate::types::name_of(&from))),
        Datum::Decimal { .. } if kind.kind == from.kind => Ok(datum.clone()),
        _ if !is_assignable(&from, kind) => Err(mismatch(crate::types::name_of(&from))),
        _ => assign(datum.borrow(), kind).map(Val::into_datum),
    }
}
