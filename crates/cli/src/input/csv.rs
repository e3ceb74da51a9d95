//! CSV and TSV with a header line.

use cairn_rows::csv::{Dialect, Failure, Reader, Row};
use csv::{Writer, WriterBuilder};

use super::{Sink, Source, Stream, find_column};
use crate::args::hash::InputArgs;
use crate::error::{Error, Result};

/// Reads separated values. In CSV, fields may be quoted and then contain separators and line
/// breaks. In TSV, quotes are ordinary characters. The value of a whole record is its line, with
/// the same separator and with quotes where needed.
#[derive(Debug)]
pub struct CsvSource {
    reader: Reader<Stream>,
    name: String,
    dialect: Dialect,
    /// The number of columns in the header.
    columns: usize,
    key: usize,
    /// `None` for the whole record.
    value: Option<usize>,
    row: Row,
    line: Vec<u8>,
}

impl CsvSource {
    /// Reads the header line and finds the columns.
    pub fn open(stream: Stream, dialect: Dialect, name: String, args: &InputArgs) -> Result<CsvSource> {
        let mut reader = Reader::new(stream, dialect);
        let mut header = Row::default();
        if !reader.read(&mut header).map_err(|failure| refuse(&name, &failure))? {
            let what = "is empty, expected a header line that names the columns".to_owned();
            return Err(Error::Input { input: name, place: None, what });
        }
        // A binary file has a "first line" too, up to its first byte 10; detect it here.
        if header.iter().any(|name| name.contains(&0) || std::str::from_utf8(name).is_err()) {
            let what = "not text: expected a header line in UTF-8 that names the columns".to_owned();
            return Err(Error::Input { input: name, place: Some("line 1".to_owned()), what });
        }
        let find = |column: &String| find_column(header.iter(), column, &name);
        let key = args.key.as_ref().map(find).transpose()?.unwrap_or(0);
        let value = args.value.as_ref().map(find).transpose()?;
        let columns = header.len();
        Ok(CsvSource { reader, name, dialect, columns, key, value, row: Row::default(), line: Vec::new() })
    }

    /// Formats the record as a line.
    fn whole(&mut self) -> Result<()> {
        self.line.clear();
        if self.dialect.quotes {
            let mut writer: Writer<&mut Vec<u8>> =
                WriterBuilder::new().delimiter(self.dialect.separator).from_writer(&mut self.line);
            let written =
                writer.write_record(self.row.iter()).and_then(|()| writer.flush().map_err(Into::into));
            drop(writer);
            written.map_err(|error| self.refuse(error.to_string()))?;
            self.line.pop();
            return Ok(());
        }
        for (at, field) in self.row.iter().enumerate() {
            if at > 0 {
                self.line.push(self.dialect.separator);
            }
            self.line.extend_from_slice(field);
        }
        Ok(())
    }

    /// Creates the error for the current record.
    fn refuse(&self, what: String) -> Error {
        let place = Some(format!("line {}", self.row.line()));
        Error::Input { input: self.name.clone(), place, what }
    }
}

impl Source for CsvSource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        if !self.reader.read(&mut self.row).map_err(|failure| refuse(&self.name, &failure))? {
            return Ok(false);
        }
        if self.row.len() != self.columns {
            let (found, expected) = (self.row.len(), self.columns);
            return Err(self.refuse(format!("{found} columns, expected {expected} as in the header")));
        }
        let field = |at: usize| self.row.get(at).unwrap_or_default();
        match self.value {
            Some(value) => sink.put(field(self.key), field(value))?,
            None => {
                self.whole()?;
                sink.put(self.row.get(self.key).unwrap_or_default(), &self.line)?;
            }
        }
        Ok(true)
    }
}

fn refuse(name: &str, failure: &Failure) -> Error {
    let place = failure.line().map(|line| format!("line {line}"));
    Error::Input { input: name.to_owned(), place, what: failure.to_string() }
}
