//! Where lines come from: a text, a file, standard input, a person.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::Fs;

use crate::error::{Error, Result};
use crate::input::is_stdin;
use crate::input::stream::open_in_order;

/// Gives lines.
pub trait Source: Debug {
    /// The next line, without its end; `None` after the last. `mark` tells a person what is open.
    ///
    /// Errors: [`Error::Interrupted`] when a person gives up what is open.
    fn line(&mut self, mark: char) -> Result<Option<String>>;

    /// Where the last line was, for errors: `schema.sql:7`.
    fn place(&self) -> Option<String>;
}

/// A text.
#[derive(Debug)]
pub struct Text<'a>(std::str::Lines<'a>);

impl<'a> Text<'a> {
    /// The lines of a text.
    pub fn new(text: &'a str) -> Self {
        Text(text.lines())
    }
}

impl Source for Text<'_> {
    fn line(&mut self, _: char) -> Result<Option<String>> {
        Ok(self.0.next().map(str::to_owned))
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// A file, or standard input.
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

/// Standard input.
pub fn stdin() -> Stream<io::StdinLock<'static>> {
    Stream { reader: io::stdin().lock(), name: "standard input".to_owned(), number: 0 }
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
        let line = String::from_utf8(bytes).map_err(|_| refuse("expected UTF-8".to_owned()))?;
        self.number += 1;
        let line = line.strip_suffix('\n').unwrap_or(&line);
        Ok(Some(line.strip_suffix('\r').unwrap_or(line).to_owned()))
    }

    fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.name, self.number))
    }
}
