//! Rows of a query that are buffered until all of them have arrived. They stay in the memory for
//! queries as long as it suffices, and spill to files after that.

use std::fmt;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::execution::SpillFile;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{SendableRecordBatchStream, SpillManager};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};

/// The name under which memory and files are requested.
const CONSUMER: &str = "materialized rows";

/// Batches that are retained indefinitely may use one part in this many of the memory for queries.
const RETAINED_PART: usize = 2;

/// Bytes of batches per file. It bounds how much is read again to go back to a batch.
const FILE_BYTES: usize = 4 << 20;

/// Buffered batches.
pub(crate) enum Materialized {
    /// The reservation is held as long as the batches.
    InMemory {
        batches: Vec<RecordBatch>,
        memory: MemoryReservation,
    },
    InFiles(SpillFiles),
}

impl fmt::Debug for Materialized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Materialized::InMemory { .. } => "InMemory",
            Materialized::InFiles(_) => "InFiles",
        })
    }
}

/// Batches in a sequence of files.
pub(crate) struct SpillFiles {
    spills: SpillManager,
    schema: SchemaRef,
    /// Each file with its number of rows.
    written: Vec<(Arc<dyn SpillFile>, u64)>,
    /// Batches for the next file.
    waiting: Vec<RecordBatch>,
    waiting_bytes: usize,
}

impl SpillFiles {
    fn new(runtime: Arc<RuntimeEnv>, schema: &SchemaRef) -> Self {
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let spills = SpillManager::new(runtime, metrics, Arc::clone(schema));
        let schema = Arc::clone(schema);
        SpillFiles { spills, schema, written: Vec::new(), waiting: Vec::new(), waiting_bytes: 0 }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        self.waiting_bytes += batch.get_array_memory_size();
        self.waiting.push(batch);
        if self.waiting_bytes >= FILE_BYTES { self.write() } else { Ok(()) }
    }

    /// Writes the waiting batches to a file.
    fn write(&mut self) -> Result<()> {
        let batches = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let file = self.spills.spill_record_batch_and_finish(&batches, CONSUMER)?;
        self.written.extend(file.map(|file| (file, rows)));
        Ok(())
    }

    fn finish(mut self) -> Result<SpillFiles> {
        self.write()?;
        Ok(self)
    }

    /// Finds the file that contains a row, counted from 0. Returns its index and the number of rows
    /// before it.
    pub(crate) fn with_row(&self, row: u64) -> (usize, u64) {
        let mut before = 0;
        for (at, (_, rows)) in self.written.iter().enumerate() {
            if before + rows > row {
                return (at, before);
            }
            before += rows;
        }
        (self.written.len(), before)
    }

    /// Reads the batches of all files from the given one on.
    pub(crate) fn read_from(&self, first: usize) -> SendableRecordBatchStream {
        let files: Vec<_> = self.written.iter().skip(first).map(|(file, _)| Arc::clone(file)).collect();
        let spills = self.spills.clone();
        let each = stream::iter(files).map(move |file| spills.read_spill_as_stream(file, None));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), each.try_flatten()))
    }
}

/// Returns the same batches, but yields the first one only after the last one has arrived.
pub(crate) fn materialized_stream(
    rows: SendableRecordBatchStream,
    runtime: Arc<RuntimeEnv>,
) -> SendableRecordBatchStream {
    let schema = nullable_schema(&rows.schema());
    let all = stream::once(gather(rows, Arc::clone(&schema), runtime)).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, all))
}

/// Returns the schema with every column nullable: operators may declare a column non-nullable and
/// still return NULLs in it.
pub(crate) fn nullable_schema(given: &Schema) -> SchemaRef {
    let fields = given.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

async fn gather(
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    runtime: Arc<RuntimeEnv>,
) -> Result<SendableRecordBatchStream> {
    match materialize(rows, &schema, runtime).await? {
        Materialized::InFiles(files) => Ok(files.read_from(0)),
        Materialized::InMemory { batches, memory } => {
            // The stream holds the reservation until it is dropped.
            let batches = batches.into_iter().map(move |batch| {
                let _ = &memory;
                Ok(batch)
            });
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches))))
        }
    }
}

