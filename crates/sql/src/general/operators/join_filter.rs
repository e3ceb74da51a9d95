//! Join filters: the keys of one side of a hash join, for the scan on its other side.
//!
//! A hash join reads its smaller side completely before it asks for a row of the larger one. By
//! then all keys are known, and most rows of the larger side may have no partner. Their other
//! columns need not be read, sent to another thread or hashed. Where the keys are few, their rows
//! are looked up, and the larger side is not scanned at all. [`JoinKeysExec`] sits on top of the
//! smaller side and collects the keys that pass through. The scan
//! ([`TableScan`](crate::general::scan::TableScan)) applies them once they are complete, and
//! returns unfiltered rows until then. The idea is semijoin reduction by a filter (Bratbergsengen,
//! VLDB 1984). DuckDB and DataFusion's own file scans do it too. With lookups it becomes an index
//! join that is chosen at run time, when the number of lookups is known.

use std::collections::HashSet;
use std::fmt;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimeUnit,
};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures_util::{StreamExt, stream};

use crate::datum::Datum;
use crate::direct::{Members, TooWide};
use crate::general::operators::unary::{no_expressions, unary};
use crate::general::tree::values::datum;

/// Rows whose keys are collected one by one, where the keys are not integers in a dense range.
/// Beyond that, the filter is given up: nobody would look up so many keys.
const ROWS_ONE_BY_ONE: usize = 1 << 14;

/// Size in bytes of the largest key that is collected.
const KEY_BYTES: usize = 1 << 10;

/// The keys of one side of a join, once they are complete.
#[derive(Debug)]
pub(crate) struct JoinFilterKeys {
    kind: DataType,
    gathered: Mutex<Gathered>,
    found: OnceLock<KnownKeys>,
}

#[derive(Debug)]
struct Gathered {
    /// Partitions that have not ended yet.
    left: usize,
    collected: CollectedKeys,
}

/// All keys of a side.
#[derive(Debug, Clone)]
pub(crate) enum KnownKeys {
    /// Integers or dates.
    Numbers(Arc<Members>),
    Few(Arc<HashSet<ScalarValue>>),
}

/// The keys collected so far.
#[derive(Debug)]
enum CollectedKeys {
    Numbers(Members),
    /// The keys, and the number of rows that they come from.
    Few(HashSet<ScalarValue>, usize),
    /// There were more rows than are collected.
    TooMany,
}

