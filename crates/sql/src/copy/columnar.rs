//! COPY from and to Parquet: batches of columns instead of rows of bytes.

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::File;
use cairn_vfs::sync::Arc;

use super::{ParquetReader, ParquetWriter};
use crate::batch::{BatchReader, conform, data_type};
use crate::datum::{Datum, DatumRef, OPEN, kept};
use crate::direct::{Insert, InsertRun};
use crate::error::{Error, Result};
use crate::outcome::Column;
use crate::query::{Batches, arrow_error};
use crate::session::Session;
use crate::sqlstate::BAD_COPY_FILE_FORMAT;

/// A column of the file for one of the table.
#[derive(Debug)]
struct Source {
    /// Its place in the file.
    place: usize,
    /// What it is read as.
    read: ColumnType,
    /// What it is to become, where that is something else.
    kind: Option<ColumnType>,
}

/// Puts the rows of a file into a table. Columns are found by their names; what else the file has is passed over.
///
/// Errors: 22P04 for what is no Parquet file or has not the columns; what is wrong with a row.
pub(super) fn read(session: &mut Session, insert: &Insert, file: Arc<dyn File>) -> Result<u64> {
    let batches = ParquetReader::open(file)?;
    let sources = sources(insert, batches.schema())?;
    let places: Vec<usize> = sources.iter().map(|source| source.place).collect();
    let kinds: Vec<ColumnType> = sources.iter().map(|source| source.read.clone()).collect();
    let (transaction, context) = session.parts()?;
    let table = insert.table_now(transaction);
    let mut load = transaction.bulk_load(&table)?;
    let mut run = InsertRun::new(insert, &[], context);
    let mut line = 0;
    for batch in batches {
        let batch = batch?.project(&places).map_err(arrow_error)?;
        let rows = BatchReader::new(&batch, &kinds).map_err(arrow_error)?;
        for row in 0..rows.rows() {
            line += 1;
            let mark = |error: Error| {
                let place = format!("COPY {}, row {line}", table.def().name);
                match error.detail() {
                    Some(detail) => {
                        let detail = format!("{detail} ({place})");
                        error.with_detail(detail)
                    }
                    None => error.with_detail(place),
                }
            };
            let made = made(&sources, |column| rows.get(row, column)).map_err(mark)?;
            let value = |column: usize| match made.get(column) {
                Some(Some(made)) => made.borrow(),
                _ => rows.get(row, column),
            };
            run.bulk(value, &mut load, transaction).map_err(mark)?;
        }
    }
    Ok(load.finish(transaction)?)
}

/// Where the columns of the table are in the file.
fn sources(insert: &Insert, file: &Schema) -> Result<Vec<Source>> {
    let columns = insert.columns.iter().filter_map(|&at| insert.table.def().columns.get(at));
    let source = |column: &cairn_table::schema::ColumnDef| {
        let Some((place, field)) = file.column_with_name(&column.name) else {
            let what = format!("the Parquet file has no column \"{}\"", column.name);
            return Err(Error::new(BAD_COPY_FILE_FORMAT, what));
        };
        let kind = &column.kind;
        // Their bytes are looked at one by one: not every text is one of them.
        let (read, made) = match (kind.kind, field.data_type()) {
            (Type::Uuid, DataType::FixedSizeBinary(16)) => (Type::Blob.into(), Some(kind.clone())),
            (Type::Uuid | Type::Interval, _) => (Type::Text.into(), Some(kind.clone())),
            (Type::Text, _) if kind.is_json => (Type::Text.into(), Some(kind.clone())),
            // Its own precision is seen to when the row is put in, but no digits are lost where the column does not say so.
            (Type::Decimal, DataType::Decimal128(_, scale)) => {
                let is_open = kind.decimal == Some(OPEN);
                (ColumnType::decimal(38, (*scale).clamp(0, 38) as u8), is_open.then(|| kind.clone()))
            }
            _ => (kind.clone(), None),
        };
        Ok(Source { place, read, kind: made })
    };
    columns.map(source).collect()
}

/// The values of a row that have to be made of others.
fn made<'r>(sources: &[Source], value: impl Fn(usize) -> DatumRef<'r>) -> Result<Vec<Option<Datum>>> {
    let one = |(at, source): (usize, &Source)| {
        let Some(kind) = &source.kind else { return Ok(None) };
        Ok(match value(at) {
            DatumRef::Text(text) => Some(Datum::parse(text, kind)?),
            DatumRef::Decimal { unscaled, scale } => {
                Some(Datum::Decimal { unscaled: kept(unscaled, scale, OPEN)?, scale: OPEN.1 })
            }
            DatumRef::Blob(bytes) => bytes.try_into().ok().map(Datum::Uuid),
            _ => None,
        })
    };
    sources.iter().enumerate().map(one).collect()
}

/// What a column is in the file: Parquet has no spans of months, days and microseconds, so that they are text.
fn written(column: &Column) -> Field {
    let kind = match column.kind.kind {
        Type::Interval => DataType::Utf8View,
        _ => data_type(&column.kind),
    };
    Field::new(&column.name, kind, true)
}

/// Writes the rows of a query into a file; gives their number. The file is not synced.
///
/// Errors: those of the query and the file.
pub(super) fn write(mut batches: Batches, columns: &[Column], file: Arc<dyn File>) -> Result<u64> {
    let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(written).collect::<Vec<_>>()));
    let kinds: Vec<ColumnType> = columns.iter().map(|column| column.kind.clone()).collect();
    let mut writer = ParquetWriter::new(file, &schema)?;
    let mut rows = 0;
    while let Some(batch) = batches.next()? {
        let reader = batches.reader(&batch)?;
        let array = |(at, kind): (usize, &ColumnType)| -> Result<ArrayRef> {
            if kind.kind == Type::Interval {
                let text = |row: usize| match reader.get(row, at) {
                    DatumRef::Null => None,
                    span => Some(span.to_string()),
                };
                return Ok(Arc::new((0..reader.rows()).map(text).collect::<StringViewArray>()));
            }
            conform(batch.column(at), kind).map_err(arrow_error)
        };
        let arrays = kinds.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
        let written = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(arrow_error)?;
        writer.write(&written)?;
        rows += reader.rows() as u64;
    }
    writer.finish()?;
    Ok(rows)
}
