//! Scans of a table: leaves of a tree become batches of columns.

pub(crate) mod batches;
pub(crate) mod current_view;
pub(crate) mod filter;
pub(crate) mod provider;
pub(crate) mod system_tables;

use std::fmt;

use arrow::compute::SortOptions;
use arrow::datatypes::{Schema, SchemaRef};
use cairn_table::row::Type;
use cairn_table::schema::{ColumnType, KeyColumn};
use cairn_table::{KeyRange, OwnedValue, View};
use cairn_vfs::sync::Arc;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};

use crate::batch::data_type;
use crate::datum::DatumRef;
use crate::direct::{Access, Ranges};
use crate::expr::{Cells, Comparison, Env, NoContext, Node};
use crate::general::errors::external;
use crate::general::operators::join_filter::{JoinFilterKeys, are_numbers, is_wider};
use crate::general::scan::batches::{Blocks, ScanRequest, TableBatches};

/// Rows that are worth another thread.
const ROWS_FOR_A_THREAD: u64 = 8_192;

/// A scan of a part of a table, in the order of a tree.
#[derive(Debug, Clone)]
pub(crate) struct TableScan {
    /// `None` at rest.
    view: Option<View>,
    access: Arc<Access>,
    /// Columns of the table. A number past the last column means the row's key.
    projection: Vec<usize>,
    kinds: Vec<ColumnType>,
    /// The key ranges of each partition.
    ranges: Vec<Vec<KeyRange>>,
    limit: Option<usize>,
    /// Rows of the table at planning time, and the threads available to the scan.
    rows: u64,
    threads: usize,
    /// Join filters on columns of the table.
    join_filters: Vec<JoinFilter>,
    statistics: Statistics,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// A join filter: a column, and the keys that have a partner once they are known.
#[derive(Debug, Clone)]
pub(crate) struct JoinFilter {
    pub column: usize,
    pub kind: ColumnType,
    pub keys: Arc<JoinFilterKeys>,
    /// Whether rows are filtered by the keys if they are not looked up by them.
    pub filters: bool,
}

impl TableScan {
    #[allow(clippy::too_many_arguments, reason = "all that reading a table depends on")]
    pub fn new(
        view: View,
        access: Access,
        projection: Vec<usize>,
        kinds: Vec<ColumnType>,
        schema: SchemaRef,
        limit: Option<usize>,
        statistics: Statistics,
        threads: usize,
    ) -> Result<Self> {
        let ranges = partitions(&view, &access, limit, threads).map_err(external)?;
        let rows = rows_of(&view, &access, &ranges).map_err(external)?;
        let statistics = narrowed(statistics, rows, &access, limit);
        let equivalences = match ordering(&access, &projection, &schema) {
            Some(ordering) => EquivalenceProperties::new_with_orderings(Arc::clone(&schema), [ordering]),
            None => EquivalenceProperties::new(Arc::clone(&schema)),
        };
        let partitioning = Partitioning::UnknownPartitioning(ranges.len());
        let properties =
            PlanProperties::new(equivalences, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        Ok(TableScan {
            view: Some(view),
            rows: access.table.rows(),
            threads,
            access: Arc::new(access),
            projection,
            kinds,
            ranges,
            limit,
            join_filters: Vec::new(),
            statistics,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Returns the scan for a cached plan. It holds no view, so nothing waits for it.
    pub fn at_rest(&self) -> TableScan {
        let metrics = ExecutionPlanMetricsSet::new();
        TableScan { view: None, ranges: Vec::new(), join_filters: Vec::new(), metrics, ..self.clone() }
    }

    /// Returns the scan for a run with the given view. `None` when the table has grown or shrunk
    /// much since planning.
    ///
    /// Errors: those of dividing it into partitions.
    pub fn with_view(&self, view: &View) -> Result<Option<TableScan>> {
        let (rows, then) = (self.access.table.rows(), self.rows);
        if rows.max(then) > rows.min(then).saturating_mul(2).saturating_add(ROWS_FOR_A_THREAD) {
            return Ok(None);
        }
        let ranges = partitions(view, &self.access, self.limit, self.threads).map_err(external)?;
        if ranges.len() != self.properties.partitioning.partition_count() {
            return Ok(None);
        }
        let (view, metrics) = (Some(view.clone()), ExecutionPlanMetricsSet::new());
        Ok(Some(TableScan { view, ranges, metrics, ..self.clone() }))
    }

    /// Whether it drops rows of its table.
    pub fn drops_rows(&self) -> bool {
        let conditions = self.access.conditions.as_ref();
        let has_conditions = conditions.is_some_and(|conditions| conditions.columns().next().is_some());
        has_conditions
            || !self.access.is_full()
            || self.access.residual.is_some()
            || !self.join_filters.is_empty()
    }

    /// Whether it returns the same rows as another scan of the plan, in the same partitions.
    pub fn has_rows_of(&self, other: &TableScan) -> bool {
        // Conditions are compared by their text.
        let chosen = |scan: &TableScan| {
            let Access { index, range, residual, backward, .. } = &*scan.access;
            format!("{index:?} {range:?} {residual:?} {backward}")
        };
        self.access.table.id() == other.access.table.id()
            && self.join_filters.is_empty()
            && other.join_filters.is_empty()
            && (self.limit, &self.ranges) == (other.limit, &other.ranges)
            && chosen(self) == chosen(other)
    }

    /// How rows are found.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The columns of the table that it returns. A number past the last column means the row's key.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Reads a partition leaf by leaf, with the given columns of the table. `None` where rows must
    /// be checked one by one.
    ///
    /// Errors: those of computing the values of the conditions; the plan is at rest.
    pub fn leaves(&self, partition: usize, columns: &[(usize, ColumnType)]) -> Result<Option<Blocks>> {
        let (projection, kinds): (Vec<usize>, Vec<ColumnType>) = columns.iter().cloned().unzip();
        let schema = Arc::new(Schema::empty());
        let request = ScanRequest {
            view: self.view()?,
            access: &self.access,
            projection: &projection,
            kinds: &kinds,
            schema: &schema,
            limit: None,
            join_filters: &self.join_filters,
            rows: self.estimate_rows(),
            lookups: self.count_lookups(partition),
        };
        Blocks::new(&request, self.ranges.get(partition).cloned().unwrap_or_default()).map_err(external)
    }

    /// The estimated number of rows.
    fn estimate_rows(&self) -> u64 {
        self.statistics.num_rows.get_value().map_or(self.rows, |rows| *rows as u64)
    }

    /// Returns the counter of lookups.
    fn count_lookups(&self, partition: usize) -> Count {
        if self.join_filters.is_empty() {
            return Count::new();
        }
        MetricBuilder::new(&self.metrics).counter("lookups", partition)
    }

    fn view(&self) -> Result<&View> {
        let view = self.view.as_ref();
        view.ok_or_else(|| DataFusionError::Internal("a cached plan was run without a view".to_owned()))
    }

    /// Returns the scan with a join filter on one of its columns. `None` where it cannot apply the
    /// filter, and where the filter is useless: it does not drop rows (`is_part` is false), and
    /// lookups by its keys are impossible.
    pub fn with_join_filter(
        &self,
        column: usize,
        keys: &Arc<JoinFilterKeys>,
        is_part: bool,
    ) -> Option<TableScan> {
        let column = *self.projection.get(column)?;
        let kind = self.access.table.def().columns.get(column)?.kind.clone();
        let own = data_type(&kind);
        if *keys.kind() != own && !is_wider(keys.kind(), &own) || self.limit.is_some() {
            return None;
        }
        let filters =
            is_part && are_numbers(keys.kind()) && self.access.conditions.is_some() && !self.access.fetches;
        let looks_up = is_looked_up(kind.kind) && self.access.can_look_up(column);
        (filters || looks_up).then(|| {
            let mut join_filters = self.join_filters.clone();
            join_filters.push(JoinFilter { column, kind, keys: Arc::clone(keys), filters });
            TableScan { join_filters, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
        })
    }
}

/// Types for which each value of a batch corresponds to exactly one value in a tree.
fn is_looked_up(kind: Type) -> bool {
    matches!(
        kind,
        Type::SmallInt
            | Type::Int
            | Type::BigInt
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Decimal
            | Type::Text
            | Type::Uuid
            | Type::Blob
    )
}

/// Returns the key ranges of each partition.
fn partitions(
    view: &View,
    access: &Access,
    limit: Option<usize>,
    threads: usize,
) -> crate::Result<Vec<Vec<KeyRange>>> {
    use std::ops::Bound::{Excluded, Included};
    let env = Env::new(Cells::None, &[], &NoContext);
    let mut key = Vec::new();
    let mut ranges = match access.ranges(&env, &mut key)? {
        Ranges::None => return Ok(vec![Vec::new()]),
        Ranges::Point => {
            let end = [&key[..], &[0xff]].concat();
            return Ok(vec![vec![(Included(key), Excluded(end))]]);
        }
        Ranges::Some(ranges) => ranges,
    };
    let rows = access.table.rows();
    let parts = (rows / ROWS_FOR_A_THREAD).clamp(1, threads as u64) as usize;
    let few = limit.is_some_and(|limit| (limit as u64) < ROWS_FOR_A_THREAD);
    if ranges.len() > 1 || parts < 2 || few {
        return Ok(vec![ranges]);
    }
    let Some(only) = ranges.pop() else { return Ok(vec![Vec::new()]) };
    let split = view.split(&access.table, access.index, only, parts)?;
    Ok(split.into_iter().map(|range| vec![range]).collect())
}

/// Number of ranges whose rows are estimated. With more ranges, every nth is a sample.
const RANGES_GUESSED: usize = 16;

/// Estimates the number of rows in the ranges of all partitions; `None` for the whole table.
///
/// Errors: those of the table.
fn rows_of(view: &View, access: &Access, partitions: &[Vec<KeyRange>]) -> crate::Result<Option<u64>> {
    if access.is_full() {
        return Ok(None);
    }
    let ranges: Vec<&KeyRange> = partitions.iter().flatten().collect();
    let step = ranges.len().div_ceil(RANGES_GUESSED).max(1);
    let mut rows = 0;
    for (start, end) in ranges.iter().step_by(step) {
        let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
        rows += view.estimate_rows(&access.table, access.index, range)?;
    }
    let looked_at = ranges.len().div_ceil(step).max(1) as u64;
    Ok(Some(rows * ranges.len() as u64 / looked_at))
}

/// Adjusts the statistics of a table to the `rows` in the ranges of a scan.
fn narrowed(statistics: Statistics, rows: Option<u64>, access: &Access, limit: Option<usize>) -> Statistics {
    use datafusion::common::stats::Precision;
    let mut statistics = statistics;
    if let Precision::Inexact(all) = statistics.num_rows {
        let left = rows.map_or(all, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let left = ((left as f64 * share_of_texts(access)).ceil() as usize).max(usize::from(all > 0));
        let left = limit.map_or(left, |limit| left.min(limit));
        let bytes = statistics.total_byte_size.get_value().copied().unwrap_or(0);
        statistics.total_byte_size = Precision::Inexact(bytes / all.max(1) * left);
        statistics.num_rows = Precision::Inexact(left);
        for column in &mut statistics.column_statistics {
            let fewer = |count: Precision<usize>| match count {
                Precision::Inexact(count) => Precision::Inexact(count.min(left)),
                other => other,
            };
            (column.distinct_count, column.null_count) =
                (fewer(column.distinct_count), fewer(column.null_count));
        }
    }
    statistics
}

/// The selectivity that DataFusion assumes for filters that it cannot estimate, such as those on
/// texts.
const UNKNOWN_FILTER: f64 = 0.2;

/// Returns the share of its rows that a scan should report. DataFusion multiplies it by its assumed
/// selectivity of the filter above, and the product should match the estimate from our column
/// statistics. Without conditions on texts, DataFusion can estimate the filter, and the share is 1.
fn share_of_texts(access: &Access) -> f64 {
    let def = access.table.def();
    let Some(known) = access.table.statistics() else { return 1.0 };
    let (mut share, mut has_text) = (1.0, false);
    // The range conditions on each column: column, lower and upper bound as fractions of its value
    // range.
    let mut ranges: Vec<(usize, f64, f64)> = Vec::new();
    for node in access.residual.clone().map(Node::conjuncts).unwrap_or_default() {
        let (operand, value, count) = match &node {
            Node::Compare(comparison, pair) => (&pair[0], Some((*comparison, &pair[1])), 1),
            Node::In { operand, list, negated: false } => (&**operand, None, list.len()),
            _ => continue,
        };
        let Node::Slot { slot, scale } = operand else { continue };
        let (Some(column), Some(of)) = (def.columns.get(*slot), known.columns.get(*slot)) else { continue };
        has_text |= column.kind.kind == Type::Text;
        match value {
            None | Some((Comparison::Equal, _)) => {
                share *= (count as f64 / of.distinct.max(1) as f64).min(1.0)
            }
            Some((comparison, value)) => {
                let end = |value: &Option<OwnedValue>| {
                    number_of(&DatumRef::from_value(value.as_ref()?.value(), *scale))
                };
                let Node::Const(value) = value else { continue };
                let (Some(least), Some(most), Some(value)) =
                    (end(&of.min), end(&of.max), number_of(&value.borrow()))
                else {
                    continue;
                };
                let width = (most - least).max(f64::MIN_POSITIVE);
                let place = ((value - least) / width).clamp(0.0, 1.0);
                let at = ranges.iter().position(|(column, ..)| column == slot).unwrap_or_else(|| {
                    ranges.push((*slot, 0.0, 1.0));
                    ranges.len() - 1
                });
                let Some((_, low, high)) = ranges.get_mut(at) else { continue };
                match comparison {
                    Comparison::Greater | Comparison::GreaterOrEqual => *low = low.max(place),
                    Comparison::Less | Comparison::LessOrEqual => *high = high.min(place),
                    _ => {}
                }
            }
        }
    }
    for (column, low, high) in ranges {
        let one = known.columns.get(column).map_or(1.0, |of| 1.0 / of.distinct.max(1) as f64);
        share *= (high - low).max(one);
    }
    if has_text { (share / UNKNOWN_FILTER).min(1.0) } else { 1.0 }
}

/// Returns a value as a number for interpolation; `None` for types without distances.
fn number_of(value: &DatumRef<'_>) -> Option<f64> {
    Some(match *value {
        DatumRef::SmallInt(value) => value.into(),
        DatumRef::Int(value) | DatumRef::Date(value) => value.into(),
        DatumRef::BigInt(value) | DatumRef::Time(value) | DatumRef::Timestamp(value) => value as f64,
        DatumRef::Decimal { unscaled, scale } => unscaled as f64 / 10_f64.powi(scale.into()),
        DatumRef::Real(value) => value.into(),
        DatumRef::Double(value) => value,
        _ => return None,
    })
}

/// Returns the order of the rows, up to the first key column that is not projected.
fn ordering(access: &Access, projection: &[usize], schema: &SchemaRef) -> Option<LexOrdering> {
    let def = access.table.def();
    let columns: &[KeyColumn] = match access.index {
        None => &def.primary_key,
        Some(index) => &def.indexes.get(index)?.columns,
    };
    let mut order = Vec::new();
    // Columns that an equality fixes to one value can be skipped.
    for key in columns.iter().skip(access.range.prefix.len()) {
        let Some(at) = projection.iter().position(|&column| column == key.column) else { break };
        let kind = def.columns.get(key.column)?.kind.kind;
        if matches!(kind, Type::Real | Type::Double) {
            break;
        }
        let options = SortOptions { descending: key.order.descending, nulls_first: key.order.nulls_first };
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(at).name(), at));
        order.push(PhysicalSortExpr::new(column, options));
    }
    LexOrdering::new(order)
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let def = self.access.table.def();
        write!(f, "TableScan: {}", def.name)?;
        if let Some(index) = self.access.index.and_then(|index| def.indexes.get(index)) {
            write!(f, " using {}{}", index.name, if self.access.fetches { "" } else { " only" })?;
        }
        let range = &self.access.range;
        if range.is_point {
            f.write_str(", point")?;
        } else if !self.access.is_full() {
            write!(
                f,
                ", range of {} columns",
                range.prefix.len()
                    + usize::from(range.any_of.is_some() || range.lower.is_some() || range.upper.is_some())
            )?;
        }
        let chosen_by = self.access.conditions.as_ref().map_or(0, |conditions| conditions.len());
        if chosen_by > 0 {
            write!(f, ", {chosen_by} conditions on columns")?;
        }
        for filter in &self.join_filters {
            let name = def.columns.get(filter.column).map_or("?", |column| &column.name);
            write!(f, ", join filter on {name}")?;
        }
        write!(f, ", partitions={}", self.ranges.len())?;
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for TableScan {
    fn name(&self) -> &str {
        "TableScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    /// Drops the join filters: another run has other keys.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(TableScan { join_filters: Vec::new(), metrics, ..TableScan::clone(&self) }))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let ranges = self.ranges.get(partition).cloned().unwrap_or_default();
        let schema = self.properties.eq_properties.schema();
        let request = ScanRequest {
            view: self.view()?,
            access: &self.access,
            projection: &self.projection,
            kinds: &self.kinds,
            schema,
            limit: self.limit,
            join_filters: &self.join_filters,
            rows: self.estimate_rows(),
            lookups: self.count_lookups(partition),
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = TableBatches::new(&request, ranges, metrics).map_err(external)?;
        let stream = RecordBatchStreamAdapter::new(Arc::clone(schema), futures_util::stream::iter(batches));
        Ok(make_cooperative(Box::pin(stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = self.statistics.clone();
        if args.partition().is_some() {
            use datafusion::common::stats::Precision;
            let parts = self.ranges.len().max(1);
            let share = |precision: Precision<usize>| match precision.get_value() {
                Some(value) => Precision::Inexact(value / parts),
                None => Precision::Absent,
            };
            statistics.num_rows = share(statistics.num_rows);
            statistics.total_byte_size = share(statistics.total_byte_size);
        }
        Ok(Arc::new(statistics))
    }
}
