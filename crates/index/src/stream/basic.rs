//! The encodings that do not contain others: a straight line; packed distances from the least
//! value; and chunks of 128 values, each of which stores distances from its least value or from the
//! previous value.
//!
//! ```text
//!   line     tag 0 | base zigzag | step zigzag                     value(row) = base + row * step
//!   packed   tag 1 | least zigzag | width u8 | values - least, `width` bits each
//!   chunked  tag 2 | least zigzag | end of each chunk u16 … | chunks
//!     chunk, values       width u8        | least - least of the stream | values - least, packed
//!     chunk, differences  width u8 + 0x80 | first - least of the stream
//!                         | least difference zigzag | the others, packed
//! ```
//!
//! All arithmetic wraps: values are 64 bits wide, whatever they mean.

use std::ops::Range;

use cairn_codec::varint;

use crate::bits;
use crate::cursor::{Cursor, push_zigzag, zigzag_len};
use crate::damage::{Checked, Damage};

pub(crate) const LINE: u8 = 0;
pub(crate) const PACKED: u8 = 1;
pub(crate) const CHUNKED: u8 = 2;

/// Number of values in a chunk. At width 4 a chunk is one cache line, and reading a value in it
/// takes at most 127 additions.
pub(crate) const CHUNK: usize = 128;
const DIFFERENCES: u8 = 0x80;
const _: () = assert!(DIFFERENCES as u32 > u64::BITS, "a width and this bit share a byte");
const _: () = assert!(CHUNK.is_multiple_of(bits::GROUP), "chunks are unpacked by whole groups");

/// The encoding chosen for some values, and its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    kind: u8,
    least: u64,
    step: u64,
    width: u32,
    /// The number of bytes that [`Plan::emit`] writes.
    pub(crate) bytes: usize,
}

/// The parameters of one chunk for both forms, and the size of the smaller one.
struct ChunkPlan {
    least: u64,
    width: u32,
    least_difference: u64,
    difference_width: u32,
    by_difference: bool,
    bytes: usize,
}

fn bounds(values: &[u64]) -> (u64, u64) {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for &value in values {
        least = least.min(value as i64);
        most = most.max(value as i64);
    }
    (least as u64, most as u64)
}

fn plan_chunk(values: &[u64], stream_least: u64) -> ChunkPlan {
    debug_assert!((1..=CHUNK).contains(&values.len()), "{} values in a chunk", values.len());
    let (least, most) = bounds(values);
    let width = bits::width_of(most.wrapping_sub(least));
    let plain =
        varint::encoded_len(least.wrapping_sub(stream_least)) + bits::packed_bytes(values.len(), width);
    let (mut low, mut high) = (i64::MAX, i64::MIN);
    for pair in values.windows(2) {
        let difference = pair[1].wrapping_sub(pair[0]) as i64;
        low = low.min(difference);
        high = high.max(difference);
    }
    let first = values.first().copied().unwrap_or(0);
    if values.len() < 2 {
        (low, high) = (0, 0);
    }
    let difference_width = bits::width_of((high as u64).wrapping_sub(low as u64));
    let differences = varint::encoded_len(first.wrapping_sub(stream_least))
        + zigzag_len(low as u64)
        + bits::packed_bytes(values.len().saturating_sub(1), difference_width);
    let by_difference = differences < plain;
    ChunkPlan {
        least,
        width,
        least_difference: low as u64,
        difference_width,
        by_difference,
        bytes: 1 + plain.min(differences),
    }
}

/// Chooses the smallest of the three encodings for `values`. Takes about 3 ns per value.
pub(crate) fn plan(values: &[u64]) -> Plan {
    let base = values.first().copied().unwrap_or(0);
    let step = values.get(1).map_or(0, |second| second.wrapping_sub(base));
    if values.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step) {
        let bytes = 1 + zigzag_len(base) + zigzag_len(step);
        return Plan { kind: LINE, least: base, step, width: 0, bytes };
    }
    let (least, most) = bounds(values);
    let width = bits::width_of(most.wrapping_sub(least));
    let packed = 2 + zigzag_len(least) + bits::packed_bytes(values.len(), width);
    let mut chunked = 1 + zigzag_len(least) + 2 * values.len().div_ceil(CHUNK);
    for chunk in values.chunks(CHUNK) {
        chunked += plan_chunk(chunk, least).bytes;
    }
    // Chunks are slower to read at random, so they have to save some space.
    let kind =
        if chunked + chunked / 32 < packed && chunked < usize::from(u16::MAX) { CHUNKED } else { PACKED };
    Plan { kind, least, step: 0, width, bytes: if kind == CHUNKED { chunked } else { packed } }
}

