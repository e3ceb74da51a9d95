//! Iteration over all entries of a table in file order, which is hash order.

use std::borrow::Cow;

use cairn_vfs::Bug;

use super::format::{PAGE_BYTES, SLOTS};
use super::place::Partition;
use super::probe::line_at;
use super::reader::{Found, Reader};
use super::record::{RecordHead, Tag};
use super::source::Scratch;
use crate::{Error, Result};

/// Size of one positional read.
const READ_BYTES: u64 = 64 * PAGE_BYTES;

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: Cow<'a, [u8]>,
    /// The value.
    pub value: Cow<'a, [u8]>,
}

/// Iterates over the live entries of a table. Made by [`Reader::scan`]. Ends at the first error. A
/// number of entries other than that in the header is an error at the end.
#[derive(Debug)]
pub struct Scan<'a> {
    records: Records<'a>,
}

/// One record, with its location and its index line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub partition: usize,
    /// The line within the partition.
    pub line: u64,
    pub start: u64,
    pub bytes: u64,
    pub key: Cow<'a, [u8]>,
    pub found: Found,
}

/// Iterates over the records of a table, tombstones included.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    table: &'a Reader,
    partition: usize,
    line: u64,
    slot: usize,
    scratch: Scratch,
    /// The range of the file that `scratch` holds.
    ready: (u64, u64),
    /// Number of records read so far.
    read: u64,
    failed: bool,
}

impl Reader {
    /// Iterates over all entries in file order.
    pub fn scan(&self) -> Scan<'_> {
        Scan { records: self.records() }
    }

    pub(crate) fn records(&self) -> Records<'_> {
        let scratch = Scratch::default();
        Records {
            table: self,
            partition: 0,
            line: 0,
            slot: 0,
            scratch,
            ready: (0, 0),
            read: 0,
            failed: false,
        }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let record = match self.records.next()? {
                Ok(record) if record.found.tag == Tag::Tombstone => continue,
                Ok(record) => record,
                Err(error) => return Some(Err(error)),
            };
            let value = self.records.value(&record);
            self.records.failed = value.is_err();
            return Some(value.map(|value| Entry { key: record.key, value }));
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let record = self.advance().transpose();
        self.failed = !matches!(record, Some(Ok(_)));
        record
    }
}

