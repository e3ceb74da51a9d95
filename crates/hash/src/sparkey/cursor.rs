//! Reads the records of a log from any position on, across block boundaries and in every mode.

use std::cell::RefCell;

use super::block::{RawWindow, read_block, record_offsets};
use super::block_cache::CachedBlock;
use super::log::Log;
use super::log_header::LOG_HEADER_BYTES;
use super::record::{RecordHead, RecordKind};
use crate::{Error, Result};

/// Size of a lookup's read from a file: one page, which holds most records and their neighbours.
const LOOKUP_BYTES: u64 = 4096;
const _: () = assert!(LOOKUP_BYTES >= RecordHead::BYTES_MAX as u64, "one read holds a head");
/// Size of a scan's read from a file.
const SCAN_BYTES: u64 = 256 << 10;
/// Output grows in steps of at most this many bytes, because a claimed length may be corrupt.
const GROWTH_BYTES: u64 = 64 << 10;
/// A record that spans more blocks than this does not bring all of them into the cache.
const CACHED_CONTINUATIONS: u64 = 4;

thread_local! {
    /// The memory of the last cursor of this thread, for reuse by the next one.
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
    /// Creates a cursor for lookups: reads little, and uses and fills the block cache.
    pub fn for_lookup(log: &'a Log) -> Self {
        Cursor::new(log, LOOKUP_BYTES, true)
    }

    /// Creates a cursor for a few records: reads little, and does not use the block cache.
    pub fn for_check(log: &'a Log) -> Self {
        Cursor::new(log, LOOKUP_BYTES, false)
    }

    /// Creates a cursor at the first record, for scans: reads ahead, and does not use the block
    /// cache.
    pub fn for_scan(log: &'a Log) -> Self {
        Cursor::new(log, SCAN_BYTES, false)
    }

    fn new(log: &'a Log, read_ahead: u64, use_cache: bool) -> Self {
        let (raw, own) = SPARE.try_with(|spare| spare.take()).unwrap_or_default();
        let raw = RawWindow::reusing(raw);
        let next = LOG_HEADER_BYTES as u64;
        Cursor { log, next, raw, read_ahead, use_cache, block: Block::None, own, at: 0 }
    }

    /// Moves to the record at an address, and decodes its head. The cursor is then at the key.
    pub fn seek(&mut self, position: u64, entry: u64) -> Result<RecordHead> {
        if position < LOG_HEADER_BYTES as u64 || position >= self.log.end {
            let range = LOG_HEADER_BYTES as u64..self.log.end;
            return Err(self.log.corruption(position, format!("record position outside {range:?}")));
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
            debug_assert!(self.at < block.bytes.len(), "a record at {} of its block", self.at);
            return Ok(());
        }
        self.at = 0;
        for _ in 0..entry {
            let rest = self.block_bytes().get(self.at..).unwrap_or_default();
            let bytes = RecordHead::decode(rest).map(|head| head.record_bytes()).unwrap_or(u64::MAX);
            // BOUND: every step advances by at least two bytes of the block.
            if bytes >= rest.len() as u64 {
                return Err(self.no_entry(position, entry));
            }
            self.at += bytes as usize;
            debug_assert!(self.at < self.block_bytes().len());
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

    /// Returns the position of the next record, as in an address; `None` at the end of the log.
    /// `entry` is the number of records that began in the current block so far; it is reset when a
    /// new block begins.
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
        debug_assert!(self.block_position().is_some(), "a record begins in a block");
        Ok(self.block_position())
    }

    /// Decodes the head of the record that begins here and moves to its key.
    pub fn head(&mut self) -> Result<RecordHead> {
        let head = RecordHead::decode(self.fill(RecordHead::BYTES_MAX as u64)?);
        let head = head.map_err(|error| self.corruption_here(format!("record head: {error}")))?;
        let header = &self.log.header;
        // The maxima in the header cover only puts. The C library also writes deletes of longer
        // keys.
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

    /// Returns the next contiguous bytes. At least one, except at the end of the log; in an
    /// uncompressed log at least `wanted`, or all that remain.
    pub fn fill(&mut self, wanted: u64) -> Result<&[u8]> {
        if !self.log.is_compressed() {
            return self.raw.from(self.log, self.next, wanted, self.read_ahead);
        }
        // BOUND: every iteration moves to a later block.
        while self.at >= self.block_bytes().len() && self.next < self.log.end {
            let small = wanted <= CACHED_CONTINUATIONS * u64::from(self.log.header.block_bytes);
            self.load_block(self.next, false, self.use_cache && small)?;
        }
        Ok(self.block_bytes().get(self.at..).unwrap_or_default())
    }

    /// Advances by `count` of the bytes that [`Cursor::fill`] returned.
    pub fn consume(&mut self, count: usize) {
        if self.log.is_compressed() {
            self.at += count;
            debug_assert!(self.at <= self.block_bytes().len(), "beyond the end of the block");
        } else {
            self.next += count as u64;
            debug_assert!(self.next <= self.log.end, "beyond the end of the log");
        }
    }

    /// Skips `count` bytes of a record.
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

    /// Compares the next bytes of a record with `key`, and skips them if they are equal.
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

    /// Appends the next `count` bytes of a record to `out`. Allocates only as bytes prove to exist.
    pub fn append_to(&mut self, mut count: u64, out: &mut Vec<u8>) -> Result<()> {
        if !self.log.is_compressed() && count > self.log.end - self.next {
            return Err(self.record_too_long(count));
        }
        let (start, wanted) = (out.len(), count);
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
        debug_assert_eq!((out.len() - start) as u64, wanted, "all bytes of the record were appended");
        Ok(())
    }

    /// Fills the start of `out` with up to `left` bytes of a record, and returns how many. Returns
    /// 0 only if `left` is 0 or `out` is empty.
    pub fn read_some(&mut self, left: u64, out: &mut [u8]) -> Result<usize> {
        let wanted = left.min(out.len() as u64);
        if wanted == 0 {
            return Ok(0);
        }
        debug_assert!(wanted as usize <= out.len());
        let chunk = self.fill(wanted.min(GROWTH_BYTES))?;
        let count = chunk.len().min(wanted as usize);
        out[..count].copy_from_slice(&chunk[..count]);
        if count == 0 {
            return Err(self.record_too_long(left));
        }
        self.consume(count);
        Ok(count)
    }

    /// Returns the position of the current block of a compressed log.
    pub fn block_position(&self) -> Option<u64> {
        match self.block {
            Block::None => None,
            Block::Cached(block) => Some(block.position),
            Block::Own { position } => Some(position),
        }
    }

    /// Returns true if every byte of the current block was passed.
    pub fn at_block_end(&self) -> bool {
        self.at >= self.block_bytes().len()
    }

    /// Returns the next `count` bytes if they can be borrowed as long as the log lives: from the
    /// mapping, or from a cached block.
    pub fn borrow(&self, count: u64) -> Option<&'a [u8]> {
        let (bytes, at) = match self.block {
            Block::Cached(block) => (&*block.bytes, self.at),
            _ => (self.log.uncompressed_in_memory()?, (self.next as usize).checked_sub(LOG_HEADER_BYTES)?),
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
    /// start.
    fn load_block(&mut self, position: u64, starts: bool, use_cache: bool) -> Result<()> {
        // If the read fails, the remains in the buffer must not be taken for a block later.
        self.block = Block::None;
        self.at = 0;
        if use_cache && let Some(block) = self.log.blocks.get(position) {
            debug_assert_eq!(block.position, position, "the cache has another block there");
            self.next = block.next;
            self.block = Block::Cached(block);
            return Ok(());
        }
        debug_assert!((LOG_HEADER_BYTES as u64..self.log.end).contains(&position), "block at {position}");
        self.next = read_block(self.log, position, &mut self.raw, self.read_ahead, &mut self.own)?;
        debug_assert!(position < self.next && self.next <= self.log.end, "{} follows {position}", self.next);
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
    pub fn corruption_here(&self, detail: String) -> Error {
        self.log.corruption(self.block_position().unwrap_or(self.next), detail)
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        let memory = (std::mem::take(&mut self.raw).into_memory(), std::mem::take(&mut self.own));
        // Large values are rare; do not keep their memory.
        if memory.0.capacity() + memory.1.capacity() <= 4 * SCAN_BYTES as usize {
            // A cursor may be dropped after the thread-local memory was destroyed at the end of its
            // thread.
            let _ = SPARE.try_with(|spare| *spare.borrow_mut() = memory);
        }
    }
}

/// Compares the record at an address with `key`. Returns its head if it is a PUT of `key`, and
/// `None` if it has another key. After a match the cursor is at the value.
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
