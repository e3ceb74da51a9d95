//! Rows of a query on their way to who asked.

use std::time::Duration;

use arrow::array::RecordBatch;
use cairn_table::Canceller;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::arrow_error;
use super::errors::datafusion_error;
use super::give_way::Over;
use crate::batch::BatchReader;
use crate::error::{Error, Result};
use crate::sqlstate::{INTERNAL_ERROR, OUT_OF_MEMORY};

/// How long it waits before it looks whether somebody has cancelled it. Scans look by themselves.
const LOOK: Duration = Duration::from_millis(20);
/// Batches that are made before anybody asks.
const AHEAD: usize = 2;

/// What stops a run.
#[derive(Debug)]
pub(super) struct Stops {
    /// Whoever waits for batches looks at it.
    pub asked: Canceller,
    /// What scans look at, if not at the same.
    pub apart: Option<Canceller>,
    /// For operators that do not wait for anything.
    pub over: Arc<Over>,
}

impl Stops {
    /// Of a run that has nothing but what it is asked by.
    pub fn of(asked: Canceller) -> Self {
        Stops { asked, apart: None, over: Arc::default() }
    }
}

/// Batches of a query that runs.
#[derive(Debug)]
pub(crate) struct Batches {
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    /// What has come of the first one, if somebody has looked.
    first: Option<Result<Option<RecordBatch>>>,
    kinds: Vec<ColumnType>,
    timers: Handle,
    stops: Stops,
    /// What makes the batches; `None` once it has come to its end.
    task: Option<JoinHandle<()>>,
}

impl Batches {
    /// Runs a stream on the general path's threads.
    pub(super) fn new(
        stream: SendableRecordBatchStream,
        kinds: Vec<ColumnType>,
        handle: Handle,
        stops: Stops,
        timers: Handle,
    ) -> Self {
        let (sender, batches) = channel(AHEAD);
        let mut stream = stream;
        let task = handle.spawn(async move {
            while let Some(batch) = stream.next().await {
                let failed = batch.is_err();
                if sender.send(batch).await.is_err() || failed {
                    break;
                }
            }
        });
        Batches { batches, first: None, kinds, timers, stops, task: Some(task) }
    }

    /// Waits for the first batch, and says whether there was not memory enough for it.
    pub(super) fn lack_memory(&mut self) -> bool {
        let first = self.next();
        let lacks = first.as_ref().is_err_and(|error| error.sqlstate() == OUT_OF_MEMORY);
        self.first = Some(first);
        lacks
    }

    /// Waits until what makes the batches has come to its end, and has given its memory back.
    pub(super) fn wait(&mut self) {
        self.abort();
        // How it ended is known.
        let _ = self.end();
    }

    /// The next batch; `None` after the last one.
    ///
    /// Errors: whatever computing it met; 57014.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(first) = self.first.take() {
            return first;
        }
        loop {
            let within = self.timers.enter();
            let next =
                futures_executor::block_on(async { tokio::time::timeout(LOOK, self.batches.recv()).await });
            drop(within);
            match next {
                // Batches that keep coming would never let it look: not all of them are of scans.
                Ok(Some(Ok(_))) if self.stops.asked.is_cancelled() => {
                    self.abort();
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                Ok(Some(Ok(batch))) => return Ok(Some(batch)),
                Ok(Some(Err(error))) => return Err(datafusion_error(error)),
                Ok(None) if self.stops.asked.is_cancelled() => {
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                Ok(None) => return self.end().map(|()| None),
                Err(_) if self.stops.asked.is_cancelled() => {
                    self.abort();
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                Err(_) => {}
            }
        }
    }

    /// The last batch was the last one, unless who made them broke off.
    ///
    /// Errors: XX000 for a panic. Without that, rows would be missing and nobody the wiser.
    fn end(&mut self) -> Result<()> {
        match self.task.take().map(futures_executor::block_on) {
            Some(Err(error)) => Err(Error::new(INTERNAL_ERROR, format!("a query broke off: {error}"))),
            _ => Ok(()),
        }
    }

    fn abort(&self) {
        self.stops.over.set();
        if let Some(apart) = &self.stops.apart {
            apart.cancel();
        }
        if let Some(task) = &self.task {
            task.abort();
        }
    }

    /// A batch, to be read by rows.
    ///
    /// Errors: values that a column's type cannot have.
    pub fn reader(&self, batch: &RecordBatch) -> Result<BatchReader> {
        BatchReader::new(batch, &self.kinds).map_err(arrow_error)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures_util::stream;

    use super::*;

    /// Goal: rows that a panic has cost are an error, and no early end. Method: a stream that gives
    /// a batch and breaks off, and one that ends.
    #[test]
    fn a_panic_is_no_end() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        for breaks_off in [false, true] {
            let schema = Arc::new(Schema::empty());
            let batch = RecordBatch::new_empty(Arc::clone(&schema));
            let all = stream::iter([Some(batch), None]).filter_map(move |batch| async move {
                assert!(batch.is_some() || !breaks_off, "a query with a fault");
                batch.map(Ok)
            });
            let stream: SendableRecordBatchStream =
                Box::pin(RecordBatchStreamAdapter::new(schema, Box::pin(all)));
            let handle = runtime.handle();
            let mut batches =
                Batches::new(stream, Vec::new(), handle.clone(), Stops::of(Canceller::new()), handle.clone());
            assert!(batches.next().unwrap().is_some());
            match (breaks_off, batches.next()) {
                (false, end) => assert!(end.unwrap().is_none()),
                (true, end) => assert_eq!(end.unwrap_err().sqlstate(), INTERNAL_ERROR),
            }
            assert!(batches.next().unwrap().is_none());
        }
    }
}
