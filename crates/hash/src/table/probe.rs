//! The walk over index lines that yields the candidate records of a key.

use super::format::{LINE_BYTES, PAGE_BYTES};
use super::line::{DISTANCE_MAX, Line, LineBytes};
use super::place::Fingerprint;
use super::reader::Reader;
use crate::{Error, Result};

/// One search in the index. `FIXED` says that records have one width, so that the slot number
/// determines the location of a record.
#[derive(Debug)]
pub(crate) struct Probe<'a, const FIXED: bool> {
    line: Line<'a>,
    line_number: u64,
    /// The first line after the partition.
    line_end: u64,
    /// Distance from the home line, in lines.
    distance: u32,
    /// The slot of the last candidate.
    slot: usize,
    /// The candidate slots of this line that remain.
    matches: u32,
    fingerprint: Fingerprint,
    /// File offset of the partition's data.
    data_start: u64,
    data_bytes: u64,
}

impl<'a, const FIXED: bool> Probe<'a, FIXED> {
    /// Reads the home line of `hash`, which is the first cache miss.
    #[inline]
    pub fn new(reader: &'a Reader, hash: u64) -> Result<Self> {
        let (partition, place) = reader.partitions.find(hash);
        let line_number = partition.first_line + u64::from(place.home);
        debug_assert!(place.home < partition.home_lines);
        let line = line_at(reader, line_number)?;
        Ok(Probe {
            line,
            line_number,
            line_end: partition.first_line
                + u64::from(partition.home_lines)
                + u64::from(partition.tail_lines),
            distance: 0,
            slot: 0,
            matches: line.matches_home::<FIXED>(place.fingerprint),
            fingerprint: place.fingerprint,
            data_start: partition.data_start,
            data_bytes: partition.data_bytes,
        })
    }

    /// Returns the file offset of the next record that may have the key.
    #[inline]
    pub fn next(&mut self, reader: &'a Reader) -> Result<Option<u64>> {
        // BOUND: the line number grows up to the end of the partition, and the distance up to its
        // limit.
        loop {
            if self.matches != 0 {
                self.slot = self.matches.trailing_zeros() as usize;
                self.matches &= self.matches - 1;
                debug_assert!(self.distance <= DISTANCE_MAX && self.line_number < self.line_end);
                let record = self.record(reader, self.slot);
                if record >= self.data_bytes {
                    return Err(self.bad_line(reader));
                }
                return Ok(Some(self.data_start + record));
            }
            if !self.line.goes_on(self.fingerprint, self.distance) {
                return Ok(None);
            }
            self.line_number += 1;
            self.distance += 1;
            if self.line_number >= self.line_end {
                return Err(self.bad_line(reader));
            }
            if self.distance > DISTANCE_MAX {
                // The line may be full of entries with other homes. All entries of this home have
                // been passed.
                return Ok(None);
            }
            self.line = line_at(reader, self.line_number)?;
            self.matches = self.line.matches_passed::<FIXED>(self.fingerprint);
        }
    }

    /// Returns the approximate size of the last candidate in bytes. For the last slot of a line it
    /// may be too small.
    pub fn record_bytes(&self, reader: &Reader) -> u64 {
        if FIXED {
            reader.header.key_bytes_max + reader.header.value_bytes_max
        } else {
            self.line.record_bytes(self.slot)
        }
    }

    #[inline]
    fn record(&self, reader: &Reader, slot: usize) -> u64 {
        debug_assert_eq!(FIXED, reader.header.is_fixed());
        if FIXED {
            self.line.base() + slot as u64 * (reader.header.key_bytes_max + reader.header.value_bytes_max)
        } else {
            self.line.record(slot)
        }
    }

    #[cold]
    fn bad_line(&self, reader: &Reader) -> Error {
        let at = reader.header.index_offset + self.line_number * LINE_BYTES;
        Error::corruption(&reader.path, at, "index line points outside its partition")
    }
}

/// Returns index line `number`, from a verified page.
#[inline]
pub(crate) fn line_at(reader: &Reader, number: u64) -> Result<Line<'_>> {
    debug_assert!(number < reader.header.index_lines, "line {number}");
    let offset = reader.header.index_offset + number * LINE_BYTES;
    let window = reader.window();
    reader.checker.ensure(&reader.path, window, offset / PAGE_BYTES)?;
    match window.range(offset, LINE_BYTES).and_then(|bytes| <&LineBytes>::try_from(bytes).ok()) {
        Some(bytes) => Ok(Line::new(bytes)),
        None => Err(Error::corruption(&reader.path, offset, "index line beyond the end of the file")),
    }
}
