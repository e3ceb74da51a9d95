//! Encodes rows as bytes.

use std::io::Write;

use super::{Format, Header, Options, binary};
use crate::datum::DatumRef;

/// Encodes rows.
#[derive(Debug)]
pub(crate) struct Encoder {
    options: Options,
    columns: Vec<String>,
}

impl Encoder {
    /// Returns an encoder of rows with these columns, given by name. Parquet is not written this
    /// way.
    pub fn new(options: &Options, columns: &[&str]) -> Self {
        Encoder { options: options.clone(), columns: columns.iter().map(|&name| name.to_owned()).collect() }
    }

    /// Appends the header: column names, or the signature of the binary format.
    pub fn begin(&self, to: &mut Vec<u8>) {
        if self.options.format == Format::Binary {
            to.extend_from_slice(binary::SIGNATURE);
            to.extend_from_slice(&[0; 8]);
        } else if self.options.header != Header::No {
            self.row(
                |column| self.columns.get(column).map_or(DatumRef::Null, |name| DatumRef::Text(name)),
                to,
            );
        }
    }

    /// Appends a row; `value` returns the value of the n-th column.
    pub fn row<'v>(&self, mut value: impl FnMut(usize) -> DatumRef<'v>, to: &mut Vec<u8>) {
        let columns = self.columns.len();
        if self.options.format == Format::Binary {
            to.extend_from_slice(&(columns as u16).to_be_bytes());
            (0..columns).for_each(|column| binary::put(value(column), to));
            return;
        }
        for column in 0..columns {
            if column > 0 {
                to.push(self.options.delimiter);
            }
            let start = to.len();
            match value(column) {
                DatumRef::Null => {
                    to.extend_from_slice(self.options.null.as_bytes());
                    continue;
                }
                DatumRef::Text(text) => to.extend_from_slice(text.as_bytes()),
                // Writing to memory cannot fail.
                other => _ = write!(to, "{other}"),
            }
            match self.options.format {
                Format::Csv => self.quote(column, start, to),
                _ => self.escape(start, to),
            }
        }
        to.push(b'\n');
    }

    /// Appends the trailer.
    pub fn finish(&self, to: &mut Vec<u8>) {
        if self.options.format == Format::Binary {
            to.extend_from_slice(&(-1_i16).to_be_bytes());
        }
    }

    /// Escapes special characters with backslashes, from `start` on.
    fn escape(&self, start: usize, to: &mut Vec<u8>) {
        let delimiter = self.options.delimiter;
        let is_special = |byte: &u8| matches!(byte, 8..=13 | b'\\') || *byte == delimiter;
        let Some(first) = to.get(start..).unwrap_or_default().iter().position(is_special) else { return };
        let tail = to.split_off(start + first);
        for byte in tail {
            let letter = match byte {
                8 => b'b',
                9 => b't',
                10 => b'n',
                11 => b'v',
                12 => b'f',
                13 => b'r',
                other if is_special(&other) => other,
                plain => {
                    to.push(plain);
                    continue;
                }
            };
            to.extend_from_slice(&[b'\\', letter]);
        }
    }

    /// Quotes the value that begins at `start`, if it needs quotes.
    fn quote(&self, column: usize, start: usize, to: &mut Vec<u8>) {
        let Options { delimiter, quote, escape, .. } = self.options;
        let value = to.get(start..).unwrap_or_default();
        let forced = self.options.force_quote.get(column).copied().unwrap_or_default();
        let special = |byte: &u8| *byte == delimiter || *byte == quote || matches!(byte, b'\n' | b'\r');
        let is_end = self.columns.len() == 1 && value == b"\\.";
        if !forced && !is_end && value != self.options.null.as_bytes() && !value.iter().any(special) {
            return;
        }
        let value = to.split_off(start);
        to.push(quote);
        for byte in value {
            if byte == quote || byte == escape {
                to.push(escape);
            }
            to.push(byte);
        }
        to.push(quote);
    }
}
