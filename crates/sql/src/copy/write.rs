//! COPY TO.

use super::{Encoder, Format, Options};
use crate::error::Result;
use crate::outcome::Column;
use crate::query::Batches;

/// Gives rows as bytes.
#[derive(Debug)]
pub(crate) struct Writer {
    batches: Batches,
    encoder: Encoder,
    columns: usize,
    is_binary: bool,
    has_begun: bool,
    has_ended: bool,
    /// Where rows of the last piece end.
    ends: Vec<usize>,
    pub rows: u64,
}

impl Writer {
    pub fn new(batches: Batches, columns: &[Column], options: &Options) -> Self {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        Writer {
            batches,
            encoder: Encoder::new(options, &names),
            columns: columns.len(),
            is_binary: options.format == Format::Binary,
            has_begun: false,
            has_ended: false,
            ends: Vec::new(),
            rows: 0,
        }
    }

    /// How many columns a row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether the rows are not text.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Where the rows of the last piece end. As PostgreSQL cuts it: names are a row, the binary format's signature belongs to the first row, and its end is one.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Some more whole rows.
    ///
    /// Errors: those of the query.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        self.ends.clear();
        if !std::mem::replace(&mut self.has_begun, true) {
            self.encoder.begin(&mut bytes);
            if !self.is_binary && !bytes.is_empty() {
                self.ends.push(bytes.len());
            }
        }
        while let Some(batch) = self.batches.next()? {
            let reader = self.batches.reader(&batch)?;
            for at in 0..reader.rows() {
                self.encoder.row(|column| reader.get(at, column), &mut bytes);
                self.ends.push(bytes.len());
            }
            self.rows += reader.rows() as u64;
            if reader.rows() > 0 {
                return Ok(Some(bytes));
            }
        }
        if !std::mem::replace(&mut self.has_ended, true) {
            let before = bytes.len();
            self.encoder.finish(&mut bytes);
            if bytes.len() > before {
                self.ends.push(bytes.len());
            }
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}
