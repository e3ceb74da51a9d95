//! The keys that one side of a hash join has, for the scan on its other side.
//!
//! A hash join reads the smaller side whole before it asks for a row of the larger one. By then it is known which keys there are at all, and of the larger
//! side most rows may have no partner: their other columns need not be read, sent to another thread or hashed. [`JoinKeys`] stands on top of the smaller side and notes the keys that come by; the
//! scan ([`TableScan`](super::scan::TableScan)) looks at them once all are there, and until then gives what it has. The idea is that of semijoin reduction by a filter (Bratbergsengen,
//! VLDB 1984); DuckDB and DataFusion's own scans of files do it too.

use std::fmt;

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int16Type, Int32Type, Int64Type, SchemaRef,
};
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
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

use crate::direct::{Members, TooWide};

/// Which keys one side of a join has, as soon as that is known.
#[derive(Debug)]
pub(super) struct Keys {
    gathered: Mutex<Gathered>,
    found: OnceLock<Arc<Members>>,
}

#[derive(Debug)]
struct Gathered {
    /// Partitions that have not come to their end.
    left: usize,
    members: Result<Members, TooWide>,
}

/// Whether keys of a type can be noted.
pub(super) fn are_noted(kind: &DataType) -> bool {
    matches!(kind, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Date32)
}

impl Keys {
    /// Keys that come from so many partitions.
    pub fn of(partitions: usize) -> Arc<Keys> {
        let gathered = Gathered { left: partitions, members: Ok(Members::default()) };
        Arc::new(Keys { gathered: Mutex::new(gathered), found: OnceLock::new() })
    }

    /// All of them; `None` before they are all there, and where they are too far from each other.
    pub fn get(&self) -> Option<&Arc<Members>> {
        self.found.get()
    }

    /// What a partition has, all of which was seen.
    fn add(&self, members: Result<Members, TooWide>) {
        let mut gathered = lock(&self.gathered);
        let added = match (&mut gathered.members, members) {
            (Ok(all), Ok(members)) => all.insert_all(&members),
            _ => Err(TooWide),
        };
        if let Err(error) = added {
            gathered.members = Err(error);
        }
        gathered.left = gathered.left.saturating_sub(1);
        if gathered.left == 0
            && let Ok(members) = std::mem::replace(&mut gathered.members, Err(TooWide))
        {
            // Nobody else comes last.
            let _ = self.found.set(Arc::new(members));
        }
    }
}

/// Passes batches on, and notes the values of some columns.
#[derive(Debug)]
pub(super) struct JoinKeys {
    input: Arc<dyn ExecutionPlan>,
    /// Columns of the input.
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
        // Of other partitions it would wait for those that are not there.
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

    /// Who runs a plan again gets it without keys: the next run's are others.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(JoinKeys { input: Arc::clone(&self.input), keys: Vec::new() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        if self.keys.is_empty() {
            return Ok(input);
        }
        let schema: SchemaRef = input.schema();
        let noted =
            self.keys.iter().map(|(column, keys)| (*column, Arc::clone(keys), Ok(Members::default())));
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

/// A partition's batches, and the keys that were in them.
struct Noting {
    input: SendableRecordBatchStream,
    noted: Vec<(usize, Arc<Keys>, Result<Members, TooWide>)>,
}

impl Noting {
    async fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.input.next().await;
        match &batch {
            Some(Ok(batch)) => self.note(batch),
            // What comes after an error is not known.
            Some(Err(_)) => self.noted.clear(),
            None => self.noted.drain(..).for_each(|(_, keys, members)| keys.add(members)),
        }
        batch
    }

    fn note(&mut self, batch: &RecordBatch) {
        for (column, _, members) in &mut self.noted {
            if let Ok(noted) = members
                && let Err(error) = note_column(batch, *column, noted)
            {
                *members = Err(error);
            }
        }
    }
}

fn note_column(batch: &RecordBatch, column: usize, members: &mut Members) -> Result<(), TooWide> {
    let array = batch.columns().get(column).ok_or(TooWide)?;
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

/// NULL equals nothing.
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
    use super::*;

    fn members(values: &[i64]) -> Members {
        let mut members = Members::default();
        values.iter().for_each(|value| members.insert(*value).unwrap());
        members
    }

    /// Goal: keys are told when all partitions have come to their end, whole, and not before; never where those of one are too far apart, or of all together, or one broke off. Method: partitions in turn.
    #[test]
    fn keys_are_told_when_all_are_there() {
        let keys = Keys::of(3);
        for values in [&[5, 9][..], &[], &[-70, 5]] {
            assert!(keys.get().is_none());
            keys.add(Ok(members(values)));
        }
        let found = keys.get().unwrap();
        assert_eq!(found.range(), Some((-70, 9)));
        assert!([5, 9, -70].iter().all(|value| found.holds(*value)) && !found.holds(0));
        for parts in [
            [Ok(members(&[1])), Err(TooWide)],
            [Err(TooWide), Ok(members(&[1]))],
            [Ok(members(&[0])), Ok(members(&[i64::MAX]))],
        ] {
            let keys = Keys::of(2);
            parts.into_iter().for_each(|part| keys.add(part));
            assert!(keys.get().is_none());
        }
        let broken = Keys::of(2);
        broken.add(Ok(members(&[1])));
        assert!(broken.get().is_none());
    }
}
