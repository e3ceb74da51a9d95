//! Rows of the general path, as the rest of the crate sees them.

use std::fmt;

use arrow::array::RecordBatch;
use cairn_table::schema::ColumnType;

use crate::batch::{BatchReader, arrow_error};
use crate::error::Result;

/// The rows of a running query, a batch at a time. Dropping it ends the run and releases its
/// memory.
pub(crate) trait BatchSource: fmt::Debug + Send {
    /// Returns the next batch; `None` after the last one.
    ///
    /// Errors: those of computing it; 57014.
    fn next(&mut self) -> Result<Option<RecordBatch>>;

    /// The types of its columns.
    fn kinds(&self) -> &[ColumnType];

    /// Returns a reader for the rows of a batch.
    ///
    /// Errors: values that the type of a column does not allow.
    fn reader(&self, batch: &RecordBatch) -> Result<BatchReader> {
        BatchReader::new(batch, self.kinds()).map_err(arrow_error)
    }
}

/// Materialized rows with random access.
pub(crate) trait StoredRows: fmt::Debug + Send {
    /// The number of rows.
    fn rows(&self) -> u64;

    /// Moves to the next row; false after the last one.
    ///
    /// Errors: as for [`StoredRows::go_to`].
    fn advance(&mut self) -> Result<bool>;

    /// Moves to a row, counted from 1; false if it does not exist.
    ///
    /// Errors: those of the disk; 57014.
    fn go_to(&mut self, row: u64) -> Result<bool>;

    /// Returns the batch of the current row, and the row's position in it.
    fn at(&self) -> Option<(&BatchReader, usize)>;
}
