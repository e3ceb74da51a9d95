//! Bytes into rows.

use cairn_table::schema::ColumnType;

use super::Options;
use crate::datum::{Datum, DatumRef};
use crate::{Error, Result};

/// Reads rows from bytes that come in pieces.
#[derive(Debug)]
pub(crate) struct Decoder {
    options: Options,
    columns: Vec<String>,
    most: usize,
}

/// A row's values as they were written.
#[derive(Debug)]
pub(crate) struct RawRow<'a> {
    values: &'a [Option<&'a [u8]>],
}

/// A value that was read: borrowed where the bytes could be.
#[derive(Debug)]
pub(crate) enum Cell<'a> {
    /// It lies in the row.
    Borrowed(DatumRef<'a>),
    /// It had to be made.
    Owned(Datum),
}

impl Decoder {
    /// A reader of rows with these columns (their names). A row of more than `most` bytes is refused.
    pub fn new(options: &Options, columns: &[&str], most: usize) -> Self {
        Decoder { options: options.clone(), columns: columns.iter().map(|&name| name.to_owned()).collect(), most }
    }

    /// Takes bytes, and gives every row that is whole to `each`.
    ///
    /// Errors: 22P04 and 22021, with the line, for what is no row; what `each` returns. The decoder is over then.
    pub fn write(&mut self, bytes: &[u8], each: &mut dyn FnMut(&RawRow<'_>) -> Result<()>) -> Result<()> {
        let _ = (bytes, each, &self.options, &self.columns, self.most);
        Err(Error::unsupported("COPY"))
    }

    /// Ends the input: what is left is the last row.
    ///
    /// Errors: as [`Decoder::write`].
    pub fn finish(&mut self, each: &mut dyn FnMut(&RawRow<'_>) -> Result<()>) -> Result<()> {
        self.write(&[], each)
    }
}

impl<'a> RawRow<'a> {
    /// How many values it has: as many as there are columns.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The line it began on, counted from 1; the row's number in the binary format.
    pub fn line(&self) -> u64 {
        0
    }

    /// A value, of a column's type.
    ///
    /// Errors: those of [`Datum::parse`], 22P03 in the binary format; where they are is in their detail.
    pub fn get(&self, column: usize, kind: &ColumnType) -> Result<Cell<'a>> {
        let _ = (column, kind);
        Err(Error::unsupported("COPY"))
    }
}

impl Cell<'_> {
    /// The value.
    pub fn borrow(&self) -> DatumRef<'_> {
        match self {
            Cell::Borrowed(value) => *value,
            Cell::Owned(value) => value.borrow(),
        }
    }
}
