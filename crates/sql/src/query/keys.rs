//! Join filters: the keys of one side of a hash join, for the scan on its other side.
//!
//! A hash join reads its smaller side completely before it asks for a row of the larger one. By
//! then all keys are known, and most rows of the larger side may have no partner. Their other
//! columns need not be read, sent to another thread or hashed. Where the keys are few, their rows
//! are looked up, and the larger side is not scanned at all. [`JoinKeys`] sits on top of the
//! smaller side and collects the keys that pass through. The scan
//! ([`TableScan`](super::scan::TableScan)) applies them once they are complete, and returns
//! unfiltered rows until then. The idea is semijoin reduction by a filter (Bratbergsengen, VLDB
//! 1984). DuckDB and DataFusion's own file scans do it too. With lookups it becomes an index join
//! that is chosen at run time, when the number of lookups is known.

use std::collections::HashSet;
use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimeUnit,
};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures_util::{StreamExt, stream};

use super::value::datum;
use crate::datum::Datum;
use crate::direct::{Members, TooWide};

/// Rows whose keys are collected one by one, where the keys are not integers in a dense range.
/// Beyond that, the filter is given up: nobody would look up so many keys.
const ROWS_ONE_BY_ONE: usize = 1 << 14;

/// Size in bytes of the largest key that is collected.
const KEY_BYTES: usize = 1 << 10;

/// The keys of one side of a join, once they are complete.
#[derive(Debug)]
pub(super) struct Keys {
    kind: DataType,
    gathered: Mutex<Gathered>,
    found: OnceLock<Found>,
}

#[derive(Debug)]
struct Gathered {
    /// Partitions that have not ended yet.
    left: usize,
    noted: Noted,
}

/// All keys of a side.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// Integers or dates.
    Numbers(Arc<Members>),
    Few(Arc<HashSet<ScalarValue>>),
}

/// The keys collected so far.
#[derive(Debug)]
enum Noted {
    Numbers(Members),
    /// The keys, and the number of rows that they come from.
    Few(HashSet<ScalarValue>, usize),
    /// There were more rows than are collected.
    TooMany,
}

