//! DECLARE, FETCH, MOVE and CLOSE.

use std::sync::Arc as StdArc;

use cairn_table::Canceller;

use super::plan::Declare;
use super::run::Started;
use super::{Answer, Executor, Plan, Planned, Statement, StatementKind};
use crate::column::Column;
use crate::command_tag::CommandTag;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::expr::Context;
use crate::rows::{CursorRows, Source};
use crate::session::{Cursor, CursorFacts};
use crate::sqlstate::{INTERNAL_ERROR, NO_ACTIVE_SQL_TRANSACTION};
use crate::syntax::{Declared, Direction, Fetch, Plain};

impl Executor {
    /// Runs DECLARE within its statement.
    ///
    /// Errors: 25P01 if the cursor would be closed at once; 42P03; those of starting the query.
    pub fn declare(&mut self, declare: &Declare, sql: &str, params: &[Datum]) -> Result<()> {
        let declared = &declare.declared;
        if !declared.is_held && !self.in_block() {
            let what = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Error::new(NO_ACTIVE_SQL_TRANSACTION, what));
        }
        self.cursors.check_free(&declared.name)?;
        let mut planned = declare.query.planned();
        let Started::Rows(source, verb, _) = self.start_fixed(&declare.query, &mut planned, params, false)?
        else {
            return Err(Error::new(INTERNAL_ERROR, "the query of a cursor gives no rows"));
        };
        self.add_cursor(declared.clone(), sql, &planned.columns, source, verb)
    }

    fn add_cursor(
        &mut self,
        declared: Declared,
        sql: &str,
        columns: &StdArc<[Column]>,
        mut source: Source,
        verb: &'static str,
    ) -> Result<()> {
        let columns = StdArc::clone(columns);
        if declared.scrolls {
            source = Source::Materialized(self.materialize(&mut source, &columns)?);
        }
        let rows = Some(CursorRows::new(source, declared.scrolls));
        let depth = Some(self.savepoint_depth());
        let facts = CursorFacts { declared, sql: sql.to_owned(), created: self.context.clock_time() };
        self.cursors.add(Cursor { facts: StdArc::new(facts), number: 0, columns, verb, depth, rows });
        Ok(())
    }

    /// Starts a statement. A query has a fixed view, which later changes of its transaction do not
    /// affect.
    fn start_fixed(
        &mut self,
        statement: &Statement,
        planned: &mut StdArc<Planned>,
        params: &[Datum],
        strict: bool,
    ) -> Result<Started> {
        if statement.kind() != StatementKind::Query {
            return self.start(statement, planned, params, strict);
        }
        self.transaction()?.fix_view();
        self.cursor_canceller = Some(Canceller::new());
        let started = self.start(statement, planned, params, strict);
        self.cursor_canceller = None;
        self.transaction()?.unfix_view();
        started
    }

    /// Runs FETCH and MOVE.
    ///
    /// Errors: 34000, 55000; those of the rows.
    pub fn fetch(&mut self, fetch: &Fetch) -> Result<Answer> {
        self.begin_statement()?;
        if !fetch.is_move {
            return self.give(&fetch.name, fetch.direction, "FETCH");
        }
        let moved = self.pass(&fetch.name, fetch.direction);
        let moved = moved.map_err(|error| self.explain(error));
        self.end_statement(moved.is_ok())?;
        moved.map(|rows| Answer::Done(CommandTag::of_rows("MOVE", rows)))
    }

    fn pass(&mut self, name: &str, direction: Direction) -> Result<u64> {
        let rows = self.cursors.get(name).and_then(|cursor| cursor.rows.as_ref());
        if let Some(passed) = rows.and_then(|rows| rows.standing(direction)) {
            return Ok(passed);
        }
        let mut walk = self.cursors.walk(name, direction)?;
        let rows = walk.pass(&self.context)?;
        self.cursors.give_back(walk);
        Ok(rows)
    }

    /// Returns rows of a cursor, in a statement that has begun.
    fn give(&mut self, name: &str, direction: Direction, verb: &'static str) -> Result<Answer> {
        match self.cursors.walk(name, direction) {
            Ok(walk) => {
                let columns = self.cursors.get(name).map(|cursor| StdArc::clone(&cursor.columns));
                let source = Source::Cursor(Box::new(walk));
                Ok(Answer::Rows { source, columns, verb, goes_on: true })
            }
            Err(error) => {
                self.end_statement(false)?;
                Err(error)
            }
        }
    }

    /// Closes one cursor, or all.
    ///
    /// Errors: 34000; 25P02.
    pub fn close_cursors(&mut self, name: Option<&str>) -> Result<CommandTag> {
        self.check_alive()?;
        match name {
            Some(name) => self.cursors.close(name).map(|()| CommandTag::new("CLOSE CURSOR")),
            None => {
                self.cursors.clear();
                Ok(CommandTag::new("CLOSE CURSOR ALL"))
            }
        }
    }

    /// Returns up to `most` further rows of a cursor, with its query's command tag; 0 means all of
    /// them.
    ///
    /// Errors: as [`Executor::fetch`].
    pub fn fetch_more(&mut self, name: &str, most: u64) -> Result<Answer> {
        self.begin_statement()?;
        let verb = self.cursors.get(name).map_or("SELECT", |cursor| cursor.verb);
        self.give(name, some(most), verb)
    }

    /// Runs a statement. If it returns rows, a cursor keeps those beyond the first `most`.
    ///
    /// Errors: as [`Executor::run`].
    pub fn run_in_parts(
        &mut self,
        statement: &Statement,
        params: &[Datum],
        name: &str,
        most: u64,
    ) -> Result<Answer> {
        let mut planned = statement.planned();
        let fetch = match &planned.plan {
            Plan::Utility(tree) => match &**tree {
                Plain::Fetch(fetch) if !fetch.is_move => Some(fetch.clone()),
                plain => match self.executed(plain)? {
                    Some((statement, params)) => return self.run_in_parts(&statement, &params, name, most),
                    None => return self.run(statement, params, true),
                },
            },
            Plan::Empty => return self.run(statement, params, true),
            _ => None,
        };
        self.begin_statement()?;
        let mut columns = None;
        let started = self.cursors.check_free(name).and_then(|()| match fetch {
            Some(fetch) => {
                columns = self.cursors.get(&fetch.name).map(|cursor| StdArc::clone(&cursor.columns));
                self.fetch_materialized(&fetch)
            }
            None => self.start_fixed(statement, &mut planned, params, true),
        });
        let added = started.and_then(|started| match started {
            Started::Rows(source, verb, _) => {
                let declared = Declared { name: name.to_owned(), ..Declared::default() };
                let columns = columns.as_ref().unwrap_or(&planned.columns);
                self.add_cursor(declared, statement.sql(), columns, source, verb).map(|()| None)
            }
            other => Ok(Some(other)),
        });
        match added {
            Ok(None) => {
                let verb = self.cursors.get(name).map_or("SELECT", |cursor| cursor.verb);
                self.give(name, some(most), verb)
            }
            Ok(Some(other)) => {
                let columns = other.columns(&planned);
                self.answer(other, columns)
            }
            Err(error) => {
                let error = self.explain(error);
                self.end_statement(false)?;
                Err(error)
            }
        }
    }

    /// Runs FETCH to the end and materializes its rows, because a caller that reads them in parts
    /// may use the cursor in between.
    fn fetch_materialized(&mut self, fetch: &Fetch) -> Result<Started> {
        let walk = self.cursors.walk(&fetch.name, fetch.direction)?;
        let columns = self.cursors.get(&fetch.name).map(|cursor| StdArc::clone(&cursor.columns));
        let mut source = Source::Cursor(Box::new(walk));
        let materialized = self.materialize(&mut source, &columns.unwrap_or_default())?;
        if let Source::Cursor(walk) = source {
            self.cursors.give_back(*walk);
        }
        Ok(Started::Rows(Source::Materialized(materialized), "FETCH", false))
    }
}

/// Converts a count to a direction; 0 means all rows.
fn some(most: u64) -> Direction {
    match i64::try_from(most) {
        Ok(0) | Err(_) => Direction::ForwardAll,
        Ok(most) => Direction::Forward(most),
    }
}
