//! Lays out the records of one partition as index lines and data.

use std::iter;

use cairn_vfs::ensure;

use super::compression::ValueCompressor;
use super::format::LINE_BYTES;
use super::ingest::{BufferedRecord, Segments};
use super::line::{BASE_END, DISTANCE_MAX, LineBuilder, LineBytes, Overflow, SLOTS};
use super::place::{Fingerprint, Place, partition_of};
use super::record::{self, Tag, decode_blob};
use crate::{Error, Result};

/// The properties that all partitions of a table share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub partition_bits: u32,
    pub fixed: bool,
    pub tagged: bool,
    /// Deleted keys leave no record. A delta keeps their tombstones, to hide keys of the
    /// generations below.
    pub drops_tombstones: bool,
    pub fill: f64,
}

/// One partition, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct PartitionLayout {
    pub lines: Vec<u8>,
    pub home_lines: u32,
    pub data: Vec<u8>,
    pub entries: u64,
    pub tombstones: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    pub key_bytes_max: u64,
    pub value_bytes_max: u64,
}

impl PartitionLayout {
    /// Checks the totals that the header and the reader rely on.
    fn check(&self, shape: Shape) -> Result<()> {
        let lines = self.lines.len() as u64 / LINE_BYTES;
        ensure!((self.lines.len() as u64).is_multiple_of(LINE_BYTES), "{} bytes of lines", self.lines.len());
        // A reader refuses a partition with more tail lines than home lines.
        let homes = u64::from(self.home_lines);
        ensure!((homes..=2 * homes).contains(&lines), "{lines} lines, of which {homes} are home lines");
        ensure!(self.entries <= lines * SLOTS as u64, "{} entries in {lines} lines", self.entries);
        ensure!(self.tombstones <= self.entries, "{} tombstones of {}", self.tombstones, self.entries);
        ensure!(
            self.tombstones == 0 || !shape.drops_tombstones && shape.tagged,
            "{} tombstones in a table that has none",
            self.tombstones
        );
        // Without lengths, a reader finds records by their slots alone.
        let width = self.key_bytes_max + self.value_bytes_max;
        ensure!(
            !shape.fixed || self.data.len() as u64 == self.entries * width,
            "{} bytes of {} records of {width} bytes",
            self.data.len(),
            self.entries
        );
        Ok(())
    }
}

/// Sorts the records of a partition, drops all but the last of each key, and lays out the rest.
pub(crate) fn lay_out(
    segments: &Segments<'_>,
    shape: Shape,
    compressor: &mut ValueCompressor,
) -> Result<PartitionLayout> {
    let live = live_records(segments, shape)?;
    let home_lines = (live.len() as f64 / (SLOTS as f64 * shape.fill)).ceil().max(1.0) as u32;
    debug_assert!(
        live.windows(2).all(|pair| partition_of(pair[0].0, shape.partition_bits)
            == partition_of(pair[1].0, shape.partition_bits)),
        "records of one partition"
    );
    let mut out = PartitionLayout { home_lines, entries: live.len() as u64, ..PartitionLayout::default() };
    let mut line = LineParts::default();
    let place = |hash: u64| Place::new(hash.rotate_left(shape.partition_bits), home_lines);
    debug_assert!(live.is_sorted_by_key(|(hash, _)| place(*hash).home), "hash order is that of the lines");
    let mut places = live.iter().map(|(hash, at)| (place(*hash), *at));
    let mut next = places.next();
    let mut line_number = 0;
    while line_number < home_lines || next.is_some() {
        line.clear(out.data.len());
        // BOUND: a line has SLOTS slots.
        while let Some((place, at)) = next.filter(|(place, _)| place.home <= line_number)
            && line.fingerprints.len() < SLOTS
        {
            if line_number - place.home > DISTANCE_MAX {
                return Err(too_crowded());
            }
            line.fingerprints.push((place.fingerprint, place.home == line_number));
            append(&mut out, segments.record(at), shape, compressor)?;
            line.ends.push(out.data.len());
            next = places.next();
        }
        let overflow = match (next, line.fingerprints.last()) {
            (Some((place, _)), Some((_, own))) if place.home <= line_number => {
                if *own {
                    Overflow::Home
                } else {
                    Overflow::Passing
                }
            }
            _ => Overflow::None,
        };
        let bytes = line.encode(&mut out.data, shape.fixed, overflow)?;
        out.lines.extend_from_slice(&bytes);
        line_number += 1;
    }
    out.check(shape)?;
    Ok(out)
}

#[cold]
fn too_crowded() -> Error {
    let keys = DISTANCE_MAX as usize * SLOTS;
    Error::invalid(format!("more than {keys} keys have nearly the same hash; build with another seed"))
}

/// One line while its records are laid out. Reused for every line, to avoid allocations.
#[derive(Debug, Default)]
struct LineParts {
    fingerprints: Vec<(Fingerprint, bool)>,
    /// Offset of the line's data in the data of the partition.
    base: usize,
    /// End offset of each record.
    ends: Vec<usize>,
    seconds: Vec<u8>,
}

impl LineParts {
    fn clear(&mut self, base: usize) {
        self.base = base;
        self.fingerprints.clear();
        self.ends.clear();
        self.seconds.clear();
    }

