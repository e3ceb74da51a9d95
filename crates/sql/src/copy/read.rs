//! COPY FROM.

use cairn_vfs::sync::Arc;

use super::decode::{Fields, fields, is_end, row_end};
use super::format::Format;
use crate::datum::Datum;
use crate::direct::{Insert, InsertRun};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::BAD_COPY_FILE_FORMAT;

/// Bytes that are kept until there is no more to come: so many rows go into an empty table at once.
const KEPT: usize = 256 << 20;

/// Takes rows as they come.
#[derive(Debug)]
pub(crate) struct Reader {
    insert: Arc<Insert>,
    format: Format,
    buffer: Vec<u8>,
    /// How much of the buffer was taken out.
    taken: usize,
    /// Rows are put in one by one from now on.
    streams: bool,
    header_is_over: bool,
    is_over: bool,
    line: u64,
    rows: u64,
}

impl Reader {
    pub fn new(insert: Arc<Insert>, format: Format) -> Self {
        let header_is_over = !format.header;
        Reader {
            insert,
            format,
            buffer: Vec::new(),
            taken: 0,
            streams: false,
            header_is_over,
            is_over: false,
            line: 0,
            rows: 0,
        }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.insert.columns.len()
    }

    /// Takes bytes.
    ///
    /// Errors: what is wrong with a row.
    pub fn write(&mut self, session: &mut Session, bytes: &[u8]) -> Result<()> {
        self.buffer.extend(bytes);
        if self.buffer.len() >= KEPT {
            self.streams = true;
        }
        if self.streams { self.insert_rows(session, false) } else { Ok(()) }
    }

    /// Puts in what is left.
    ///
    /// Errors: as [`Reader::write`].
    pub fn finish(&mut self, session: &mut Session) -> Result<u64> {
        if self.streams {
            self.insert_rows(session, true)?;
            return Ok(self.rows);
        }
        let insert = Arc::clone(&self.insert);
        let (transaction, context) = session.parts()?;
        let table = transaction
            .view()
            .catalog()
            .table_by_id(insert.table.id())
            .cloned()
            .unwrap_or_else(|| Arc::clone(&insert.table));
        let mut bulk = transaction.bulk_insert(&table)?;
        let mut run = InsertRun::new(&insert, &[], context);
        while let Some(row) = self.next_row(true)? {
            run.bulk(&row, &mut bulk).map_err(|error| self.at_line(error))?;
        }
        Ok(bulk.finish()?)
    }

    fn insert_rows(&mut self, session: &mut Session, last: bool) -> Result<()> {
        let insert = Arc::clone(&self.insert);
        let (transaction, context) = session.parts()?;
        let mut run = InsertRun::new(&insert, &[], context);
        while let Some(row) = self.next_row(last)? {
            run.given(&row, transaction).map_err(|error| self.at_line(error))?;
            self.rows += 1;
        }
        Ok(())
    }

    fn at_line(&self, error: Error) -> Error {
        let place = format!("COPY {}, line {}", self.insert.table.def().name, self.line);
        match error.detail() {
            Some(detail) => {
                let detail = format!("{detail} ({place})");
                error.with_detail(detail)
            }
            None => error.with_detail(place),
        }
    }

    /// The next whole row in the buffer.
    fn next_row(&mut self, last: bool) -> Result<Option<Vec<Datum>>> {
        // Rows are taken from the front one after the other, and the rest moves up now and then.
        loop {
            if self.is_over {
                return Ok(None);
            }
            let start = self.taken;
            let Some((end, next)) = row_end(self.buffer.get(start..).unwrap_or_default(), &self.format, last)
            else {
                self.buffer.drain(..start);
                self.taken = 0;
                return Ok(None);
            };
            self.line += 1;
            self.taken = start + next;
            if !std::mem::replace(&mut self.header_is_over, true) {
                continue;
            }
            let row = self.buffer.get(start..start + end).unwrap_or_default();
            if is_end(row) {
                self.is_over = true;
                return Ok(None);
            }
            let found = fields(row, &self.format).and_then(|fields| self.datums(fields));
            return found.map(Some).map_err(|error| self.at_line(error));
        }
    }

    fn datums(&self, fields: Fields) -> Result<Vec<Datum>> {
        let columns = &self.insert.columns;
        let def = self.insert.table.def();
        if fields.len() > columns.len() {
            return Err(Error::new(BAD_COPY_FILE_FORMAT, "extra data after last expected column"));
        }
        if let Some(missing) = columns.get(fields.len()).and_then(|&at| def.columns.get(at)) {
            return Err(Error::new(
                BAD_COPY_FILE_FORMAT,
                format!("missing data for column \"{}\"", missing.name),
            ));
        }
        let kinds = columns.iter().filter_map(|&at| def.columns.get(at)).map(|column| &column.kind);
        let datum = |(field, kind): (Option<String>, &cairn_table::schema::ColumnType)| match field {
            None => Ok(Datum::Null),
            Some(text) if kind.kind == cairn_table::row::Type::Text && !kind.is_json => Ok(Datum::Text(text)),
            Some(text) => Datum::parse(&text, kind),
        };
        fields.into_iter().zip(kinds).map(datum).collect()
    }
}
