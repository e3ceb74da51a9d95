//! Sources of result rows, and views of single rows.

use arrow::array::RecordBatch;
use cairn_table::row::Value;
use cairn_table::{RowBuf, RowRef};
use cairn_vfs::sync::Arc;

use super::{BatchSource, StoredRows, Walk};
use crate::batch::{BATCH_ROWS, BatchReader, Columns, arrow_error, schema_of};
use crate::column::Column;
use crate::datum::{AsDatum, Datum, DatumRef, FromDatum, rescale};
use crate::direct::{Access, Cursor, JoinCursor, LeafRows, Level, Output, Select, SelectPlan};
use crate::error::{Error, Result};
use crate::expr::{Cells, Context, Env, NoContext, Node, Val};
use crate::sqlstate::{NUMERIC_VALUE_OUT_OF_RANGE, UNDEFINED_COLUMN};

/// A source of rows. It is moved several times on its way to the reader, so large parts that are
/// not specific to a single row are boxed.
#[derive(Debug)]
pub(crate) enum Source {
    /// All rows, already computed.
    Datums { rest: std::vec::IntoIter<Vec<Datum>>, current: Vec<Datum> },
    /// At most one row of a table.
    Point { plan: Arc<SelectPlan>, row: RowBuf, found: bool, current: Vec<Datum>, params: Vec<Datum> },
    /// Rows of a table, read on demand.
    Scan {
        plan: Arc<SelectPlan>,
        cursor: Box<Cursor>,
        params: Vec<Datum>,
        skip: u64,
        left: u64,
        current: Vec<Datum>,
    },
    /// Columns of a table's rows, read a leaf at a time.
    Leaves { plan: Arc<SelectPlan>, rows: Box<LeafRows>, skip: u64, left: u64 },
    /// Rows of a join, read on demand. `is_plain` says that its columns are plain, so that they can
    /// be read in place.
    Join {
        plan: Arc<SelectPlan>,
        cursor: Box<JoinCursor>,
        skip: u64,
        left: u64,
        is_plain: bool,
        current: Vec<Datum>,
    },
    /// Rows of the general path.
    Batches { batches: Box<dyn BatchSource>, reader: Option<BatchReader>, row: usize },
    /// Materialized rows.
    Materialized(Box<dyn StoredRows>),
    /// Rows of a cursor, which returns to its session afterwards.
    Cursor(Box<Walk>),
}

impl Source {
    pub fn datums(rows: Vec<Vec<Datum>>) -> Self {
        Source::Datums { rest: rows.into_iter(), current: Vec::new() }
    }

    /// Returns the source for a join that has not begun. LIMIT counts the rows after those of
    /// OFFSET.
    pub fn join(plan: Arc<SelectPlan>, cursor: Box<JoinCursor>, (skip, left): (u64, u64)) -> Self {
        let is_plain = joined(&plan).is_some_and(|join| join.nodes.iter().all(Node::is_plain));
        Source::Join { plan, cursor, skip, left, is_plain, current: Vec::new() }
    }

    /// Returns the columns of the rows, if the source has the plan.
    #[inline]
    pub fn columns(&self) -> Option<&Arc<[Column]>> {
        match self {
            Source::Point { plan, .. }
            | Source::Scan { plan, .. }
            | Source::Leaves { plan, .. }
            | Source::Join { plan, .. } => Some(&plan.columns),
            Source::Datums { .. } | Source::Batches { .. } | Source::Materialized(_) | Source::Cursor(_) => {
                None
            }
        }
    }

    /// Advances to the next row; false after the last one.
    ///
    /// Errors: any error of computing the row.
    #[inline]
    pub fn advance(&mut self, context: &dyn Context) -> Result<bool> {
        match self {
            Source::Datums { rest, current } => {
                let Some(row) = rest.next() else { return Ok(false) };
                *current = row;
            }
            Source::Point { plan, row, found, current, params } => {
                if !std::mem::take(found) {
                    return Ok(false);
                }
                let select = &plan.select;
                if let (Output::Nodes(nodes), Some(access)) = (&select.output, &select.access) {
                    let env = Env::new(Cells::Row(row.row(&access.table)), params, context);
                    evaluate(nodes, &env, current)?;
                }
            }
            Source::Scan { plan, cursor, params, skip, left, current } => {
                let select = &plan.select;
                let Some(access) = &select.access else { return Ok(false) };
                let env = Env::new(Cells::None, params, context);
                if !advance_within(skip, left, || cursor.advance(access, &env))? {
                    return Ok(false);
                }
                if let Output::Nodes(nodes) = &select.output {
                    evaluate(nodes, &Env { row: Cells::Row(cursor.row(access)?), ..env }, current)?;
                }
            }
            Source::Leaves { plan, rows, skip, left } => {
                let Some(access) = &plan.select.access else { return Ok(false) };
                if !advance_within(skip, left, || rows.advance(access))? {
                    return Ok(false);
                }
            }
            Source::Join { plan, cursor, skip, left, is_plain, current } => {
                let Some(Join { levels, last, nodes }) = joined(plan) else { return Ok(false) };
                if !advance_within(skip, left, || cursor.advance(levels, last, context))? {
                    return Ok(false);
                }
                if !*is_plain {
                    evaluate(nodes, &cursor.env(last, context)?, current)?;
                }
            }
            Source::Batches { batches, reader, row } => return next_of_batches(&mut **batches, reader, row),
            Source::Materialized(rows) => return rows.advance(),
            Source::Cursor(walk) => return walk.advance(context),
        }
        Ok(true)
    }

