//! Runs prepared statements.

use std::borrow::Cow;
use std::sync::Arc as StdArc;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::plan::LockingSubqueries;
use super::{Executor, Plan, Planned, Statement};
use crate::column::Column;
use crate::command_tag::CommandTag;
use crate::copy::{Reader, Started as CopyStarted, Writer};
use crate::datum::Datum;
use crate::direct::InsertRun;
use crate::error::{Error, Result};
use crate::expr::{Val, assign, is_assignable};
use crate::rows::Source;
use crate::sqlstate::{FEATURE_NOT_SUPPORTED, INTERNAL_ERROR, PROTOCOL_VIOLATION};
use crate::syntax::deep;

/// The result of a statement, or the input that it waits for.
#[derive(Debug)]
#[must_use]
pub(crate) enum Answer {
    Rows {
        source: Source,
        /// `None` if the source knows its columns.
        columns: Option<StdArc<[Column]>>,
        /// The verb of the command tag.
        verb: &'static str,
        /// Whether the statement continues while the rows are read.
        goes_on: bool,
    },
    Done(CommandTag),
    CopyIn(Box<Reader>),
    CopyOut(Box<Writer>),
}

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

impl Executor {
    /// Runs a prepared statement. `strict` says that its rows must have the columns known to its
    /// caller.
    ///
    /// Errors: any error of the statement.
    pub fn run(&mut self, statement: &Statement, params: &[Datum], strict: bool) -> Result<Answer> {
        self.running = Some(statement.text());
        let last = self.last.take().filter(|last| statement.is_planned(last));
        let mut planned = last.unwrap_or_else(|| statement.planned());
        if let Plan::Utility(tree) = &planned.plan {
            return deep(planned.levels, move || self.utility(tree));
        }
        if let Plan::Empty = planned.plan {
            return Ok(Answer::Done(CommandTag::new("")));
        }
        self.begin_statement()?;
        match self.start(statement, &mut planned, params, strict) {
            Ok(started) => {
                let columns = started.columns(&planned);
                self.last = Some(planned);
                self.answer(started, columns)
            }
            Err(error) => {
                let error = self.explain(error);
                self.end_statement(false)?;
                Err(error)
            }
        }
    }

    /// Returns the answer of a started statement. `columns` are those of rows whose source does not
    /// know them.
    pub(super) fn answer(&mut self, started: Started, columns: Option<StdArc<[Column]>>) -> Result<Answer> {
        match started {
            Started::Rows(source, verb, goes_on) => {
                if !goes_on {
                    self.end_statement(true)?;
                }
                Ok(Answer::Rows { source, columns, verb, goes_on })
            }
            Started::Done(tag) => {
                self.end_statement(true)?;
                Ok(Answer::Done(tag))
            }
            Started::Copy(CopyStarted::In(reader)) => Ok(Answer::CopyIn(reader)),
            Started::Copy(CopyStarted::Out(writer)) => Ok(Answer::CopyOut(writer)),
            Started::Copy(CopyStarted::Done(rows)) => {
                self.end_statement(true)?;
                Ok(Answer::Done(CommandTag::of_rows("COPY", rows)))
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

    /// Runs the subqueries of a statement that lock rows. Returns the plan for their results, and
    /// its parameters.
    fn after_locking(
        &mut self,
        locking: &LockingSubqueries,
        planned: &Planned,
        params: &[Datum],
    ) -> Result<(StdArc<Planned>, Vec<Datum>)> {
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
        Ok((StdArc::new(filled), params))
    }

    fn start_planned(
        &mut self,
        statement: &Statement,
        planned: &mut StdArc<Planned>,
        given: &[Datum],
    ) -> Result<Started> {
        let params = &*bind(given, &planned.parameters)?;
        match &planned.plan {
            Plan::Select(select) => match self.select(select, params)? {
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
                let batches = query.run(&mut self.session, params)?;
                Ok(Started::Rows(Source::Batches { batches, reader: None, row: 0 }, query.verb(), true))
            }
            Plan::Change(change) => {
                self.check_writable(change.verb())?;
                let (count, results) = change.run(&mut self.session, params)?;
                Ok(changed(change.tag(), count, results, change.returns()))
            }
            Plan::LockingSubqueries(locking) => {
                let (plan, params) = self.after_locking(locking, planned, params)?;
                *planned = plan;
                self.start_planned(statement, planned, &params)
            }
            Plan::Copy(copy) => {
                if copy.writes() {
                    self.check_writable("COPY FROM")?;
                }
                copy.start(&mut self.session).map(Started::Copy)
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
