//! Rows, read one after the other or in batches.

use arrow::array::RecordBatch;
use cairn_table::row::Value;
use cairn_table::{RowBuf, RowRef};
use cairn_vfs::sync::Arc;

use super::{Column, CommandTag};
use crate::batch::{BATCH_ROWS, BatchReader, Columns, schema_of};
use crate::datum::{Datum, DatumRef, FromDatum, rescale};
use crate::direct::{Cursor, LeafRows, Output, Select};
use crate::error::{Error, Result};
use crate::expr::{Cells, Env};
use crate::query::Batches;
use crate::session::{Plan, Planned, Session};
use crate::sqlstate::{INTERNAL_ERROR, NUMERIC_VALUE_OUT_OF_RANGE, UNDEFINED_COLUMN};

/// The rows of a result. The connection is theirs until they are dropped; a statement that reads only ends there.
#[derive(Debug)]
pub struct Rows<'c> {
    session: &'c mut Session,
    columns: Arc<[Column]>,
    source: Source,
    verb: &'static str,
    count: u64,
    /// The statement has not ended.
    open: bool,
}

/// Where rows come from.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one at a time, and a pointer would be one more allocation for each read"
)]
pub(crate) enum Source {
    /// All of them, as they were made.
    Datums { rest: std::vec::IntoIter<Vec<Datum>>, current: Vec<Datum> },
    /// One row of a table, or none.
    Point { planned: Arc<Planned>, row: RowBuf, found: bool, current: Vec<Datum>, params: Vec<Datum> },
    /// Rows of a table, as they are asked for.
    Scan {
        planned: Arc<Planned>,
        cursor: Cursor,
        params: Vec<Datum>,
        skip: u64,
        left: u64,
        current: Vec<Datum>,
    },
    /// Columns of a table's rows, a leaf at a time.
    Leaves { planned: Arc<Planned>, rows: Box<LeafRows>, skip: u64, left: u64 },
    /// Of the general path.
    Batches { batches: Batches, reader: Option<BatchReader>, row: usize },
}

impl Source {
    pub fn datums(rows: Vec<Vec<Datum>>) -> Self {
        Source::Datums { rest: rows.into_iter(), current: Vec::new() }
    }
}

/// The SELECT of a plan that is one.
fn select(planned: &Planned) -> Result<&Select> {
    match &planned.plan {
        Plan::Select(select) => Ok(select),
        _ => Err(Error::new(INTERNAL_ERROR, "a plan has changed its kind")),
    }
}

impl<'c> Rows<'c> {
    pub(crate) fn new(
        session: &'c mut Session,
        columns: Arc<[Column]>,
        source: Source,
        verb: &'static str,
        open: bool,
    ) -> Self {
        Rows { session, columns, source, verb, count: 0, open }
    }

    /// What columns they have.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The next row; `None` after the last one.
    ///
    /// Errors: whatever computing it met. There are no more rows then.
    #[allow(clippy::should_implement_trait, reason = "what it lends ends with the next call")]
    pub fn next(&mut self) -> Result<Option<RowView<'_>>> {
        match self.advance() {
            Ok(true) => self.view().map(Some),
            Ok(false) => {
                self.end(true)?;
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        let error = self.session.explain(error);
        self.source = Source::datums(Vec::new());
        // The first error is the one to tell.
        let _ = self.end(false);
        error
    }

    fn end(&mut self, succeeded: bool) -> Result<()> {
        if std::mem::take(&mut self.open) { self.session.end_statement(succeeded) } else { Ok(()) }
    }

    /// Goes to the next row.
    fn advance(&mut self) -> Result<bool> {
        let context = &self.session.context;
        match &mut self.source {
            Source::Datums { rest, current } => {
                let Some(row) = rest.next() else { return Ok(false) };
                *current = row;
            }
            Source::Point { planned, row, found, current, params } => {
                if !std::mem::take(found) {
                    return Ok(false);
                }
                let select = select(planned)?;
                if let (Output::Nodes(nodes), Some(access)) = (&select.output, &select.access) {
                    let env = Env::new(Cells::Row(row.row(&access.table)), params, context);
                    current.clear();
                    for node in nodes {
                        current.push(node.eval(&env)?.into_datum());
                    }
                }
            }
            Source::Scan { planned, cursor, params, skip, left, current } => {
                let select = select(planned)?;
                let Some(access) = &select.access else { return Ok(false) };
                let env = Env::new(Cells::None, params, context);
                loop {
                    if *left == 0 || !cursor.advance(access, &env)? {
                        return Ok(false);
                    }
                    if *skip == 0 {
                        break;
                    }
                    *skip -= 1;
                }
                *left -= 1;
                if let Output::Nodes(nodes) = &select.output {
                    let env = Env { row: Cells::Row(cursor.row(access)?), ..env };
                    current.clear();
                    for node in nodes {
                        current.push(node.eval(&env)?.into_datum());
                    }
                }
            }
            Source::Leaves { planned, rows, skip, left } => {
                let Some(access) = &select(planned)?.access else { return Ok(false) };
                loop {
                    if *left == 0 || !rows.advance(access)? {
                        return Ok(false);
                    }
                    if *skip == 0 {
                        break;
                    }
                    *skip -= 1;
                }
                *left -= 1;
            }
            // The row is that of the reader that comes next; past the last one, another batch is needed.
            Source::Batches { batches, reader, row } => loop {
                if let Some(reader) = reader
                    && *row + 1 < reader.rows()
                {
                    *row += 1;
                    break;
                }
                let Some(batch) = batches.next()? else { return Ok(false) };
                let next = batches.reader(&batch)?;
                let has_rows = next.rows() > 0;
                (*reader, *row) = (Some(next), 0);
                if has_rows {
                    break;
                }
            },
        }
        self.count += 1;
        Ok(true)
    }

    /// The row that it went to.
    fn view(&self) -> Result<RowView<'_>> {
        let kind = match &self.source {
            Source::Datums { current, .. } => Kind::Datums(current),
            Source::Point { planned, row, current, .. } => {
                let select = select(planned)?;
                match (&select.output, &select.access) {
                    (Output::Columns(columns), Some(access)) => Kind::Row(row.row(&access.table), columns),
                    _ => Kind::Datums(current),
                }
            }
            Source::Scan { planned, cursor, current, .. } => {
                let select = select(planned)?;
                match (&select.output, &select.access) {
                    (Output::Columns(columns), Some(access)) => Kind::Row(cursor.row(access)?, columns),
                    _ => Kind::Datums(current),
                }
            }
            Source::Leaves { rows, .. } => Kind::Leaves(rows),
            Source::Batches { reader: Some(reader), row, .. } => Kind::Batch(reader, *row),
            Source::Batches { .. } => Kind::Datums(&[]),
        };
        Ok(RowView { kind })
    }

