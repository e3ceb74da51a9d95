//! CSV and TSV with a header line.

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder, Writer, WriterBuilder};

use super::{Sink, Source, Stream, find_column};
use crate::args::hash::InputArgs;
use crate::error::{Error, Result};

/// Reads separated values. In CSV fields may be quoted, with separators and line breaks inside; in TSV quotes are
/// ordinary characters. The value of a whole record is its line with the same separator, quoted where needed.
#[derive(Debug)]
pub struct CsvSource {
    reader: Reader<Stream>,
    name: String,
    separator: u8,
    key: usize,
    /// `None` for the whole record.
    value: Option<usize>,
    record: ByteRecord,
    line: Vec<u8>,
}

impl CsvSource {
    /// Reads the header line and finds the columns in it.
    pub fn open(stream: Stream, separator: u8, name: String, args: &InputArgs) -> Result<CsvSource> {
        let mut reader =
            ReaderBuilder::new().delimiter(separator).quoting(separator == b',').from_reader(stream);
        let header = match reader.byte_headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(refuse(&name, &error)),
        };
        if header.is_empty() {
            let what = "is empty, expected a header line that names the columns".to_owned();
            return Err(Error::Input { input: name, place: None, what });
        }
        // A file of another kind has a first line as well, up to its first byte 10.
        if header.iter().any(|name| name.contains(&0) || std::str::from_utf8(name).is_err()) {
            let what = "no text: expected a header line in UTF-8 that names the columns".to_owned();
            return Err(Error::Input { input: name, place: Some("line 1".to_owned()), what });
        }
        let find = |column: &String| find_column(header.iter(), column, &name);
        let key = args.key.as_ref().map(find).transpose()?.unwrap_or(0);
        let value = args.value.as_ref().map(find).transpose()?;
        Ok(CsvSource { reader, name, separator, key, value, record: ByteRecord::new(), line: Vec::new() })
    }

    /// The record as a line.
    fn whole(&mut self) -> Result<()> {
        self.line.clear();
        if self.separator == b',' {
            let mut writer: Writer<&mut Vec<u8>> = WriterBuilder::new().from_writer(&mut self.line);
            let written =
                writer.write_byte_record(&self.record).and_then(|()| writer.flush().map_err(Into::into));
            drop(writer);
            written.map_err(|error| refuse(&self.name, &error))?;
            self.line.pop();
            return Ok(());
        }
        for (at, field) in self.record.iter().enumerate() {
            if at > 0 {
                self.line.push(self.separator);
            }
            self.line.extend_from_slice(field);
        }
        Ok(())
    }
}

impl Source for CsvSource {
    fn feed(&mut self, sink: &mut dyn Sink) -> Result<bool> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err(refuse(&self.name, &error)),
        }
        // The reader has refused records that have fewer fields than the header.
        let field = |at: usize| self.record.get(at).unwrap_or_default();
        match self.value {
            Some(value) => sink.put(field(self.key), field(value))?,
            None => {
                self.whole()?;
                sink.put(self.record.get(self.key).unwrap_or_default(), &self.line)?;
            }
        }
        Ok(true)
    }
}

fn refuse(name: &str, error: &csv::Error) -> Error {
    let place = error.position().map(|position| format!("line {}", position.line()));
    let what = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns, expected {expected_len} as in the header")
        }
        ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    Error::Input { input: name.to_owned(), place, what }
}
