//! Rows of a query on their way to who asked.

use std::time::Duration;

use arrow::array::RecordBatch;
use cairn_table::Canceller;
use cairn_table::schema::ColumnType;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures_util::StreamExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::AbortHandle;

use super::arrow_error;
use super::errors::datafusion_error;
use crate::batch::BatchReader;
use crate::error::{Error, Result};

/// How long it waits before it looks whether somebody has cancelled it. Scans look by themselves.
const LOOK: Duration = Duration::from_millis(20);
/// Batches that are made before anybody asks.
const AHEAD: usize = 2;

/// Batches of a query that runs.
#[derive(Debug)]
pub(crate) struct Batches {
    batches: Receiver<Result<RecordBatch, DataFusionError>>,
    kinds: Vec<ColumnType>,
    timers: Handle,
    canceller: Canceller,
    task: AbortHandle,
}

impl Batches {
    /// Runs a stream on the general path's threads.
    pub fn new(
        stream: SendableRecordBatchStream,
        kinds: Vec<ColumnType>,
        handle: Handle,
        canceller: Canceller,
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
        Batches { batches, kinds, timers, canceller, task: task.abort_handle() }
    }

    /// The next batch; `None` after the last one.
    ///
    /// Errors: whatever computing it met; 57014.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let within = self.timers.enter();
            let next =
                futures_executor::block_on(async { tokio::time::timeout(LOOK, self.batches.recv()).await });
            drop(within);
            match next {
                Ok(Some(Ok(batch))) => return Ok(Some(batch)),
                Ok(Some(Err(error))) => return Err(datafusion_error(error)),
                Ok(None) if self.canceller.is_cancelled() => {
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                Ok(None) => return Ok(None),
                Err(_) if self.canceller.is_cancelled() => {
                    self.task.abort();
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                Err(_) => {}
            }
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
        self.task.abort();
    }
}
