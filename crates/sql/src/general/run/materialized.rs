//! Materialized rows with random access, for cursors that outlive their transaction or scroll
//! backwards.

use arrow::array::RecordBatch;
use cairn_table::Canceller;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use futures_util::{FutureExt, stream};
use tokio::runtime::Handle;

use super::batches::{Batches, Stops};
use super::materialize::{Materialized, materialize, nullable_schema};
use crate::batch::BatchReader;
use crate::batch::arrow_error;
use crate::column::Column;
use crate::error::{Error, Result};
use crate::general::engine::release_view;
use crate::general::errors::{datafusion_error, external};
use crate::rows::{Source, StoredRows};
use crate::session::Session;
use crate::sqlstate::INTERNAL_ERROR;

/// Materialized rows. They stay in memory while that leaves half of the memory for queries free,
/// and are in files otherwise. Going back beyond the current batch reads a file from its beginning,
/// which may repeat several batches.
#[derive(Debug)]
pub(crate) struct MaterializedRows {
    stored: Materialized,
    kinds: Vec<ColumnType>,
    /// Number of rows.
    rows: u64,
    /// The current row, counted from 1; 0 before the first one.
    at: u64,
    /// The batch of the current row.
    reader: Option<BatchReader>,
    /// Rows before that batch.
    before: u64,
    /// The next batch of those in memory.
    taken: usize,
    /// The file to open next, while none is open.
    file: usize,
    /// The stream of batches in files after the current one.
    rest: Option<Batches>,
    threads: Threads,
}

/// The handles for reading files.
#[derive(Debug)]
struct Threads {
    handle: Handle,
    timers: Handle,
    canceller: Canceller,
}

impl Session {
    /// Materializes the remaining rows of a source.
    ///
    /// Errors: those of the rows; those of the disk.
    pub(crate) fn materialize_rows(
        &mut self,
        source: &mut Source,
        columns: &[Column],
    ) -> Result<MaterializedRows> {
        let runtime = self.engine()?.state.runtime_env().clone();
        release_view(self);
        let (handle, timers) = (self.shared.runtime()?, self.shared.timers()?);
        let threads = Threads { handle, timers, canceller: self.canceller.clone() };
        let context = &self.context;
        let mut rows = 0;
        let mut next = || {
            let batch = source.next_batch(context, columns).map_err(external).transpose();
            if let Some(Ok(batch)) = &batch {
                rows += batch.num_rows() as u64;
            }
            batch
        };
        let first = next().transpose().map_err(datafusion_error)?;
        let schema = match &first {
            Some(batch) => nullable_schema(&batch.schema()),
            None => crate::batch::schema_of(columns),
        };
        let all = stream::iter(first.map(Ok).into_iter().chain(std::iter::from_fn(next)));
        // The stream is a plain iterator and never pending, so a single poll completes it.
        let stored = materialize(all, &schema, Arc::clone(&runtime)).now_or_never().ok_or_else(gone)?;
        let stored = stored.and_then(|stored| stored.at_rest(&schema, runtime)).map_err(datafusion_error)?;
        Ok(MaterializedRows {
            stored,
            kinds: columns.iter().map(|column| column.kind.clone()).collect(),
            rows,
            at: 0,
            reader: None,
            before: 0,
            taken: 0,
            file: 0,
            rest: None,
            threads,
        })
    }
}

impl StoredRows for MaterializedRows {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn advance(&mut self) -> Result<bool> {
        self.go_to(self.at + 1)
    }

    fn go_to(&mut self, row: u64) -> Result<bool> {
        let Some(place) = row.checked_sub(1).filter(|place| *place < self.rows) else { return Ok(false) };
        if place < self.before {
            self.rewind(place);
        }
        while self.within(place).is_none() {
            self.next_batch()?;
        }
        self.at = row;
        Ok(true)
    }

    fn at(&self) -> Option<(&BatchReader, usize)> {
        let reader = self.reader.as_ref()?;
        Some((reader, self.within(self.at.checked_sub(1)?)?))
    }
}

impl MaterializedRows {
    /// Returns the position of a row in the current batch; `None` if it is in another one.
    fn within(&self, place: u64) -> Option<usize> {
        let rows = self.reader.as_ref()?.rows();
        let within = usize::try_from(place.checked_sub(self.before)?).ok()?;
        (within < rows).then_some(within)
    }

    /// Moves back to the start of the batch with the given row, or of the file with it.
    fn rewind(&mut self, place: u64) {
        (self.reader, self.rest) = (None, None);
        (self.before, self.taken) = (0, 0);
        match &self.stored {
            Materialized::InMemory { batches, .. } => {
                for batch in batches {
                    let end = self.before + batch.num_rows() as u64;
                    if end > place {
                        break;
                    }
                    self.before = end;
                    self.taken += 1;
                }
            }
            Materialized::InFiles(files) => (self.file, self.before) = files.with_row(place),
        }
    }

    /// Moves to the next batch.
    ///
    /// Errors: those of the disk; 57014; XX000 if there is none.
    fn next_batch(&mut self) -> Result<()> {
        let batch = match &self.stored {
            Materialized::InMemory { batches, .. } => batches.get(self.taken).cloned(),
            Materialized::InFiles(_) => self.read()?,
        };
        let batch = batch.ok_or_else(gone)?;
        let reader = BatchReader::new(&batch, &self.kinds).map_err(arrow_error)?;
        self.before += self.reader.replace(reader).map_or(0, |last| last.rows() as u64);
        self.taken += 1;
        Ok(())
    }

    /// Reads the next batch from the files.
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let Materialized::InFiles(files) = &self.stored else { return Ok(None) };
        let Threads { handle, timers, canceller } = &self.threads;
        if self.rest.is_none() {
            let stream = files.read_from(self.file);
            let stops = Stops::of(canceller.clone());
            let (kinds, handle) = (self.kinds.clone(), handle.clone());
            self.rest = Some(Batches::new(stream, kinds, handle, stops, timers.clone()));
        }
        self.rest.as_mut().map_or(Ok(None), Batches::next)
    }
}

fn gone() -> Error {
    Error::new(INTERNAL_ERROR, "materialized rows are missing")
}
