//! Parquet files.

use std::io::{self, BufReader, Read, Write};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use cairn_vfs::File;
use cairn_vfs::sync::Arc;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};

use crate::sqlstate::{BAD_COPY_FILE_FORMAT, IO_ERROR};
use crate::{Error, Result};

/// Bytes that are read ahead of what was asked for.
const READ_AHEAD: usize = 64 << 10;
/// Rows of a batch.
const ROWS: usize = 8_192;

/// A file, as the Parquet crate reads it.
#[derive(Debug)]
struct Source(Arc<dyn File>);

/// A place in a file.
#[derive(Debug)]
struct At {
    file: Arc<dyn File>,
    offset: u64,
}

fn failed(error: cairn_vfs::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

fn error(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => Error::new(IO_ERROR, source.to_string()),
        other => Error::new(BAD_COPY_FILE_FORMAT, format!("not a Parquet file that can be read: {other}")),
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        // What cannot be measured cannot be read either, which says so.
        self.0.len().unwrap_or_default()
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::with_capacity(READ_AHEAD, At { file: Arc::clone(&self.0), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<bytes::Bytes> {
        let have = self.0.len().map_err(failed)?.saturating_sub(start);
        if have < length as u64 {
            return Err(ParquetError::EOF(format!("{length} bytes at {start}, where the file has {have}")));
        }
        let mut buffer = vec![0; length];
        self.0.read_exact_at(&mut buffer, start).map_err(failed)?;
        Ok(buffer.into())
    }
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset).map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Write for At {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.offset).map_err(io::Error::other)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the rows of a Parquet file: an iterator of batches.
#[derive(Debug)]
pub(crate) struct ParquetReader {
    schema: SchemaRef,
    batches: Option<ParquetRecordBatchReader>,
}

impl ParquetReader {
    /// Opens a file: reads its footer.
    ///
    /// Errors: 22P04 for what is no Parquet file, 58030 for what cannot be read.
    pub fn open(file: Arc<dyn File>) -> Result<Self> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(Source(file)).map_err(error)?;
        let schema = Arc::clone(builder.schema());
        let batches = builder.with_batch_size(ROWS).build().map_err(error)?;
        Ok(ParquetReader { schema, batches: Some(batches) })
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for ParquetReader {
    type Item = Result<RecordBatch>;

    /// The next batch. Nothing comes after an error.
    fn next(&mut self) -> Option<Self::Item> {
        match self.batches.as_mut()?.next()? {
            Ok(batch) => Some(Ok(batch)),
            Err(source) => {
                self.batches = None;
                Some(Err(Error::new(
                    BAD_COPY_FILE_FORMAT,
                    format!("not a Parquet file that can be read: {source}"),
                )))
            }
        }
    }
}

/// Writes batches to a Parquet file, compressed with Zstandard.
#[derive(Debug)]
pub(crate) struct ParquetWriter {
    writer: ArrowWriter<At>,
}

impl ParquetWriter {
    /// Begins at the file's start.
    ///
    /// Errors: 22P04 for types that Parquet has not.
    pub fn new(file: Arc<dyn File>, schema: &SchemaRef) -> Result<Self> {
        let level = Compression::ZSTD(ZstdLevel::default());
        let properties =
            WriterProperties::builder().set_compression(level).set_created_by("cairn".to_owned()).build();
        let writer = ArrowWriter::try_new(At { file, offset: 0 }, Arc::clone(schema), Some(properties))
            .map_err(error)?;
        Ok(ParquetWriter { writer })
    }

    /// Adds rows. Errors: 58030.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(error)
    }

    /// Writes the footer. Gives the bytes of the file, which is not synced.
    ///
    /// Errors: 58030.
    pub fn finish(self) -> Result<u64> {
        Ok(self.writer.into_inner().map_err(error)?.offset)
    }
}
