//! Sources of input lines: a text, a file, standard input, a user.

use std::fmt::Debug;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use cairn_rows::mark;
use cairn_vfs::Fs;

use crate::error::{Error, Result};
use crate::input::is_stdin;
use crate::input::stream::{StdinStream, open_in_order};

/// A source of lines.
pub trait Source: Debug {
    /// Returns the next line without its line feed; `None` after the last one. A carriage return
    /// stays, because it may be part of a literal. `mark` is the prompt character, which shows the
    /// open construct.
    ///
    /// Errors: [`Error::Interrupted`] if a user discards the open statement.
    fn line(&mut self, mark: char) -> Result<Option<String>>;

    /// Returns the place of the last line for errors, such as `schema.sql:7`.
    fn place(&self) -> Option<String>;
}

/// The lines of a text.
#[derive(Debug)]
pub struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Creates a source from a text.
    pub fn new(text: &'a str) -> Self {
        Text(text)
    }
}

impl Source for Text<'_> {
    fn line(&mut self, _: char) -> Result<Option<String>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (line, rest) = self.0.split_once('\n').unwrap_or((self.0, ""));
        self.0 = rest;
        Ok(Some(line.to_owned()))
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// The lines of a file or of standard input.
#[derive(Debug)]
pub struct Stream<R> {
    reader: R,
    name: String,
    number: u64,
}

/// Opens a file; `-` is standard input.
pub fn file(fs: &Arc<dyn Fs>, path: &Path) -> Result<Box<dyn Source>> {
    if is_stdin(path) {
        return Ok(Box::new(stdin()));
    }
    let (stream, _) = open_in_order(fs, path, Arc::default())?;
    let reader = BufReader::with_capacity(1 << 16, stream);
    Ok(Box::new(Stream { reader, name: path.display().to_string(), number: 0 }))
}

/// Opens standard input.
pub fn stdin() -> Stream<BufReader<StdinStream>> {
    let reader = BufReader::with_capacity(1 << 16, StdinStream::new(Arc::default()));
    Stream { reader, name: "standard input".to_owned(), number: 0 }
}

impl<R: BufRead + Debug> Source for Stream<R> {
    fn line(&mut self, _: char) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        let refuse = |what: String| Error::Input {
            input: self.name.clone(),
            place: Some(format!("line {}", self.number + 1)),
            what,
        };
        let count = self.reader.read_until(b'\n', &mut bytes).map_err(|error| refuse(error.to_string()))?;
        if count == 0 {
            return Ok(None);
        }
        if self.number == 0 {
            bytes.drain(..bytes.len() - mark::without(&bytes).len());
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let line = String::from_utf8(bytes).map_err(|_| refuse("expected UTF-8".to_owned()))?;
        self.number += 1;
        Ok(Some(line))
    }

    fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.name, self.number))
    }
}
