//! Parquet files.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use cairn_vfs::File;
use cairn_vfs::sync::Arc;

use crate::{Error, Result};

/// Reads the rows of a Parquet file: an iterator of batches.
pub(crate) struct ParquetReader {
    schema: SchemaRef,
}

impl ParquetReader {
    /// Opens a file: reads its footer.
    ///
    /// Errors: 22P04 for what is no Parquet file, 58030 for what cannot be read.
    pub fn open(file: Arc<dyn File>) -> Result<Self> {
        let _ = file;
        Err(Error::unsupported("Parquet"))
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for ParquetReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

/// Writes batches to a Parquet file, compressed with Zstandard.
pub(crate) struct ParquetWriter {
    file: Arc<dyn File>,
}

impl ParquetWriter {
    /// Begins at the file's start.
    pub fn new(file: Arc<dyn File>, schema: &SchemaRef) -> Result<Self> {
        let _ = schema;
        Ok(ParquetWriter { file })
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let _ = (batch, &self.file);
        Err(Error::unsupported("Parquet"))
    }

    /// Writes the footer. Gives the bytes of the file, which is not synced.
    pub fn finish(self) -> Result<u64> {
        Err(Error::unsupported("Parquet"))
    }
}