impl<'a> Records<'a> {
    fn advance(&mut self) -> Result<Option<Record<'a>>> {
        let table = self.table;
        // BOUND: every iteration that does not return advances by one line or partition, up to the
        // number of lines in the partition table.
        while let Some(partition) = table.partitions.as_slice().get(self.partition) {
            if self.line == u64::from(partition.home_lines) + u64::from(partition.tail_lines) {
                (self.partition, self.line, self.slot) = (self.partition + 1, 0, 0);
                continue;
            }
            let line = line_at(table, partition.first_line + self.line)?;
            if let Some(detail) = line.problem() {
                let at = table.header.index_offset + 64 * (partition.first_line + self.line);
                return Err(Error::corruption(&table.path, at, detail));
            }
            if self.slot >= line.count() {
                (self.line, self.slot) = (self.line + 1, 0);
                continue;
            }
            let slot = self.slot;
            self.slot += 1;
            let offset = match table.header.is_fixed() {
                true => {
                    line.base() + slot as u64 * (table.header.key_bytes_max + table.header.value_bytes_max)
                }
                false => line.record(slot),
            };
            self.read += 1;
            return self.read(partition, offset).map(Some);
        }
        let (found, expected) = (self.read, table.header.entries);
        if found == expected {
            return Ok(None);
        }
        let detail = format!("found {found} entries, but the header says {expected}");
        Err(Error::corruption(&table.path, 48, detail))
    }

    /// Reads the record at `offset` in the data of `partition`.
    fn read(&mut self, partition: &Partition, offset: u64) -> Result<Record<'a>> {
        let table = self.table;
        debug_assert!(self.read <= table.header.index_lines * SLOTS as u64, "{} records", self.read);
        let start = partition.data_start + offset;
        let limit = partition.data_start + partition.data_bytes;
        if offset >= partition.data_bytes {
            return Err(table.bad_record(start));
        }
        let head = self.bytes(start, (limit - start).min(RecordHead::BYTES_MAX as u64))?;
        let head = match table.header.is_fixed() {
            true => Some(RecordHead {
                key_bytes: table.header.key_bytes_max,
                stored_bytes: table.header.value_bytes_max,
                tag: Tag::Raw,
                head_bytes: 0,
            }),
            false => RecordHead::decode(&head, table.header.is_tagged()),
        };
        let bytes = head.and_then(|head| Some((head, head.record_bytes()?)));
        let Some((head, bytes)) = bytes.filter(|(_, bytes)| *bytes <= limit - start) else {
            return Err(table.bad_record(start));
        };
        let key_start = start + head.head_bytes as u64;
        let key = self.bytes(key_start, head.key_bytes)?;
        let found = Found { tag: head.tag, start: key_start + head.key_bytes, bytes: head.stored_bytes };
        Ok(Record { partition: self.partition, line: self.line, start, bytes, key, found })
    }

    /// Returns the size of the value of a record of this iterator. The value is read, to check that
    /// it is readable; of a blob only the reference is read.
    pub(crate) fn value_bytes(&mut self, record: &Record<'a>) -> Result<u64> {
        if record.found.tag != Tag::Blob {
            return Ok(self.value(record)?.len() as u64);
        }
        let stored = self.bytes(record.found.start, record.found.bytes)?;
        Ok(self.table.blob(&stored, record.found.start)?.1)
    }

    /// Returns the value of a record of this iterator; empty for a tombstone.
    pub(crate) fn value(&mut self, record: &Record<'a>) -> Result<Cow<'a, [u8]>> {
        let Found { tag, start, bytes } = record.found;
        let stored = self.bytes(start, bytes)?;
        match tag {
            Tag::Raw => Ok(stored),
            Tag::Tombstone => Ok(Cow::Borrowed(&[])),
            Tag::Compressed => {
                let mut value = Vec::new();
                self.table.decompress(&stored, start, &mut value)?;
                Ok(Cow::Owned(value))
            }
            Tag::Blob => {
                let (offset, bytes) = self.table.blob(&stored, start)?;
                match &self.table.file {
                    None => self.table.checked_range(offset, bytes).map(Cow::Borrowed),
                    Some(file) => {
                        // Does not use `self.scratch`, which holds the records that follow.
                        let (mut scratch, mut value) = (Scratch::default(), Vec::new());
                        self.table.append_blob(&**file, offset, bytes, &mut scratch, &mut value)?;
                        Ok(Cow::Owned(value))
                    }
                }
            }
        }
    }

    /// Returns verified bytes of the file, borrowed from the map or copied from a large positional
    /// read.
    fn bytes(&mut self, offset: u64, bytes: u64) -> Result<Cow<'a, [u8]>> {
        let table = self.table;
        let Some(file) = &table.file else {
            return table.checked_range(offset, bytes).map(Cow::Borrowed);
        };
        if bytes == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if offset < self.ready.0 || offset + bytes > self.ready.1 {
            let data_end = table.header.data_offset + table.header.data_bytes;
            let end = (offset + bytes).max((offset + READ_BYTES).min(data_end));
            self.ready = (0, 0);
            self.scratch.read(table, &**file, offset, end - offset)?;
            self.ready = (offset, end);
        }
        debug_assert!(self.ready.0 <= offset && offset + bytes <= self.ready.1, "{bytes} bytes at {offset}");
        let Some(found) = self.scratch.range(offset, bytes) else {
            return Err(Bug::new(format!("{bytes} bytes at {offset} of {:?}", self.ready)).into());
        };
        Ok(Cow::Owned(found.to_vec()))
    }
}
