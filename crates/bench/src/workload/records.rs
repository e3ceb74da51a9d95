//! Real records from a file: CSV or TSV with a header line. The key is one column, the value the whole line.

use std::collections::HashMap;
use std::path::Path;

use cairn_vfs::{Fs, OpenOptions};
use serde::{Deserialize, Serialize};

use super::Arena;
use crate::error::{Error, Result};

/// What stands between the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Separator {
    /// Commas; fields may be quoted, with line breaks inside.
    Comma,
    /// Tabs; quotes are ordinary characters.
    Tab,
}

impl Separator {
    /// Tab for `.tsv` and `.tab`, comma for anything else.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("tsv" | "tab") => Separator::Tab,
            _ => Separator::Comma,
        }
    }
}

/// The records of a file, each key once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The keys, in the order of their last lines.
    pub keys: Arena,
    /// The line of each key, without its line break.
    pub values: Arena,
    /// Lines whose key came again later; the last one counts, as in every store.
    pub overwritten: u64,
    /// Lines with an empty key, left out because some of the stores refuse them.
    pub keyless: u64,
}

impl Records {
    /// What the file has and the records have not, for a person to read; `None` when nothing is left out.
    pub fn left_out(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.keyless > 0 {
            parts.push(format!("{} with an empty key", self.keyless));
        }
        if self.overwritten > 0 {
            parts.push(format!("{} whose key comes again later", self.overwritten));
        }
        (!parts.is_empty()).then(|| format!("lines left out: {}", parts.join(", ")))
    }

    /// Reads `path`, whose first line names the columns. `column` is one of those names, or a number counted from 1.
    ///
    /// Errors: those of the file system, and [`Error::Input`] naming the line that does not fit, a column that is
    /// not there, or a file without records. Costs one pass and the memory of the keys and lines.
    pub fn read(fs: &dyn Fs, path: &Path, separator: Separator, column: &str) -> Result<Records> {
        let map = fs.open(path, OpenOptions::read())?.map()?;
        let mut reader = reader(&map, separator);
        let at = column_of(&mut reader, path, column)?;
        let refuse = |line: Option<u64>, what: String| Error::Input { file: path.to_owned(), line, what };

        let mut lines = Lines::default();
        let mut record = csv::ByteRecord::new();
        loop {
            let start = reader.position().byte() as usize;
            let line = reader.position().line();
            match reader.read_byte_record(&mut record) {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => return Err(refuse(Some(line), error.to_string())),
            }
            let Some(key) = record.get(at) else {
                return Err(refuse(
                    Some(line),
                    format!("{} columns; the key is in column {}", record.len(), at + 1),
                ));
            };
            let text = &map[start..reader.position().byte() as usize];
            lines.add(key, trim_line_break(skip_empty_lines(text)));
        }
        if lines.keys.is_empty() {
            return Err(refuse(None, "no records after the header".to_owned()));
        }
        Ok(lines.without_overwritten())
    }
}

/// Reads the header line of `path` alone, and sees that `column` is in it: what is wrong is better known before a run than in it. Errors: as [`Records::read`].
pub fn check_column(fs: &dyn Fs, path: &Path, separator: Separator, column: &str) -> Result<()> {
    let map = fs.open(path, OpenOptions::read())?.map()?;
    column_of(&mut reader(&map, separator), path, column).map(|_| ())
}

fn reader(bytes: &[u8], separator: Separator) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .delimiter(if separator == Separator::Tab { b'\t' } else { b',' })
        .quoting(separator == Separator::Comma)
        .flexible(true)
        .from_reader(bytes)
}

/// Which column of the header is meant.
fn column_of(reader: &mut csv::Reader<&[u8]>, path: &Path, column: &str) -> Result<usize> {
    let refuse = |what: String| Error::Input { file: path.to_owned(), line: Some(1), what };
    let header = reader.byte_headers().map_err(|error| refuse(error.to_string()))?;
    if header.iter().any(|name| name.contains(&0) || std::str::from_utf8(name).is_err()) {
        return Err(refuse("no text: expected a header line in UTF-8 that names the columns".to_owned()));
    }
    find_column(header, column).ok_or_else(|| {
        let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
        refuse(format!("no column {column:?}; the header has {}", names.join(", ")))
    })
}

fn find_column(header: &csv::ByteRecord, column: &str) -> Option<usize> {
    let by_name = header.iter().position(|name| name == column.as_bytes());
    by_name.or_else(|| {
        let number: usize = column.parse().ok()?;
        (1..=header.len()).contains(&number).then(|| number - 1)
    })
}

/// The parser passes over empty lines before a record and counts them into its bytes. Blanks belong to the record.
fn skip_empty_lines(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !b"\r\n".contains(byte));
    text.get(start.unwrap_or(text.len())..).unwrap_or_default()
}

fn trim_line_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Everything read, keys repeated.
#[derive(Default)]
struct Lines {
    keys: Arena,
    values: Arena,
    keyless: u64,
}

impl Lines {
    fn add(&mut self, key: &[u8], line: &[u8]) {
        if key.is_empty() {
            self.keyless += 1;
            return;
        }
        self.keys.push(key);
        self.values.push(line);
    }

    fn without_overwritten(self) -> Records {
        let Lines { keys, values, keyless } = self;
        let last: HashMap<&[u8], usize> = keys.iter().enumerate().map(|(index, key)| (key, index)).collect();
        let overwritten = (keys.len() - last.len()) as u64;
        if overwritten == 0 {
            drop(last);
            return Records { keys, values, overwritten, keyless };
        }
        let (mut kept_keys, mut kept_values) = (Arena::default(), Arena::default());
        for (index, key) in keys.iter().enumerate() {
            if last.get(key) == Some(&index) {
                kept_keys.push(key);
                kept_values.push(values.get(index));
            }
        }
        Records { keys: kept_keys, values: kept_values, overwritten, keyless }
    }
}
