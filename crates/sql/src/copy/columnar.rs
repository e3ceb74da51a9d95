//! COPY from and to Parquet, which moves record batches instead of encoded rows.

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use cairn_rows::parquet::repeated;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::File;
use cairn_vfs::sync::Arc;

use super::{ParquetReader, ParquetWriter};
use crate::batch::arrow_error;
use crate::batch::{BatchReader, conform, data_type};
use crate::column::Column;
use crate::datum::{Datum, DatumRef, OPEN, kept};
use crate::direct::{Insert, InsertRun};
use crate::error::{Error, Result};
use crate::rows::BatchSource;
use crate::session::Session;
use crate::sqlstate::{BAD_COPY_FILE_FORMAT, DUPLICATE_COLUMN};

/// The column of the file that feeds a column of the table.
#[derive(Debug)]
struct Source {
    /// Its position in the file.
    place: usize,
    /// The type to read it as.
    read: ColumnType,
    /// The type to convert it to, where that differs.
    kind: Option<ColumnType>,
}

/// Loads the rows of a file into a table. Columns are matched by name; further columns of the file
/// are ignored.
///
/// Errors: 22P04 for a file that is not Parquet or lacks a column; those of invalid rows.
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

/// Matches the columns of the table with those of the file.
fn sources(insert: &Insert, file: &Schema) -> Result<Vec<Source>> {
    let columns = insert.columns.iter().filter_map(|&at| insert.table.def().columns.get(at));
    let source = |column: &cairn_table::schema::ColumnDef| {
        let mut named = file.fields().iter().enumerate().filter(|(_, field)| *field.name() == column.name);
        let (place, field) = match (named.next(), named.next()) {
            (Some(found), None) => found,
            (found, _) => {
                let how_many = if found.is_some() { "two columns" } else { "no column" };
                let what = format!("the Parquet file has {how_many} \"{}\"", column.name);
                return Err(Error::new(BAD_COPY_FILE_FORMAT, what));
            }
        };
        let kind = &column.kind;
        // These are validated value by value, because not every text is one.
        let (read, made) = match (kind.kind, field.data_type()) {
            (Type::Uuid, DataType::FixedSizeBinary(16)) => (Type::Blob.into(), Some(kind.clone())),
            (Type::Uuid | Type::Interval, _) => (Type::Text.into(), Some(kind.clone())),
            (Type::Text, _) if kind.is_json => (Type::Text.into(), Some(kind.clone())),
            // The column's own precision is enforced at insertion. A column without a declared
            // scale must not lose digits before.
            (Type::Decimal, DataType::Decimal128(_, scale)) => {
                let is_open = kind.decimal == Some(OPEN);
                (ColumnType::decimal(38, (*scale).clamp(0, 38) as u8), is_open.then(|| kind.clone()))
            }
            // Only whole numbers convert to integers.
            (
                Type::SmallInt | Type::Int | Type::BigInt,
                DataType::Float16 | DataType::Float32 | DataType::Float64,
            ) => (Type::Double.into(), Some(kind.clone())),
            (Type::SmallInt | Type::Int | Type::BigInt, DataType::Decimal128(_, scale)) => {
                (ColumnType::decimal(38, (*scale).clamp(0, 38) as u8), Some(kind.clone()))
            }
            _ => (kind.clone(), None),
        };
        Ok(Source { place, read, kind: made })
    };
    columns.map(source).collect()
}

/// Returns the values of a row that need a conversion.
fn made<'r>(sources: &[Source], value: impl Fn(usize) -> DatumRef<'r>) -> Result<Vec<Option<Datum>>> {
    let one = |(at, source): (usize, &Source)| {
        let Some(kind) = &source.kind else { return Ok(None) };
        Ok(match value(at) {
            DatumRef::Text(text) => Some(Datum::parse(text, kind)?),
            number @ DatumRef::Double(_) => Some(Datum::parse(&number.to_string(), kind)?),
            DatumRef::Decimal { unscaled, scale } if kind.kind != Type::Decimal => {
                let unit = 10_i128.checked_pow(scale.into()).unwrap_or(i128::MAX);
                match unscaled % unit {
                    0 => Some(Datum::parse(&(unscaled / unit).to_string(), kind)?),
                    _ => Some(Datum::parse(&DatumRef::Decimal { unscaled, scale }.to_string(), kind)?),
                }
            }
            DatumRef::Decimal { unscaled, scale } => {
                Some(Datum::Decimal { unscaled: kept(unscaled, scale, OPEN)?, scale: OPEN.1 })
            }
            DatumRef::Blob(bytes) => bytes.try_into().ok().map(Datum::Uuid),
            _ => None,
        })
    };
    sources.iter().enumerate().map(one).collect()
}

/// Returns the field of a column in the file. Parquet has no interval of months, days and
/// microseconds, so that intervals are written as text.
fn written(column: &Column) -> Field {
    let kind = match column.kind.kind {
        Type::Interval => DataType::Utf8View,
        _ => data_type(&column.kind),
    };
    Field::new(&column.name, kind, true)
}

/// Errors: 42701 for two columns of the same name, which a reader of the file could not tell apart.
pub(super) fn check_names(columns: &[Column]) -> Result<()> {
    match repeated(columns.iter().map(|column| column.name.as_str())) {
        Some(name) => {
            let what = format!("duplicate column name \"{name}\", which a Parquet file cannot have");
            Err(Error::new(DUPLICATE_COLUMN, what).with_hint("Use AS to give one of them another name."))
        }
        None => Ok(()),
    }
}

/// Writes the rows of a query as a Parquet file.
#[derive(Debug)]
pub(super) struct Encoder {
    schema: SchemaRef,
    kinds: Vec<ColumnType>,
    /// `None` once the file is complete.
    writer: Option<ParquetWriter>,
}

impl Encoder {
    /// Returns an encoder for rows of these columns. Errors: 22P04 for types that Parquet lacks.
    pub fn new(columns: &[Column]) -> Result<Self> {
        let schema: SchemaRef = Arc::new(Schema::new(columns.iter().map(written).collect::<Vec<_>>()));
        let kinds = columns.iter().map(|column| column.kind.clone()).collect();
        let writer = Some(ParquetWriter::new(&schema)?);
        Ok(Encoder { schema, kinds, writer })
    }

    /// Encodes the next batch of the query. Returns the bytes of the file that are ready and the
    /// number of rows; `None` once the file is complete.
    ///
    /// Errors: those of the query.
    pub fn next(&mut self, batches: &mut dyn BatchSource) -> Result<Option<(Vec<u8>, u64)>> {
        let Some(writer) = &mut self.writer else { return Ok(None) };
        let Some(batch) = batches.next()? else {
            let Some(writer) = self.writer.take() else { return Ok(None) };
            return Ok(Some((writer.finish()?, 0)));
        };
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
        let arrays = self.kinds.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(arrow_error)?;
        Ok(Some((writer.write(&rows)?, reader.rows() as u64)))
    }
}
