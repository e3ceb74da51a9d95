//! Rows of a query that wait until all of them are there: in as much memory as there is for queries, and in a file from then on.

use std::fmt;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::execution::SpillFile;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{SendableRecordBatchStream, SpillManager};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};

/// What the memory and the file are asked for.
const WHAT: &str = "rows that are put aside";

/// Batches that were put aside.
pub(super) enum Pile {
    /// The memory is theirs as long as they are there.
    InMemory {
        batches: Vec<RecordBatch>,
        memory: MemoryReservation,
    },
    InFile {
        file: Arc<dyn SpillFile>,
        spills: SpillManager,
    },
}

impl fmt::Debug for Pile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pile::InMemory { .. } => "InMemory",
            Pile::InFile { .. } => "InFile",
        })
    }
}

/// The same batches, of which the first one comes when the last one is there.
pub(super) fn aside(rows: SendableRecordBatchStream, runtime: Arc<RuntimeEnv>) -> SendableRecordBatchStream {
    let schema = schema_aside(&rows.schema());
    let all = stream::once(gather(rows, Arc::clone(&schema), runtime)).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, all))
}

/// What operators say of NULLs need not be what their batches say.
pub(super) fn schema_aside(given: &Schema) -> SchemaRef {
    let fields = given.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

async fn gather(
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    runtime: Arc<RuntimeEnv>,
) -> Result<SendableRecordBatchStream> {
    match pile_up(rows, &schema, runtime).await? {
        Pile::InFile { file, spills } => spills.read_spill_as_stream(file, None),
        Pile::InMemory { batches, memory } => {
            // The memory is theirs until the last one has been taken.
            let batches = batches.into_iter().map(move |batch| {
                let _ = &memory;
                Ok(batch)
            });
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches))))
        }
    }
}

/// Puts batches aside until the last one is there. It waits for nothing but them.
///
/// Errors: theirs; those of the file.
pub(super) async fn pile_up(
    mut rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
    schema: &SchemaRef,
    runtime: Arc<RuntimeEnv>,
) -> Result<Pile> {
    let memory = MemoryConsumer::new(WHAT).with_can_spill(true).register(&runtime.memory_pool);
    let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
    let spills = SpillManager::new(runtime, metrics, Arc::clone(schema));
    let mut batches: Vec<RecordBatch> = Vec::new();
    let mut file = None;
    while let Some(batch) = rows.next().await.transpose()? {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?;
        if file.is_none() && memory.try_grow(batch.get_array_memory_size()).is_err() {
            let new = file.insert(spills.create_in_progress_file(WHAT)?);
            for batch in batches.drain(..) {
                new.append_batch(&batch)?;
            }
            memory.free();
        }
        match &mut file {
            Some(file) => _ = file.append_batch(&batch)?,
            None => batches.push(batch),
        }
    }
    drop(rows);
    let written = file.as_mut().map(|file| file.finish()).transpose()?.flatten();
    Ok(match written {
        Some(file) => Pile::InFile { file, spills },
        None => Pile::InMemory { batches, memory },
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    /// Goal: rows come back as they were, in their order, from memory and from a file, and not before the last one is there. Method: batches of long texts and no texts, more than
    /// there is memory for and fewer; the source notes when it is at its end.
    #[test]
    fn all_rows_come_back() {
        for (memory, spills) in [(1 << 20, true), (1 << 30, false)] {
            let runtime =
                RuntimeEnvBuilder::new().with_memory_pool(std::sync::Arc::new(FairSpillPool::new(memory)));
            let runtime = runtime.build_arc().unwrap();
            // Who says that there are no NULLs may be wrong.
            let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Utf8View, false)]));
            let nullable = Arc::new(Schema::new(vec![Field::new("v", DataType::Utf8View, true)]));
            let text = |at: usize| (!at.is_multiple_of(7)).then(|| format!("{at} {}", "x".repeat(at % 50)));
            let batch = move |from: usize| {
                let texts: StringViewArray = (from..from + 1_000).map(text).collect();
                RecordBatch::try_new(Arc::clone(&nullable), vec![Arc::new(texts)])
            };
            let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let end = Arc::clone(&ended);
            let batches = stream::iter(0..100).map(move |at| {
                end.store(at == 99, std::sync::atomic::Ordering::SeqCst);
                Ok(batch(at * 1_000)?)
            });
            let source = Box::pin(RecordBatchStreamAdapter::new(schema, batches));
            let mut rows = aside(source, Arc::clone(&runtime));
            let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
            let (mut count, mut spilled) = (0, false);
            while let Some(batch) = tokio.block_on(rows.next()) {
                assert!(ended.load(std::sync::atomic::Ordering::SeqCst));
                spilled |= runtime.disk_manager.used_disk_space() > 0;
                for found in batch.unwrap().column(0).as_string_view() {
                    assert_eq!(found.map(str::to_owned), text(count));
                    count += 1;
                }
            }
            assert_eq!((count, spilled), (100_000, spills));
            drop(rows);
            assert_eq!((runtime.disk_manager.used_disk_space(), runtime.memory_pool.reserved()), (0, 0));
        }
    }
}
