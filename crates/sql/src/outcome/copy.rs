//! The client's side of COPY.

use cairn_vfs::File;
use cairn_vfs::sync::Arc;

use crate::command_tag::CommandTag;
use crate::copy::{Reader, Writer};
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::QUERY_CANCELED;

/// `COPY ... FROM STDIN`. Dropping it rolls the statement back.
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

    /// The number of columns of a row.
    pub fn columns(&self) -> usize {
        self.reader.columns()
    }

    /// Whether rows are in PostgreSQL's binary format.
    pub fn is_binary(&self) -> bool {
        self.reader.is_binary()
    }

    /// Whether the input is a Parquet file. Such a file is read from its end: [`CopyIn::read_file`]
    /// reads one in place, [`CopyIn::write`] buffers one of up to 256 MiB in memory.
    pub fn is_parquet(&self) -> bool {
        self.reader.is_parquet()
    }

    /// Loads the rows of a Parquet file and ends the statement.
    ///
    /// Errors: those of the file, of invalid rows and of the commit; another format.
    pub fn read_file(mut self, file: Arc<dyn File>) -> Result<CommandTag> {
        let result = self.reader.read_file(self.session, file);
        self.end(result)
    }

    /// Takes bytes, which may split rows anywhere.
    ///
    /// Errors: those of invalid rows. An error ends the statement and undoes it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let result = self.reader.write(self.session, bytes);
        self.end_if_failed(result)
    }

    /// Takes a row as values instead of bytes, one for each column in order. This is the fastest
    /// way to load rows.
    ///
    /// Errors: 42601 for a wrong number of values; those of invalid values. An error ends the
    /// statement and undoes it.
    pub fn push(&mut self, row: &[DatumRef<'_>]) -> Result<()> {
        let result = self.reader.push(self.session, row);
        self.end_if_failed(result)
    }

    /// Ends the input and the statement.
    ///
    /// Errors: those of invalid rows, and of the commit.
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

    /// Rolls the statement back at the client's request. Returns the error to send to the client.
    pub fn fail(self, message: &str) -> Error {
        Error::new(QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }

    fn end_if_failed<T>(&mut self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let error = self.session.explain(error);
            if std::mem::take(&mut self.open) {
                // The first error is the one to report.
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

    /// The number of columns of a row.
    pub fn columns(&self) -> usize {
        self.writer.columns()
    }

    /// Whether rows are in PostgreSQL's binary format.
    pub fn is_binary(&self) -> bool {
        self.writer.is_binary()
    }

    /// The ends of the rows in the last piece from [`CopyOut::next`], for callers that send rows
    /// one by one.
    pub fn row_ends(&self) -> &[usize] {
        self.writer.ends()
    }

    /// Returns the next complete rows, encoded; `None` after the last one.
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

    /// `COPY n`, where n is the number of rows returned so far.
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
