//! Walks over the records of a log from any of them on, through blocks and from wherever the bytes
//! come.

use std::cell::RefCell;

use super::block::{RawWindow, read_block, record_offsets};
use super::block_cache::CachedBlock;
use super::log::Log;
use super::log_header::LOG_HEADER_BYTES;
use super::record::{RecordHead, RecordKind};
use crate::{Error, Result};

/// Bytes that a lookup reads at once from a file: most records and their neighbours in one page.
const LOOKUP_BYTES: u64 = 4096;
/// Bytes that a scan reads at once from a file.
const SCAN_BYTES: u64 = 256 << 10;
/// Output is made room for in steps of this many bytes while more is only claimed to come.
const GROWTH_BYTES: u64 = 64 << 10;
/// A record that is spread over more blocks than this does not bring all of them into the cache.
const CACHED_CONTINUATIONS: u64 = 4;

thread_local! {
    /// Memory of the last cursor of this thread, for the next one.
    static SPARE: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// A position in a log between two bytes of records.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    log: &'a Log,
    /// Uncompressed: the offset of the next byte. Compressed: the position of the block after the
    /// current one.
    next: u64,
    raw: RawWindow,
    read_ahead: u64,
    use_cache: bool,
    block: Block<'a>,
    /// The bytes of a [`Block::Own`].
    own: Vec<u8>,
    /// Compressed: the offset of the next byte in the current block.
    at: usize,
}

/// The current block of a compressed log.
#[derive(Debug, Clone, Copy)]
enum Block<'a> {
    None,
    Cached(&'a CachedBlock),
    Own { position: u64 },
}

impl<'a> Cursor<'a> {
    /// A cursor for lookups: reads little, and uses and fills the block cache.
    pub fn for_lookup(log: &'a Log) -> Self {
        Cursor::new(log, LOOKUP_BYTES, true)
    }

    /// A cursor for a look at a few records: reads little, and leaves the block cache to others.
    pub fn for_check(log: &'a Log) -> Self {
        Cursor::new(log, LOOKUP_BYTES, false)
    }

    /// A cursor at the first record, for scans: reads ahead, and leaves the block cache to others.
    pub fn for_scan(log: &'a Log) -> Self {
        Cursor::new(log, SCAN_BYTES, false)
    }

    fn new(log: &'a Log, read_ahead: u64, use_cache: bool) -> Self {
        let (raw, own) = SPARE.try_with(|spare| spare.take()).unwrap_or_default();
        let raw = RawWindow::reusing(raw);
        let next = LOG_HEADER_BYTES as u64;
        Cursor { log, next, raw, read_ahead, use_cache, block: Block::None, own, at: 0 }
    }

    /// Moves to the record at an address, and decodes its head; the cursor is then at its key.
    pub fn seek(&mut self, position: u64, entry: u64) -> Result<RecordHead> {
        if position < LOG_HEADER_BYTES as u64 || position >= self.log.end {
            let range = LOG_HEADER_BYTES as u64..self.log.end;
            return Err(self
                .log
                .corruption(position, format!("there cannot be a record here, only at {range:?}")));
        }
        if self.log.is_compressed() {
            self.seek_block(position, entry)?;
        } else if entry == 0 {
            self.next = position;
        } else {
            return Err(self
                .log
                .corruption(position, format!("entry {entry} of a block in an uncompressed log")));
        }
        self.head()
    }

    fn seek_block(&mut self, position: u64, entry: u64) -> Result<()> {
        if self.block_position() != Some(position) {
            self.load_block(position, true, self.use_cache)?;
        }
        if let Block::Cached(block) = self.block
            && !block.offsets.is_empty()
        {
            let offset = block.offsets.get(entry as usize).copied();
            self.at = offset.ok_or_else(|| self.no_entry(position, entry))? as usize;
            return Ok(());
        }
        self.at = 0;
        for _ in 0..entry {
            let rest = self.block_bytes().get(self.at..).unwrap_or_default();
            let bytes = RecordHead::decode(rest).map(|head| head.record_bytes()).unwrap_or(u64::MAX);
            // BOUND: every step passes at least two bytes of the block.
            if bytes >= rest.len() as u64 {
                return Err(self.no_entry(position, entry));
            }
            self.at += bytes as usize;
        }
        Ok(())
    }