/// Whether keys of a type are integers, of which any number can be collected if they are dense.
pub(super) fn are_numbers(kind: &DataType) -> bool {
    matches!(kind, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

/// Whether an integer type contains all values of another one.
pub(super) fn is_wider(kind: &DataType, than: &DataType) -> bool {
    use DataType::{Int16, Int32, Int64};
    matches!((kind, than), (Int64, Int32 | Int16) | (Int32, Int16))
}

/// Whether keys of a type can be collected: their equality must be that of their bytes in a tree.
pub(super) fn are_noted(kind: &DataType) -> bool {
    let is_exact = matches!(
        kind,
        DataType::Utf8View
            | DataType::BinaryView
            | DataType::Decimal128(..)
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond, None)
    );
    is_exact || are_numbers(kind)
}

impl Keys {
    /// Creates a join filter for keys of a type, to be collected from a number of partitions.
    pub fn of(partitions: usize, kind: &DataType) -> Arc<Keys> {
        let gathered = Gathered { left: partitions, noted: Noted::new(kind) };
        Arc::new(Keys { kind: kind.clone(), gathered: Mutex::new(gathered), found: OnceLock::new() })
    }

    /// The type of the keys.
    pub fn kind(&self) -> &DataType {
        &self.kind
    }

    /// Returns all keys; `None` while they are incomplete, and where they are too many.
    pub fn get(&self) -> Option<&Found> {
        self.found.get()
    }

    /// Adds the keys of a partition that has ended.
    fn add(&self, noted: Noted) {
        let mut gathered = lock(&self.gathered);
        gathered.left = gathered.left.saturating_sub(1);
        let all = std::mem::replace(&mut gathered.noted, Noted::TooMany).and(noted, &self.kind);
        if gathered.left > 0 {
            gathered.noted = all;
            return;
        }
        let found = match all {
            Noted::Numbers(members) => Found::Numbers(Arc::new(members)),
            Noted::Few(keys, _) => Found::Few(Arc::new(keys)),
            Noted::TooMany => return,
        };
        // Only one partition is the last, so this cannot have been set before.
        let _ = self.found.set(found);
    }
}

impl Found {
    /// Returns the keys as values of a column; `None` where there are more than `most`.
    pub fn values(&self, kind: &ColumnType, most: usize) -> Option<Vec<Datum>> {
        match self {
            Found::Numbers(members) => {
                let value = |number| datum(&number_of(&data_type(kind)?, number)?, kind);
                (members.count() <= most).then(|| members.values().filter_map(value).collect())
            }
            Found::Few(keys) => {
                // Integers that were widened for the join are converted back to the column's type.
                // Values out of its range have no partner.
                let value = |key: &ScalarValue| match data_type(kind).zip(number(key)) {
                    Some((own, number)) => datum(&number_of(&own, number)?, kind),
                    None => datum(key, kind),
                };
                (keys.len() <= most).then(|| keys.iter().filter_map(value).collect())
            }
        }
    }
}

impl Noted {
    fn new(kind: &DataType) -> Noted {
        if are_numbers(kind) { Noted::Numbers(Members::default()) } else { Noted::Few(HashSet::new(), 0) }
    }

    /// Adds the keys of a column, except for NULL, which equals nothing.
    fn note(&mut self, column: &ArrayRef) {
        if let Noted::Numbers(members) = self {
            if note_numbers(column, members).is_ok() {
                return;
            }
            *self = std::mem::replace(self, Noted::TooMany).one_by_one(column.data_type());
        }
        if let Noted::Few(keys, rows) = self {
            *rows += column.len();
            if *rows > ROWS_ONE_BY_ONE {
                *self = Noted::TooMany;
                return;
            }
            for at in (0..column.len()).filter(|at| column.is_valid(*at)) {
                match ScalarValue::try_from_array(column, at) {
                    Ok(key) if key.size() <= KEY_BYTES => _ = keys.insert(key),
                    _ => return *self = Noted::TooMany,
                }
            }
        }
    }

    /// Converts integers that are not dense to a set of single keys.
    fn one_by_one(self, kind: &DataType) -> Noted {
        let Noted::Numbers(members) = self else { return self };
        let count = members.count();
        if count > ROWS_ONE_BY_ONE {
            return Noted::TooMany;
        }
        Noted::Few(members.values().filter_map(|number| number_of(kind, number)).collect(), count)
    }

    /// Merges the keys of two partitions.
    fn and(self, other: Noted, kind: &DataType) -> Noted {
        match (self, other) {
            (Noted::Numbers(mut members), Noted::Numbers(others)) => match members.insert_all(&others) {
                Ok(()) => Noted::Numbers(members),
                Err(TooWide) => {
                    let all = Noted::Numbers(members).one_by_one(kind);
                    all.and(Noted::Numbers(others).one_by_one(kind), kind)
                }
            },
            (Noted::Few(mut keys, rows), Noted::Few(others, more)) if rows + more <= ROWS_ONE_BY_ONE => {
                keys.extend(others);
                Noted::Few(keys, rows + more)
            }
            (few @ Noted::Few(..), numbers @ Noted::Numbers(_))
            | (numbers @ Noted::Numbers(_), few @ Noted::Few(..)) => few.and(numbers.one_by_one(kind), kind),
            _ => Noted::TooMany,
        }
    }
}

fn data_type(kind: &ColumnType) -> Option<DataType> {
    Some(crate::batch::data_type(kind)).filter(are_numbers)
}

/// Returns a value of one of the types of [`are_numbers`] as an integer.
fn number(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::Int16(value) => value.map(i64::from),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(i64::from),
        ScalarValue::Int64(value) => *value,
        _ => None,
    }
}

