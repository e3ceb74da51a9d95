//! Real records from a file: CSV or TSV with a header line. The key is one column, the value the
//! whole line.

use std::collections::HashMap;
use std::path::Path;

use cairn_rows::csv::{Dialect, Failure, Missing, Reader, Row, find_column};
use cairn_vfs::{Fs, OpenOptions};
use serde::{Deserialize, Serialize};

use super::Arena;
use crate::core::error::{Error, Result};

/// The separator of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Separator {
    /// Commas; fields may be quoted, with line breaks inside.
    Comma,
    /// Tabs; quotes are ordinary characters.
    Tab,
}

impl Separator {
    /// Returns the separator for a file extension: tab for `.tsv` and `.tab`, comma for all others.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("tsv" | "tab") => Separator::Tab,
            _ => Separator::Comma,
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Separator::Comma => Dialect::CSV,
            Separator::Tab => Dialect::TSV,
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
    /// Number of lines whose key is repeated later. The last one counts, as in every store.
    pub overwritten: u64,
    /// Number of lines with an empty key. They are left out because some of the stores reject them.
    pub keyless: u64,
}

impl Records {
    /// Describes the lines of the file that are not in the records; `None` if all are.
    pub fn left_out(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.keyless > 0 {
            parts.push(format!("{} with an empty key", self.keyless));
        }
        if self.overwritten > 0 {
            parts.push(format!("{} whose key is repeated later", self.overwritten));
        }
        (!parts.is_empty()).then(|| format!("lines left out: {}", parts.join(", ")))
    }

    /// Reads `path`, whose first line names the columns. `column` is one of those names, or a
    /// number counted from 1.
    ///
    /// Errors: those of the file system, and [`Error::Input`] for an invalid line, a column that
    /// does not exist, or a file without records. Costs one pass and the memory of the keys and
    /// lines.
    pub fn read(fs: &dyn Fs, path: &Path, separator: Separator, column: &str) -> Result<Records> {
        let map = fs.open(path, OpenOptions::read())?.map()?;
        let mut reader = Reader::new(&map[..], separator.dialect());
        let at = column_of(&mut reader, path, column)?;
        let refuse = |line: Option<u64>, what: String| Error::Input { file: path.to_owned(), line, what };

        let mut lines = Lines::default();
        let mut row = Row::default();
        while reader.read(&mut row).map_err(|failure| unreadable(path, &failure))? {
            let Some(key) = row.get(at) else {
                let what = format!("{} columns, but the key is in column {}", row.len(), at + 1);
                return Err(refuse(Some(row.line()), what));
            };
            let range = row.range();
            lines.add(key, map.get(range.start as usize..range.end as usize).unwrap_or_default());
        }
        if lines.keys.is_empty() {
            return Err(refuse(None, "no records after the header".to_owned()));
        }
        Ok(lines.without_overwritten())
    }
}

/// Reads only the header line of `path`, and checks that it contains `column`, so that an error
/// shows before a run. Errors: as [`Records::read`].
pub fn check_column(fs: &dyn Fs, path: &Path, separator: Separator, column: &str) -> Result<()> {
    let map = fs.open(path, OpenOptions::read())?.map()?;
    column_of(&mut Reader::new(&map[..], separator.dialect()), path, column).map(|_| ())
}

fn unreadable(path: &Path, failure: &Failure) -> Error {
    Error::Input { file: path.to_owned(), line: failure.line(), what: failure.to_string() }
}

/// Returns the index of the column.
fn column_of(reader: &mut Reader<&[u8]>, path: &Path, column: &str) -> Result<usize> {
    let refuse = |what: String| Error::Input { file: path.to_owned(), line: Some(1), what };
    let mut header = Row::default();
    reader.read(&mut header).map_err(|failure| unreadable(path, &failure))?;
    if header.iter().any(|name| name.contains(&0) || std::str::from_utf8(name).is_err()) {
        return Err(refuse("not text: expected a header line in UTF-8 that names the columns".to_owned()));
    }
    find_column(header.iter(), column).map_err(|missing: Missing| refuse(missing.told(column, header.iter())))
}

/// All lines that were read, including repeated keys.
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