impl Plan {
    /// Appends `values`, for which this plan was made.
    pub(crate) fn emit(&self, values: &[u64], out: &mut Vec<u8>) {
        let before = out.len();
        out.push(self.kind);
        push_zigzag(self.least, out);
        match self.kind {
            LINE => push_zigzag(self.step, out),
            PACKED => {
                out.push(self.width as u8);
                bits::pack(values.iter().map(|value| value.wrapping_sub(self.least)), self.width, out);
            }
            _ => self.emit_chunks(values, out),
        }
        debug_assert_eq!(out.len() - before, self.bytes, "the size that was planned");
    }

    fn emit_chunks(&self, values: &[u64], out: &mut Vec<u8>) {
        let directory = out.len();
        out.resize(directory + 2 * values.len().div_ceil(CHUNK), 0);
        let data = out.len();
        for (index, chunk) in values.chunks(CHUNK).enumerate() {
            let plan = plan_chunk(chunk, self.least);
            let start = out.len();
            if plan.by_difference {
                out.push(plan.difference_width as u8 | DIFFERENCES);
                varint::push(chunk[0].wrapping_sub(self.least), out);
                push_zigzag(plan.least_difference, out);
                let differences =
                    chunk.windows(2).map(|p| p[1].wrapping_sub(p[0]).wrapping_sub(plan.least_difference));
                bits::pack(differences, plan.difference_width, out);
            } else {
                out.push(plan.width as u8);
                varint::push(plan.least.wrapping_sub(self.least), out);
                bits::pack(chunk.iter().map(|value| value.wrapping_sub(plan.least)), plan.width, out);
            }
            debug_assert_eq!(out.len() - start, plan.bytes, "the size that was planned");
            debug_assert!(out.len() - data <= usize::from(u16::MAX), "an end has two bytes");
            let end = (out.len() - data) as u16;
            out[directory + 2 * index..directory + 2 * index + 2].copy_from_slice(&end.to_le_bytes());
        }
    }
}

/// Encoded values, located and bounds-checked.
#[derive(Clone, Copy)]
pub(crate) enum Basic<'a> {
    Line { base: u64, step: u64 },
    Packed { least: u64, width: u32, data: &'a [u8] },
    Chunked { least: u64, rows: usize, directory: &'a [u8], data: Cursor<'a> },
}

impl<'a> Basic<'a> {
    /// Parses the head of a stream of `rows` values that fills `part`.
    pub(crate) fn parse(mut part: Cursor<'a>, rows: usize) -> Checked<Self> {
        let at = part.at();
        match part.u8()? {
            LINE => Ok(Basic::Line { base: part.zigzag()?, step: part.zigzag()? }),
            PACKED => {
                let least = part.zigzag()?;
                let width = u32::from(part.u8()?);
                if width > 64 {
                    return Err(Damage::at(at, "a width of at most 64 bits"));
                }
                Ok(Basic::Packed { least, width, data: part.take(bits::packed_bytes(rows, width))? })
            }
            CHUNKED => {
                let least = part.zigzag()?;
                let directory = part.take(2 * rows.div_ceil(CHUNK))?;
                let left = part.end() - part.at();
                Ok(Basic::Chunked { least, rows, directory, data: part.part(left)? })
            }
            _ => Err(Damage::at(at, "a known stream encoding")),
        }
    }

    /// Returns bounds of all values as signed integers, if the head alone gives them. The upper
    /// bound may be up to twice as far from the lower one as necessary.
    pub(crate) fn hull(&self) -> Option<(i64, i64)> {
        let Basic::Packed { least, width, .. } = self else { return None };
        let least = *least as i64;
        let most = i64::try_from(i128::from(least) + i128::from(bits::mask(*width))).ok()?;
        Some((least, most))
    }

    /// Returns the value of `row`, which is below the number of rows. Takes a few nanoseconds; up
    /// to 50 in a chunk of differences.
    pub(crate) fn get(&self, row: usize) -> Checked<u64> {
        match self {
            Basic::Line { base, step } => Ok(base.wrapping_add(step.wrapping_mul(row as u64))),
            Basic::Packed { least, width, data } => Ok(least.wrapping_add(bits::get(data, row, *width))),
            Basic::Chunked { .. } => {
                let chunk = self.chunk(row / CHUNK)?;
                let at = row % CHUNK;
                if !chunk.by_difference {
                    return Ok(chunk.base.wrapping_add(bits::get(chunk.data, at, chunk.width)));
                }
                let mut differences = [0; CHUNK];
                bits::unpack(chunk.data, 0, chunk.width, &mut differences[..at]);
                let sum = differences[..at].iter().fold(0u64, |sum, d| sum.wrapping_add(*d));
                Ok(chunk.base.wrapping_add(chunk.least_difference.wrapping_mul(at as u64)).wrapping_add(sum))
            }
        }
    }

