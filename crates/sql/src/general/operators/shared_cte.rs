//! WITH queries that are computed once, however often they are referenced.
//!
//! DataFusion inlines the plan of a WITH query at each reference, and each copy is computed
//! separately. Two references see two values of `random()`, `nextval()` advances twice, and for a
//! chain of queries that each reference the previous one twice the run time doubles with each.
//! PostgreSQL computes a WITH query once if it is referenced more than once, is `MATERIALIZED`, or
//! is volatile. A query with a single reference is inlined, and so is one that is `NOT
//! MATERIALIZED`.
//!
//! The statement's text is rewritten before planning (`rewrite/withs.rs`): such a query gets a
//! limit that is a call of [`SHARED_CTE`]. The marker identifies its plan at each reference, where
//! an operator ([`SharedCte`]) replaces it. No condition (`rules/guarded_rules.rs`) and no limit is
//! pushed through that operator, so that all copies of the plan return the same rows. In a run, the
//! first copy that is asked for rows starts its plan. The batches are materialized for the others,
//! in memory or in files, until the run is over ([`CteResults`]).

use std::collections::HashMap;
use std::fmt;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use cairn_vfs::sync::atomic::{AtomicI64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, Weak, lock};
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SpillFile, TaskContext};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, RecursiveQuery, ScalarUDF, UserDefinedLogicalNode,
    UserDefinedLogicalNodeCore,
};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream, SpillManager,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures_util::{StreamExt, stream};

use crate::general::functions::RowFunction;
use crate::general::markers::SHARED_CTE;
use crate::general::operators::unary::{no_expressions, unary};
use crate::general::rules::unnest::outer_columns;
use crate::general::run::materialize::nullable_schema;
use crate::general::tree::walk::WalkPlan;

type Plan = std::sync::Arc<dyn ExecutionPlan>;

/// Returns the marker function of a WITH query. Its argument numbers the queries of a statement:
/// even numbers for those that are always computed once, odd numbers for those that may be inlined.
pub(crate) fn marker() -> ScalarUDF {
    RowFunction::volatile(SHARED_CTE, &[1], DataType::Int64, |_| {
        Err(DataFusionError::Internal("a query of WITH is marked where it cannot be".to_owned()))
    })
}

/// Returns the number in a marker.
fn marked(fetch: &Expr) -> Option<i64> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = fetch else { return None };
    match args.as_slice() {
        [Expr::Literal(number, _)] if func.name() == SHARED_CTE => match number.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        },
        _ => None,
    }
}

