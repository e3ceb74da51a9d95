//! COPY TO.

use super::{Encoder, Format, Options, columnar};
use crate::column::Column;
use crate::error::Result;
use crate::rows::BatchSource;

/// Encodes the rows of a query.
#[derive(Debug)]
pub(crate) struct Writer {
    batches: Box<dyn BatchSource>,
    form: Form,
    columns: usize,
    is_binary: bool,
    /// The ends of the rows in the last piece.
    ends: Vec<usize>,
    pub rows: u64,
}

#[derive(Debug)]
enum Form {
    Rows { encoder: Encoder, has_begun: bool, has_ended: bool },
    Columns(Box<columnar::Encoder>),
}

impl Writer {
    /// Errors: 22P04 for types that Parquet lacks.
    pub fn new(batches: Box<dyn BatchSource>, columns: &[Column], options: &Options) -> Result<Self> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let form = match options.format {
            Format::Parquet => Form::Columns(Box::new(columnar::Encoder::new(columns)?)),
            _ => Form::Rows { encoder: Encoder::new(options, &names), has_begun: false, has_ended: false },
        };
        let is_binary = matches!(options.format, Format::Binary | Format::Parquet);
        Ok(Writer { batches, form, columns: columns.len(), is_binary, ends: Vec::new(), rows: 0 })
    }

    /// The number of columns of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether the format is binary.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// The ends of the rows in the last piece, divided as PostgreSQL does: the header line is a
    /// row, the binary signature belongs to the first row, and the binary trailer is a row. A piece
    /// of a Parquet file is one row.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Returns the next complete rows.
    ///
    /// Errors: those of the query.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.ends.clear();
        let (encoder, has_begun, has_ended) = match &mut self.form {
            Form::Rows { encoder, has_begun, has_ended } => (encoder, has_begun, has_ended),
            Form::Columns(encoder) => {
                while let Some((bytes, rows)) = encoder.next(&mut *self.batches)? {
                    self.rows += rows;
                    if !bytes.is_empty() {
                        self.ends.push(bytes.len());
                        return Ok(Some(bytes));
                    }
                }
                return Ok(None);
            }
        };
        let mut bytes = Vec::new();
        if !std::mem::replace(has_begun, true) {
            encoder.begin(&mut bytes);
            if !self.is_binary && !bytes.is_empty() {
                self.ends.push(bytes.len());
            }
        }
        while let Some(batch) = self.batches.next()? {
            let reader = self.batches.reader(&batch)?;
            for at in 0..reader.rows() {
                encoder.row(|column| reader.get(at, column), &mut bytes);
                self.ends.push(bytes.len());
            }
            self.rows += reader.rows() as u64;
            if reader.rows() > 0 {
                return Ok(Some(bytes));
            }
        }
        if !std::mem::replace(has_ended, true) {
            let before = bytes.len();
            encoder.finish(&mut bytes);
            if bytes.len() > before {
                self.ends.push(bytes.len());
            }
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}
