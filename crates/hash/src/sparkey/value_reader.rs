//! A value as a stream, so that a large value never has to be in memory as a whole.

use std::io;

use super::cursor::Cursor;

/// Reads one value from front to back. Made by
/// [`SparkeyReader::value_reader`](super::SparkeyReader::value_reader).
///
/// Holds one window of the file, or one decompressed block. A damaged block causes an [`io::Error`]
/// that carries the [`Error`](crate::Error).
#[derive(Debug)]
pub struct ValueReader<'a> {
    cursor: Cursor<'a>,
    left: u64,
}

impl<'a> ValueReader<'a> {
    /// Creates a reader for a value of `value_bytes` bytes that begins at the position of `cursor`.
    pub(super) fn new(cursor: Cursor<'a>, value_bytes: u64) -> Self {
        ValueReader { cursor, left: value_bytes }
    }

    /// Returns the number of bytes that remain.
    pub fn remaining(&self) -> u64 {
        self.left
    }
}

impl io::Read for ValueReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.cursor.read_some(self.left, buf).map_err(io::Error::other)?;
        debug_assert!(count as u64 <= self.left, "{count} bytes of {}", self.left);
        self.left -= count as u64;
        Ok(count)
    }
}