    /// Advances to the next row within the current leaf. Returns false if there is none, or the
    /// step is not that simple.
    #[inline]
    pub fn step(&mut self) -> bool {
        let Source::Leaves { rows, skip: 0, left, .. } = self else { return false };
        let is_there = *left > 0 && rows.step();
        *left -= u64::from(is_there);
        is_there
    }

    /// Returns the current row.
    ///
    /// Errors: rows that do not match the catalog.
    pub fn view(&self) -> Result<RowView<'_>> {
        match self {
            Source::Scan { plan, cursor, .. } => {
                if let Some((access, _)) = plain(plan) {
                    // The row is validated once; its values are read in place.
                    cursor.row(access)?;
                }
            }
            Source::Join { plan, cursor, is_plain: true, .. } => {
                if let Some(join) = joined(plan) {
                    cursor.env(join.last, &NoContext)?;
                }
            }
            Source::Cursor(walk) => return walk.view(),
            _ => {}
        }
        Ok(RowView::of(self))
    }

    /// Returns up to 8192 rows as a batch of columns; `None` after the last one.
    ///
    /// Errors: as [`Source::advance`].
    pub fn next_batch(&mut self, context: &dyn Context, columns: &[Column]) -> Result<Option<RecordBatch>> {
        if let Source::Batches { batches, reader: None, .. } = self {
            return batches.next();
        }
        let kinds: Vec<_> = columns.iter().map(|column| column.kind.clone()).collect();
        let mut gathered = Columns::new(schema_of(columns), &kinds, BATCH_ROWS);
        while gathered.rows() < BATCH_ROWS && self.advance(context)? {
            let row = self.view()?;
            let mut fits = true;
            gathered.push(|column| {
                let value = row.get(column);
                match (value, kinds.get(column).and_then(|kind| kind.decimal)) {
                    // A computed value may have another scale than its column.
                    (DatumRef::Decimal { unscaled, scale }, Some((_, to))) if scale != to => {
                        let rescaled = rescale(unscaled, scale, to);
                        fits &= rescaled.is_some();
                        rescaled.map_or(Value::Null, Value::Decimal)
                    }
                    _ => value.to_value(),
                }
            });
            if !fits {
                return Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow"));
            }
        }
        if gathered.rows() == 0 {
            return Ok(None);
        }
        gathered.finish().map(Some).map_err(arrow_error)
    }
}

/// Advances past the rows of OFFSET to the next one, as long as LIMIT allows it.
#[inline]
fn advance_within(skip: &mut u64, left: &mut u64, mut next: impl FnMut() -> Result<bool>) -> Result<bool> {
    loop {
        if *left == 0 || !next()? {
            return Ok(false);
        }
        if *skip == 0 {
            break;
        }
        *skip -= 1;
    }
    *left -= 1;
    Ok(true)
}

/// Computes the values of a row.
#[inline]
fn evaluate(nodes: &[Node], env: &Env<'_>, values: &mut Vec<Datum>) -> Result<()> {
    values.clear();
    for node in nodes {
        values.push(node.eval(env)?.into_datum());
    }
    Ok(())
}

/// Advances to the next row of a query. `row` is the current row of `reader`; after the last one,
/// the next batch is read.
fn next_of_batches(
    batches: &mut dyn BatchSource,
    reader: &mut Option<BatchReader>,
    row: &mut usize,
) -> Result<bool> {
    loop {
        if let Some(reader) = reader
            && *row + 1 < reader.rows()
        {
            *row += 1;
            return Ok(true);
        }
        let Some(batch) = batches.next()? else { return Ok(false) };
        let next = batches.reader(&batch)?;
        let has_rows = next.rows() > 0;
        (*reader, *row) = (Some(next), 0);
        if has_rows {
            return Ok(true);
        }
    }
}

/// Returns the columns of a plan that selects plain columns, and its access path; `None` if the row
/// is computed.
#[inline]
fn plain(plan: &SelectPlan) -> Option<(&Access, &[(usize, u8)])> {
    match &plan.select {
        Select { access: Some(access), output: Output::Columns(columns), .. } => Some((access, columns)),
        _ => None,
    }
}

/// A join that returns its rows without sorting.
struct Join<'p> {
    levels: &'p [Level],
    last: &'p Access,
    nodes: &'p [Node],
}

