//! Bytes of a file or of standard input, counted as they pass.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::{File, Fs, OpenOptions};

use super::{BUFFER_BYTES, is_stdin, name_of};
use crate::error::{Error, Result};

/// A stream that can be shown in a debugger.
pub trait Bytes: Read + Debug {}

/// Reads a file from front to back.
#[derive(Debug)]
pub struct FileStream {
    file: Box<dyn File>,
    offset: u64,
    counter: Arc<AtomicU64>,
}

impl FileStream {
    /// Counts what it reads in `counter`.
    pub fn new(file: Box<dyn File>, counter: Arc<AtomicU64>) -> Self {
        FileStream { file, offset: 0, counter }
    }
}

impl Bytes for FileStream {}

impl Read for FileStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.offset).map_err(io::Error::other)?;
        self.offset += count as u64;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads standard input.
#[derive(Debug)]
pub struct StdinStream {
    counter: Arc<AtomicU64>,
}

impl StdinStream {
    /// Counts what it reads in `counter`.
    pub fn new(counter: Arc<AtomicU64>) -> Self {
        StdinStream { counter }
    }
}

impl Bytes for StdinStream {}

impl Read for StdinStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = io::stdin().lock().read(buf)?;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Hands each line of a file, or of standard input for `-`, to `each`, without its line break.
pub fn read_lines(fs: &Arc<dyn Fs>, path: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let stream: Box<dyn Bytes> = if is_stdin(path) {
        Box::new(StdinStream::new(Arc::default()))
    } else {
        Box::new(FileStream::new(fs.open(path, OpenOptions::read())?, Arc::default()))
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line);
        let refuse =
            |error: io::Error| Error::Input { input: name_of(path), place: None, what: error.to_string() };
        if read.map_err(refuse)? == 0 {
            return Ok(());
        }
        each(trim_line_break(&line))?;
    }
}

/// A line without its line break.
pub fn trim_line_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
