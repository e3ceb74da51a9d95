//! The entries that are alive: those records of the log that the index points to.

use super::log_scan::{LogEntry, LogScan};
use super::reader::SparkeyReader;
use super::record::RecordKind;
use crate::Result;

/// Goes through the live entries in the order in which they were written. Ends at the first error.
///
/// Cost: reads the whole log, and probes the index once for each PUT record. Not an [`Iterator`], because an entry
/// borrows the scan.
#[derive(Debug)]
pub struct LiveScan<'a> {
    reader: &'a SparkeyReader,
    log: LogScan<'a>,
    failed: bool,
}

impl<'a> LiveScan<'a> {
    pub(super) fn new(reader: &'a SparkeyReader) -> Self {
        LiveScan { reader, log: LogScan::new(&reader.log), failed: false }
    }

    /// The next live entry, or `None` after the last one and after an error.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry<'_, 'a>>> {
        // The scan of the log ends at its own errors, and knows nothing of those of the index.
        if self.failed {
            return Ok(None);
        }
        self.failed = true;
        let found = self.find_next()?;
        self.failed = false;
        Ok(if found { self.log.current() } else { None })
    }

    /// Goes on to the next live entry; false after the last one.
    fn find_next(&mut self) -> Result<bool> {
        while let Some(entry) = self.log.next_entry()? {
            if is_live(self.reader, &entry)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// True for a PUT record that the index points to.
pub(super) fn is_live(reader: &SparkeyReader, entry: &LogEntry<'_, '_>) -> Result<bool> {
    let bits = reader.index.header.entry_bits;
    if entry.kind() == RecordKind::Delete || entry.number_in_block() >= 1 << bits {
        return Ok(false);
    }
    let address = entry.position() << bits | entry.number_in_block();
    let hash = reader.index.hash(entry.key());
    let found = reader.index.find(hash, |other| Ok((other == address).then_some(())))?;
    Ok(found.is_some())
}