    /// Reads values `start..start + out.len()`.
    pub(crate) fn decode(&self, start: usize, out: &mut [u64]) -> Checked<()> {
        match self {
            Basic::Line { base, step } => {
                let first = base.wrapping_add(step.wrapping_mul(start as u64));
                for (index, value) in out.iter_mut().enumerate() {
                    *value = first.wrapping_add(step.wrapping_mul(index as u64));
                }
            }
            Basic::Packed { least, width, data } => {
                bits::unpack(data, start, *width, out);
                for value in out {
                    *value = value.wrapping_add(*least);
                }
            }
            Basic::Chunked { .. } => {
                let mut done = 0;
                while done < out.len() {
                    let row = start + done;
                    let count = (CHUNK - row % CHUNK).min(out.len() - done);
                    self.chunk(row / CHUNK)?.decode(row % CHUNK, &mut out[done..done + count]);
                    done += count;
                }
            }
        }
        Ok(())
    }

    /// Returns the first of `rows` whose value does not satisfy `is_before`, which must hold for
    /// all rows before it and for none after. Reads the first value of some chunks, and unpacks one
    /// chunk.
    pub(crate) fn partition(&self, rows: Range<usize>, is_before: impl Fn(u64) -> bool) -> Checked<usize> {
        let (mut low, mut high) = (rows.start, rows.end.max(rows.start));
        if !matches!(self, Basic::Chunked { .. }) {
            while low < high {
                let middle = low + (high - low) / 2;
                if is_before(self.get(middle)?) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return Ok(low);
        }
        // The chunks that begin within `rows`, after its first row.
        let (mut first, mut end) = (low / CHUNK + 1, high.div_ceil(CHUNK));
        while first < end {
            let middle = first + (end - first) / 2;
            if is_before(self.get(middle * CHUNK)?) {
                (low, first) = (middle * CHUNK, middle + 1);
            } else {
                (high, end) = (middle * CHUNK, middle);
            }
        }
        debug_assert!(low <= high && high - low <= CHUNK, "rows {low}..{high} of one chunk");
        let mut values = [0; CHUNK];
        let values = &mut values[..high - low];
        self.decode(low, values)?;
        Ok(low + values.partition_point(|value| is_before(*value)))
    }

    fn chunk(&self, index: usize) -> Checked<Chunk<'a>> {
        let Basic::Chunked { least, rows, directory, data } = *self else {
            return Err(Damage::at(0, "a chunked stream"));
        };
        debug_assert!(index * CHUNK < rows, "chunk {index} of {rows} rows");
        let end_of = |index: usize| {
            let at = 2 * index;
            directory.get(at..at + 2).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])))
        };
        let from = if index == 0 { Some(0) } else { end_of(index - 1) };
        let (Some(from), Some(to)) = (from, end_of(index)) else {
            return Err(Damage::at(data.at(), "a chunk for each 128 rows"));
        };
        let mut part = data;
        part.take(from)?;
        if to < from {
            return Err(Damage::at(data.at(), "ends of chunks that ascend"));
        }
        let mut part = part.part(to - from)?;
        let at = part.at();
        let tag = part.u8()?;
        let width = u32::from(tag & !DIFFERENCES);
        if width > 64 {
            return Err(Damage::at(at, "a width of at most 64 bits"));
        }
        let by_difference = tag & DIFFERENCES != 0;
        let base = least.wrapping_add(part.varint()?);
        let least_difference = if by_difference { part.zigzag()? } else { 0 };
        let values = (rows - index * CHUNK).min(CHUNK) - usize::from(by_difference);
        let data = part.take(bits::packed_bytes(values, width))?;
        Ok(Chunk { base, width, by_difference, least_difference, data })
    }
}

struct Chunk<'a> {
    base: u64,
    width: u32,
    by_difference: bool,
    least_difference: u64,
    data: &'a [u8],
}

impl Chunk<'_> {
    fn decode(&self, from: usize, out: &mut [u64]) {
        debug_assert!(!out.is_empty() && from + out.len() <= CHUNK, "{from} and {} values", out.len());
        if !self.by_difference {
            bits::unpack(self.data, from, self.width, out);
            for value in out {
                *value = value.wrapping_add(self.base);
            }
            return;
        }
        let mut differences = [0; CHUNK];
        let last = from + out.len() - 1;
        bits::unpack(self.data, 0, self.width, &mut differences[..last]);
        let mut value = self.base;
        for difference in &differences[..from] {
            value = value.wrapping_add(*difference).wrapping_add(self.least_difference);
        }
        for (index, slot) in out.iter_mut().enumerate() {
            *slot = value;
            value = value
                .wrapping_add(differences[(from + index).min(CHUNK - 1)])
                .wrapping_add(self.least_difference);
        }
    }
}
