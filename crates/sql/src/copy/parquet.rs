//! Reads and writes Parquet files.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use cairn_rows::parquet::{Source, guarded};
use cairn_vfs::File;
use cairn_vfs::sync::Arc;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;

use crate::sqlstate::{BAD_COPY_FILE_FORMAT, IO_ERROR};
use crate::{Error, Result};

/// Rows per batch.
const ROWS: usize = 8_192;

fn error(error: ParquetError) -> Error {
    let bad = |what: String| {
        Error::new(BAD_COPY_FILE_FORMAT, format!("not a Parquet file that can be read: {what}"))
    };
    match error {
        ParquetError::External(source) => Error::new(IO_ERROR, source.to_string()),
        ParquetError::General(what) => bad(what),
        other => bad(other.to_string()),
    }
}

/// Reads the rows of a Parquet file, as an iterator of batches.
#[derive(Debug)]
pub(crate) struct ParquetReader {
    schema: SchemaRef,
    batches: Option<ParquetRecordBatchReader>,
}

impl ParquetReader {
    /// Opens a file and reads its footer.
    ///
    /// Errors: 22P04 for a file that is not Parquet, 58030 for a failed read.
    pub fn open(file: Arc<dyn File>) -> Result<Self> {
        let source = Source::open(file, Arc::default()).map_err(error)?;
        let metadata =
            guarded(|| ArrowReaderMetadata::load(&source, ArrowReaderOptions::new())).map_err(error)?;
        source.limit(metadata.metadata()).map_err(error)?;
        let metadata = guarded(|| with_old_times(metadata)).map_err(error)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(source, metadata);
        let schema = Arc::clone(builder.schema());
        let batches = guarded(|| builder.with_batch_size(ROWS).build()).map_err(error)?;
        Ok(ParquetReader { schema, batches: Some(batches) })
    }

    /// The columns of the file.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Makes timestamps of the old form (INT96) microseconds, the unit of tables. In nanoseconds, those
/// before 1677 and after 2262 would overflow.
fn with_old_times(metadata: ArrowReaderMetadata) -> ParquetResult<ArrowReaderMetadata> {
    let descriptor = metadata.metadata().file_metadata().schema_descr_ptr();
    let is_old = |root: usize| {
        let mut leaves =
            (0..descriptor.num_columns()).filter(|leaf| descriptor.get_column_root_idx(*leaf) == root);
        leaves.any(|leaf| descriptor.column(leaf).physical_type() == Physical::INT96)
    };
    let read = |(root, field): (usize, &Arc<Field>)| match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) if is_old(root) => {
            let kind = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            Arc::new(field.as_ref().clone().with_data_type(kind))
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<Arc<Field>> = metadata.schema().fields().iter().enumerate().map(read).collect();
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    if schema == **metadata.schema() {
        return Ok(metadata);
    }
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

impl Iterator for ParquetReader {
    type Item = Result<RecordBatch>;

    /// Returns the next batch. The iterator ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        let next = guarded(|| Ok(batches.next().transpose()?)).map_err(error);
        if next.is_err() {
            self.batches = None;
        }
        next.transpose()
    }
}

/// Writes batches as a Parquet file compressed with Zstandard. The caller takes the bytes of the
/// file piece by piece.
#[derive(Debug)]
pub(crate) struct ParquetWriter {
    writer: ArrowWriter<Vec<u8>>,
}

impl ParquetWriter {
    /// Begins a file.
    ///
    /// Errors: 22P04 for types that Parquet lacks.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let level = Compression::ZSTD(ZstdLevel::default());
        let properties =
            WriterProperties::builder().set_compression(level).set_created_by("cairn".to_owned()).build();
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties)).map_err(error)?;
        Ok(ParquetWriter { writer })
    }

    /// Adds rows, and returns the bytes of the file that are ready. There may be none, because rows
    /// are written in large groups.
    ///
    /// Errors: 22P04.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        self.writer.write(batch).map_err(error)?;
        // The writer keeps its own position in the file and never rereads written bytes.
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// Ends the file, and returns the rest of its bytes.
    ///
    /// Errors: 22P04.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.writer.into_inner().map_err(error)
    }
}
