//! One compressed block of a log.
//!
//! ```text
//! varint(compressed_bytes)  compressed bytes       the position of a block is that of its varint
//! ```
//!
//! A decompressed block either begins with a record head, or holds nothing but the rest of a record
//! that began in an earlier block. Both integers of a head always lie in one block.

use cairn_codec::compress::Decompressor;
use cairn_codec::varint;

use super::log::{Log, Source};
use super::log_header::LOG_HEADER_BYTES;
use super::record::RecordHead;
use crate::Result;

/// A window of a file that is read positionally.
#[derive(Debug, Default)]
pub(super) struct RawWindow {
    bytes: Vec<u8>,
    /// File offset of the first byte.
    start: u64,
}

impl RawWindow {
    /// Creates a window that reuses the memory of an older one.
    pub fn reusing(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        RawWindow { bytes, start: 0 }
    }

    pub fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the bytes from `offset` on: at least `wanted` of them, or all up to the end of the
    /// log. Reads `read_ahead` bytes at a time. Allocates at most the larger of the two, and no
    /// more than the log has.
    pub fn from<'w>(
        &'w mut self,
        log: &'w Log,
        offset: u64,
        wanted: u64,
        read_ahead: u64,
    ) -> Result<&'w [u8]> {
        let left = log.end.saturating_sub(offset);
        let wanted = wanted.min(left);
        let file = match log.source() {
            Source::Memory(records) => {
                let at = offset.saturating_sub(LOG_HEADER_BYTES as u64) as usize;
                return Ok(records.get(at..).unwrap_or_default());
            }
            Source::File(file) => file,
        };
        let window_end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + wanted > window_end {
            let count = wanted.max(read_ahead.min(left));
            self.bytes.clear();
            self.bytes.resize(count as usize, 0);
            self.start = offset;
            if let Err(error) = file.read_exact_at(&mut self.bytes, offset) {
                self.bytes.clear();
                return Err(error.into());
            }
        }
        debug_assert!(
            offset >= self.start && offset + wanted <= self.start + self.bytes.len() as u64,
            "{wanted} bytes at {offset} of {} at {}",
            self.bytes.len(),
            self.start
        );
        Ok(self.bytes.get((offset - self.start) as usize..).unwrap_or_default())
    }
}

/// Returns the maximum size of a compressed block, so that a corrupt length does not cause the rest
/// of the log to be read. Incompressible data grow: n bytes to at most 32 + n + n/6 with snappy,
/// and to at most 64 + n + n/256 with zstd.
fn compressed_bytes_max(block_bytes: u32) -> u64 {
    let bytes = u64::from(block_bytes);
    64 + bytes + bytes / 6
}

/// Decompresses the block at `position` into `out`, replacing its content, and returns the position
/// of the next block.
pub(super) fn read_block(
    log: &Log,
    position: u64,
    raw: &mut RawWindow,
    read_ahead: u64,
    out: &mut Vec<u8>,
) -> Result<u64> {
    out.clear();
    let head = raw.from(log, position, varint::MAX_BYTES as u64, read_ahead)?;
    let (compressed_bytes, head_bytes) =
        varint::decode(head).map_err(|error| log.corruption(position, format!("block length: {error}")))?;
    let start = position + head_bytes as u64;
    debug_assert!(start <= log.end, "the length of the block ends at {start} of {}", log.end);
    let left = log.end - start;
    let most = compressed_bytes_max(log.header.block_bytes);
    if compressed_bytes > most {
        let detail = format!("block of {compressed_bytes} compressed bytes, expected at most {most}");
        return Err(log.corruption(position, detail));
    }
    if compressed_bytes > left {
        let detail =
            format!("block of {compressed_bytes} compressed bytes, but the log ends after {left} bytes");
        return Err(log.corruption(position, detail));
    }
    let compressed = raw.from(log, start, compressed_bytes, read_ahead)?;
    let compressed = compressed.get(..compressed_bytes as usize).unwrap_or_default();
    let limit = log.header.block_bytes as usize;
    Decompressor::local(|decompressor| decompressor.append(log.header.compression, compressed, out, limit))
        .map_err(|error| log.corruption(position, error.to_string()))?;
    debug_assert!(out.len() <= limit, "{} bytes of a block of {limit}", out.len());
    debug_assert!(start + compressed_bytes <= log.end);
    Ok(start + compressed_bytes)
}

/// Returns the offset of each record in the decompressed `block`. A record that continues in the
/// next block is the last one.
pub(super) fn record_offsets(block: &[u8]) -> cairn_codec::Result<Vec<u32>> {
    let mut offsets = Vec::new();
    let mut at = 0;
    while at < block.len() {
        let head = RecordHead::decode(&block[at..])?;
        debug_assert!(head.record_bytes() > 0, "the walk advances");
        offsets.push(at as u32);
        at = usize::try_from(head.record_bytes()).map_or(block.len(), |bytes| at.saturating_add(bytes));
    }
    Ok(offsets)
}
