//! Partial aggregates over a table, computed while its leaves are read.
//!
//! ```text
//!   without it   leaf ─► columns ─► batch of 8192 rows ─► filter ─► computed columns ─► groups ─► partial totals
//!   with it      leaf ─► columns, of two thousand rows or so ───────────────────────────► groups ─► partial totals
//! ```
//!
//! DataFusion's aggregates read whole batches, in which decimals have 128 bits and texts are views.
//! [`AggregateScan`] replaces the partial aggregate where it reads a table, groups by columns, and
//! sums integers or decimals. It returns the same partial totals, and DataFusion's final aggregate
//! merges them. Columns are consumed while the leaf is in the CPU cache, and numbers are computed
//! in 64 bits (the idea of MonetDB/X100; Boncz, Zukowski, Nes, CIDR 2005). On overflow, or with too
//! many groups, it discards its totals and runs the replaced aggregate from the beginning.

use std::fmt;

use arrow::array::{ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Int16Type, Int32Type,
    Int64Type, Schema, SchemaRef, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt64Type,
    i256,
};
use cairn_table::ColumnBuf;
use cairn_table::row::Value;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures_util::{StreamExt, stream};
use tokio::sync::OnceCell;

use crate::batch::Columns;
use crate::direct::{Gathered, Group, Total, Unable};
use crate::error::Error;
use crate::general::errors::external;
use crate::general::operators::unary::{no_expressions, unary};
use crate::general::rules::aggregate_scans::{Recipe, State};
use crate::general::scan::TableScan;
use crate::general::scan::batches::Blocks;
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// Rows that are processed at once. Their columns fit into a core's L2 cache.
const ROWS: usize = 2048;

/// Chunks of [`ROWS`] rows between two yields to other tasks.
const TURNS: u32 = 16;

/// Replaces a partial aggregate over a table.
#[derive(Debug)]
pub(crate) struct AggregateScan {
    /// The replaced aggregate.
    input: Arc<dyn ExecutionPlan>,
    recipe: Recipe,
    /// Totals shared with equal aggregates of the plan.
    shared_totals: Option<Arc<SharedTotals>>,
    metrics: ExecutionPlanMetricsSet,
}

/// Totals per partition, shared by equal aggregates of a plan. The first one to ask computes them.
/// They live as long as the plan, and are bounded by the limits of [`Gathered`] on groups and bytes
/// of keys.
#[derive(Debug)]
pub(crate) struct SharedTotals(Vec<OnceCell<Outcome>>);

/// The result for one partition.
#[derive(Debug, Clone)]
enum Outcome {
    /// `None` without groups.
    Totals(Option<RecordBatch>),
    TooLarge,
}

impl SharedTotals {
    pub fn new(partitions: usize) -> SharedTotals {
        SharedTotals((0..partitions).map(|_| OnceCell::new()).collect())
    }
}

impl AggregateScan {
    /// Returns the replacement of an operator, or the operator itself where it cannot be replaced.
    pub fn instead_of(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match Recipe::of(&input) {
            Some(recipe) => Arc::new(AggregateScan {
                input,
                recipe,
                shared_totals: None,
                metrics: ExecutionPlanMetricsSet::new(),
            }),
            None => input,
        }
    }

    /// The replaced aggregate.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Returns a copy that shares its totals with equal aggregates.
    pub fn shared(&self, shared_totals: &Arc<SharedTotals>) -> AggregateScan {
        AggregateScan {
            input: Arc::clone(&self.input),
            recipe: self.recipe.clone(),
            shared_totals: Some(Arc::clone(shared_totals)),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for AggregateScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let once = if self.shared_totals.is_some() { ", computed once and shared" } else { "" };
        write!(f, "AggregateScan: {} columns{once}, instead of what is below", self.recipe.columns.len())
    }
}

impl AggregateScan {
    /// Returns the operator above another input.
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        AggregateScan::instead_of(input)
    }
}

