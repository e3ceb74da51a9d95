//! Rows of a part of a table as batches: leaf by leaf where the leaves hold all requested columns,
//! row by row elsewhere.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use cairn_table::row::Value;
use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, KeyRange, View};
use cairn_vfs::sync::Arc;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count};

use crate::batch::{BATCH_ROWS, Columns, array_of};
use crate::direct::{Access, Cursor, Leaves};
use crate::error::Error;
use crate::expr::{Cells, Env, NoContext};
use crate::general::errors::external;
use crate::general::operators::join_filter::KnownKeys;
use crate::general::scan::JoinFilter;

/// Rows that most leaves have at most. The last leaf may exceed the rows that a batch needs, so
/// buffers reserve this much extra.
const LEAF_ROWS: usize = 1024;

/// The parameters of a read.
pub(crate) struct ScanRequest<'a> {
    pub view: &'a View,
    pub access: &'a Arc<Access>,
    /// Columns of the table. A number past the last column means the row's key.
    pub projection: &'a [usize],
    pub kinds: &'a [ColumnType],
    pub schema: &'a SchemaRef,
    pub limit: Option<usize>,
    pub join_filters: &'a [JoinFilter],
    /// Approximate number of rows.
    pub rows: u64,
    /// Counts the key ranges that are looked up.
    pub lookups: Count,
}

/// Batches of one partition.
pub(crate) struct TableBatches {
    source: Source,
    left: usize,
    metrics: BaselineMetrics,
}

enum Source {
    /// Only the number of rows.
    Count {
        view: View,
        access: Arc<Access>,
        schema: SchemaRef,
        ranges: Vec<KeyRange>,
    },
    Blocks(Blocks),
    Rows(Rows),
    /// The read has failed.
    Done,
}

impl TableBatches {
    /// Reads batches from key ranges.
    ///
    /// Errors: those of computing the values of the conditions.
    pub fn new(
        request: &ScanRequest<'_>,
        ranges: Vec<KeyRange>,
        metrics: BaselineMetrics,
    ) -> Result<Self, Error> {
        let left = request.limit.unwrap_or(usize::MAX);
        let (view, access) = (request.view.clone(), Arc::clone(request.access));
        let counts = access.residual.is_none() && !access.fetches;
        if counts && request.projection.is_empty() && request.limit.is_none() {
            let source = Source::Count { view, access, schema: Arc::clone(request.schema), ranges };
            return Ok(TableBatches { source, left, metrics });
        }
        let source = match Blocks::new(request, ranges.clone())? {
            Some(blocks) => Source::Blocks(blocks),
            None => Source::Rows(Rows {
                cursor: Cursor::over(&access, &view, ranges),
                access,
                projection: request.projection.to_vec(),
                columns: Columns::new(Arc::clone(request.schema), request.kinds, BATCH_ROWS),
                lookups: Some(Lookups::new(request)),
            }),
        };
        Ok(TableBatches { source, left, metrics })
    }

    fn fill(&mut self) -> Result<Option<RecordBatch>, Error> {
        match &mut self.source {
            Source::Count { view, access, schema, ranges } => {
                let Some((start, end)) = ranges.pop() else { return Ok(None) };
                let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
                let count = view.count(&access.table, access.index, range)?;
                batch(schema, Vec::new(), usize::try_from(count).unwrap_or(usize::MAX)).map(Some)
            }
            Source::Blocks(blocks) => blocks.fill(&mut self.left),
            Source::Rows(rows) => rows.fill(&mut self.left),
            Source::Done => Ok(None),
        }
    }
}

fn batch(schema: &SchemaRef, arrays: Vec<arrow::array::ArrayRef>, rows: usize) -> Result<RecordBatch, Error> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(crate::batch::arrow_error)
}

impl Iterator for TableBatches {
    type Item = Result<RecordBatch, DataFusionError>;

    fn next(&mut self) -> Option<Self::Item> {
        let time = self.metrics.elapsed_compute().clone();
        let _timer = time.timer();
        match self.fill() {
            Ok(Some(batch)) => {
                self.metrics.record_output(batch.num_rows());
                Some(Ok(batch))
            }
            Ok(None) => None,
            Err(error) => {
                // A later call reports the end of the rows.
                self.source = Source::Done;
                Some(Err(external(error)))
            }
        }
    }
}

/// Reads leaf by leaf.
pub(crate) struct Blocks {
    access: Arc<Access>,
    leaves: Leaves,
    projection: Vec<usize>,
    kinds: Vec<ColumnType>,
    schema: SchemaRef,
    /// Join filters whose keys are not known yet.
    waits: Vec<JoinFilter>,
    lookups: Lookups,
}

/// Lookups by the keys of a join filter. They are possible only before the first row is read.
struct Lookups {
    view: View,
    access: Arc<Access>,
    /// Join filters that have not been tried yet.
    join_filters: Vec<JoinFilter>,
    rows: u64,
    count: Count,
}

impl Lookups {
    fn new(request: &ScanRequest<'_>) -> Lookups {
        Lookups {
            view: request.view.clone(),
            access: Arc::clone(request.access),
            join_filters: request.join_filters.to_vec(),
            rows: request.rows,
            count: request.lookups.clone(),
        }
    }

