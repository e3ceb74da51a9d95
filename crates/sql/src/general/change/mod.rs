//! Changes whose rows come from a query: INSERT ... SELECT, UPDATE ... FROM, DELETE ... USING, and
//! conditions with subqueries.
//!
//! The query returns the keys of the rows and their new values. Then each row is locked and
//! changed. Under read committed, a row may have changed since the query saw it. In that case the
//! statement is rolled back and runs again on the current rows. Locks are kept across the retry, so
//! that retries end.
//!
//! Rows are changed as the query returns them, so that only the batches in flight are in memory. A
//! query that reads the table it changes would see its own changes (the Halloween problem). For
//! such a query all rows are buffered first, in memory or in a file (`run/materialize.rs`).

mod open;
mod plan;
mod rows;
mod star;
mod with;

use cairn_table::schema::ColumnType;
use sqlparser::ast::{Statement as Tree, With};

use self::rows::Rows;
use crate::column::Column;
use crate::datum::{Datum, DatumRef, zoned_text};
use crate::direct::{Assigned, Checks, Insert, InsertRun, Returning};
use crate::error::{Error, Result};
use crate::expr::{Cells, Env, Val};
use crate::general::plan::query::Query;
use crate::rows::BatchSource;
use crate::session::{Changed, Session};
use crate::sqlstate::SERIALIZATION_FAILURE;

/// Times that a statement is retried after concurrent changes.
const MOST_TRIES: usize = 100;

/// A planned change.
#[derive(Debug)]
pub(crate) struct Change {
    query: Query,
    kind: Kind,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each statement")]
enum Kind {
    /// `zoned`: see [`assigned`].
    Insert {
        insert: Insert,
        zoned: Vec<bool>,
    },
    Update {
        rows: Rows,
        columns: Vec<usize>,
        zoned: Vec<bool>,
        checks: Checks,
        returning: Option<Returning>,
    },
    Delete {
        rows: Rows,
        returning: Option<Returning>,
    },
}

/// Returns a value to assign. `is_zoned_text`: whether it is a timestamp with a time zone for a
/// column of texts.
fn assigned<'v>(value: DatumRef<'v>, is_zoned_text: Option<&bool>) -> Val<'v> {
    match value {
        DatumRef::Timestamp(_) if is_zoned_text == Some(&true) => Val::Own(Datum::Text(zoned_text(value))),
        other => Val::Ref(other),
    }
}

impl Change {
    /// Plans a change, with its WITH clause.
    ///
    /// Errors: those of planning the statement.
    pub fn plan(
        session: &mut Session,
        tree: &Tree,
        with: Option<&With>,
        types: &[Option<ColumnType>],
    ) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
        with.map_or(Ok(()), with::only_reads)?;
        match tree {
            Tree::Insert(insert) => match with {
                Some(with) => plan::insert(session, &with::inserted(insert, with), types),
                None => plan::insert(session, insert, types),
            },
            Tree::Update(update) => plan::update(session, update, with, types),
            Tree::Delete(delete) => plan::delete(session, delete, with, types),
            other => Err(Error::unsupported(other)),
        }
    }

    pub fn verb(&self) -> &'static str {
        match self.kind {
            Kind::Insert { .. } => "INSERT",
            Kind::Update { .. } => "UPDATE",
            Kind::Delete { .. } => "DELETE",
        }
    }

    pub fn tag(&self) -> &'static str {
        match self.kind {
            Kind::Insert { .. } => "INSERT 0",
            _ => self.verb(),
        }
    }

    pub fn returns(&self) -> bool {
        match &self.kind {
            Kind::Insert { insert, .. } => insert.returning.is_some(),
            Kind::Update { returning, .. } | Kind::Delete { returning, .. } => returning.is_some(),
        }
    }

    /// Runs the change.
    ///
    /// Errors: those of the query, and of changing the rows.
    pub fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Changed> {
        for _ in 0..MOST_TRIES {
            let savepoint = session.transaction()?.savepoint();
            if let Some(changed) = self.attempt(session, params)? {
                return Ok(changed);
            }
            let transaction = session.transaction()?;
            transaction.rollback_to(savepoint)?;
            transaction.begin_statement()?;
        }
        Err(Error::new(SERIALIZATION_FAILURE, "could not serialize access due to concurrent update"))
    }

    /// Runs the change once. `None` when another transaction has changed a row since the query saw
    /// it.
    fn attempt(&self, session: &mut Session, params: &[Datum]) -> Result<Option<Changed>> {
        match &self.kind {
            Kind::Insert { insert, zoned } => {
                // The query must not see the rows that it inserts.
                let mut batches = match self.query.reads(insert.table.id()) {
                    true => self.query.run_materialized(session, params)?,
                    false => self.query.run(session, params)?,
                };
                let (transaction, context) = session.parts()?;
                let mut run = InsertRun::new(insert, params, context);
                while let Some(batch) = batches.next()? {
                    let reader = batches.reader(&batch)?;
                    for row in 0..reader.rows() {
                        let given = |at: usize| assigned(reader.get(row, at), zoned.get(at));
                        run.given(given, transaction)?;
                    }
                }
                Ok(Some((run.count, run.results)))
            }
            Kind::Update { rows, columns, zoned, checks, returning } => {
                let batches = self.query.run_materialized(session, params)?;
                let mut results = Vec::new();
                let count = rows.each(session, batches, |transaction, context, row| {
                    let table = &rows.table;
                    let mut new = Assigned(Vec::with_capacity(table.def().columns.len()));
                    for (at, column) in table.def().columns.iter().enumerate() {
                        let value = match columns.iter().position(|&other| other == at) {
                            // Column 0 of the query is the row's key; the new values follow.
                            Some(place) => assigned(row.given.get(row.at, place + 1), zoned.get(place)),
                            None => {
                                let scale = column.kind.decimal.map_or(0, |(_, scale)| scale);
                                Val::Ref(DatumRef::from_value(row.now.get(at), scale))
                            }
                        };
                        new.push(value, column)?;
                    }
                    let values = new.values();
                    let env = Env::new(Cells::Values(&values), params, context);
                    checks.hold(table, &env)?;
                    let is_there = transaction.update(table, row.key, &values)?;
                    if is_there && let Some(returning) = returning {
                        results.push(returning.row(&env)?);
                    }
                    Ok(is_there)
                })?;
                Ok(count.map(|count| (count, results)))
            }
            Kind::Delete { rows, returning } => {
                let batches = self.query.run_materialized(session, params)?;
                let mut results = Vec::new();
                let count = rows.each(session, batches, |transaction, context, row| {
                    if let Some(returning) = returning {
                        let env = Env::new(Cells::Row(row.now), params, context);
                        results.push(returning.row(&env)?);
                    }
                    Ok(transaction.delete(&rows.table, row.key)?)
                })?;
                Ok(count.map(|count| (count, results)))
            }
        }
    }
}
