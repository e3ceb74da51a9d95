//! Sequential writing through a buffer.

use std::io;
use std::sync::Arc;

use crate::{Error, File, Operation, Result};

/// Appends to a file through a buffer. Bytes reach the file when the buffer fills up or is flushed,
/// and the medium when the file is synced.
///
/// After an error the writer stays failed: how much of the buffer reached the file is unknown, so
/// later writes could leave a hole. Dropping the writer discards buffered bytes; call
/// [`AppendWriter::flush`] or [`AppendWriter::into_file`] first.
#[derive(Debug)]
pub struct AppendWriter {
    file: Arc<dyn File>,
    /// File offset of the first buffered byte.
    offset: u64,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    failed: bool,
}

impl AppendWriter {
    /// Writes to `file` from `offset` on, in pieces of at least `buffer_bytes` (0 writes everything
    /// through).
    pub fn new(file: Arc<dyn File>, offset: u64, buffer_bytes: usize) -> Self {
        AppendWriter { file, offset, buffer: Vec::new(), buffer_bytes, failed: false }
    }

    /// Appends `bytes`. Writes that would fill the buffer on their own go straight to the file.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        if self.buffer.len() + bytes.len() <= self.buffer_bytes {
            if self.buffer.capacity() == 0 {
                self.buffer.reserve_exact(self.buffer_bytes);
            }
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        if bytes.len() >= self.buffer_bytes {
            self.flush()?;
            let result = self.file.write_all_at(bytes, self.offset);
            return self.written(result, bytes.len());
        }
        // Fill the buffer first, so that the file sees whole buffers at multiples of the buffer
        // size.
        debug_assert!(self.buffer.len() <= self.buffer_bytes && bytes.len() < self.buffer_bytes);
        let (head, tail) = bytes.split_at(self.buffer_bytes - self.buffer.len());
        self.buffer.extend_from_slice(head);
        self.flush()?;
        self.buffer.extend_from_slice(tail);
        debug_assert!(
            !tail.is_empty() && self.buffer.len() == tail.len(),
            "{} bytes are buffered, but {} are not written",
            self.buffer.len(),
            tail.len()
        );
        Ok(())
    }

    /// Returns the file offset of the next byte, buffered bytes included.
    pub fn position(&self) -> u64 {
        debug_assert!(self.buffer.len() <= self.buffer_bytes, "{} bytes are buffered", self.buffer.len());
        self.offset + self.buffer.len() as u64
    }

    /// Writes the buffered bytes to the file. They are not durable before [`File::sync_data`].
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        debug_assert!(self.buffer.len() <= self.buffer_bytes, "{} bytes are buffered", self.buffer.len());
        if self.buffer.is_empty() {
            return Ok(());
        }
        let result = self.file.write_all_at(&self.buffer, self.offset);
        let len = self.buffer.len();
        self.buffer.clear();
        self.written(result, len)
    }

    /// Returns the underlying file. It lacks the bytes that are still buffered.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Flushes the buffer and returns the file.
    pub fn into_file(mut self) -> Result<Arc<dyn File>> {
        self.flush()?;
        debug_assert!(self.buffer.is_empty() && !self.failed, "buffered bytes are dropped");
        Ok(self.file)
    }

    fn written(&mut self, result: Result<()>, len: usize) -> Result<()> {
        debug_assert!(!self.failed && self.buffer.is_empty(), "buffered bytes come before the written ones");
        match result {
            Ok(()) => self.offset += len as u64,
            Err(_) => self.failed = true,
        }
        result
    }

    fn check(&self) -> Result<()> {
        if !self.failed {
            return Ok(());
        }
        let source = io::Error::other("an earlier write failed; the end of the file is unknown");
        Err(Error::new(Operation::Write, self.file.path(), source).at(self.offset))
    }
}

#[cfg(test)]
mod tests;
