//! COPY, seen from the client's side.

use super::CommandTag;
use crate::copy::{Reader, Writer};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::QUERY_CANCELED;

/// `COPY ... FROM STDIN`. Dropping it takes back what it did.
#[derive(Debug)]
pub struct CopyIn<'c> {
    columns: usize,
    session: &'c mut Session,
    reader: Reader,
}

impl<'c> CopyIn<'c> {
    pub(crate) fn new(session: &'c mut Session, reader: Reader) -> Self {
        CopyIn { columns: 0, session, reader }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Takes bytes. Rows may be cut anywhere.
    ///
    /// Errors: what is wrong with a row. The statement is over then, and has done nothing.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = bytes;
        Err(Error::unsupported("COPY"))
    }

    /// Ends the input and the statement.
    ///
    /// Errors: what is wrong with the last row, or with committing.
    pub fn finish(self) -> Result<CommandTag> {
        Err(Error::unsupported("COPY"))
    }

    /// Takes back what it did, because the client says so. Gives the error that the client is to get for it.
    pub fn fail(self, message: &str) -> Error {
        Error::new(QUERY_CANCELED, format!("COPY from stdin failed: {message}"))
    }
}

/// `COPY ... TO STDOUT`.
#[derive(Debug)]
pub struct CopyOut<'c> {
    columns: usize,
    rows: u64,
    session: &'c mut Session,
    writer: Writer,
}

impl<'c> CopyOut<'c> {
    pub(crate) fn new(session: &'c mut Session, writer: Writer) -> Self {
        CopyOut { columns: 0, rows: 0, session, writer }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Some more whole rows, encoded; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`](super::Rows::next).
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        Err(Error::unsupported("COPY"))
    }

    /// `COPY n`, n being the rows that were given so far.
    pub fn tag(&self) -> CommandTag {
        CommandTag::of_rows("COPY", self.rows)
    }
}
