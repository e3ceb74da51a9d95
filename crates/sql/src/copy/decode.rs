//! Decodes rows from bytes.

use std::fmt::Display;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::fields::{Span, Split};
use super::{Format, Header, Options, binary, lines};
use crate::datum::{Datum, DatumRef};
use crate::sqlstate::{BAD_COPY_FILE_FORMAT, CHARACTER_NOT_IN_REPERTOIRE, PROGRAM_LIMIT_EXCEEDED};
use crate::{Error, Result};

/// Receives the rows one by one.
pub(crate) type Each<'a> = dyn FnMut(&RawRow<'_>) -> Result<()> + 'a;

/// Decodes rows from bytes that arrive in pieces.
#[derive(Debug)]
pub(crate) struct Decoder {
    options: Options,
    table: String,
    columns: Vec<String>,
    most: usize,
    /// The bytes of an incomplete row.
    pending: Vec<u8>,
    lines: lines::Finder,
    split: Split,
    /// The number of the current line, or of the current row in the binary format.
    line: u64,
    header: Header,
    begun: bool,
    ended: bool,
}

/// The values of a row in their encoded form.
#[derive(Debug)]
pub(crate) struct RawRow<'a> {
    pub(super) spans: &'a [Span],
    pub(super) source: Source<'a>,
    pub(super) columns: &'a [String],
    table: &'a str,
    line: u64,
}

/// The bytes that hold the values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// The line; values with escapes are in `unescaped`.
    Text { line: &'a str, unescaped: &'a str },
    /// The row of the binary format.
    Binary(&'a [u8]),
}

/// A decoded value, borrowed from the row where possible.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    /// It lies in the row.
    Borrowed(DatumRef<'a>),
    /// It had to be built.
    Owned(Datum),
}

/// Returns an error of the format.
pub(super) fn bad(what: impl Into<String>) -> Error {
    Error::new(BAD_COPY_FILE_FORMAT, what)
}

/// Adds the position of an error, unless it already has one.
fn at_line(error: Error, table: &str, line: u64, column: Option<(&str, &dyn Display)>) -> Error {
    if error.detail().is_some() {
        return error;
    }
    error.with_detail(match column {
        None => format!("COPY {table}, line {line}"),
        Some((name, value)) => {
            let value: String = value.to_string().chars().take(100).collect();
            format!("COPY {table}, line {line}, column {name}: \"{value}\"")
        }
    })
}

/// Checks that bytes are UTF-8. The error is in PostgreSQL's words.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str> {
    let wrong = |at: usize, len: usize| {
        let shown: Vec<String> =
            bytes.iter().skip(at).take(len).map(|byte| format!("0x{byte:02x}")).collect();
        let what = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        Error::new(CHARACTER_NOT_IN_REPERTOIRE, what)
    };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| wrong(error.valid_up_to(), error.error_len().unwrap_or(1)))?;
    match memchr::memchr(0, bytes) {
        Some(at) => Err(wrong(at, 1)),
        None => Ok(text),
    }
}

impl Decoder {
    /// Returns a decoder of rows for these columns of a table, given by name. A row of more than
    /// `most` bytes is rejected. Parquet is not read this way.
    pub fn new(options: &Options, table: &str, columns: &[&str], most: usize) -> Self {
        Decoder {
            table: table.to_owned(),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            most,
            pending: Vec::new(),
            lines: lines::Finder::new(options),
            split: Split::default(),
            line: 0,
            header: options.header,
            begun: false,
            ended: false,
            options: options.clone(),
        }
    }