    #[cold]
    fn no_entry(&self, position: u64, entry: u64) -> Error {
        self.log.corruption(
            position,
            format!("the index refers to record number {entry} of this block, which does not exist"),
        )
    }

    /// Where the next record is, as in an address; `None` at the end of the log. `entry` is the
    /// number of records that began in the current block so far.
    pub fn record_position(&mut self, entry: &mut u64) -> Result<Option<u64>> {
        if !self.log.is_compressed() {
            *entry = 0;
            return Ok((self.next < self.log.end).then_some(self.next));
        }
        while self.at >= self.block_bytes().len() {
            if self.next >= self.log.end {
                return Ok(None);
            }
            self.load_block(self.next, false, self.use_cache)?;
            *entry = 0;
        }
        Ok(self.block_position())
    }

    /// Decodes the head of the record that begins here and moves to its key.
    pub fn head(&mut self) -> Result<RecordHead> {
        let head = RecordHead::decode(self.fill(RecordHead::BYTES_MAX as u64)?);
        let head = head.map_err(|error| self.corruption_here(format!("record head: {error}")))?;
        let header = &self.log.header;
        // The header counts only puts; the C library writes deletes of keys that are longer.
        if head.kind == RecordKind::Put
            && (head.key_bytes > header.key_bytes_max || head.value_bytes > header.value_bytes_max)
        {
            return Err(self.too_large(&head));
        }
        self.consume(head.head_bytes);
        Ok(head)
    }

    #[cold]
    fn too_large(&self, head: &RecordHead) -> Error {
        let header = &self.log.header;
        self.corruption_here(format!(
            "a key of {} and a value of {} bytes, according to the header the longest are {} and {}",
            head.key_bytes, head.value_bytes, header.key_bytes_max, header.value_bytes_max
        ))
    }

    /// The contiguous bytes that come next. At least one, except at the end of the log; in an
    /// uncompressed log at least `wanted` or all that are left.
    pub fn fill(&mut self, wanted: u64) -> Result<&[u8]> {
        if !self.log.is_compressed() {
            return self.raw.from(self.log, self.next, wanted, self.read_ahead);
        }
        // BOUND: every turn moves to a later block.
        while self.at >= self.block_bytes().len() && self.next < self.log.end {
            let small = wanted <= CACHED_CONTINUATIONS * u64::from(self.log.header.block_bytes);
            self.load_block(self.next, false, self.use_cache && small)?;
        }
        Ok(self.block_bytes().get(self.at..).unwrap_or_default())
    }

    /// Passes `count` of the bytes that [`Cursor::fill`] gave.
    pub fn consume(&mut self, count: usize) {
        if self.log.is_compressed() {
            self.at += count;
        } else {
            self.next += count as u64;
        }
    }

    /// Passes `count` bytes of a record.
    pub fn skip(&mut self, mut count: u64) -> Result<()> {
        if !self.log.is_compressed() {
            if count > self.log.end - self.next {
                return Err(self.record_too_long(count));
            }
            self.next += count;
            return Ok(());
        }
        while count > 0 {
            let available = self.fill(count)?.len() as u64;
            if available == 0 {
                return Err(self.record_too_long(count));
            }
            let step = available.min(count);
            self.consume(step as usize);
            count -= step;
        }
        Ok(())
    }

    /// Passes the next `key.len()` bytes of a record, unless they differ from `key` at some point.
    pub fn matches(&mut self, mut key: &[u8]) -> Result<bool> {
        while !key.is_empty() {
            let chunk = self.fill(key.len() as u64)?;
            let count = chunk.len().min(key.len());
            let (now, rest) = key.split_at(count);
            if count == 0 {
                return Err(self.record_too_long(key.len() as u64));
            }
            if chunk.get(..count) != Some(now) {
                return Ok(false);
            }
            self.consume(count);
            key = rest;
        }
        Ok(true)
    }

    /// Appends the next `count` bytes of a record to `out`. Room is made as bytes turn out to be
    /// there.
    pub fn append_to(&mut self, mut count: u64, out: &mut Vec<u8>) -> Result<()> {
        if !self.log.is_compressed() && count > self.log.end - self.next {
            return Err(self.record_too_long(count));
        }
        while count > 0 {
            let chunk = self.fill(count.min(GROWTH_BYTES))?;
            let step = chunk.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            out.extend_from_slice(chunk.get(..step).unwrap_or_default());
            if step == 0 {
                return Err(self.record_too_long(count));
            }
            self.consume(step);
            count -= step as u64;
        }
        Ok(())
    }

