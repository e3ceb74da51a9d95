//! COPY, seen from the client's side.

use cairn_vfs::File;
use cairn_vfs::sync::Arc;

use super::CommandTag;
use crate::copy::{Reader, Writer};
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::QUERY_CANCELED;

/// `COPY ... FROM STDIN`. Dropping it takes back what it did.
#[derive(Debug)]
pub struct CopyIn<'c> {
    session: &'c mut Session,
    reader: Box<Reader>,
    /// The statement has not ended.
    open: bool,
}

impl<'c> CopyIn<'c> {
    pub(crate) fn new(session: &'c mut Session, reader: Box<Reader>) -> Self {
        CopyIn { session, reader, open: true }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.reader.columns()
    }

    /// Whether rows are in PostgreSQL's binary format.
    pub fn is_binary(&self) -> bool {
        self.reader.is_binary()
    }

    /// Whether what comes is a Parquet file. It is read from its end on: [`CopyIn::read_file`]
    /// reads one where it is, [`CopyIn::write`] keeps one of up to 256 MiB in memory.
    pub fn is_parquet(&self) -> bool {
        self.reader.is_parquet()
    }

    /// Takes the rows of a Parquet file and ends the statement.
    ///
    /// Errors: what is wrong with the file, a row, or with committing; the format is another one.
    pub fn read_file(mut self, file: Arc<dyn File>) -> Result<CommandTag> {
        let result = self.reader.read_file(self.session, file);
        self.end(result)
    }

    /// Takes bytes. Rows may be cut anywhere.
    ///
    /// Errors: what is wrong with a row. The statement is over then, and has done nothing.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let result = self.reader.write(self.session, bytes);
        self.end_if_failed(result)
    }

    /// Takes a row as values instead of bytes: one for each column, in their order. This is the
    /// fastest way in.
    ///
    /// Errors: 42601 for too few or too many; what is wrong with a value. The statement is over
    /// then, and has done nothing.
    pub fn push(&mut self, row: &[DatumRef<'_>]) -> Result<()> {
        let result = self.reader.push(self.session, row);
        self.end_if_failed(result)
    }

    /// Ends the input and the statement.
    ///
    /// Errors: what is wrong with a row, or with committing.
    pub fn finish(mut self) -> Result<CommandTag> {
        let result = self.reader.finish(self.session);
        self.end(result)
    }

    fn end(&mut self, result: Result<u64>) -> Result<CommandTag> {
        let rows = self.end_if_failed(result)?;
        self.open = false;
        self.session.end_statement(true)?;
        Ok(CommandTag::of_rows("COPY", rows))
    }

    /// Takes back what it did, because the client says so. Gives the error that the client is to
    /// get for it.
    pub fn fail(self, message: &str) -> Error {
        Error::new(QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }

    fn end_if_failed<T>(&mut self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let error = self.session.explain(error);
            if std::mem::take(&mut self.open) {
                // The first error is the one to tell.
                let _ = self.session.end_statement(false);
            }
            error
        })
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = self.session.end_statement(false);
        }
    }
}

/// `COPY ... TO STDOUT`.
#[derive(Debug)]
pub struct CopyOut<'c> {
    session: &'c mut Session,
    writer: Box<Writer>,
    open: bool,
}

impl<'c> CopyOut<'c> {
    pub(crate) fn new(session: &'c mut Session, writer: Box<Writer>) -> Self {
        CopyOut { session, writer, open: true }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.writer.columns()
    }

    /// Whether rows are in PostgreSQL's binary format.
    pub fn is_binary(&self) -> bool {
        self.writer.is_binary()
    }

    /// Where the rows end in the piece that [`CopyOut::next`] gave last, for those who send them
    /// one by one.
    pub fn row_ends(&self) -> &[usize] {
        self.writer.ends()
    }

    /// Some more whole rows, encoded; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`](super::Rows::next).
    #[allow(clippy::should_implement_trait, reason = "it may fail, and is read as rows are")]
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let next = self.writer.next().map_err(|error| self.session.explain(error));
        if !matches!(next, Ok(Some(_))) && std::mem::take(&mut self.open) {
            let ended = self.session.end_statement(next.is_ok());
            if next.is_ok() {
                ended?;
            }
        }
        next
    }

    /// `COPY n`, n being the rows that were given so far.
    pub fn tag(&self) -> CommandTag {
        CommandTag::of_rows("COPY", self.writer.rows)
    }
}

impl Drop for CopyOut<'_> {
    fn drop(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = self.session.end_statement(true);
        }
    }
}