    /// Takes bytes, and passes every complete row to `each`.
    ///
    /// Errors: 22P04 and 22021, with the line, for malformed rows; 54000 for a row that is too
    /// long; those of `each`. The decoder cannot be used after an error.
    pub fn write(&mut self, bytes: &[u8], each: &mut Each<'_>) -> Result<()> {
        if self.pending.is_empty() {
            let done = self.rows(bytes, false, each)?;
            self.pending.extend_from_slice(bytes.get(done..).unwrap_or_default());
        } else {
            let mut buffer = std::mem::take(&mut self.pending);
            buffer.extend_from_slice(bytes);
            let done = self.rows(&buffer, false, each)?;
            buffer.drain(..done);
            self.pending = buffer;
        }
        if self.pending.len() > self.most {
            let what = format!("a row of COPY is longer than {} bytes", self.most);
            return Err(at_line(Error::new(PROGRAM_LIMIT_EXCEEDED, what), &self.table, self.line + 1, None));
        }
        Ok(())
    }

    /// Ends the input. The remaining bytes are the last row.
    ///
    /// Errors: as [`Decoder::write`].
    pub fn finish(&mut self, each: &mut Each<'_>) -> Result<()> {
        let buffer = std::mem::take(&mut self.pending);
        let done = self.rows(&buffer, true, each)?;
        if self.options.format == Format::Binary && (done < buffer.len() || !self.begun) {
            return Err(bad("unexpected EOF in COPY data"));
        }
        Ok(())
    }

    /// Decodes the complete rows, and returns their length in bytes.
    fn rows(&mut self, bytes: &[u8], last: bool, each: &mut Each<'_>) -> Result<usize> {
        match self.options.format {
            Format::Text | Format::Csv => self.lines(bytes, last, each),
            Format::Binary => self.tuples(bytes, each),
            Format::Parquet => Err(Error::unsupported("Parquet as a stream")),
        }
    }

    fn lines(&mut self, bytes: &[u8], last: bool, each: &mut Each<'_>) -> Result<usize> {
        let mut done = 0;
        while !self.ended {
            let rest = bytes.get(done..).unwrap_or_default();
            let first = self.line + 1;
            let found = self.lines.next(rest, last);
            let found = found.map_err(|error| at_line(error, &self.table, first, None))?;
            let Some(found) = found else { break };
            let row = rest.get(..found.end).unwrap_or_default();
            self.line += found.lines;
            done += found.next;
            if found.is_last {
                self.ended = true;
                break;
            }
            let read = self.row(row, first, found.is_unterminated, each);
            read.map_err(|error| at_line(error, &self.table, first, None))?;
        }
        Ok(if self.ended { bytes.len() } else { done })
    }

    fn row(&mut self, row: &[u8], line: u64, is_unterminated: bool, each: &mut Each<'_>) -> Result<()> {
        if is_unterminated {
            return Err(bad("unterminated CSV quoted field"));
        }
        let row = utf8(row)?;
        if !self.begun && self.header != Header::No {
            self.begun = true;
            return self.names(row);
        }
        self.begun = true;
        if let Some(most) = self.columns.len().checked_add(1) {
            self.split.split(row, &self.options, most)?;
        }
        let row = RawRow {
            spans: &self.split.spans,
            source: Source::Text { line: row, unescaped: self.split.unescaped()? },
            columns: &self.columns,
            table: &self.table,
            line,
        };
        if let Some(missing) = self.columns.get(row.spans.len()) {
            return Err(bad(format!("missing data for column \"{missing}\"")));
        }
        if row.spans.len() > self.columns.len() {
            return Err(bad("extra data after last expected column"));
        }
        each(&row)
    }

    fn names(&mut self, row: &str) -> Result<()> {
        if self.header != Header::Match {
            return Ok(());
        }
        self.split.split(row, &self.options, usize::MAX)?;
        let (found, expected) = (self.split.spans.len(), self.columns.len());
        if found != expected {
            return Err(bad(format!(
                "wrong number of fields in header line: field count is {found}, expected {expected}"
            )));
        }
        let source = Source::Text { line: row, unescaped: self.split.unescaped()? };
        for (at, (span, column)) in self.split.spans.iter().zip(&self.columns).enumerate() {
            let name = span.text(source);
            if name != Some(column) {
                let got = name.map_or_else(
                    || format!("null value (\"{}\")", self.options.null),
                    |name| format!("\"{name}\""),
                );
                return Err(bad(format!(
                    "column name mismatch in header line field {}: got {got}, expected \"{column}\"",
                    at + 1
                )));
            }
        }
        Ok(())
    }

