//! Joins that yield to other tasks.
//!
//! A task yields when it asks a scan for rows, because scans count the calls. But a join produces
//! any number of rows from one input batch, and an aggregate above it asks for more at once.
//! Without yields in between, `SELECT count(*) FROM a, b, c` would occupy a thread until it ends,
//! even after a cancel, and later queries would not run. DataFusion's own operator for this purpose
//! counts batches, some of which have millions of rows. And where no pair of rows meets the
//! condition of a join, the join returns no batch until it has tried all pairs. Therefore the
//! condition itself checks whether its run is over.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, FieldRef, Schema};
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures_util::{Stream, StreamExt, stream};

use crate::general::errors::external;
use crate::general::operators::unary::{no_expressions, unary};
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// Rows between two yields: a millisecond or less of most operators.
const ROWS: usize = 1 << 16;

/// Puts [`YieldExec`] on top of joins.
#[derive(Debug)]
pub(crate) struct YieldInJoins;

impl PhysicalOptimizerRule for YieldInJoins {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let yields = |plan: Plan| {
            let join: Plan = if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
                let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
                let projection = join.projection().as_ref().map(|columns| columns.to_vec());
                let filter = join.filter().map(stoppable);
                Arc::new(NestedLoopJoinExec::try_new(left, right, filter, join.join_type(), projection)?)
            } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
                match &join.filter {
                    Some(filter) => Arc::new(join.builder().with_filter(Some(stoppable(filter))).build()?),
                    None => plan,
                }
            } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
                match &join.filter {
                    Some(filter) => Arc::new(SortMergeJoinExec::try_new(
                        Arc::clone(&join.left),
                        Arc::clone(&join.right),
                        join.on.clone(),
                        Some(stoppable(filter)),
                        join.join_type,
                        join.sort_options.clone(),
                        join.null_equality,
                    )?),
                    None => plan,
                }
            } else if plan.is::<CrossJoinExec>() {
                plan
            } else {
                return Ok(Transformed::no(plan));
            };
            Ok(Transformed::yes(Arc::new(YieldExec { input: join }) as Plan))
        };
        Ok(plan.walk_up(yields)?.data)
    }

    fn name(&self) -> &str {
        "cairn_give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes batches on, and yields after every [`ROWS`] rows.
#[derive(Debug)]
pub(crate) struct YieldExec {
    input: Plan,
}

impl DisplayAs for YieldExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GiveWay")
    }
}

impl YieldExec {
    /// Returns the operator above another input.
    fn with_input(&self, input: Plan) -> Plan {
        Arc::new(YieldExec { input })
    }
}

impl ExecutionPlan for YieldExec {
    fn name(&self) -> &str {
        "GiveWay"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let stopped = context.session_config().get_extension::<StopFlag>();
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, yielding(input, stopped))))
    }

    unary!();
    no_expressions!();
}

fn yielding(
    mut input: SendableRecordBatchStream,
    stopped: Option<Arc<StopFlag>>,
) -> impl Stream<Item = Result<RecordBatch>> {
    let mut rows = 0;
    stream::poll_fn(move |context: &mut Context<'_>| {
        if rows >= ROWS {
            rows = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = within(stopped.as_ref(), || input.poll_next_unpin(context));
        match &next {
            Poll::Ready(Some(Ok(batch))) => rows += batch.num_rows(),
            Poll::Ready(_) => {}
            // Other tasks run now.
            Poll::Pending => rows = 0,
        }
        next
    })
}

/// Whether a run was ended early, because its rows are no longer wanted. An extension of the
/// session configuration of the run.
#[derive(Debug, Default)]
pub(crate) struct StopFlag(AtomicBool);

impl StopFlag {
    /// Marks the run as over.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    /// The run that the current thread executes. All runs of a plan share one condition, which has
    /// no other way to find its run.
    static RUN: RefCell<Option<Arc<StopFlag>>> = const { RefCell::new(None) };
}

/// Executes `work` as part of a run.
fn within<T>(stopped: Option<&Arc<StopFlag>>, work: impl FnOnce() -> T) -> T {
    let before = RUN.replace(stopped.cloned());
    let done = work();
    RUN.set(before);
    done
}

/// Returns the condition of a join, which fails once its run is over.
fn stoppable(filter: &JoinFilter) -> JoinFilter {
    let condition = Arc::new(Stoppable { condition: Arc::clone(filter.expression()) });
    JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// An expression that fails once its run is over.
#[derive(Debug, Eq)]
struct Stoppable {
    condition: Arc<dyn PhysicalExpr>,
}

impl PartialEq for Stoppable {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Hash for Stoppable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Stoppable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for Stoppable {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.condition.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let is_stopped =
            RUN.with_borrow(|run| run.as_ref().is_some_and(|stopped| stopped.0.load(Ordering::Relaxed)));
        if is_stopped {
            return Err(external(cairn_table::Error::Cancelled.into()));
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.into_iter().next();
        let condition =
            condition.ok_or_else(|| DataFusionError::Internal("a condition of nothing".to_owned()))?;
        Ok(Arc::new(Stoppable { condition }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
