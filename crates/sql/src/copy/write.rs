//! COPY TO.

use super::encode::{field, row};
use super::format::Format;
use crate::error::Result;
use crate::outcome::Column;
use crate::query::Batches;

/// Gives rows as bytes.
#[derive(Debug)]
pub(crate) struct Writer {
    batches: Batches,
    format: Format,
    columns: usize,
    header: Option<Vec<u8>>,
    pub rows: u64,
}

impl Writer {
    pub fn new(batches: Batches, columns: &[Column], format: Format) -> Self {
        let header = format.header.then(|| {
            let mut line = Vec::new();
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    line.push(format.delimiter);
                }
                field(&column.name, &format, &mut line);
            }
            line.push(b'\n');
            line
        });
        Writer { batches, format, columns: columns.len(), header, rows: 0 }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Some more whole rows.
    ///
    /// Errors: those of the query.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(header) = self.header.take() {
            return Ok(Some(header));
        }
        let Some(batch) = self.batches.next()? else { return Ok(None) };
        let reader = self.batches.reader(&batch)?;
        let mut bytes = Vec::new();
        for at in 0..reader.rows() {
            row((0..reader.columns()).map(|column| reader.get(at, column)), &self.format, &mut bytes);
        }
        self.rows += reader.rows() as u64;
        Ok(Some(bytes))
    }
}
