//! Turns one partition's records into index lines and data.

use super::compression::ValueCompressor;
use super::format::{LINE_BYTES, place_of};
use super::ingest::{Segments, WaitingRecord};
use super::line::{LineBuilder, Overflow, SLOTS, SLOTS_FIXED};
use super::record::{self, RecordHead, Tag, decode_blob};
use crate::Result;

/// What all partitions of a table have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub partition_bits: u32,
    pub fixed: bool,
    pub tagged: bool,
    /// Deleted keys leave nothing behind. A delta keeps them, to hide keys of the generations below.
    pub drops_tombstones: bool,
    pub fill: f64,
}

/// One partition, ready to be written.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    pub lines: Vec<u8>,
    pub home_lines: u32,
    pub data: Vec<u8>,
    pub entries: u64,
    pub tombstones: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    pub value_bytes_max: u64,
}

/// Sorts the records of a partition, drops all but the last of each key, and lays the rest out.
pub(crate) fn emit(
    segments: &Segments<'_>,
    shape: Shape,
    compressor: &mut ValueCompressor,
) -> Result<Emitted> {
    let live = live_records(segments, shape);
    let slots = if shape.fixed { SLOTS_FIXED } else { SLOTS };
    let home_lines = (live.len() as f64 / (slots as f64 * shape.fill)).ceil().max(1.0) as u32;
    let mut out = Emitted { home_lines, entries: live.len() as u64, ..Emitted::default() };
    let home = |hash: u64| place_of(hash, shape.partition_bits, home_lines);
    let mut next = 0;
    let mut line_number = 0;
    let mut starts = Vec::with_capacity(slots);
    while line_number < home_lines || next < live.len() {
        let due = live[next..]
            .iter()
            .take_while(|(hash, _)| home(*hash).home <= line_number)
            .take(slots + 1)
            .count();
        let taken = &live[next..next + due.min(slots)];
        let overflow = match taken.last() {
            Some((last, _)) if due > slots => {
                if home(*last).home == line_number {
                    Overflow::Home
                } else {
                    Overflow::Passing
                }
            }
            _ => Overflow::None,
        };
        let base = out.data.len() as u64;
        starts.clear();
        let shift = if shape.fixed { 0 } else { unit_shift(segments, taken) };
        for (_, place) in taken {
            let record = segments.record(*place);
            out.data.resize(base as usize + (out.data.len() - base as usize).next_multiple_of(1 << shift), 0);
            starts.push(out.data.len() as u64 - base);
            append(&mut out, record, shape, compressor)?;
        }
        let builder = LineBuilder {
            base,
            fingerprints: taken.iter().map(|(hash, _)| home(*hash).fingerprint).collect(),
            offsets: if shape.fixed {
                Vec::new()
            } else {
                starts.iter().map(|start| (start >> shift) as u16).collect()
            },
            shift,
            overflow,
        };
        out.lines.extend_from_slice(&builder.encode());
        next += taken.len();
        line_number += 1;
    }
    debug_assert_eq!(out.lines.len() as u64 % LINE_BYTES, 0);
    Ok(out)
}

/// The records to keep, in hash order: of equal keys the last that came.
fn live_records(segments: &Segments<'_>, shape: Shape) -> Vec<(u64, u64)> {
    let mut places = segments.places();
    // Equal hashes stay in the order they came, because places ascend.
    places.sort_unstable();
    let keep = |record: &WaitingRecord<'_>| !shape.drops_tombstones || record.tag != Tag::Tombstone;
    let mut live = Vec::with_capacity(places.len());
    let mut seen: Vec<&[u8]> = Vec::new();
    for group in places.chunk_by(|a, b| a.0 == b.0) {
        if let &[place] = group {
            // Looking at the record costs a cache miss, so only where it can matter.
            if !shape.drops_tombstones || keep(&segments.record(place.1)) {
                live.push(place);
            }
            continue;
        }
        // One key written many times, or (hardly ever) keys with one hash: the last of each key counts.
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
    live
}

/// The smallest unit, as a power of two, in which all records of a line start within reach of a u16.
fn unit_shift(segments: &Segments<'_>, taken: &[(u64, u64)]) -> u32 {
    // The head is at most 20 bytes and compression never makes a stored value longer than this.
    let bytes_max = |place: u64| {
        let record = segments.record(place);
        (RecordHead::BYTES_MAX + record.key.len() + record.stored.len()) as u64
    };
    let (mut shift, sizes): (u32, Vec<u64>) = (0, taken.iter().map(|(_, place)| bytes_max(*place)).collect());
    let before_last = &sizes[..sizes.len().saturating_sub(1)];
    while before_last.iter().map(|bytes| bytes.next_multiple_of(1 << shift)).sum::<u64>() >> shift
        > u64::from(u16::MAX)
    {
        shift += 1;
    }
    shift
}

/// Writes one record to the data and counts it.
fn append(
    out: &mut Emitted,
    record: WaitingRecord<'_>,
    shape: Shape,
    compressor: &mut ValueCompressor,
) -> Result<()> {
    let value_bytes = match record.tag {
        Tag::Blob => decode_blob(record.stored).map_or(0, |(_, bytes)| bytes),
        _ => record.stored.len() as u64,
    };
    out.key_bytes += record.key.len() as u64;
    out.value_bytes += value_bytes;
    out.value_bytes_max = out.value_bytes_max.max(value_bytes);
    out.tombstones += u64::from(record.tag == Tag::Tombstone);
    if shape.fixed {
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
