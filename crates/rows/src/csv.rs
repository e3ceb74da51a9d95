//! Rows of CSV and TSV.
//!
//! ```text
//! row    = field { separator field } ( LF | CRLF | CR | end of the input )
//! field  = '"' { any byte but '"' | '""' } '"' [ rest ]      where the dialect has quotes
//!        | { any byte but the separator, CR and LF }
//! ```
//!
//! Empty rows are skipped. A quote only counts as the first byte of a field, and bytes after the
//! closing quote belong to the field, as in Python's `csv`. An input that ends within quotes is
//! refused with the line of the opening quote, because everything from there on would be one field.
//! A byte order mark before the first row is skipped.

use std::fmt;
use std::io::{self, BufRead};

use crate::mark;

/// The maximum memory of a row in bytes, including the positions of its fields.
pub const ROW_BYTES_MAX: usize = 1 << 30;

/// The notation of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between fields.
    pub separator: u8,
    /// Whether fields may be enclosed in double quotes.
    pub quotes: bool,
}

impl Dialect {
    /// Comma-separated, with quotes.
    pub const CSV: Dialect = Dialect { separator: b',', quotes: true };
    /// Tab-separated; a quote is an ordinary byte.
    pub const TSV: Dialect = Dialect { separator: b'\t', quotes: false };
}

/// An error that ends the reading of rows.
#[derive(Debug)]
pub enum Failure {
    /// The input ends within quotes that were opened in this line.
    Unclosed {
        /// Counted from 1.
        line: u64,
    },
    /// The row that begins in this line exceeds [`ROW_BYTES_MAX`].
    Long {
        /// Counted from 1.
        line: u64,
    },
    /// The input cannot be read.
    Io(io::Error),
}

impl Failure {
    /// Returns the line of the error, counted from 1.
    pub fn line(&self) -> Option<u64> {
        match self {
            Failure::Unclosed { line } | Failure::Long { line } => Some(*line),
            Failure::Io(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unclosed { .. } => f.write_str("a quote that is opened here is never closed"),
            Failure::Long { .. } => write!(f, "a row of more than {ROW_BYTES_MAX} bytes"),
            Failure::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

/// A row. Reuse it for the next one to save allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    bytes: Vec<u8>,
    /// The end of each field.
    ends: Vec<usize>,
    line: u64,
    from: u64,
    to: u64,
}

impl Row {
    /// Returns a field without the quotes around it.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let to = *self.ends.get(at)?;
        let from = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(from..to)
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no fields, as before the first row was read.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Iterates over the fields.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|at| self.get(at).unwrap_or_default())
    }

    /// Returns the line in which the row begins, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the byte range of the row in the input, without its line break.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.from..self.to
    }
}

/// The context of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// No row: line breaks here do not end a row.
    Nothing,
    /// A field without any byte so far.
    Start,
    /// A field, or what follows its closing quote.
    Field,
    /// A quoted field.
    Quotes,
    /// A quoted field whose last byte was a quote, which closes the field unless another quote
    /// follows.
    Quote,
}

/// Reads rows from an input.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    has_begun: bool,
    scan: Scan,
}

/// The state of the parser.
#[derive(Debug)]
struct Scan {
    dialect: Dialect,
    within: Within,
    /// True if the last byte was a carriage return that ended a row or an empty line.
    after_return: bool,
    /// The line of the next byte, and the line of the last opening quote.
    line: u64,
    quote_line: u64,
    /// Number of bytes parsed.
    offset: u64,
}

impl<R: BufRead> Reader<R> {
    /// Creates a reader. Reads nothing yet.
    pub fn new(input: R, dialect: Dialect) -> Self {
        let scan =
            Scan { dialect, within: Within::Nothing, after_return: false, line: 1, quote_line: 1, offset: 0 };
        Reader { input, has_begun: false, scan }
    }

    /// Reads the next row into `row`. Returns false after the last one.
    ///
    /// Errors: [`Failure`]; the reader must not be used after one.
    pub fn read(&mut self, row: &mut Row) -> Result<bool, Failure> {
        row.bytes.clear();
        row.ends.clear();
        self.scan.within = Within::Nothing;
        if !std::mem::replace(&mut self.has_begun, true) {
            match mark::skip(&mut self.input).map_err(Failure::Io)? {
                None => self.scan.offset += mark::MARK.len() as u64,
                // No byte of the mark ends a row.
                Some(head) => _ = self.scan.feed(head, row),
            }
        }
        loop {
            let bytes = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                filled => filled.map_err(Failure::Io)?,
            };
            if bytes.is_empty() {
                return self.scan.finish(row);
            }
            let (count, is_whole) = self.scan.feed(bytes, row);
            self.input.consume(count);
            if is_whole {
                return Ok(true);
            }
            // BOUND: an unclosed quote would otherwise load the whole input into memory.
            if row.bytes.len() + row.ends.len() * size_of::<usize>() > ROW_BYTES_MAX {
                return Err(Failure::Long { line: row.line });
            }
        }
    }
}