/// Buffers batches until the last one has arrived. Awaits nothing else.
///
/// Errors: those of the stream; those of the spill file.
pub(crate) async fn materialize(
    mut rows: impl Stream<Item = Result<RecordBatch>> + Unpin,
    schema: &SchemaRef,
    runtime: Arc<RuntimeEnv>,
) -> Result<Materialized> {
    let memory = MemoryConsumer::new(CONSUMER).with_can_spill(true).register(&runtime.memory_pool);
    let mut batches: Vec<RecordBatch> = Vec::new();
    let mut files = None;
    while let Some(batch) = rows.next().await.transpose()? {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch =
            RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)?;
        if files.is_none() && memory.try_grow(batch.get_array_memory_size()).is_err() {
            let new = files.insert(SpillFiles::new(Arc::clone(&runtime), schema));
            for batch in batches.drain(..) {
                new.add(batch)?;
            }
            memory.free();
        }
        match &mut files {
            Some(files) => files.add(batch)?,
            None => batches.push(batch),
        }
    }
    drop(rows);
    match files {
        Some(files) => files.finish().map(Materialized::InFiles),
        None => Ok(Materialized::InMemory { batches, memory }),
    }
}

impl Materialized {
    /// Prepares the batches to be retained indefinitely. The pool divides its memory equally among
    /// consumers that can spill. Retained batches will not spill, so they register as a consumer
    /// that cannot: they take only the bytes they need and no share. Where that would leave too
    /// little memory, they spill now.
    ///
    /// Errors: those of the spill file.
    pub(crate) fn at_rest(self, schema: &SchemaRef, runtime: Arc<RuntimeEnv>) -> Result<Materialized> {
        let Materialized::InMemory { batches, memory } = self else { return Ok(self) };
        let bytes = memory.free();
        drop(memory);
        let pool = &runtime.memory_pool;
        let most = match pool.memory_limit() {
            MemoryLimit::Finite(most) => most / RETAINED_PART,
            _ => usize::MAX,
        };
        let memory = MemoryConsumer::new(CONSUMER).register(pool);
        if pool.reserved().saturating_add(bytes) <= most && memory.try_grow(bytes).is_ok() {
            return Ok(Materialized::InMemory { batches, memory });
        }
        let mut files = SpillFiles::new(runtime, schema);
        for batch in batches {
            files.add(batch)?;
        }
        files.finish().map(Materialized::InFiles)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, StringViewArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use futures_util::FutureExt;

    use super::*;

    /// Goal: rows come back unchanged and in order, from memory and from files, and not before the
    /// last one has arrived.
    /// Method: batches of long texts and NULLs, one run with too little memory for them and one
    /// with enough; the source records when it reaches its end.
    #[test]
    fn all_rows_come_back() {
        for (memory, spills) in [(1 << 20, true), (1 << 30, false)] {
            let runtime =
                RuntimeEnvBuilder::new().with_memory_pool(std::sync::Arc::new(FairSpillPool::new(memory)));
            let runtime = runtime.build_arc().unwrap();
            // The schema may claim that there are no NULLs and be wrong.
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
            let mut rows = materialized_stream(source, Arc::clone(&runtime));
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

    /// Goal: retained batches leave memory to others: they take no share of it, and their total is
    /// bounded.
    /// Method: small and large piles, and another consumer that requests most of the memory beside
    /// the small ones.
    #[test]
    fn at_rest_they_leave_memory() {
        const MEMORY: usize = 1 << 20;
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(std::sync::Arc::new(FairSpillPool::new(MEMORY)));
        let runtime = runtime.build_arc().unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Utf8View, true)]));
        let stored = |bytes: usize| {
            let texts: StringViewArray = [Some("x".repeat(bytes))].into_iter().collect();
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(texts)]).map_err(Into::into);
            let batches = stream::iter([batch]);
            let stored = materialize(batches, &schema, Arc::clone(&runtime)).now_or_never().unwrap().unwrap();
            stored.at_rest(&schema, Arc::clone(&runtime)).unwrap()
        };
        let small: Vec<_> = (0..8).map(|_| stored(4 << 10)).collect();
        assert!(small.iter().all(|stored| matches!(stored, Materialized::InMemory { .. })));
        let reserved = runtime.memory_pool.reserved();
        assert!(reserved > 8 * (4 << 10), "{reserved}");
        let other = MemoryConsumer::new("other").with_can_spill(true).register(&runtime.memory_pool);
        other.try_grow(MEMORY - reserved).unwrap();
        drop(other);
        let large = stored(MEMORY * 3 / 4);
        assert!(matches!(large, Materialized::InFiles(_)));
        assert_eq!(runtime.memory_pool.reserved(), reserved);
        drop((small, large));
        assert_eq!((runtime.disk_manager.used_disk_space(), runtime.memory_pool.reserved()), (0, 0));
    }
}
