//! A value as a stream, verified page by page, so that a large value never has to be in memory as a
//! whole.

use std::io::{self, Read};

use cairn_vfs::Bug;

use super::format::PAGE_BYTES;
use super::reader::{Found, Reader};
use super::record::Tag;
use super::source::Scratch;
use crate::{Error, Result};

/// Size of one refill of the buffer.
const WINDOW_BYTES: u64 = 64 * PAGE_BYTES;

/// Reads one value from front to back. Made by [`Reader::get_reader`].
#[derive(Debug)]
pub struct ValueReader<'a> {
    table: &'a Reader,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The rest of the value is in the file.
    InFile { offset: u64, left: u64, scratch: Scratch, ready: (u64, u64) },
    /// The value was decompressed.
    InMemory(io::Cursor<Vec<u8>>),
}

impl<'a> ValueReader<'a> {
    pub(crate) fn new(table: &'a Reader, found: Found) -> Result<Self> {
        debug_assert_ne!(found.tag, Tag::Tombstone, "a deleted key has no value");
        let in_file =
            |offset, left| State::InFile { offset, left, scratch: Scratch::default(), ready: (0, 0) };
        let state = match found.tag {
            Tag::Raw | Tag::Tombstone => in_file(found.start, found.bytes),
            Tag::Blob => {
                let (offset, bytes) = table.blob(&table.stored(found)?, found.start)?;
                in_file(offset, bytes)
            }
            Tag::Compressed => {
                let mut value = Vec::new();
                table.decompress(&table.stored(found)?, found.start, &mut value)?;
                State::InMemory(io::Cursor::new(value))
            }
        };
        Ok(ValueReader { table, state })
    }

    /// Returns the number of bytes that remain.
    pub fn remaining(&self) -> u64 {
        match &self.state {
            State::InFile { left, .. } => *left,
            State::InMemory(cursor) => cursor.get_ref().len() as u64 - cursor.position(),
        }
    }
}

impl Reader {
    /// Returns a stream over the value of `key`, for values that should not be in memory as a
    /// whole.
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader<'_>>> {
        match self.find_any(key, self.hash(key))? {
            Some(found) if found.tag != Tag::Tombstone => ValueReader::new(self, found).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the stored form of a small value.
    fn stored(&self, found: Found) -> Result<Vec<u8>> {
        debug_assert!(matches!(found.tag, Tag::Blob | Tag::Compressed), "{:?} is no small form", found.tag);
        let Some(file) = &self.file else {
            return Ok(self.checked_range(found.start, found.bytes)?.to_vec());
        };
        let mut scratch = Scratch::default();
        scratch.read(self, &**file, found.start, found.bytes)?;
        Ok(scratch.range(found.start, found.bytes).unwrap_or_default().to_vec())
    }
}

impl Read for ValueReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (offset, left, scratch, ready) = match &mut self.state {
            State::InMemory(cursor) => return cursor.read(buf),
            State::InFile { offset, left, scratch, ready } => (offset, left, scratch, ready),
        };
        let count = (buf.len() as u64).min(*left).min(WINDOW_BYTES - *offset % PAGE_BYTES);
        if count == 0 {
            return Ok(0);
        }
        let bytes = match &self.table.file {
            None => self.table.checked_range(*offset, count).map_err(io::Error::other)?,
            Some(file) => {
                if *offset < ready.0 || *offset + count > ready.1 {
                    let refill = (*left).min(WINDOW_BYTES - *offset % PAGE_BYTES);
                    // ORDER: `ready` is reset until the read and its verification succeed. If they
                    // fail, the content of the buffer must not be returned when the caller reads
                    // again.
                    *ready = (0, 0);
                    scratch.read(self.table, &**file, *offset, refill).map_err(io::Error::other)?;
                    *ready = (*offset, *offset + refill);
                }
                scratch.range(*offset, count).unwrap_or_default()
            }
        };
        if bytes.len() as u64 != count {
            let bug = Bug::new(format!("{} bytes of a value, expected {count}", bytes.len()));
            return Err(io::Error::other(Error::from(bug)));
        }
        buf[..bytes.len()].copy_from_slice(bytes);
        *offset += bytes.len() as u64;
        *left -= bytes.len() as u64;
        Ok(bytes.len())
    }
}
