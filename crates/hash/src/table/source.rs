//! Positional reads for tables that are not mapped: read pages, verify them, find records in them.

use std::cell::RefCell;

use cairn_vfs::{File, Map};

use super::format::{Header, PAGE_BYTES};
use super::options::Trust;
use super::probe::Probe;
use super::reader::{Found, Reader};
use super::record::{RecordHead, Tag};
use crate::{Error, Result};

/// A record is read at once if its index line says that it is at most this long. Of a longer record
/// the head is read first, because the candidate may have another key.
const READ_BYTES_MAX: u64 = 16 * PAGE_BYTES;
/// Size of one read of a long value. Long values go through the buffer of the thread, which never
/// shrinks, so the window limits its size.
const WINDOW_BYTES: u64 = 64 * PAGE_BYTES;

/// Whole pages of a file, read and verified.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    /// File offset of the first byte.
    start: u64,
}

thread_local! {
    static LOCAL: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    /// Lends the buffer of the calling thread to `work`, so that a reader needs no pool.
    pub fn local<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
        LOCAL.with(|local| match local.try_borrow_mut() {
            Ok(mut scratch) => work(&mut scratch),
            // Reached only by a callback that looks up again.
            Err(_) => work(&mut Scratch::default()),
        })
    }

    /// Returns the size of the buffer.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns `bytes` bytes at the file offset `offset`, if they were read.
    pub fn range(&self, offset: u64, bytes: u64) -> Option<&[u8]> {
        let from = offset.checked_sub(self.start)? as usize;
        self.bytes.get(from..from.checked_add(bytes as usize)?)
    }

    /// Reads and verifies the pages that hold `offset..offset + bytes` of the table's data or
    /// blobs.
    pub fn read(&mut self, table: &Reader, file: &dyn File, offset: u64, bytes: u64) -> Result<()> {
        let start = offset / PAGE_BYTES * PAGE_BYTES;
        let end = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
        let Some(end) = end.filter(|&end| end <= table.header.index_offset) else {
            let detail =
                format!("{bytes} bytes expected here, but the data ends at {}", table.header.index_offset);
            return Err(Error::corruption(&table.path, offset, detail));
        };
        self.start = start;
        self.bytes.resize((end - start) as usize, 0);
        file.read_exact_at(&mut self.bytes, start)?;
        if table.options.trust == Trust::Checked {
            let pages = (start / PAGE_BYTES..).zip(self.bytes.chunks_exact(PAGE_BYTES as usize));
            for (page, content) in pages {
                table.checker.check_bytes(&table.path, table.window(), page, content)?;
            }
        }
        debug_assert!((self.bytes.len() as u64).is_multiple_of(PAGE_BYTES), "whole pages were verified");
        debug_assert!(self.range(offset, bytes).is_some());
        Ok(())
    }
}

/// Copies the file from the index to the end into memory.
pub(crate) fn read_tail(file: &dyn File, header: &Header) -> Result<Map> {
    Ok(Map::copy_range(file, header.index_offset..header.file_bytes)?)
}

impl Reader {
    /// Finds `key` with positional reads. Leaves the record in `scratch`.
    pub(crate) fn find_by_reading(
        &self,
        file: &dyn File,
        key: &[u8],
        hash: u64,
        scratch: &mut Scratch,
    ) -> Result<Option<Found>> {
        if self.header.is_fixed() {
            if key.len() as u64 != self.header.key_bytes_max {
                return Ok(None);
            }
            self.find_reading_in::<true>(file, key, Probe::new(self, hash)?, scratch)
        } else {
            self.find_reading_in::<false>(file, key, Probe::new(self, hash)?, scratch)
        }
    }

    fn find_reading_in<'a, const FIXED: bool>(
        &'a self,
        file: &dyn File,
        key: &[u8],
        mut probe: Probe<'a, FIXED>,
        scratch: &mut Scratch,
    ) -> Result<Option<Found>> {
        while let Some(start) = probe.next(self)? {
            let likely = probe.record_bytes(self);
            if let Some(found) = self.match_read(file, start, likely, key, scratch)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Reads the record at `start`, whose approximate size is `likely`, and compares its key with
    /// `key`. One read is nearly always enough. The rest of a long record is read only if its head
    /// says that the key has the right length.
    fn match_read(
        &self,
        file: &dyn File,
        start: u64,
        likely: u64,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Option<Found>> {
        let data_end = self.header.data_offset + self.header.data_bytes;
        debug_assert!(start < data_end, "a probe checks {start}");
        let head_and_key = (RecordHead::BYTES_MAX + key.len()) as u64;
        let likely = if likely <= READ_BYTES_MAX { likely.max(head_and_key) } else { head_and_key };
        scratch.read(self, file, start, likely.min(data_end - start).max(1))?;
        let in_scratch = scratch.start + scratch.bytes.len() as u64 - start;
        let head = if self.header.is_fixed() {
            let (key_bytes, stored_bytes) = (self.header.key_bytes_max, self.header.value_bytes_max);
            Some(RecordHead { key_bytes, stored_bytes, tag: Tag::Raw, head_bytes: 0 })
        } else {
            scratch
                .range(start, in_scratch)
                .and_then(|bytes| RecordHead::decode(bytes, self.header.is_tagged()))
        };
        let bytes = head.and_then(|head| Some((head, head.record_bytes()?)));
        let Some((head, bytes)) = bytes.filter(|(_, bytes)| *bytes <= data_end - start) else {
            return Err(self.bad_record(start));
        };
        if head.key_bytes != key.len() as u64 {
            return Ok(None);
        }
        if bytes > in_scratch {
            scratch.read(self, file, start, bytes)?;
        }
        let key_start = start + head.head_bytes as u64;
        let found = Found { tag: head.tag, start: key_start + head.key_bytes, bytes: head.stored_bytes };
        Ok((scratch.range(key_start, head.key_bytes) == Some(key)).then_some(found))
    }

    /// Appends the value of a record that [`Reader::find_by_reading`] left in `scratch`. Returns
    /// false for a tombstone.
    pub(crate) fn append_read(
        &self,
        file: &dyn File,
        found: Found,
        scratch: &mut Scratch,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let stored = scratch.range(found.start, found.bytes).ok_or_else(|| self.bad_record(found.start))?;
        match found.tag {
            Tag::Tombstone => return Ok(false),
            Tag::Raw => value.extend_from_slice(stored),
            Tag::Compressed => self.decompress(stored, found.start, value)?,
            Tag::Blob => {
                let (offset, bytes) = self.blob(stored, found.start)?;
                self.append_blob(file, offset, bytes, scratch, value)?;
            }
        }
        Ok(true)
    }

    /// Appends `bytes` bytes from the file offset `offset`, window by window.
    pub(crate) fn append_blob(
        &self,
        file: &dyn File,
        mut offset: u64,
        bytes: u64,
        scratch: &mut Scratch,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        // The reference was validated: it is no longer than the blobs, which the file contains.
        let before = value.len();
        value.reserve_exact(bytes as usize);
        let end = offset + bytes;
        // BOUND: each iteration advances to the next window.
        while offset < end {
            let count = (end - offset).min(WINDOW_BYTES - offset % PAGE_BYTES);
            scratch.read(self, file, offset, count)?;
            let window = scratch.range(offset, count).ok_or_else(|| self.bad_record(offset))?;
            value.extend_from_slice(window);
            offset += count;
        }
        debug_assert_eq!(offset, end);
        debug_assert_eq!((value.len() - before) as u64, bytes, "the whole value was appended");
        Ok(())
    }
}
