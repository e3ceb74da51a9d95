//! Iteration over all records of a log in the order in which they were written.

use std::borrow::Cow;
use std::io;

use super::cursor::Cursor;
use super::log::Log;
use super::record::{RecordHead, RecordKind};
use crate::Result;

/// Iterates over the records of a log from the first to the last. Ends at the first error.
///
/// Not an [`Iterator`], because an entry borrows the scan. This avoids a copy and an allocation per
/// record, and values that are not requested are skipped (in an uncompressed log without reading
/// them).
#[derive(Debug)]
pub struct LogScan<'a> {
    log: &'a Log,
    cursor: Cursor<'a>,
    /// The head of the current record.
    head: RecordHead,
    /// The key of the current record, unless it can be borrowed from the log.
    key: Vec<u8>,
    borrowed_key: Option<&'a [u8]>,
    /// Bytes of the current record's value that the cursor has not passed yet.
    value_left: u64,
    /// Number of records that began in the current block, the current one included.
    begun: u64,
    position: u64,
    counted: ScanTotals,
    failed: bool,
}

/// The totals of a scan, which are compared with the header at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ScanTotals {
    pub puts: u64,
    pub deletes: u64,
    pub put_bytes: u64,
    pub delete_bytes: u64,
}

impl ScanTotals {
    #[inline]
    fn add(&mut self, head: &RecordHead) {
        let (count, bytes) = match head.kind {
            RecordKind::Put => (&mut self.puts, &mut self.put_bytes),
            RecordKind::Delete => (&mut self.deletes, &mut self.delete_bytes),
        };
        *count += 1;
        *bytes = bytes.saturating_add(head.record_bytes());
    }

    /// Compares the totals with the header of the log, which was read to its end. An index that
    /// covers only a part of its log tells the number of PUT records in that part, and nothing else
    /// about it.
    fn check(&self, log: &Log) -> Result<()> {
        let header = &log.header;
        let mut fields = vec![(16, "puts", log.puts, self.puts)];
        if log.end == header.data_end {
            fields.extend([
                (24, "deletes", header.deletes, self.deletes),
                (72, "bytes of puts", header.put_bytes, self.put_bytes),
                (56, "bytes of deletes", header.delete_bytes, self.delete_bytes),
            ]);
        }
        match fields.into_iter().find(|(_, _, expected, found)| expected != found) {
            Some((offset, name, expected, found)) => {
                let detail = format!("found {found} {name} in the log, but its header says {expected}");
                Err(log.corruption(offset, detail))
            }
            None => Ok(()),
        }
    }
}

impl<'a> LogScan<'a> {
    pub(super) fn new(log: &'a Log) -> Self {
        LogScan {
            log,
            cursor: Cursor::for_scan(log),
            head: RecordHead::delete(0),
            key: Vec::new(),
            borrowed_key: None,
            value_left: 0,
            begun: 0,
            position: 0,
            counted: ScanTotals::default(),
            failed: false,
        }
    }

    /// Returns the next record; `None` after the last one and after an error.
    ///
    /// Errors: [`Error::Corruption`](crate::Error::Corruption) at a damaged record or block, and
    /// after the last record if the totals differ from the header;
    /// [`Error::Vfs`](crate::Error::Vfs).
    pub fn next_entry(&mut self) -> Result<Option<LogEntry<'_, 'a>>> {
        if self.failed {
            return Ok(None);
        }
        self.failed = true;
        let more = self.advance()?;
        self.failed = false;
        Ok(more.then_some(LogEntry { scan: self }))
    }

    /// Returns the entry that [`LogScan::next_entry`] returned last.
    pub(super) fn current(&mut self) -> Option<LogEntry<'_, 'a>> {
        (self.begun > 0 && !self.failed).then_some(LogEntry { scan: self })
    }