impl<'p> Join<'p> {
    /// Returns a column of the current row of a join with plain columns.
    #[inline]
    fn value(&self, cursor: &'p JoinCursor, column: usize) -> DatumRef<'p> {
        let (Some(node), Ok(env)) = (self.nodes.get(column), cursor.env(self.last, &NoContext)) else {
            return DatumRef::Null;
        };
        match node.eval(&env) {
            Ok(Val::Ref(value)) => value,
            // A plain node is never owned.
            _ => DatumRef::Null,
        }
    }
}

#[inline]
fn joined(plan: &SelectPlan) -> Option<Join<'_>> {
    match &plan.select {
        Select { joined: Some((levels, _)), access: Some(last), output: Output::Nodes(nodes), .. } => {
            Some(Join { levels, last, nodes })
        }
        _ => None,
    }
}

/// A view of a row. It is one word in size: a larger view would be copied through memory several
/// times on its way to the caller, which costs more than finding the row again for each value.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'r> {
    source: &'r Source,
}

impl<'r> RowView<'r> {
    /// Returns the current row of a source that is not a cursor.
    #[inline]
    pub(crate) fn of(source: &'r Source) -> RowView<'r> {
        RowView { source }
    }

    /// Returns the value of a column; NULL if there is no such column.
    #[inline]
    pub fn get(&self, column: usize) -> DatumRef<'r> {
        match self.source {
            Source::Leaves { rows, .. } => rows.get(column),
            _ => self.get_elsewhere(column),
        }
    }

    /// Like [`RowView::get`], for rows that are not read by the leaf. It is not inlined, so that
    /// the path for leaves is.
    #[inline(never)]
    fn get_elsewhere(&self, column: usize) -> DatumRef<'r> {
        match self.source {
            Source::Leaves { rows, .. } => rows.get(column),
            Source::Point { plan, row, current, .. } => match plain(plan) {
                Some((access, columns)) => value_of(row.row(&access.table), columns, column),
                None => value_in(current, column),
            },
            Source::Scan { plan, cursor, current, .. } => match plain(plan) {
                // `view` has validated the row.
                Some((access, columns)) => {
                    cursor.row(access).map_or(DatumRef::Null, |row| value_of(row, columns, column))
                }
                None => value_in(current, column),
            },
            Source::Join { plan, cursor, is_plain: true, .. } => {
                joined(plan).map_or(DatumRef::Null, |join| join.value(cursor, column))
            }
            Source::Datums { current, .. } | Source::Join { current, .. } => value_in(current, column),
            Source::Batches { reader: Some(reader), row, .. } => reader.get(*row, column),
            Source::Materialized(rows) => {
                rows.at().map_or(DatumRef::Null, |(reader, row)| reader.get(row, column))
            }
            // A cursor's row is viewed through the source that the cursor reads.
            Source::Batches { reader: None, .. } | Source::Cursor(_) => DatumRef::Null,
        }
    }

    /// Returns the value of a column as a Rust type.
    ///
    /// Errors: 42703 if there is no such column, and those of [`FromDatum`].
    pub fn get_as<T: FromDatum>(&self, column: usize) -> Result<T> {
        if column >= self.len() {
            return Err(Error::new(UNDEFINED_COLUMN, format!("the result has no column {column}")));
        }
        T::from_datum(self.get(column))
    }

    /// The number of columns.
    #[inline]
    pub fn len(&self) -> usize {
        match self.source {
            Source::Leaves { rows, .. } => rows.columns(),
            _ => self.len_elsewhere(),
        }
    }

    #[inline(never)]
    fn len_elsewhere(&self) -> usize {
        match self.source {
            Source::Leaves { rows, .. } => rows.columns(),
            Source::Point { plan, current, .. } | Source::Scan { plan, current, .. } => {
                plain(plan).map_or(current.len(), |(_, columns)| columns.len())
            }
            Source::Join { plan, .. } => joined(plan).map_or(0, |join| join.nodes.len()),
            Source::Datums { current, .. } => current.len(),
            Source::Batches { reader: Some(reader), .. } => reader.columns(),
            Source::Materialized(rows) => rows.at().map_or(0, |(reader, _)| reader.columns()),
            Source::Batches { reader: None, .. } | Source::Cursor(_) => 0,
        }
    }

    /// Whether it has no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[inline]
fn value_in(datums: &[Datum], column: usize) -> DatumRef<'_> {
    datums.get(column).map_or(DatumRef::Null, Datum::borrow)
}

/// Returns a result column from a row of the table.
#[inline]
fn value_of<'r>(row: RowRef<'r>, columns: &[(usize, u8)], column: usize) -> DatumRef<'r> {
    match columns.get(column) {
        Some(&(column, scale)) => row.get_as(column, AsDatum { scale }),
        None => DatumRef::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Outcome, Rows};

    /// Goal: results are cheap to move. Method: the sizes of the types that are moved, in bytes; a
    /// scan or a COPY inside them would take several hundred.
    #[test]
    fn what_is_moved_is_small() {
        assert!(size_of::<Source>() <= 128, "{}", size_of::<Source>());
        assert!(size_of::<Rows<'_>>() <= 192, "{}", size_of::<Rows<'_>>());
        assert!(size_of::<Outcome<'_>>() <= size_of::<Rows<'_>>() + 8, "{}", size_of::<Outcome<'_>>());
        assert_eq!(size_of::<RowView<'_>>(), size_of::<usize>());
    }
}