    /// Encodes the line. If a record is longer than 255 bytes, moves the line's records in `data`
    /// apart, so that each except the first begins a whole number of units after the previous one.
    fn encode(&mut self, data: &mut Vec<u8>, fixed: bool, overflow: Overflow) -> Result<LineBytes> {
        debug_assert_eq!(self.ends.len(), self.fingerprints.len());
        debug_assert_eq!(self.ends.last().copied().unwrap_or(self.base), data.len());
        debug_assert!(self.ends.is_sorted(), "records follow each other");
        if self.base as u64 >= BASE_END {
            return Err(Error::invalid(format!("more than {BASE_END} bytes of records in one partition")));
        }
        let mut shift = 0;
        if fixed {
            self.seconds.extend(self.fingerprints.iter().map(|(print, _)| print.second()));
        } else {
            let starts = iter::once(self.base).chain(self.ends.iter().copied());
            let lengths = starts.zip(&self.ends).map(|(start, end)| end - start);
            // The length of the last record is only a hint for prefetching.
            let before_last = self.ends.len().saturating_sub(1);
            let longest = lengths.clone().take(before_last).max().unwrap_or(0);
            // BOUND: a record is shorter than 2^33 bytes.
            while longest.div_ceil(1 << shift) > usize::from(u8::MAX) {
                shift += 1;
            }
            self.seconds.extend(lengths.map(|bytes| bytes.div_ceil(1 << shift).min(255) as u8));
            if shift > 0 {
                self.move_apart(data, shift);
            }
        }
        let builder = LineBuilder {
            base: self.base as u64,
            fingerprints: &self.fingerprints,
            seconds: &self.seconds,
            shift,
            overflow,
        };
        Ok(builder.encode())
    }

    fn move_apart(&self, data: &mut Vec<u8>, shift: u32) {
        let packed = data.split_off(self.base);
        let mut start = 0;
        for &end in &self.ends {
            let end = end - self.base;
            data.resize(self.base + (data.len() - self.base).next_multiple_of(1 << shift), 0);
            data.extend_from_slice(&packed[start..end]);
            debug_assert!((data.len() - self.base - (end - start)).is_multiple_of(1 << shift));
            start = end;
        }
        debug_assert_eq!(start, packed.len(), "every record of the line was moved");
    }
}

/// Returns the records to keep, in hash order: the last one of each key.
///
/// Errors: the lengths in the records do not add up.
fn live_records(segments: &Segments<'_>, shape: Shape) -> Result<Vec<(u64, u64)>> {
    let mut places = segments.places();
    ensure!(
        places.len() == segments.records,
        "{} records to sort in a partition of {}",
        places.len(),
        segments.records
    );
    // Equal hashes stay in insertion order, because places ascend.
    places.sort_unstable();
    let keep = |record: &BufferedRecord<'_>| !shape.drops_tombstones || record.tag != Tag::Tombstone;
    let mut live = Vec::with_capacity(places.len());
    let mut seen: Vec<&[u8]> = Vec::new();
    for group in places.chunk_by(|a, b| a.0 == b.0) {
        if let &[place] = group {
            // Reading the record costs a cache miss, so it is done only if tombstones are dropped.
            if !shape.drops_tombstones || keep(&segments.record(place.1)) {
                live.push(place);
            }
            continue;
        }
        // Either one key was written several times or, very rarely, different keys have the same
        // hash. The last record of each key counts.
        seen.clear();
        let first = live.len();
        for &place in group.iter().rev() {
            let record = segments.record(place.1);
            if !seen.contains(&record.key) {
                seen.push(record.key);
                if keep(&record) {
                    live.push(place);
                }
            }
        }
        live[first..].reverse();
    }
    debug_assert!(live.is_sorted(), "hash order, and insertion order among equal hashes");
    debug_assert!(live.len() <= segments.records);
    Ok(live)
}

/// Appends one record to the data and counts it.
fn append(
    out: &mut PartitionLayout,
    record: BufferedRecord<'_>,
    shape: Shape,
    compressor: &mut ValueCompressor,
) -> Result<()> {
    let value_bytes = match record.tag {
        Tag::Blob => decode_blob(record.stored).map_or(0, |(_, bytes)| bytes),
        _ => record.stored.len() as u64,
    };
    out.key_bytes += record.key.len() as u64;
    out.value_bytes += value_bytes;
    out.key_bytes_max = out.key_bytes_max.max(record.key.len() as u64);
    out.value_bytes_max = out.value_bytes_max.max(value_bytes);
    out.tombstones += u64::from(record.tag == Tag::Tombstone);
    if shape.fixed {
        debug_assert_eq!(record.tag, Tag::Raw, "a table of fixed widths has no tags");
        debug_assert_eq!(
            (record.key.len() as u64, value_bytes),
            (out.key_bytes_max, out.value_bytes_max),
            "a record of another width"
        );
        out.data.extend_from_slice(record.key);
        out.data.extend_from_slice(record.stored);
        return Ok(());
    }
    let (stored, tag) = match record.tag {
        Tag::Raw => compressor.store(record.stored)?,
        tag => (record.stored, tag),
    };
    record::encode(&mut out.data, record.key, stored, tag, shape.tagged);
    Ok(())
}