    fn advance(&mut self) -> Result<bool> {
        self.finish_record()?;
        let Some(position) = self.cursor.record_position(&mut self.begun)? else {
            self.counted.check(self.log)?;
            return Ok(false);
        };
        debug_assert!(position >= self.position, "the scan goes forwards");
        debug_assert_eq!(self.value_left, 0, "the record before was passed");
        self.position = position;
        self.begun += 1;
        self.head = self.cursor.head()?;
        if self.head.record_bytes() > self.log.header.expanded_bytes_max() {
            let detail =
                format!("a record claims {} bytes, more than the log can hold", self.head.record_bytes());
            return Err(self.cursor.corruption_here(detail));
        }
        self.borrowed_key =
            self.log.uncompressed_in_memory().and_then(|_| self.cursor.borrow(self.head.key_bytes));
        if self.borrowed_key.is_some() {
            self.cursor.skip(self.head.key_bytes)?;
        } else {
            self.key.clear();
            self.cursor.append_to(self.head.key_bytes, &mut self.key)?;
        }
        self.value_left = self.head.value_bytes;
        self.counted.add(&self.head);
        Ok(true)
    }

    /// Skips the rest of the current record.
    fn finish_record(&mut self) -> Result<()> {
        let left = std::mem::take(&mut self.value_left);
        self.cursor.skip(left)?;
        let spilled =
            self.begun > 0 && self.cursor.block_position().is_some_and(|block| block != self.position);
        if spilled && !self.cursor.at_block_end() {
            let detail =
                "a block continues after the end of a record that began in an earlier block".to_owned();
            return Err(self.cursor.corruption_here(detail));
        }
        Ok(())
    }
}

/// One record of a [`LogScan`].
#[derive(Debug)]
pub struct LogEntry<'s, 'a> {
    scan: &'s mut LogScan<'a>,
}

impl<'a> LogEntry<'_, 'a> {
    /// Returns whether the record is a PUT or a DELETE.
    pub fn kind(&self) -> RecordKind {
        self.scan.head.kind
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        let key = self.scan.borrowed_key.unwrap_or(&self.scan.key);
        debug_assert_eq!(key.len() as u64, self.scan.head.key_bytes, "the key of another record");
        key
    }

    /// Returns the length of the value in bytes; 0 for a DELETE.
    pub fn value_bytes(&self) -> u64 {
        self.scan.head.value_bytes
    }

    /// Returns the size of the record before compression, in bytes.
    pub fn record_bytes(&self) -> u64 {
        self.scan.head.record_bytes()
    }

    /// Returns the offset of the record, or of the compressed block in which it begins.
    pub fn position(&self) -> u64 {
        self.scan.position
    }

    /// Returns the number of records that begin before it in its block; 0 in an uncompressed log.
    pub fn number_in_block(&self) -> u64 {
        debug_assert!(self.scan.begun > 0, "an entry is a record that began");
        self.scan.begun - 1
    }

    /// Returns the rest of the value: borrowed from an uncompressed log in memory, otherwise
    /// copied.
    pub fn value(&mut self) -> Result<Cow<'a, [u8]>> {
        let left = self.scan.value_left;
        debug_assert!(left <= self.value_bytes(), "{left} bytes are left of {}", self.value_bytes());
        if self.scan.log.uncompressed_in_memory().is_some()
            && let Some(value) = self.scan.cursor.borrow(left)
        {
            self.scan.cursor.skip(left)?;
            self.scan.value_left = 0;
            return Ok(Cow::Borrowed(value));
        }
        let mut value = Vec::new();
        self.read_value(&mut value)?;
        Ok(Cow::Owned(value))
    }

    /// Appends the rest of the value to `out`.
    pub fn read_value(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let left = std::mem::take(&mut self.scan.value_left);
        let done = self.scan.cursor.append_to(left, out);
        self.scan.failed |= done.is_err();
        done
    }
}

/// Reads the rest of the value as a stream.
impl io::Read for LogEntry<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let scan = &mut *self.scan;
        let done = scan.cursor.read_some(scan.value_left, buf);
        scan.failed |= done.is_err();
        let count = done.map_err(io::Error::other)?;
        debug_assert!(count as u64 <= scan.value_left, "{count} bytes of {}", scan.value_left);
        scan.value_left -= count as u64;
        Ok(count)
    }
}
