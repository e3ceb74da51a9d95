//! Rows into bytes.

use super::Options;
use crate::datum::DatumRef;

/// Writes rows.
#[derive(Debug)]
pub(crate) struct Encoder {
    options: Options,
    columns: Vec<String>,
}

impl Encoder {
    /// A writer of rows with these columns (their names).
    pub fn new(options: &Options, columns: &[&str]) -> Self {
        Encoder { options: options.clone(), columns: columns.iter().map(|&name| name.to_owned()).collect() }
    }

    /// Appends what comes before the first row: names, or a signature.
    pub fn begin(&self, to: &mut Vec<u8>) {
        let _ = (to, &self.options, &self.columns);
    }

    /// Appends a row; `value` gives the n-th column's.
    pub fn row<'v>(&self, columns: usize, mut value: impl FnMut(usize) -> DatumRef<'v>, to: &mut Vec<u8>) {
        let _ = (value(0), columns, to);
    }

    /// Appends what comes after the last row.
    pub fn finish(&self, to: &mut Vec<u8>) {
        let _ = to;
    }
}