    /// Returns parts of the access's tree that contain all rows with a partner. `None` unless the
    /// keys of a join filter have become known and are few.
    fn find(&mut self) -> Result<Option<Vec<KeyRange>>, Error> {
        let (known, unknown) = self.join_filters.drain(..).partition(|filter| filter.keys.get().is_some());
        self.join_filters = unknown;
        let known: Vec<JoinFilter> = known;
        for filter in known {
            let most = Access::lookups_worth(self.rows);
            let Some(values) = filter.keys.get().and_then(|found| found.values(&filter.kind, most)) else {
                continue;
            };
            let ranges = self.access.lookups(&self.view, filter.column, &values, self.rows)?;
            if let Some(ranges) = ranges {
                self.count.add(ranges.len());
                return Ok(Some(ranges));
            }
        }
        Ok(None)
    }
}

impl Blocks {
    /// `None` where rows must be checked one by one.
    pub fn new(request: &ScanRequest<'_>, ranges: Vec<KeyRange>) -> Result<Option<Self>, Error> {
        let width = request.access.table.def().columns.len();
        let projection: Vec<usize> = request.projection.iter().map(|&column| column.min(width)).collect();
        let env = Env::new(Cells::None, &[], &NoContext);
        let filters = || request.join_filters.iter().filter(|filter| filter.filters);
        let later: Vec<_> = filters().map(|filter| (filter.column, filter.kind.kind)).collect();
        let leaves = Leaves::new(request.access, request.view, ranges, projection.clone(), &later, &env)?;
        Ok(leaves.map(|leaves| Blocks {
            access: Arc::clone(request.access),
            leaves,
            projection,
            kinds: request.kinds.to_vec(),
            schema: Arc::clone(request.schema),
            waits: filters().cloned().collect(),
            lookups: Lookups::new(request),
        }))
    }

    /// Applies join filters whose keys have become known: from now on only rows with those keys are
    /// returned.
    fn listen(&mut self) -> Result<(), Error> {
        let leaves = &mut self.leaves;
        if !leaves.have_begun()
            && let Some(ranges) = self.lookups.find()?
        {
            leaves.narrow(&self.access, &ranges);
        }
        self.waits.retain(|filter| match filter.keys.get() {
            Some(KnownKeys::Numbers(members)) => {
                leaves.and_among(filter.column, members);
                false
            }
            Some(KnownKeys::Few(_)) => false,
            None => true,
        });
        Ok(())
    }

    /// Appends leaves to columns, one per column of the projection, until there are `enough` rows
    /// or no leaf is left. Returns the number of rows.
    ///
    /// Errors: those of the table.
    pub fn read(&mut self, columns: &mut [ColumnBuf], enough: usize) -> Result<usize, Error> {
        let mut rows = 0;
        while rows < enough {
            self.listen()?;
            let (projection, columns) = (&self.projection, &mut *columns);
            let more = self.leaves.next_with(&self.access, |leaf| {
                for (&column, to) in projection.iter().zip(columns) {
                    leaf.read(column, to)?;
                }
                Ok(leaf.rows())
            })?;
            let Some(more) = more else { break };
            rows += more;
        }
        Ok(rows)
    }

    fn fill(&mut self, left: &mut usize) -> Result<Option<RecordBatch>, Error> {
        let room = BATCH_ROWS.min(*left) + LEAF_ROWS;
        let mut columns: Vec<_> =
            self.kinds.iter().map(|kind| ColumnBuf::with_capacity(kind.kind, room)).collect();
        let rows = self.read(&mut columns, BATCH_ROWS.min(*left))?;
        if rows == 0 {
            return Ok(None);
        }
        let columns = columns.into_iter().zip(&self.kinds);
        let arrays = columns.map(|(column, kind)| array_of(column, kind).map_err(crate::batch::arrow_error));
        let whole = batch(&self.schema, arrays.collect::<Result<_, _>>()?, rows)?;
        let taken = rows.min(*left);
        *left -= taken;
        Ok(Some(if taken < rows { whole.slice(0, taken) } else { whole }))
    }
}

/// Reads row by row.
struct Rows {
    cursor: Cursor,
    access: Arc<Access>,
    projection: Vec<usize>,
    columns: Columns,
    /// `None` once reading has begun.
    lookups: Option<Lookups>,
}

impl Rows {
    fn fill(&mut self, left: &mut usize) -> Result<Option<RecordBatch>, Error> {
        let env = Env::new(Cells::None, &[], &NoContext);
        let own = self.access.table.def().columns.len();
        if let Some(mut lookups) = self.lookups.take()
            && let Some(ranges) = lookups.find()?
        {
            self.cursor.narrow(&self.access, &ranges);
        }
        while self.columns.rows() < BATCH_ROWS && *left > 0 {
            if !self.cursor.advance(&self.access, &env)? {
                *left = 0;
                break;
            }
            *left -= 1;
            let row = self.cursor.row(&self.access)?;
            let projection = &self.projection;
            self.columns.push(|at| match projection.get(at) {
                Some(&column) if column < own => row.get(column),
                _ => Value::Blob(row.key()),
            });
        }
        if self.columns.rows() == 0 {
            return Ok(None);
        }
        self.columns.finish().map(Some).map_err(crate::batch::arrow_error)
    }
}