/// Returns an integer as a value of one of the types of [`are_numbers`].
fn number_of(kind: &DataType, number: i64) -> Option<ScalarValue> {
    Some(match kind {
        DataType::Int16 => ScalarValue::Int16(Some(number.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(number.try_into().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(number)),
        DataType::Date32 => ScalarValue::Date32(Some(number.try_into().ok()?)),
        _ => return None,
    })
}

/// Passes batches on and collects the keys in some of their columns.
#[derive(Debug)]
pub(super) struct JoinKeys {
    input: Arc<dyn ExecutionPlan>,
    /// Columns of the input, each with its join filter.
    keys: Vec<(usize, Arc<Keys>)>,
}

impl JoinKeys {
    pub fn new(input: Arc<dyn ExecutionPlan>, keys: Vec<(usize, Arc<Keys>)>) -> JoinKeys {
        JoinKeys { input, keys }
    }
}

impl DisplayAs for JoinKeys {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinKeys: ")?;
        for (nth, (column, _)) in self.keys.iter().enumerate() {
            let schema = self.input.schema();
            let name = schema.fields().get(*column).map_or("?", |field| field.name());
            write!(f, "{}{name}", if nth > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl ExecutionPlan for JoinKeys {
    fn name(&self) -> &str {
        "JoinKeys"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.into_iter().next() else {
            return Err(DataFusionError::Internal("keys of nothing".to_owned()));
        };
        let is_alike = input.output_partitioning().partition_count()
            == self.input.output_partitioning().partition_count();
        // With another number of partitions, the filter would wait for partitions that do not
        // exist.
        let keys = if is_alike { self.keys.clone() } else { Vec::new() };
        Ok(Arc::new(JoinKeys { input, keys }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    /// Drops the join filters: another run has other keys.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(JoinKeys { input: Arc::clone(&self.input), keys: Vec::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        if self.keys.is_empty() {
            return Ok(input);
        }
        let schema: SchemaRef = input.schema();
        let noted = self.keys.iter().map(|(column, keys)| NotedColumn {
            column: *column,
            noted: Noted::new(keys.kind()),
            keys: Arc::clone(keys),
        });
        let noting = Noting { input, noted: noted.collect() };
        let batches = stream::unfold(noting, |mut noting| async move {
            let batch = noting.next().await?;
            Some((batch, noting))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.input.schema()));
        Ok(inputs.first().map_or_else(unknown, Arc::clone))
    }
}

/// The batches of a partition, and the keys found in them.
struct Noting {
    input: SendableRecordBatchStream,
    noted: Vec<NotedColumn>,
}

struct NotedColumn {
    column: usize,
    keys: Arc<Keys>,
    noted: Noted,
}

impl Noting {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.input.next().await;
        match &batch {
            Some(Ok(batch)) => {
                for of in &mut self.noted {
                    match batch.columns().get(of.column) {
                        Some(column) => of.noted.note(column),
                        None => of.noted = Noted::TooMany,
                    }
                }
            }
            // The rows after an error are unknown, so the keys stay incomplete.
            Some(Err(_)) => self.noted.clear(),
            None => self.noted.drain(..).for_each(|of| of.keys.add(of.noted)),
        }
        batch
    }
}

fn note_numbers(array: &ArrayRef, members: &mut Members) -> Result<(), TooWide> {
    if let Some(values) = array.as_primitive_opt::<Int32Type>() {
        note_values(values, members)
    } else if let Some(values) = array.as_primitive_opt::<Int64Type>() {
        note_values(values, members)
    } else if let Some(values) = array.as_primitive_opt::<Int16Type>() {
        note_values(values, members)
    } else {
        note_values(array.as_primitive_opt::<Date32Type>().ok_or(TooWide)?, members)
    }
}

fn note_values<T: ArrowPrimitiveType<Native: Into<i64>>>(
    values: &PrimitiveArray<T>,
    members: &mut Members,
) -> Result<(), TooWide> {
    match values.nulls() {
        None => values.values().iter().try_for_each(|value| members.insert((*value).into())),
        Some(_) => values.iter().flatten().try_for_each(|value| members.insert(value.into())),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn numbers(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn noted(kind: &DataType, arrays: &[ArrayRef]) -> Noted {
        let mut noted = Noted::new(kind);
        arrays.iter().for_each(|array| noted.note(array));
        noted
    }

    /// Returns the keys of a filter after all partitions have been added, sorted; `None` where it
    /// has none.
    fn told(kind: &DataType, parts: Vec<Noted>) -> Option<Vec<ScalarValue>> {
        let keys = Keys::of(parts.len(), kind);
        for part in parts {
            assert!(keys.get().is_none(), "told too early");
            keys.add(part);
        }
        let mut found: Vec<ScalarValue> = match keys.get()? {
            Found::Numbers(members) => members.values().map(|at| number_of(kind, at).unwrap()).collect(),
            Found::Few(keys) => keys.iter().cloned().collect(),
        };
        found.sort_by(|one, other| one.partial_cmp(other).unwrap());
        Some(found)
    }

    /// Goal: the filter has all keys once all partitions have ended, and none before. It also holds
    /// integers that are far apart within a partition or between partitions, as long as they are
    /// few.
    /// Method: partitions in turn, with dense and sparse integers, in one batch and in several.
    #[test]
    fn keys_are_told_when_all_are_there() {
        let kind = DataType::Int64;
        let far = 1 << 40;
        for parts in [
            vec![vec![5, 9], vec![], vec![-70, 5]],
            vec![vec![5, far], vec![7]],
            vec![vec![5], vec![far], vec![-far, 5]],
            vec![vec![i64::MIN, i64::MAX], vec![0]],
            vec![vec![]],
        ] {
            let mut expected: Vec<i64> = parts.concat();
            expected.sort_unstable();
            expected.dedup();
            let expected: Vec<_> = expected.into_iter().map(|key| ScalarValue::Int64(Some(key))).collect();
            for in_one_batch in [true, false] {
                let of = |part: &Vec<i64>| {
                    let batches = if in_one_batch {
                        vec![numbers(part)]
                    } else {
                        part.iter().map(|key| numbers(&[*key])).collect()
                    };
                    noted(&kind, &batches)
                };
                assert_eq!(told(&kind, parts.iter().map(of).collect()), Some(expected.clone()), "{parts:?}");
            }
        }
    }

    /// Goal: text keys are collected like integers, NULL is no key, and with too many rows there is
    /// no filter, whether they are in one partition or in two.
    /// Method: row counts around the limit.
    #[test]
    fn keys_that_are_too_many_are_not_told() {
        let kind = DataType::Utf8View;
        let texts = |count: usize| -> ArrayRef {
            Arc::new(
                (0..count)
                    .map(|at| (at % 5 > 0).then(|| format!("key {}", at % 3)))
                    .collect::<StringViewArray>(),
            )
        };
        let expected: Vec<_> = (0..3).map(|at| ScalarValue::Utf8View(Some(format!("key {at}")))).collect();
        for (counts, is_told) in [
            (vec![ROWS_ONE_BY_ONE], true),
            (vec![ROWS_ONE_BY_ONE + 1], false),
            (vec![ROWS_ONE_BY_ONE - 20, 20], true),
            (vec![20, ROWS_ONE_BY_ONE - 19], false),
            (vec![ROWS_ONE_BY_ONE + 1, 20], false),
        ] {
            let parts = counts.iter().map(|count| noted(&kind, &[texts(*count)])).collect();
            assert_eq!(told(&kind, parts), is_told.then(|| expected.clone()), "{counts:?}");
        }
        let far: Vec<i64> = (0..).map(|at| at << 30).take(ROWS_ONE_BY_ONE + 1).collect();
        assert_eq!(told(&DataType::Int64, vec![noted(&DataType::Int64, &[numbers(&far)])]), None);
        let near: Vec<i64> = (0..ROWS_ONE_BY_ONE as i64 + 1).collect();
        let kept = told(&DataType::Int64, vec![noted(&DataType::Int64, &[numbers(&near)])]);
        assert_eq!(kept.map(|keys| keys.len()), Some(near.len()));
        // More dense integers than are collected one by one, and a single integer far from them.
        let parts =
            vec![noted(&DataType::Int64, &[numbers(&near)]), noted(&DataType::Int64, &[numbers(&[1 << 50])])];
        assert_eq!(told(&DataType::Int64, parts), None);
    }
}