impl Scan {
    /// Parses bytes into a row. Returns the number of bytes taken, and whether the row ends with
    /// them.
    fn feed(&mut self, bytes: &[u8], row: &mut Row) -> (usize, bool) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let rest = bytes.get(at..).unwrap_or_default();
            match self.within {
                Within::Nothing => {
                    let after_return = std::mem::take(&mut self.after_return);
                    if !matches!(byte, b'\r' | b'\n') {
                        (row.line, row.from) = (self.line, self.offset + at as u64);
                        self.within = Within::Start;
                        continue;
                    }
                    // The second half of a line break does not count as a line.
                    self.line += u64::from(!(after_return && byte == b'\n'));
                    self.after_return = byte == b'\r';
                    at += 1;
                }
                Within::Start if byte == b'"' && self.dialect.quotes => {
                    (self.within, self.quote_line) = (Within::Quotes, self.line);
                    at += 1;
                }
                Within::Start => self.within = Within::Field,
                Within::Field => {
                    let end = memchr::memchr3(self.dialect.separator, b'\r', b'\n', rest);
                    row.bytes.extend_from_slice(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
                    let Some(end) = end else {
                        at = bytes.len();
                        break;
                    };
                    row.ends.push(row.bytes.len());
                    let byte = rest.get(end).copied().unwrap_or_default();
                    at += end + 1;
                    if byte != self.dialect.separator {
                        (self.line, self.after_return) = (self.line + 1, byte == b'\r');
                        row.to = self.offset + at as u64 - 1;
                        self.offset += at as u64;
                        return (at, true);
                    }
                    self.within = Within::Start;
                }
                Within::Quotes => {
                    let end = memchr::memchr2(b'"', b'\n', rest);
                    row.bytes.extend_from_slice(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default());
                    let Some(end) = end else {
                        at = bytes.len();
                        break;
                    };
                    at += end + 1;
                    if rest.get(end) == Some(&b'\n') {
                        row.bytes.push(b'\n');
                        self.line += 1;
                    } else {
                        self.within = Within::Quote;
                    }
                }
                Within::Quote if byte == b'"' => {
                    row.bytes.push(b'"');
                    self.within = Within::Quotes;
                    at += 1;
                }
                Within::Quote => self.within = Within::Field,
            }
        }
        self.offset += at as u64;
        (at, false)
    }

    /// Handles the end of the input. The last row needs no line break.
    fn finish(&mut self, row: &mut Row) -> Result<bool, Failure> {
        row.to = self.offset;
        match self.within {
            Within::Nothing => Ok(false),
            Within::Quotes => Err(Failure::Unclosed { line: self.quote_line }),
            Within::Start | Within::Field | Within::Quote => {
                row.ends.push(row.bytes.len());
                Ok(true)
            }
        }
    }
}

/// Why no column could be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// No column has that name, and it is not a valid column number.
    Unknown,
    /// Two columns have the name; their numbers, counted from 1.
    Ambiguous(usize, usize),
}

impl Missing {
    /// Describes the problem: `two columns are called "a", ...`.
    pub fn told<'a>(self, column: &str, names: impl Iterator<Item = &'a [u8]>) -> String {
        match self {
            Missing::Unknown => {
                let known: Vec<_> = names.map(String::from_utf8_lossy).collect();
                format!("no column {column:?}; the columns are {}", known.join(", "))
            }
            Missing::Ambiguous(first, second) => {
                format!(
                    "two columns are called {column:?}, number {first} and number {second}: choose one by its number"
                )
            }
        }
    }
}

/// Finds a column by name, or else by its number counted from 1.
///
/// Errors: [`Missing`] when no column matches, or two columns have the name.
pub fn find_column<'a>(
    names: impl Iterator<Item = &'a [u8]> + Clone,
    column: &str,
) -> Result<usize, Missing> {
    let mut named = names.clone().enumerate().filter(|(_, name)| *name == column.as_bytes());
    match (named.next(), named.next()) {
        (Some((at, _)), None) => return Ok(at),
        (Some((first, _)), Some((second, _))) => {
            return Err(Missing::Ambiguous(first + 1, second + 1));
        }
        (None, _) => {}
    }
    match column.parse::<usize>() {
        Ok(number) if (1..=names.count()).contains(&number) => Ok(number - 1),
        _ => Err(Missing::Unknown),
    }
}

#[cfg(test)]
mod tests;