    /// Fills the front of `out` with up to `left` bytes of a record, and says how many. 0 only when
    /// either is empty.
    pub fn read_some(&mut self, left: u64, out: &mut [u8]) -> Result<usize> {
        let wanted = left.min(out.len() as u64);
        if wanted == 0 {
            return Ok(0);
        }
        let chunk = self.fill(wanted.min(GROWTH_BYTES))?;
        let count = chunk.len().min(wanted as usize);
        out[..count].copy_from_slice(&chunk[..count]);
        if count == 0 {
            return Err(self.record_too_long(left));
        }
        self.consume(count);
        Ok(count)
    }

    /// In a compressed log, the position of the current block.
    pub fn block_position(&self) -> Option<u64> {
        match self.block {
            Block::None => None,
            Block::Cached(block) => Some(block.position),
            Block::Own { position } => Some(position),
        }
    }

    /// True when every byte of the current block was passed.
    pub fn at_block_end(&self) -> bool {
        self.at >= self.block_bytes().len()
    }

    /// The next `count` bytes if they can be borrowed for as long as the log lives: mapped, or in a
    /// cached block.
    pub fn borrow(&self, count: u64) -> Option<&'a [u8]> {
        let (bytes, at) = match self.block {
            Block::Cached(block) => (&*block.bytes, self.at),
            _ => (self.log.flat()?, (self.next as usize).checked_sub(LOG_HEADER_BYTES)?),
        };
        bytes.get(at..)?.get(..usize::try_from(count).ok()?)
    }

    fn block_bytes(&self) -> &[u8] {
        match self.block {
            Block::None => &[],
            Block::Cached(block) => &block.bytes,
            Block::Own { .. } => &self.own,
        }
    }

    /// Makes the block at `position` the current one. `starts` says that a record must begin at its
    /// front.
    fn load_block(&mut self, position: u64, starts: bool, use_cache: bool) -> Result<()> {
        // What comes out wrong must not be mistaken for a block later.
        self.block = Block::None;
        self.at = 0;
        if use_cache && let Some(block) = self.log.blocks.get(position) {
            self.next = block.next;
            self.block = Block::Cached(block);
            return Ok(());
        }
        self.next = read_block(self.log, position, &mut self.raw, self.read_ahead, &mut self.own)?;
        self.block = Block::Own { position };
        if use_cache && self.log.blocks.has_room(position) {
            let offsets = if starts {
                record_offsets(&self.own).map_err(|error| self.log.corruption(position, error.to_string()))?
            } else {
                Vec::new()
            };
            let (bytes, offsets) = (self.own.as_slice().into(), offsets.into());
            let block = CachedBlock { position, next: self.next, bytes, offsets };
            if let Some(block) = self.log.blocks.insert(block) {
                self.block = Block::Cached(block);
            }
        }
        Ok(())
    }

    #[cold]
    fn record_too_long(&self, left: u64) -> Error {
        self.corruption_here(format!(
            "a record continues for {left} bytes, beyond the end of the log at {}",
            self.log.end
        ))
    }

    #[cold]
    pub fn corruption_here(&self, what: String) -> Error {
        self.log.corruption(self.block_position().unwrap_or(self.next), what)
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        let memory = (std::mem::take(&mut self.raw).into_memory(), std::mem::take(&mut self.own));
        // Large values are rare; do not hold on to their memory.
        if memory.0.capacity() + memory.1.capacity() <= 4 * SCAN_BYTES as usize {
            // A cursor may outlive the spare memory at the end of its thread, and be dropped all
            // the same.
            let _ = SPARE.try_with(|spare| *spare.borrow_mut() = memory);
        }
    }
}

/// Looks at the record behind `address`: its encoded size in bytes when it is a PUT of `key`,
/// `None` when it is of another key. The cursor is then at the value.
pub(super) fn match_put(
    cursor: &mut Cursor<'_>,
    position: u64,
    entry: u64,
    key: &[u8],
) -> Result<Option<RecordHead>> {
    let head = cursor.seek(position, entry)?;
    if head.kind == RecordKind::Delete {
        return Err(cursor.corruption_here("the index points to a DELETE record".to_owned()));
    }
    let same = head.key_bytes == key.len() as u64 && cursor.matches(key)?;
    Ok(same.then_some(head))
}
