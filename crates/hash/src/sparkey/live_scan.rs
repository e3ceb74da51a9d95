//! The live entries: those records of the log that the index points to.

use super::cursor::{Cursor, match_put};
use super::log_scan::{LogEntry, LogScan};
use super::reader::SparkeyReader;
use super::record::RecordKind;
use crate::{Error, Result};

/// Iterates over the live entries in the order in which they were written. Ends at the first error.
///
/// The number of entries must equal the number in the header of the index. Otherwise the scan ends
/// with an error, because the index has lost entries or points to wrong records.
///
/// Cost: reads the whole log, and probes the index once for each PUT record. Not an [`Iterator`],
/// because an entry borrows the scan.
#[derive(Debug)]
pub struct LiveScan<'a> {
    reader: &'a SparkeyReader,
    log: LogScan<'a>,
    lookups: Cursor<'a>,
    entries: u64,
    failed: bool,
}

impl<'a> LiveScan<'a> {
    pub(super) fn new(reader: &'a SparkeyReader) -> Self {
        let (log, lookups) = (LogScan::new(&reader.log), Cursor::for_lookup(&reader.log));
        LiveScan { reader, log, lookups, entries: 0, failed: false }
    }

    /// Returns the next live entry; `None` after the last one and after an error.
    ///
    /// Errors: those of [`LogScan::next_entry`]; [`Error::Corruption`] of the index if it points to
    /// an older record of a key than the last one, or if the number of entries differs from that in
    /// its header.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry<'_, 'a>>> {
        // The scan of the log stops after its own errors, but it does not know of errors of the
        // index.
        if self.failed {
            return Ok(None);
        }
        self.failed = true;
        let found = self.find_next()?;
        self.failed = false;
        Ok(if found { self.log.current() } else { None })
    }

    /// Advances to the next live entry. Returns false after the last one.
    fn find_next(&mut self) -> Result<bool> {
        while let Some(entry) = self.log.next_entry()? {
            if is_live(self.reader, &mut self.lookups, &entry)? {
                self.entries += 1;
                return Ok(true);
            }
        }
        let (index, found) = (&self.reader.index, self.entries);
        if found == index.header.entries {
            return Ok(false);
        }
        let detail = format!("{found} entries found in the log, the header says {}", index.header.entries);
        Err(Error::corruption(&index.path, 60, detail))
    }
}

/// Returns true for a PUT record that the index points to.
///
/// Errors: the index points to an older record of the key, which this one replaces.
pub(super) fn is_live<'a>(
    reader: &'a SparkeyReader,
    lookups: &mut Cursor<'a>,
    entry: &LogEntry<'_, '_>,
) -> Result<bool> {
    let (index, bits) = (&reader.index, reader.index.header.entry_bits);
    if entry.kind() == RecordKind::Delete || entry.number_in_block() >= 1 << bits {
        return Ok(false);
    }
    let address = entry.position() << bits | entry.number_in_block();
    debug_assert_eq!(index.header.split(address), (entry.position(), entry.number_in_block()));
    let found = index.find(index.hash(entry.key()), |other| {
        if other == address {
            return Ok(Some(()));
        }
        let (position, number) = index.header.split(other);
        // An older record with the same hash is an overwritten version of this key, unless two keys
        // share the hash.
        if other < address && match_put(lookups, position, number, entry.key())?.is_some() {
            return Err(reader.outdated(entry, (position, number)));
        }
        Ok(None)
    })?;
    Ok(found.is_some())
}
