//! COPY FROM.

use cairn_vfs::sync::Arc;

use super::{Cell, Decoder, Format, Options, RawRow};
use crate::datum::DatumRef;
use crate::direct::{Insert, InsertRun};
use crate::error::Result;
use crate::session::Session;

/// Bytes that are kept until there is no more to come: so many rows go into an empty table at once.
const KEPT: usize = 256 << 20;
/// Bytes of a row at most.
const LONGEST: usize = 1 << 30;

/// Takes rows as they come.
#[derive(Debug)]
pub(crate) struct Reader {
    insert: Arc<Insert>,
    decoder: Decoder,
    is_binary: bool,
    kept: Vec<u8>,
    /// Rows are put in one by one from now on.
    streams: bool,
    rows: u64,
}

/// A row's values, each of its column's type.
fn cells<'r>(insert: &Insert, row: &RawRow<'r>) -> Result<Vec<Cell<'r>>> {
    let columns = insert.columns.iter().filter_map(|&at| insert.table.def().columns.get(at));
    columns.enumerate().map(|(at, column)| row.get(at, &column.kind)).collect()
}

fn at<'c>(cells: &'c [Cell<'_>]) -> impl Fn(usize) -> DatumRef<'c> {
    |place| cells.get(place).map_or(DatumRef::Null, Cell::borrow)
}

impl Reader {
    pub fn new(insert: Arc<Insert>, options: &Options) -> Self {
        let def = insert.table.def();
        let columns = insert.columns.iter().filter_map(|&at| def.columns.get(at));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        Reader {
            decoder: Decoder::new(options, &def.name, &names, LONGEST),
            is_binary: options.format == Format::Binary,
            kept: Vec::new(),
            streams: false,
            rows: 0,
            insert,
        }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.insert.columns.len()
    }

    /// Whether the rows are not text.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Takes bytes.
    ///
    /// Errors: what is wrong with a row.
    pub fn write(&mut self, session: &mut Session, bytes: &[u8]) -> Result<()> {
        if self.streams {
            return self.insert_rows(session, Some(bytes));
        }
        self.kept.extend_from_slice(bytes);
        if self.kept.len() >= KEPT {
            self.streams = true;
            let kept = std::mem::take(&mut self.kept);
            self.insert_rows(session, Some(&kept))?;
        }
        Ok(())
    }

    /// Puts in what is left.
    ///
    /// Errors: as [`Reader::write`].
    pub fn finish(&mut self, session: &mut Session) -> Result<u64> {
        if self.streams {
            self.insert_rows(session, None)?;
            return Ok(self.rows);
        }
        let kept = std::mem::take(&mut self.kept);
        self.load(session, std::iter::once(Ok(kept)))
    }

    /// Reads everything there is in one go: rows of an empty table are built into it from the bottom up.
    ///
    /// Errors: those of the pieces, and what is wrong with a row.
    pub fn load(
        &mut self,
        session: &mut Session,
        pieces: impl Iterator<Item = Result<Vec<u8>>>,
    ) -> Result<u64> {
        let (transaction, context) = session.parts()?;
        let table = self.insert.table_now(transaction);
        let mut bulk = transaction.bulk_insert(&table)?;
        let mut run = InsertRun::new(&self.insert, &[], context);
        let mut each = |row: &RawRow<'_>| {
            let cells = cells(&self.insert, row)?;
            run.bulk(at(&cells), &mut bulk).map_err(|error| row.mark(error))
        };
        for piece in pieces {
            self.decoder.write(&piece?, &mut each)?;
        }
        self.decoder.finish(&mut each)?;
        Ok(bulk.finish()?)
    }

    /// Puts in the rows that end in these bytes; all that are left, without any.
    fn insert_rows(&mut self, session: &mut Session, bytes: Option<&[u8]>) -> Result<()> {
        let (transaction, context) = session.parts()?;
        let mut run = InsertRun::new(&self.insert, &[], context);
        let rows = &mut self.rows;
        let mut each = |row: &RawRow<'_>| {
            let cells = cells(&self.insert, row)?;
            run.given(at(&cells), transaction).map_err(|error| row.mark(error))?;
            *rows += 1;
            Ok(())
        };
        match bytes {
            Some(bytes) => self.decoder.write(bytes, &mut each),
            None => self.decoder.finish(&mut each),
        }
    }
}
