//! Passes the rows of a query from its threads to the client.

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

use crate::error::{Error, Result};
use crate::general::errors::datafusion_error;
use crate::general::operators::yielding::StopFlag;
use crate::rows::BatchSource;
use crate::sqlstate::{INTERNAL_ERROR, OUT_OF_MEMORY};

/// Interval at which a waiting client checks for a cancel. Scans check by themselves.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Batches that are computed ahead of requests.
const BATCHES_AHEAD: usize = 2;

/// The ways to stop a run.
#[derive(Debug)]
pub(crate) struct Stops {
    /// Checked by the thread that waits for batches.
    pub asked: Canceller,
    /// Checked by scans, if they have a canceller of their own.
    pub own: Option<Canceller>,
    /// For operators that never wait.
    pub stopped: Arc<StopFlag>,
}

impl Stops {
    /// Creates the stops of a run with a single canceller.
    pub fn of(asked: Canceller) -> Self {
        Stops { asked, own: None, stopped: Arc::default() }
    }
}

/// The batches of a running query.
#[derive(Debug)]
pub(crate) struct Batches {
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    /// The outcome for the first batch, if it has been awaited already.
    first: Option<Result<Option<RecordBatch>>>,
    kinds: Vec<ColumnType>,
    timers: Handle,
    stops: Stops,
    /// The task that computes the batches; `None` once it has ended.
    task: Option<JoinHandle<()>>,
}

impl Batches {
    /// Runs a stream on the general path's threads.
    pub(crate) fn new(
        stream: SendableRecordBatchStream,
        kinds: Vec<ColumnType>,
        handle: Handle,
        stops: Stops,
        timers: Handle,
    ) -> Self {
        let (sender, batches) = channel(BATCHES_AHEAD);
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

    /// Waits for the first batch, and returns whether it failed for lack of memory.
    pub(crate) fn ran_out_of_memory(&mut self) -> bool {
        let first = self.next();
        let lacks = first.as_ref().is_err_and(|error| error.sqlstate() == OUT_OF_MEMORY);
        self.first = Some(first);
        lacks
    }

    /// Waits until the task has ended and released its memory.
    pub(crate) fn abort_and_wait(&mut self) {
        self.abort();
        // The outcome is known already.
        let _ = self.end();
    }

    /// Returns the next batch; `None` after the last one.
    ///
    /// Errors: those of computing it; 57014.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(first) = self.first.take() {
            return first;
        }
        loop {
            let within = self.timers.enter();
            let next = futures_executor::block_on(async {
                tokio::time::timeout(POLL_INTERVAL, self.batches.recv()).await
            });
            drop(within);
            match next {
                // While batches keep arriving, the timeout never fires, and not all of them come
                // from scans.
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

    /// Checks how the task ended after its last batch.
    ///
    /// Errors: XX000 for a panic. Without this check, rows would be missing silently.
    fn end(&mut self) -> Result<()> {
        match self.task.take().map(futures_executor::block_on) {
            Some(Err(error)) => Err(Error::new(INTERNAL_ERROR, format!("query execution failed: {error}"))),
            _ => Ok(()),
        }
    }

    fn abort(&self) {
        self.stops.stopped.set();
        if let Some(own) = &self.stops.own {
            own.cancel();
        }
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl BatchSource for Batches {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        Batches::next(self)
    }

    fn kinds(&self) -> &[ColumnType] {
        &self.kinds
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

    /// Goal: a panic is an error and not a premature end of the rows.
    /// Method: a stream that yields a batch and panics, and one that ends.
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