    /// Up to 8192 rows at once, by column; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Source::Batches { batches, reader: None, .. } = &mut self.source {
            return match batches.next() {
                Ok(Some(batch)) => {
                    self.count += batch.num_rows() as u64;
                    Ok(Some(batch))
                }
                Ok(None) => {
                    self.end(true)?;
                    Ok(None)
                }
                Err(error) => Err(self.fail(error)),
            };
        }
        let kinds: Vec<_> = self.columns.iter().map(|column| column.kind.clone()).collect();
        let mut columns = Columns::new(schema_of(&self.columns), &kinds, BATCH_ROWS);
        while columns.rows() < BATCH_ROWS {
            let Some(row) = self.next()? else { break };
            let mut fits = true;
            columns.push(|column| {
                let value = row.get(column);
                match (value, kinds.get(column).and_then(|kind| kind.decimal)) {
                    // What was computed may have other digits than its column.
                    (DatumRef::Decimal { unscaled, scale }, Some((_, to))) if scale != to => {
                        let rescaled = rescale(unscaled, scale, to);
                        fits &= rescaled.is_some();
                        rescaled.map_or(Value::Null, Value::Decimal)
                    }
                    _ => value.to_value(),
                }
            });
            if !fits {
                return Err(self.fail(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")));
            }
        }
        if columns.rows() == 0 {
            return Ok(None);
        }
        columns.finish().map(Some).map_err(|error| Error::new(INTERNAL_ERROR, error.to_string()))
    }

    /// What PostgreSQL would say after the last row: `SELECT 5`, `INSERT 0 3`. Counts the rows that were read.
    pub fn tag(&self) -> CommandTag {
        CommandTag::of_rows(self.verb, self.count)
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if let Source::Point { row, .. } = &mut self.source {
            self.session.row = std::mem::take(row);
        }
        // What was read is read: a transaction of its own has nothing to lose.
        let _ = self.end(true);
    }
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'r> {
    kind: Kind<'r>,
}

#[derive(Debug, Clone, Copy)]
enum Kind<'r> {
    Datums(&'r [Datum]),
    Row(RowRef<'r>, &'r [(usize, u8)]),
    Leaves(&'r LeafRows),
    Batch(&'r BatchReader, usize),
}

impl<'r> RowView<'r> {
    /// The value of a column; NULL where there is no such column.
    #[inline]
    pub fn get(&self, column: usize) -> DatumRef<'r> {
        match self.kind {
            Kind::Datums(datums) => datums.get(column).map_or(DatumRef::Null, Datum::borrow),
            Kind::Row(row, columns) => match columns.get(column) {
                Some(&(column, scale)) => DatumRef::from_value(row.get(column), scale),
                None => DatumRef::Null,
            },
            Kind::Leaves(rows) => rows.get(column),
            Kind::Batch(batch, row) => batch.get(row, column),
        }
    }

    /// The value of a column as a type of Rust.
    ///
    /// Errors: 42703 where there is no such column, and those of [`FromDatum`].
    pub fn get_as<T: FromDatum>(&self, column: usize) -> Result<T> {
        if column >= self.len() {
            return Err(Error::new(UNDEFINED_COLUMN, format!("the result has no column {column}")));
        }
        T::from_datum(self.get(column))
    }

    /// How many columns it has.
    pub fn len(&self) -> usize {
        match self.kind {
            Kind::Datums(datums) => datums.len(),
            Kind::Row(_, columns) => columns.len(),
            Kind::Leaves(rows) => rows.columns(),
            Kind::Batch(batch, _) => batch.columns(),
        }
    }

    /// True where it has no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
