//! Byte streams of a file, a pipe or standard input, which count the bytes read.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_rows::csv::ROW_BYTES_MAX;
use cairn_rows::mark;
use cairn_vfs::{Advice, File, Fs, OpenOptions, Operation};

use super::{BUFFER_BYTES, is_stdin, name_of};
use crate::error::{Error, Result};
use crate::interrupt::wait_for_input;

/// A byte stream that implements `Debug`.
pub trait Bytes: Read + Debug {}

/// Reads a file sequentially.
#[derive(Debug)]
struct FileStream {
    file: Box<dyn File>,
    offset: u64,
    counter: Arc<AtomicU64>,
}

impl Bytes for FileStream {}

/// Reads a file that cannot be read at a position: a named pipe, the other end of `<(command)`, a
/// terminal.
///
/// Such files must be read sequentially, which `cairn_vfs` does not offer, because no engine needs
/// it.
#[derive(Debug)]
struct PipeStream {
    pipe: std::fs::File,
    counter: Arc<AtomicU64>,
}

impl Bytes for PipeStream {}

impl Read for PipeStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        wait_for_input(&self.pipe)?;
        let count = self.pipe.read(buf)?;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Returns true if the file cannot be read at a position. If that cannot be determined, returns
/// false and leaves the error to the function that opens the file.
#[allow(clippy::disallowed_methods)] // Not engine I/O: only asks for the kind of the file.
pub fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Opens `path` for sequential reading. Also returns its length, if it has one.
///
/// Errors: those of the file system.
#[allow(clippy::disallowed_methods)] // See `PipeStream`.
pub fn open_in_order(
    fs: &Arc<dyn Fs>,
    path: &Path,
    counter: Arc<AtomicU64>,
) -> Result<(Box<dyn Bytes>, Option<u64>)> {
    if is_pipe(path) {
        let pipe = std::fs::File::open(path)
            .map_err(|source| cairn_vfs::Error::new(Operation::Open, path, source))?;
        return Ok((Box::new(PipeStream { pipe, counter }), None));
    }
    let file = fs.open(path, OpenOptions::read())?;
    let bytes = file.len()?;
    file.advise(0, bytes, Advice::Sequential);
    Ok((Box::new(FileStream { file, offset: 0, counter }), Some(bytes)))
}

impl Read for FileStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.offset).map_err(io::Error::other)?;
        self.offset += count as u64;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Reads standard input without reading ahead.
#[derive(Debug)]
pub struct StdinStream {
    counter: Arc<AtomicU64>,
}

impl StdinStream {
    /// Creates a stream that adds the bytes read to `counter`.
    pub fn new(counter: Arc<AtomicU64>) -> Self {
        StdinStream { counter }
    }
}

impl Bytes for StdinStream {}

impl Read for StdinStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        wait_for_input(&io::stdin())?;
        // The standard library's handle reads ahead into its own buffer, and waiting for input
        // would not see those bytes.
        let count = read_stdin(buf)?;
        self.counter.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(unix)]
fn read_stdin(buf: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut *buf))?)
}

#[cfg(not(unix))]
fn read_stdin(buf: &mut [u8]) -> io::Result<usize> {
    io::stdin().lock().read(buf)
}

/// Passes each line of a file, or of standard input (`-`), to `each`, without its line break. A
/// byte order mark before the first line is removed.
pub fn read_lines(fs: &Arc<dyn Fs>, path: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let stream: Box<dyn Bytes> = if is_stdin(path) {
        Box::new(StdinStream::new(Arc::default()))
    } else {
        open_in_order(fs, path, Arc::default())?.0
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        number += 1;
        let refuse = |error: io::Error| Error::Input {
            input: name_of(path),
            place: Some(format!("line {number}")),
            what: error.to_string(),
        };
        if !read_line(&mut reader, &mut line).map_err(refuse)? {
            return Ok(());
        }
        let text = if number == 1 { mark::without(&line) } else { &line };
        each(trim_line_break(text))?;
    }
}

/// Reads the next line, including its line break, into `line`; returns false at the end.
///
/// Errors: those of the input; a line of more than [`ROW_BYTES_MAX`] bytes.
pub fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    // BOUND: an input without line breaks must not be read into memory as a whole.
    let count = reader.take(ROW_BYTES_MAX as u64 + 1).read_until(b'\n', line)?;
    if count > ROW_BYTES_MAX {
        return Err(io::Error::other(format!("a line of more than {ROW_BYTES_MAX} bytes")));
    }
    Ok(count > 0)
}

/// Reads all of a file, or of standard input (`-`). Errors: [`Error::Input`] for more than `limit`
/// bytes.
pub fn read_whole(fs: &Arc<dyn Fs>, path: &Path, limit: u64) -> Result<Vec<u8>> {
    let refuse = |what: String| Error::Input { input: name_of(path), place: None, what };
    let stream: Box<dyn Bytes> = if is_stdin(path) {
        Box::new(StdinStream::new(Arc::default()))
    } else {
        open_in_order(fs, path, Arc::default())?.0
    };
    let mut bytes = Vec::new();
    stream.take(limit + 1).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(refuse(format!("more than {limit} bytes, which is the limit")));
    }
    Ok(bytes)
}

/// Returns a line without its line break.
pub fn trim_line_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