/// Whether keys of a type are integers, of which any number can be collected if they are dense.
pub(crate) fn are_numbers(kind: &DataType) -> bool {
    matches!(kind, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

/// Whether an integer type contains all values of another one.
pub(crate) fn is_wider(kind: &DataType, than: &DataType) -> bool {
    use DataType::{Int16, Int32, Int64};
    matches!((kind, than), (Int64, Int32 | Int16) | (Int32, Int16))
}

/// Whether keys of a type can be collected: their equality must be that of their bytes in a tree.
pub(crate) fn can_be_collected(kind: &DataType) -> bool {
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

impl JoinFilterKeys {
    /// Creates a join filter for keys of a type, to be collected from a number of partitions.
    pub fn of(partitions: usize, kind: &DataType) -> Arc<JoinFilterKeys> {
        let gathered = Gathered { left: partitions, collected: CollectedKeys::new(kind) };
        Arc::new(JoinFilterKeys {
            kind: kind.clone(),
            gathered: Mutex::new(gathered),
            found: OnceLock::new(),
        })
    }

    /// The type of the keys.
    pub fn kind(&self) -> &DataType {
        &self.kind
    }

    /// Returns all keys; `None` while they are incomplete, and where they are too many.
    pub fn get(&self) -> Option<&KnownKeys> {
        self.found.get()
    }

    /// Adds the keys of a partition that has ended.
    fn add(&self, collected: CollectedKeys) {
        let mut gathered = lock(&self.gathered);
        gathered.left = gathered.left.saturating_sub(1);
        let all =
            std::mem::replace(&mut gathered.collected, CollectedKeys::TooMany).and(collected, &self.kind);
        if gathered.left > 0 {
            gathered.collected = all;
            return;
        }
        let found = match all {
            CollectedKeys::Numbers(members) => KnownKeys::Numbers(Arc::new(members)),
            CollectedKeys::Few(keys, _) => KnownKeys::Few(Arc::new(keys)),
            CollectedKeys::TooMany => return,
        };
        // Only one partition is the last, so this cannot have been set before.
        let _ = self.found.set(found);
    }
}

impl KnownKeys {
    /// Returns the keys as values of a column; `None` where there are more than `most`.
    pub fn values(&self, kind: &ColumnType, most: usize) -> Option<Vec<Datum>> {
        match self {
            KnownKeys::Numbers(members) => {
                let value = |number| datum(&number_of(&data_type(kind)?, number)?, kind);
                (members.count() <= most).then(|| members.values().filter_map(value).collect())
            }
            KnownKeys::Few(keys) => {
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

impl CollectedKeys {
    fn new(kind: &DataType) -> CollectedKeys {
        if are_numbers(kind) {
            CollectedKeys::Numbers(Members::default())
        } else {
            CollectedKeys::Few(HashSet::new(), 0)
        }
    }

    /// Adds the keys of a column, except for NULL, which equals nothing.
    fn collect(&mut self, column: &ArrayRef) {
        if let CollectedKeys::Numbers(members) = self {
            if collect_numbers(column, members).is_ok() {
                return;
            }
            *self = std::mem::replace(self, CollectedKeys::TooMany).one_by_one(column.data_type());
        }
        if let CollectedKeys::Few(keys, rows) = self {
            *rows += column.len();
            if *rows > ROWS_ONE_BY_ONE {
                *self = CollectedKeys::TooMany;
                return;
            }
            for at in (0..column.len()).filter(|at| column.is_valid(*at)) {
                match ScalarValue::try_from_array(column, at) {
                    Ok(key) if key.size() <= KEY_BYTES => _ = keys.insert(key),
                    _ => return *self = CollectedKeys::TooMany,
                }
            }
        }
    }

    /// Converts integers that are not dense to a set of single keys.
    fn one_by_one(self, kind: &DataType) -> CollectedKeys {
        let CollectedKeys::Numbers(members) = self else { return self };
        let count = members.count();
        if count > ROWS_ONE_BY_ONE {
            return CollectedKeys::TooMany;
        }
        CollectedKeys::Few(members.values().filter_map(|number| number_of(kind, number)).collect(), count)
    }

    /// Merges the keys of two partitions.
    fn and(self, other: CollectedKeys, kind: &DataType) -> CollectedKeys {
        match (self, other) {
            (CollectedKeys::Numbers(mut members), CollectedKeys::Numbers(others)) => {
                match members.insert_all(&others) {
                    Ok(()) => CollectedKeys::Numbers(members),
                    Err(TooWide) => {
                        let all = CollectedKeys::Numbers(members).one_by_one(kind);
                        all.and(CollectedKeys::Numbers(others).one_by_one(kind), kind)
                    }
                }
            }
            (CollectedKeys::Few(mut keys, rows), CollectedKeys::Few(others, more))
                if rows + more <= ROWS_ONE_BY_ONE =>
            {
                keys.extend(others);
                CollectedKeys::Few(keys, rows + more)
            }
            (few @ CollectedKeys::Few(..), numbers @ CollectedKeys::Numbers(_))
            | (numbers @ CollectedKeys::Numbers(_), few @ CollectedKeys::Few(..)) => {
                few.and(numbers.one_by_one(kind), kind)
            }
            _ => CollectedKeys::TooMany,
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
pub(crate) struct JoinKeysExec {
    input: Arc<dyn ExecutionPlan>,
    /// Columns of the input, each with its join filter.
    keys: Vec<(usize, Arc<JoinFilterKeys>)>,
}

impl JoinKeysExec {
    pub fn new(input: Arc<dyn ExecutionPlan>, keys: Vec<(usize, Arc<JoinFilterKeys>)>) -> JoinKeysExec {
        JoinKeysExec { input, keys }
    }
}

impl DisplayAs for JoinKeysExec {
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

impl JoinKeysExec {
    /// Returns the operator above another input.
    fn with_input(&self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let is_alike = input.output_partitioning().partition_count()
            == self.input.output_partitioning().partition_count();
        // With another number of partitions, the filter would wait for partitions that do not
        // exist.
        let keys = if is_alike { self.keys.clone() } else { Vec::new() };
        Arc::new(JoinKeysExec { input, keys })
    }
}

impl ExecutionPlan for JoinKeysExec {
    fn name(&self) -> &str {
        "JoinKeys"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    /// Drops the join filters: another run has other keys.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(JoinKeysExec { input: Arc::clone(&self.input), keys: Vec::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        if self.keys.is_empty() {
            return Ok(input);
        }
        let schema: SchemaRef = input.schema();
        let collected = self.keys.iter().map(|(column, keys)| CollectedColumn {
            column: *column,
            collected: CollectedKeys::new(keys.kind()),
            keys: Arc::clone(keys),
        });
        let collector = Collector { input, collected: collected.collect() };
        let batches = stream::unfold(collector, |mut collector| async move {
            let batch = collector.next().await?;
            Some((batch, collector))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    unary!();
    no_expressions!();
}

/// The batches of a partition, and the keys found in them.
struct Collector {
    input: SendableRecordBatchStream,
    collected: Vec<CollectedColumn>,
}

struct CollectedColumn {
    column: usize,
    keys: Arc<JoinFilterKeys>,
    collected: CollectedKeys,
}

impl Collector {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.input.next().await;
        match &batch {
            Some(Ok(batch)) => {
                for of in &mut self.collected {
                    match batch.columns().get(of.column) {
                        Some(column) => of.collected.collect(column),
                        None => of.collected = CollectedKeys::TooMany,
                    }
                }
            }
            // The rows after an error are unknown, so the keys stay incomplete.
            Some(Err(_)) => self.collected.clear(),
            None => self.collected.drain(..).for_each(|of| of.keys.add(of.collected)),
        }
        batch
    }
}

fn collect_numbers(array: &ArrayRef, members: &mut Members) -> Result<(), TooWide> {
    if let Some(values) = array.as_primitive_opt::<Int32Type>() {
        collect_values(values, members)
    } else if let Some(values) = array.as_primitive_opt::<Int64Type>() {
        collect_values(values, members)
    } else if let Some(values) = array.as_primitive_opt::<Int16Type>() {
        collect_values(values, members)
    } else {
        collect_values(array.as_primitive_opt::<Date32Type>().ok_or(TooWide)?, members)
    }
}

fn collect_values<T: ArrowPrimitiveType<Native: Into<i64>>>(
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

    fn collected(kind: &DataType, arrays: &[ArrayRef]) -> CollectedKeys {
        let mut collected = CollectedKeys::new(kind);
        arrays.iter().for_each(|array| collected.collect(array));
        collected
    }

    /// Returns the keys of a filter after all partitions have been added, sorted; `None` where it
    /// has none.
    fn complete(kind: &DataType, parts: Vec<CollectedKeys>) -> Option<Vec<ScalarValue>> {
        let keys = JoinFilterKeys::of(parts.len(), kind);
        for part in parts {
            assert!(keys.get().is_none(), "known too early");
            keys.add(part);
        }
        let mut found: Vec<ScalarValue> = match keys.get()? {
            KnownKeys::Numbers(members) => members.values().map(|at| number_of(kind, at).unwrap()).collect(),
            KnownKeys::Few(keys) => keys.iter().cloned().collect(),
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
                    collected(&kind, &batches)
                };
                assert_eq!(
                    complete(&kind, parts.iter().map(of).collect()),
                    Some(expected.clone()),
                    "{parts:?}"
                );
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
            let parts = counts.iter().map(|count| collected(&kind, &[texts(*count)])).collect();
            assert_eq!(complete(&kind, parts), is_told.then(|| expected.clone()), "{counts:?}");
        }
        let far: Vec<i64> = (0..).map(|at| at << 30).take(ROWS_ONE_BY_ONE + 1).collect();
        assert_eq!(complete(&DataType::Int64, vec![collected(&DataType::Int64, &[numbers(&far)])]), None);
        let near: Vec<i64> = (0..ROWS_ONE_BY_ONE as i64 + 1).collect();
        let kept = complete(&DataType::Int64, vec![collected(&DataType::Int64, &[numbers(&near)])]);
        assert_eq!(kept.map(|keys| keys.len()), Some(near.len()));
        // More dense integers than are collected one by one, and a single integer far from them.
        let parts = vec![
            collected(&DataType::Int64, &[numbers(&near)]),
            collected(&DataType::Int64, &[numbers(&[1 << 50])]),
        ];
        assert_eq!(complete(&DataType::Int64, parts), None);
    }
}