impl ExecutionPlan for AggregateScan {
    fn name(&self) -> &str {
        "AggregateScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let instead = {
            let input = Arc::clone(&self.input);
            move || input.execute(partition, Arc::clone(&context))
        };
        let Some(scan) = self.recipe.scan.downcast_ref::<TableScan>() else { return instead() };
        let Some(blocks) = scan.leaves(partition, &self.recipe.columns)? else { return instead() };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let run = Run {
            blocks,
            columns: self.recipe.columns.iter().map(|(_, kind)| ColumnBuf::new(kind.kind)).collect(),
            gathered: Gathered::new(&self.recipe.gathering),
            recipe: self.recipe.clone(),
            metrics: metrics.clone(),
        };
        let schema = self.input.schema();
        let shared_totals = self.shared_totals.clone();
        let batches = async move {
            let cell = shared_totals.as_ref().and_then(|shared_totals| shared_totals.0.get(partition));
            let outcome = match cell {
                Some(cell) => cell.get_or_try_init(|| gathered(run)).await?.clone(),
                None => gathered(run).await?,
            };
            Ok(match outcome {
                Outcome::Totals(batch) => {
                    metrics.record_output(batch.as_ref().map_or(0, RecordBatch::num_rows));
                    stream::iter(batch.map(Ok)).boxed()
                }
                Outcome::TooLarge => instead()?.boxed(),
            })
        };
        let batches = stream::once(batches).flat_map(|done: Result<BoxedBatches>| match done {
            Ok(batches) => batches,
            Err(error) => stream::once(async { Err(error) }).boxed(),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    unary!();
    no_expressions!();
}

type BoxedBatches = std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<RecordBatch>> + Send>>;

/// Computes the partial totals of a partition.
async fn gathered(mut run: Run) -> Result<Outcome> {
    loop {
        let time = run.metrics.elapsed_compute().clone();
        let timer = time.timer();
        for _ in 0..TURNS {
            match run.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(Outcome::Totals(run.finish()?)),
                Err(Unable::TooLarge) => return Ok(Outcome::TooLarge),
                Err(Unable::Error(error)) => return Err(external(error)),
            }
        }
        drop(timer);
        tokio::task::yield_now().await;
    }
}

/// The state of reading one partition.
struct Run {
    blocks: Blocks,
    /// In the order of the recipe's columns.
    columns: Vec<ColumnBuf>,
    gathered: Gathered,
    recipe: Recipe,
    metrics: BaselineMetrics,
}

impl Run {
    /// Aggregates the next rows. Returns false at the end.
    fn advance(&mut self) -> Result<bool, Unable> {
        self.columns.iter_mut().for_each(ColumnBuf::clear);
        let rows = self.blocks.read(&mut self.columns, ROWS).map_err(Unable::Error)?;
        if rows == 0 {
            return Ok(false);
        }
        if self.gathered.outgrows() || !self.gathered.has_room(rows) {
            return Err(Unable::TooLarge);
        }
        let (numbers, columns) = (&self.recipe.columns, &self.columns);
        let column_of = |column| {
            let at = numbers.binary_search_by_key(&column, |(number, _)| *number).ok()?;
            columns.get(at)
        };
        self.gathered.take(&self.recipe.gathering, column_of, rows)?;
        Ok(true)
    }

    /// Returns the partial totals; `None` without groups.
    fn finish(self) -> Result<Option<RecordBatch>> {
        let Recipe { keys, states, schema, .. } = &self.recipe;
        let (groups, totals) = self.gathered.finish();
        if groups.is_empty() {
            return Ok(None);
        }
        let fields = schema.fields().iter().take(keys.len()).cloned();
        let mut columns = key_columns(Schema::new(fields.collect::<Vec<_>>()), keys, &groups)?;
        for (state, field) in states.iter().zip(schema.fields().iter().skip(keys.len())) {
            let values =
                groups.iter().enumerate().map(|(group, (_, rows))| state.value(&totals, group, *rows));
            columns.push(numbers(field.data_type(), values)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(groups.len()));
        let batch = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?;
        Ok(Some(batch))
    }
}

impl State {
    /// Returns a group's value of this state; `None` for NULL.
    fn value(self, totals: &[Total], group: usize, rows: i64) -> Option<i128> {
        let of = |total: usize| totals.get(total).filter(|total| total.values(group, rows) > 0);
        match self {
            State::Rows => Some(rows.into()),
            State::Values(total) => Some(of(total).map_or(0, |total| total.values(group, rows)).into()),
            State::Divisor(total) => of(total).map(|total| total.values(group, rows).into()),
            State::Sum(total) => of(total).map(|total| total.sum(group)),
            State::Best(total) => of(total).map(|total| total.best(group).into()),
        }
    }
}

fn key_columns(schema: Schema, kinds: &[ColumnType], groups: &[Group]) -> Result<Vec<ArrayRef>> {
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let mut columns = Columns::new(Arc::new(schema), kinds, groups.len());
    for (key, _) in groups {
        columns.push(|at| key.get(at).map_or(Value::Null, |datum| datum.borrow().to_value()));
    }
    Ok(columns.finish()?.columns().to_vec())
}

/// Builds an array of one of the types that [`Recipe::of`] accepts.
fn numbers(kind: &DataType, values: impl Iterator<Item = Option<i128>>) -> Result<ArrayRef> {
    Ok(match kind {
        DataType::Int16 => array::<Int16Type>(kind, values)?,
        DataType::Int32 => array::<Int32Type>(kind, values)?,
        DataType::Int64 => array::<Int64Type>(kind, values)?,
        DataType::UInt64 => array::<UInt64Type>(kind, values)?,
        DataType::Date32 => array::<Date32Type>(kind, values)?,
        DataType::Time64(TimeUnit::Microsecond) => array::<Time64MicrosecondType>(kind, values)?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => array::<TimestampMicrosecondType>(kind, values)?,
        DataType::Decimal256(..) => {
            let values: PrimitiveArray<Decimal256Type> =
                values.map(|value| value.map(i256::from_i128)).collect();
            Arc::new(values.with_data_type(kind.clone()))
        }
        _ => array::<Decimal128Type>(kind, values)?,
    })
}

fn array<T: ArrowPrimitiveType<Native: TryFrom<i128>>>(
    kind: &DataType,
    values: impl Iterator<Item = Option<i128>>,
) -> Result<ArrayRef> {
    let out_of_range = |_| external(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"));
    let native = |value: Option<i128>| value.map(T::Native::try_from).transpose().map_err(out_of_range);
    let array: PrimitiveArray<T> = values.map(native).collect::<Result<_>>()?;
    Ok(Arc::new(array.with_data_type(kind.clone())))
}