    fn tuples(&mut self, bytes: &[u8], each: &mut Each<'_>) -> Result<usize> {
        let mut done = 0;
        if !self.begun {
            match binary::header(bytes)? {
                Some(len) => done = len,
                None => return Ok(0),
            }
            self.begun = true;
        }
        while done < bytes.len() {
            if self.ended {
                return Err(bad("received copy data after EOF marker"));
            }
            let rest = bytes.get(done..).unwrap_or_default();
            let found = binary::tuple(rest, self.columns.len(), &mut self.split.spans);
            match found.map_err(|error| at_line(error, &self.table, self.line + 1, None))? {
                binary::Found::Nothing => break,
                binary::Found::End(len) => {
                    self.ended = true;
                    done += len;
                }
                binary::Found::Row(len) => {
                    self.line += 1;
                    let source = Source::Binary(rest.get(..len).unwrap_or_default());
                    each(&RawRow {
                        spans: &self.split.spans,
                        source,
                        columns: &self.columns,
                        table: &self.table,
                        line: self.line,
                    })?;
                    done += len;
                }
            }
        }
        Ok(done)
    }
}

impl<'a> RawRow<'a> {
    /// Adds the row to an error: by its line, or by its number in the binary format.
    pub fn mark(&self, error: Error) -> Error {
        let place = format!("COPY {}, line {}", self.table, self.line);
        match error.detail() {
            Some(detail) => {
                let detail = format!("{detail} ({place})");
                error.with_detail(detail)
            }
            None => error.with_detail(place),
        }
    }

    /// Decodes a value of a column's type.
    ///
    /// Errors: those of [`Datum::parse`]; 22P03 in the binary format. Their detail gives the
    /// position.
    #[inline]
    pub fn get(&self, column: usize, kind: &ColumnType) -> Result<Cell<'a>> {
        let Some(span) = self.spans.get(column) else { return Ok(Cell::Borrowed(DatumRef::Null)) };
        let name = || self.columns.get(column).map_or("", String::as_str);
        match self.source {
            Source::Text { .. } => match span.text(self.source) {
                None => Ok(Cell::Borrowed(DatumRef::Null)),
                Some(text) => parse(text, kind)
                    .map_err(|error| at_line(error, self.table, self.line, Some((name(), &text)))),
            },
            Source::Binary(_) => match span.bytes(self.source) {
                None => Ok(Cell::Borrowed(DatumRef::Null)),
                Some(bytes) => binary::get(bytes, kind)
                    .map_err(|error| at_line(error, self.table, self.line, Some((name(), &"binary")))),
            },
        }
    }
}

/// Parses a value. The most common types have fast paths.
#[inline]
fn parse<'a>(text: &'a str, kind: &ColumnType) -> Result<Cell<'a>> {
    let short = text.len() <= 9 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match kind.kind {
        Type::Text if !kind.is_json => Ok(Cell::Borrowed(DatumRef::Text(text))),
        Type::Int | Type::BigInt if short => {
            let value = text.bytes().fold(0_i32, |value, digit| value * 10 + i32::from(digit - b'0'));
            Ok(Cell::Borrowed(if kind.kind == Type::Int {
                DatumRef::Int(value)
            } else {
                DatumRef::BigInt(value.into())
            }))
        }
        _ => Datum::parse(text, kind).map(Cell::Owned),
    }
}

impl Cell<'_> {
    /// Borrows the value.
    pub fn borrow(&self) -> DatumRef<'_> {
        match self {
            Cell::Borrowed(value) => *value,
            Cell::Owned(value) => value.borrow(),
        }
    }
}