/// Replaces marked queries by operators, or removes the markers. Recursive queries have no markers;
/// those that occur more than once are recognized by equality.
///
/// Markers are numbered within one text. `numbers` continues across all texts of a statement,
/// including its views, so that each query has a distinct number in a run.
pub(crate) fn share_ctes(plan: LogicalPlan, numbers: &AtomicI64) -> Result<LogicalPlan> {
    let mut fresh: HashMap<i64, i64> = HashMap::new();
    let mut numbered =
        |mark: i64| *fresh.entry(mark).or_insert_with(|| numbers.fetch_add(1, Ordering::Relaxed) + 1);
    let mut recursive: Vec<(RecursiveQuery, usize)> = Vec::new();
    let mut has_marks = false;
    plan.look_with_subqueries(|plan| {
        match plan {
            LogicalPlan::Limit(limit) => has_marks |= limit.fetch.as_deref().and_then(marked).is_some(),
            LogicalPlan::RecursiveQuery(query) => {
                match recursive.iter_mut().find(|(other, _)| other == query) {
                    Some((_, count)) => *count += 1,
                    None => recursive.push((query.clone(), 1)),
                }
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_marks && recursive.iter().all(|(_, count)| *count < 2) {
        return Ok(plan);
    }
    let changed = plan.walk_down_with_subqueries(|plan| match &plan {
        LogicalPlan::Limit(limit) => {
            let Some(number) = limit.fetch.as_deref().and_then(marked) else {
                return Ok(Transformed::no(plan));
            };
            let input = LogicalPlan::clone(&limit.input);
            let always = number % 2 == 0;
            let is_shared = (always || is_volatile(&input)?) && outer_columns(&input)?.is_empty();
            Ok(Transformed::yes(if is_shared { shared(numbered(number), input) } else { input }))
        }
        // The part below has been processed already.
        LogicalPlan::Extension(extension) if extension.node.as_any().is::<SharedCte>() => {
            Ok(Transformed::no(plan))
        }
        LogicalPlan::RecursiveQuery(query) => {
            let at = recursive.iter().position(|(other, count)| other == query && *count > 1);
            let Some(at) = at.filter(|_| outer_columns(&plan).is_ok_and(|outer| outer.is_empty())) else {
                return Ok(Transformed::no(plan));
            };
            let number = -1 - i64::try_from(at).unwrap_or(i64::MAX - 1);
            Ok(Transformed::new(shared(numbered(number), plan), true, TreeNodeRecursion::Jump))
        }
        _ => Ok(Transformed::no(plan)),
    })?;
    Ok(changed.data)
}

fn shared(number: i64, input: LogicalPlan) -> LogicalPlan {
    // The sort key may be missing from the columns of the result. Below the projection, the order
    // can still be stated.
    if let LogicalPlan::Projection(projection) = &input
        && is_sorted(&projection.input)
        && projection.expr.iter().all(|expr| matches!(expr.clone().unalias(), Expr::Column(_)))
    {
        let mut projection = projection.clone();
        projection.input = shared(number, LogicalPlan::clone(&projection.input)).into();
        return LogicalPlan::Projection(projection);
    }
    LogicalPlan::Extension(Extension { node: std::sync::Arc::new(SharedCte { number, input }) })
}

fn is_volatile(plan: &LogicalPlan) -> Result<bool> {
    let mut is_volatile = false;
    plan.look_with_subqueries(|plan| {
        plan.look_at_expressions(|expr| {
            // The marker itself does not count.
            is_volatile |= expr.is_volatile() && marked(expr).is_none();
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_volatile)
}

/// A query that is computed once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(crate) struct SharedCte {
    number: i64,
    input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for SharedCte {
    fn name(&self) -> &str {
        "Once"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Once: {}", self.number)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.into_iter().next().ok_or_else(no_input)?;
        Ok(SharedCte { number: self.number, input })
    }
}

fn no_input() -> DataFusionError {
    DataFusionError::Internal("a shared CTE has no input".to_owned())
}

/// Plans [`SharedCteExec`] for [`SharedCte`].
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Plan],
        _: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Plan>> {
        let (Some(node), [input]) = (node.as_any().downcast_ref::<SharedCte>(), inputs) else {
            return Ok(None);
        };
        let order = input.output_ordering().filter(|_| is_sorted(&node.input)).cloned();
        Ok(Some(std::sync::Arc::new(SharedCteExec::new(node.number, input, order))))
    }
}

/// Whether a query specifies the order of its rows.
fn is_sorted(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => is_sorted(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_sorted(&alias.input),
        LogicalPlan::Limit(limit) => is_sorted(&limit.input),
        _ => false,
    }
}

/// The operator: returns the rows computed by the first operator with the same number in the run.
#[derive(Debug)]
pub(crate) struct SharedCteExec {
    number: i64,
    input: Plan,
    /// The order that the query specifies.
    order: Option<LexOrdering>,
    properties: std::sync::Arc<PlanProperties>,
}

impl SharedCteExec {
    fn new(number: i64, input: &Plan, order: Option<LexOrdering>) -> Self {
        let schema = nullable_schema(&input.schema());
        let equivalences = match &order {
            Some(order) => EquivalenceProperties::new_with_orderings(schema, [order.clone()]),
            None => EquivalenceProperties::new(schema),
        };
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (input, properties) = (std::sync::Arc::clone(input), std::sync::Arc::new(properties));
        SharedCteExec { number, input, order, properties }
    }
}

impl DisplayAs for SharedCteExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Once: {}", self.number)
    }
}

impl SharedCteExec {
    /// Returns the operator above another input.
    fn with_input(&self, input: Plan) -> Plan {
        std::sync::Arc::new(SharedCteExec::new(self.number, &input, self.order.clone()))
    }
}

impl ExecutionPlan for SharedCteExec {
    fn name(&self) -> &str {
        "Once"
    }

    fn properties(&self) -> &std::sync::Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.order.is_some()]
    }

    fn execute(
        &self,
        partition: usize,
        context: std::sync::Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = context.session_config().get_extension::<RunCteResults>();
        let Some(run) = run else { return self.input.execute(partition, context) };
        let Some(results) = run.0.upgrade() else {
            return Err(DataFusionError::Execution("the run is over".to_owned()));
        };
        let schema = self.schema();
        let results = results.of(self.number, || {
            let runtime = context.runtime_env();
            let rows = self.input.execute(partition, context)?;
            Ok(CteBatches::new(rows, &schema, runtime))
        })?;
        let batches = stream::try_unfold((results, 0, None), |(results, at, file)| next(results, at, file));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    unary!();
    no_expressions!();
}

/// The position of a reader: the number of entries already taken, and the file being read, if any.
type Place = (Arc<CteBatches>, usize, Option<SendableRecordBatchStream>);

async fn next(
    results: Arc<CteBatches>,
    at: usize,
    file: Option<SendableRecordBatchStream>,
) -> Result<Option<(RecordBatch, Place)>> {
    let (mut at, mut file) = (at, file);
    loop {
        if let Some(reading) = &mut file
            && let Some(batch) = reading.next().await.transpose()?
        {
            return Ok(Some((batch, (results, at, file))));
        }
        match results.get(at).await? {
            None => return Ok(None),
            Some(Entry::InMemory(batch)) => return Ok(Some((batch, (results, at + 1, None)))),
            Some(Entry::InFile(of)) => {
                file = Some(results.spills.read_spill_as_stream(of, None)?);
                at += 1;
            }
        }
    }
}

/// The rows that a run has computed once, by number. Kept alive by the batches of the run.
#[derive(Debug, Default)]
pub(crate) struct CteResults(Mutex<HashMap<i64, Slot>>);

/// Gives operators access to [`CteResults`], as an extension of the session configuration. The
/// reference is weak because the streams in it hold the configuration: a run that ends early would
/// otherwise keep itself, and its view of the database, alive forever.
#[derive(Debug)]
pub(crate) struct RunCteResults(Weak<CteResults>);

impl RunCteResults {
    pub fn new(results: &Arc<CteResults>) -> Self {
        RunCteResults(Arc::downgrade(results))
    }
}

/// The rows for one number, once an operator has asked for them.
type Slot = Arc<Mutex<Option<Arc<CteBatches>>>>;

impl CteResults {
    fn of(&self, number: i64, start: impl FnOnce() -> Result<CteBatches>) -> Result<Arc<CteBatches>> {
        let slot = Arc::clone(lock(&self.0).entry(number).or_default());
        // Only this slot stays locked: starting the plan may ask for the numbers of nested queries.
        let mut results = lock(&slot);
        if let Some(batches) = &*results {
            return Ok(Arc::clone(batches));
        }
        let batches = Arc::new(start()?);
        *results = Some(Arc::clone(&batches));
        Ok(batches)
    }
}

/// A materialized batch.
#[derive(Clone)]
enum Entry {
    InMemory(RecordBatch),
    InFile(std::sync::Arc<dyn SpillFile>),
}

/// The materialized batches, and the stream that produces more.
struct CteBatches {
    state: tokio::sync::Mutex<State>,
    schema: SchemaRef,
    spills: SpillManager,
}

struct State {
    entries: Vec<Entry>,
    /// `None` once all rows have been read.
    rows: Option<SendableRecordBatchStream>,
    memory: MemoryReservation,
}

impl fmt::Debug for CteBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl CteBatches {
    fn new(rows: SendableRecordBatchStream, schema: &SchemaRef, runtime: std::sync::Arc<RuntimeEnv>) -> Self {
        let memory = MemoryConsumer::new("rows that are computed once").register(&runtime.memory_pool);
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let spills = SpillManager::new(runtime, metrics, std::sync::Arc::clone(schema));
        let state = State { entries: Vec::new(), rows: Some(rows), memory };
        CteBatches { state: tokio::sync::Mutex::new(state), schema: std::sync::Arc::clone(schema), spills }
    }

    /// Returns a batch by its position, and computes it if necessary. A batch that does not fit
    /// into memory spills to a file of its own.
    async fn get(&self, at: usize) -> Result<Option<Entry>> {
        let mut state = self.state.lock().await;
        loop {
            if let Some(entry) = state.entries.get(at) {
                return Ok(Some(entry.clone()));
            }
            let Some(rows) = &mut state.rows else { return Ok(None) };
            let Some(batch) = rows.next().await.transpose()? else {
                state.rows = None;
                continue;
            };
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().to_vec();
            let batch =
                RecordBatch::try_new_with_options(std::sync::Arc::clone(&self.schema), columns, &options)?;
            if state.memory.try_grow(batch.get_array_memory_size()).is_ok() {
                state.entries.push(Entry::InMemory(batch));
                continue;
            }
            let file = self.spills.spill_record_batch_and_finish(&[batch], "rows that are computed once")?;
            state.entries.extend(file.map(Entry::InFile));
        }
    }
}
