//! COPY FROM.

use std::path::Path;

use cairn_table::{BulkLoad, Transaction};
use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, File, Fs, MemFs, OpenOptions};

use super::{Cell, Decoder, Format, Options, RawRow, columnar};
use crate::datum::DatumRef;
use crate::direct::{Insert, InsertRun};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::{INTERNAL_ERROR, IO_ERROR, PROGRAM_LIMIT_EXCEEDED, SYNTAX_ERROR};

/// The largest row, in bytes.
const LONGEST: usize = 1 << 30;

/// The largest Parquet file that may arrive as a stream, in bytes. It is buffered in memory,
/// because Parquet is read from its end.
const PARQUET_BYTES_MAX: u64 = 256 << 20;

/// Loads rows as their bytes arrive.
#[derive(Debug)]
pub(crate) struct Reader {
    insert: Arc<Insert>,
    decoder: Decoder,
    is_binary: bool,
    /// A Parquet file, as far as it has arrived.
    parquet: Option<Whole>,
    /// `None` until the first row.
    load: Option<BulkLoad>,
}

/// A file that is assembled in memory.
#[derive(Debug)]
struct Whole {
    file: Arc<dyn File>,
    writer: AppendWriter,
    bytes: u64,
}

impl Whole {
    fn new() -> Result<Self> {
        let file = MemFs::new().open(Path::new("copy.parquet"), OpenOptions::create()).map_err(io)?;
        let file: Arc<dyn File> = file.into();
        let writer = AppendWriter::new(Arc::clone(&file), 0, 1 << 20);
        Ok(Whole { file, writer, bytes: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        if self.bytes > PARQUET_BYTES_MAX {
            let what = format!("a Parquet file from STDIN has more than {PARQUET_BYTES_MAX} bytes");
            return Err(Error::new(PROGRAM_LIMIT_EXCEEDED, what).with_hint("Name the file in COPY instead."));
        }
        self.writer.write_all(bytes).map_err(io)
    }

    fn finish(mut self) -> Result<Arc<dyn File>> {
        self.writer.flush().map_err(io)?;
        Ok(self.file)
    }
}

fn io(error: cairn_vfs::Error) -> Error {
    Error::new(IO_ERROR, error.to_string())
}

/// Decodes a row's values, each as its column's type.
fn cells<'r>(insert: &Insert, row: &RawRow<'r>) -> Result<Vec<Cell<'r>>> {
    let columns = insert.columns.iter().filter_map(|&at| insert.table.def().columns.get(at));
    columns.enumerate().map(|(at, column)| row.get(at, &column.kind)).collect()
}

fn at<'c>(cells: &'c [Cell<'_>]) -> impl Fn(usize) -> DatumRef<'c> {
    |place| cells.get(place).map_or(DatumRef::Null, Cell::borrow)
}

impl Reader {
    /// Errors: no memory for a Parquet file.
    pub fn new(insert: Arc<Insert>, options: &Options) -> Result<Self> {
        let def = insert.table.def();
        let columns = insert.columns.iter().filter_map(|&at| def.columns.get(at));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let is_parquet = options.format == Format::Parquet;
        Ok(Reader {
            decoder: Decoder::new(options, &def.name, &names, LONGEST),
            is_binary: is_parquet || options.format == Format::Binary,
            parquet: is_parquet.then(Whole::new).transpose()?,
            load: None,
            insert,
        })
    }

    /// The number of columns of a row.
    pub fn columns(&self) -> usize {
        self.insert.columns.len()
    }

    /// Whether the format is binary.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Whether the format is Parquet.
    pub fn is_parquet(&self) -> bool {
        self.parquet.is_some()
    }

    /// Loads the rows of a Parquet file, and returns their number.
    ///
    /// Errors: as [`Reader::finish`]; another format.
    pub fn read_file(&mut self, session: &mut Session, file: Arc<dyn File>) -> Result<u64> {
        match self.parquet.take() {
            Some(_) => columnar::read(session, &self.insert, file),
            None => Err(Error::new(INTERNAL_ERROR, "only a Parquet file is read as a file")),
        }
    }

    /// Takes bytes. If the table is empty, its trees are built from the bottom up.
    ///
    /// Errors: those of invalid rows.
    pub fn write(&mut self, session: &mut Session, bytes: &[u8]) -> Result<()> {
        if let Some(whole) = &mut self.parquet {
            return whole.write(bytes);
        }
        self.with_load(session, |decoder, each| decoder.write(bytes, each))
    }

    /// Takes a row as values, one for each column in order.
    ///
    /// Errors: 42601 for a wrong number of values; those of invalid values.
    pub fn push(&mut self, session: &mut Session, row: &[DatumRef<'_>]) -> Result<()> {
        if row.len() != self.columns() {
            let what = format!("the row has {} values, expected {}", row.len(), self.columns());
            return Err(Error::new(SYNTAX_ERROR, what));
        }
        let (transaction, context) = session.parts()?;
        let load = begun(&mut self.load, &self.insert, transaction)?;
        let given = |place: usize| row.get(place).copied().unwrap_or(DatumRef::Null);
        InsertRun::new(&self.insert, &[], context).bulk(given, load, transaction)
    }

    /// Loads the rest, and returns the number of rows.
    ///
    /// Errors: as [`Reader::write`].
    pub fn finish(&mut self, session: &mut Session) -> Result<u64> {
        if let Some(whole) = self.parquet.take() {
            return columnar::read(session, &self.insert, whole.finish()?);
        }
        self.with_load(session, |decoder, each| decoder.finish(each))?;
        let (transaction, _) = session.parts()?;
        match self.load.take() {
            Some(load) => Ok(load.finish(transaction)?),
            None => Ok(0),
        }
    }

    /// Loads all pieces.
    ///
    /// Errors: those of the pieces, and of invalid rows.
    pub fn load(
        &mut self,
        session: &mut Session,
        pieces: impl Iterator<Item = Result<Vec<u8>>>,
    ) -> Result<u64> {
        for piece in pieces {
            self.write(session, &piece?)?;
        }
        self.finish(session)
    }

    /// Decodes rows and loads each of them.
    fn with_load(
        &mut self,
        session: &mut Session,
        decode: impl FnOnce(&mut Decoder, &mut dyn FnMut(&RawRow<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let (transaction, context) = session.parts()?;
        let load = begun(&mut self.load, &self.insert, transaction)?;
        let mut run = InsertRun::new(&self.insert, &[], context);
        let mut each = |row: &RawRow<'_>| {
            let cells = cells(&self.insert, row)?;
            run.bulk(at(&cells), load, transaction).map_err(|error| row.mark(error))
        };
        decode(&mut self.decoder, &mut each)
    }
}

fn begun<'l>(
    load: &'l mut Option<BulkLoad>,
    insert: &Insert,
    transaction: &mut Transaction,
) -> Result<&'l mut BulkLoad> {
    if load.is_none() {
        *load = Some(transaction.bulk_load(&insert.table_now(transaction))?);
    }
    load.as_mut().ok_or_else(|| Error::new(INTERNAL_ERROR, "a load has not begun"))
}
