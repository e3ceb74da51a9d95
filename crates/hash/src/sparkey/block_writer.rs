//! Collects records into blocks and compresses them, with the same block boundaries as
//! sparkey-java.
//!
//! The rules of the format: both integers of a record head lie in one block; a record may continue
//! through any number of blocks; where such a record ends, its block ends too. This writer makes
//! the same choice as Java: a record that does not fit the rest of the block starts a new block
//! only if it is smaller than the current content of the block. Otherwise it fills the block and
//! continues in the next one. A full block is written immediately.

use cairn_codec::compress::{Compression, Compressor};
use cairn_codec::varint;
use cairn_vfs::AppendWriter;

use super::record::{RecordHead, RecordKind};
use crate::{Error, Result};

/// The block under construction.
#[derive(Debug)]
pub(super) struct BlockWriter {
    compressor: Compressor,
    block_bytes: usize,
    pending: Vec<u8>,
    /// Number of records that began in `pending`.
    entries: u32,
    /// Maximum number of records that began in one block, including the blocks of earlier writers.
    entries_max: u32,
    /// True if a block was written since the current record began.
    spilled: bool,
    /// Reused for each block.
    compressed: Vec<u8>,
}

impl BlockWriter {
    /// Creates a writer. `entries_max` is the value in the header of the log so far.
    pub fn new(compression: Compression, block_bytes: u32, entries_max: u32) -> Result<Self> {
        let compressor = Compressor::new(compression).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(BlockWriter {
            compressor,
            block_bytes: block_bytes as usize,
            pending: Vec::new(),
            entries: 0,
            entries_max,
            spilled: false,
            compressed: Vec::new(),
        })
    }

    pub fn entries_max(&self) -> u32 {
        self.entries_max
    }

    /// Begins a record: closes the block if the record should start in a new one, and adds the
    /// head.
    pub fn begin(&mut self, head: &RecordHead, out: &mut AppendWriter) -> Result<()> {
        debug_assert!(self.pending.len() < self.block_bytes, "a full block is written at once");
        let remaining = self.block_bytes - self.pending.len();
        // Java computes the length of a DELETE's key as if it were incremented, as in a PUT,
        // although it writes the plain length. This only shifts a block boundary, and only for keys
        // of 127, 16383, ... bytes.
        let head_bytes = match head.kind {
            RecordKind::Put => head.head_bytes,
            RecordKind::Delete => 1 + varint::encoded_len(head.key_bytes + 1),
        };
        let record_bytes = head.key_bytes.saturating_add(head.value_bytes).saturating_add(head_bytes as u64);
        let fits = record_bytes <= remaining as u64;
        if remaining < head_bytes || (!fits && record_bytes < self.pending.len() as u64) {
            self.close_block(out)?;
        }
        self.spilled = false;
        self.entries += 1;
        let mut bytes = [0; RecordHead::BYTES_MAX];
        head.encode(&mut bytes);
        self.add(&bytes[..head.head_bytes], out)
    }

    /// Adds bytes of the current record's key or value.
    pub fn add(&mut self, mut bytes: &[u8], out: &mut AppendWriter) -> Result<()> {
        while !bytes.is_empty() {
            let count = bytes.len().min(self.block_bytes - self.pending.len());
            debug_assert!(count > 0, "a full block is still pending");
            let (now, rest) = bytes.split_at(count);
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() == self.block_bytes {
                self.close_block(out)?;
            }
        }
        debug_assert!(self.pending.len() < self.block_bytes, "a full block is written at once");
        Ok(())
    }

    /// Ends the current record.
    pub fn end(&mut self, out: &mut AppendWriter) -> Result<()> {
        if self.spilled {
            self.close_block(out)?;
        }
        debug_assert!(
            !self.spilled || self.pending.is_empty(),
            "{} bytes follow a record that ends its block",
            self.pending.len()
        );
        Ok(())
    }

    /// Compresses and writes the pending bytes, if there are any.
    pub fn close_block(&mut self, out: &mut AppendWriter) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        debug_assert!(self.pending.len() <= self.block_bytes, "a reader refuses a larger block");
        self.compressed.clear();
        self.compressor
            .compress(&self.pending, &mut self.compressed)
            .map_err(|error| Error::invalid(error.to_string()))?;
        let mut head = [0; varint::MAX_BYTES];
        let head_bytes = varint::encode(self.compressed.len() as u64, &mut head);
        out.write_all(&head[..head_bytes])?;
        out.write_all(&self.compressed)?;
        self.pending.clear();
        debug_assert!(self.entries as usize <= self.block_bytes, "a record has a byte");
        self.entries_max = self.entries_max.max(self.entries);
        self.entries = 0;
        self.spilled = true;
        Ok(())
    }
}
