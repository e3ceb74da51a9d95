//! Iteration over a table in both directions.

use cairn_vfs::sync::Arc;

use super::block::{BlockCursor, Entries};
use super::frame::{HEADER_BYTES, Handle, Role};
use super::open::Table;
use super::options::CursorOptions;
use super::shared_block::BlockRef;
use crate::cursor::Cursor;
use crate::kind::{Kind, SEQNO_MAX, Seqno};
use crate::{Error, Result};

/// Size of the first read that spans several blocks.
const READAHEAD_BYTES_MIN: u64 = 16 << 10;

/// A cursor over the entries of a table. It owns the blocks that it is positioned in, so its
/// lifetime is not bounded.
///
/// Blocks are read one by one, or from a window of the file that is read ahead (or, backwards,
/// behind). The window doubles as long as blocks are read sequentially.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    options: CursorOptions,
    /// The index partition, and the position of the current block's entry in it.
    partition: usize,
    index: Option<BlockRef>,
    index_at: BlockCursor,
    data: Option<BlockRef>,
    at: BlockCursor,
    /// True if the current block may contain keys at or above the upper bound.
    near_upper: bool,
    window: Window,
    /// The error of the last move, after which only a seek can continue.
    failed: Option<Error>,
    /// The error of checking the prefix filter. The first seek returns it; later ones proceed
    /// without the filter.
    filter_failed: Option<Error>,
    /// True if the prefix filter excludes all keys.
    is_empty: bool,
}

/// Frames that were read together.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
    /// The size of the next window.
    next_bytes: u64,
    /// The ordinal of the last block that was not in the cache.
    last: Option<u32>,
}

impl Table {
    /// Creates a cursor without a position. Reads nothing, except for a filter partition if
    /// `options.prefix` is set.
    pub(crate) fn cursor(self: &Arc<Self>, options: &CursorOptions) -> TableCursor {
        let mut options = options.clone();
        let mut is_empty = false;
        let mut filter_failed = None;
        if let Some(prefix) = options.prefix.take() {
            match self.may_contain_prefix(&prefix) {
                Ok(may) => is_empty = !may,
                Err(error) => filter_failed = Some(error),
            }
            let after = prefix_end(&prefix);
            options.lower = options.lower.max(Some(prefix));
            options.upper = match (options.upper.take(), after) {
                (Some(upper), Some(after)) => Some(upper.min(after)),
                (upper, after) => upper.or(after),
            };
        }
        TableCursor {
            table: Arc::clone(self),
            options,
            partition: 0,
            index: None,
            index_at: BlockCursor::default(),
            data: None,
            at: BlockCursor::default(),
            near_upper: true,
            window: Window::default(),
            failed: None,
            filter_failed,
            is_empty,
        }
    }

    /// Returns false when the filter excludes all keys that begin with `prefix`. The filter only
    /// has prefixes that the table's extractor takes from keys.
    pub(crate) fn may_contain_prefix(&self, prefix: &[u8]) -> Result<bool> {
        let known =
            self.properties.prefix.is_some_and(|extractor| extractor.prefix_of(prefix) == Some(prefix));
        if !known {
            return Ok(true);
        }
        let hash = super::hash_prefix(prefix);
        let Some(partition) = self.partition_of(prefix) else { return Ok(false) };
        if self.filter_passes(partition, hash)? {
            return Ok(true);
        }
        // The separator may be a shortened key that itself begins with `prefix`. Then all keys with
        // the prefix may be in the next partition.
        let top = self.top.as_ref().and_then(|top| top.entries());
        let goes_on =
            top.is_some_and(|top| top.key_at_or_after(prefix).is_some_and(|key| key.starts_with(prefix)));
        Ok(goes_on && partition + 1 < self.partitions.len() && self.filter_passes(partition + 1, hash)?)
    }

    /// Returns the approximate offset in the file of `key`, or of its place if it is missing.
    pub(crate) fn approximate_offset(&self, key: &[u8]) -> Result<u64> {
        let Some(partition) = self.partition_of(key) else { return Ok(self.properties.data_bytes) };
        let data = self.with_index(partition, |index| {
            let value = index.entries().and_then(|entries| entries.value_at_or_after(key));
            value.map(|range| self.data_value(&index.bytes()[range])).transpose()
        })??;
        Ok(data.map_or(self.properties.data_bytes, |data| data.handle.offset))
    }
}

/// Returns the least key that is greater than all keys that begin with `prefix`, or `None` when
/// there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    debug_assert!(after.as_slice() > prefix && !after.starts_with(prefix), "not the end of the prefix");
    Some(after)
}

impl TableCursor {
    #[inline(always)]
    fn entries(data: &Option<BlockRef>) -> Option<Entries<'_>> {
        data.as_ref().and_then(|block| block.entries())
    }

    /// Performs a move that does not depend on the current position, so that it can be retried
    /// after an error.
    fn seek_by(&mut self, seek: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.failed = self.filter_failed.take();
        self.run(seek)
    }

    /// Performs a move. After an error the cursor is invalid until the next seek.
    fn run(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.is_empty {
            return Ok(());
        }
        let done = step(self);
        if let Err(error) = &done {
            self.failed = Some(error.clone());
            self.at.invalidate();
        }
        done
    }

    /// Loads index partition `partition`. Returns false when it does not exist.
    fn load_index(&mut self, partition: usize) -> Result<bool> {
        if self.index.is_some() && self.partition == partition {
            return Ok(true);
        }
        self.index = None;
        let table = &self.table;
        let Some(place) = table.partitions.get(partition) else { return Ok(false) };
        self.index = Some(match table.pinned.get(partition) {
            Some(pinned) => Arc::clone(&pinned.index),
            None => {
                table.block(table.index_slot(partition), place.index, Role::Index, self.options.fill_cache)?
            }
        });
        debug_assert!(
            table.pinned.is_empty() || table.pinned.len() == table.partitions.len(),
            "{} of {} partitions are pinned",
            table.pinned.len(),
            table.partitions.len()
        );
        debug_assert!(partition < self.table.partitions.len(), "partition {partition}");
        self.partition = partition;
        Ok(true)
    }

    /// Loads the data block of the current index entry. Returns false without a current index
    /// entry.
    fn load_data(&mut self) -> Result<bool> {
        self.at.invalidate();
        self.data = None;
        let Some(index) = self.index.as_ref().filter(|_| self.index_at.valid()) else { return Ok(false) };
        let value = self.table.data_value(&index.bytes()[self.index_at.value()])?;
        self.near_upper = self.options.upper.as_deref().is_some_and(|upper| self.index_at.key() >= upper);
        let (slot, handle) = (value.ordinal as usize, value.handle);
        let cached = self.table.slots.get(slot).and_then(|guard| guard.as_ref().map(Arc::clone));
        self.data = Some(match cached {
            Some(block) => {
                self.table.cache.count_hit(true);
                block
            }
            None => {
                self.table.cache.count_miss(true);
                let block = self.window.block(
                    &self.table,
                    value.ordinal,
                    handle,
                    self.options.readahead_bytes as u64,
                )?;
                match self.options.fill_cache {
                    true => self.table.cache.insert(&self.table.slots, slot, block),
                    false => block,
                }
            }
        });
        Ok(true)
    }

    /// Moves to the next data block, if necessary in the next partition. Returns false at the end.
    fn next_block(&mut self) -> Result<bool> {
        if let Some(entries) = Self::entries(&self.index) {
            self.index_at.next(&entries);
        }
        if !self.index_at.valid() {
            if !self.load_index(self.partition + 1)? {
                return Ok(false);
            }
            if let Some(entries) = Self::entries(&self.index) {
                self.index_at.seek_first(&entries);
            }
        }
        self.load_data()
    }

    /// Moves to the previous data block. Returns false at the beginning.
    fn prev_block(&mut self) -> Result<bool> {
        if let Some(entries) = Self::entries(&self.index) {
            self.index_at.prev(&entries);
        }
        if !self.index_at.valid() {
            let Some(before) = self.partition.checked_sub(1) else { return Ok(false) };
            if !self.load_index(before)? {
                return Ok(false);
            }
            if let Some(entries) = Self::entries(&self.index) {
                self.index_at.seek_last(&entries);
            }
        }
        self.load_data()
    }

    /// Moves to the first entry of the next block while the current one has no more entries, then
    /// stops at the upper bound.
    fn settle_forward(&mut self) -> Result<()> {
        while !self.at.valid() {
            if !self.next_block()? {
                return Ok(());
            }
            if let Some(entries) = Self::entries(&self.data) {
                self.at.seek_first(&entries);
            }
        }
        self.stop_at_upper();
        Ok(())
    }

    #[inline(always)]
    fn stop_at_upper(&mut self) {
        if self.near_upper && self.options.upper.as_deref().is_some_and(|upper| self.at.key() >= upper) {
            self.at.invalidate();
        }
    }

    fn settle_backward(&mut self) -> Result<()> {
        while !self.at.valid() {
            if !self.prev_block()? {
                return Ok(());
            }
            if let Some(entries) = Self::entries(&self.data) {
                self.at.seek_last(&entries);
            }
        }
        self.stop_at_lower();
        Ok(())
    }

    #[inline(always)]
    fn stop_at_lower(&mut self) {
        if self.options.lower.as_deref().is_some_and(|lower| self.at.key() < lower) {
            self.at.invalidate();
        }
    }

    /// Moves to the first entry whose key is not less than `key`, ignoring the bounds. Returns
    /// false when there is none.
    fn seek_block(&mut self, key: &[u8]) -> Result<bool> {
        self.at.invalidate();
        let Some(partition) = self.table.partition_of(key) else { return Ok(false) };
        self.load_index(partition)?;
        if let Some(entries) = Self::entries(&self.index) {
            self.index_at.seek(&entries, key);
        }
        if !self.load_data()? {
            return Ok(false);
        }
        if let Some(entries) = Self::entries(&self.data) {
            self.at.seek(&entries, key);
        }
        while !self.at.valid() {
            if !self.next_block()? {
                return Ok(false);
            }
            if let Some(entries) = Self::entries(&self.data) {
                self.at.seek_first(&entries);
            }
        }
        Ok(true)
    }

    /// Moves to the last entry of the table, ignoring the bounds.
    fn last_entry(&mut self) -> Result<()> {
        self.at.invalidate();
        let Some(last) = self.table.partitions.len().checked_sub(1) else { return Ok(()) };
        self.load_index(last)?;
        if let Some(entries) = Self::entries(&self.index) {
            self.index_at.seek_last(&entries);
        }
        self.load_data()?;
        if let Some(entries) = Self::entries(&self.data) {
            self.at.seek_last(&entries);
        }
        self.settle_backward()
    }

    fn seek_forward(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        let lower = self.options.lower.take();
        let from = lower.as_deref().unwrap_or(key).max(key);
        let found = self.seek_block(from);
        if found.as_ref().is_ok_and(|found| *found) {
            self.stop_at_upper();
        }
        self.options.lower = lower;
        found?;
        while self.valid() && self.seqno() > seqno && self.at.key() == key {
            self.step()?;
        }
        Ok(())
    }

    fn seek_backward(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        if let Some(upper) = self.options.upper.clone().filter(|upper| key >= upper.as_slice()) {
            return self.seek_before(&upper, false);
        }
        self.seek_before(key, inclusive)
    }

    fn seek_before(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let upper = self.options.upper.take();
        let done = self.seek_before_unbounded(key, inclusive);
        self.options.upper = upper;
        done
    }

    fn seek_before_unbounded(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        let mut found = self.seek_block(key)?;
        while inclusive && found && self.at.key() == key {
            self.step()?;
            found = self.at.valid();
        }
        if !found {
            return self.last_entry();
        }
        self.step_back()
    }

    #[inline(always)]
    fn step(&mut self) -> Result<()> {
        if let Some(entries) = Self::entries(&self.data) {
            self.at.next(&entries);
        }
        if self.at.valid() {
            self.stop_at_upper();
            return Ok(());
        }
        self.settle_forward()
    }

    #[inline(always)]
    fn step_back(&mut self) -> Result<()> {
        if let Some(entries) = Self::entries(&self.data) {
            self.at.prev(&entries);
        }
        if self.at.valid() {
            self.stop_at_lower();
            return Ok(());
        }
        self.settle_backward()
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.at.valid()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.seek_by(|this| this.seek_forward(&[], SEQNO_MAX))
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_by(|this| match this.options.upper.clone() {
            Some(upper) => this.seek_before(&upper, false),
            None => this.last_entry(),
        })
    }

    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()> {
        self.seek_by(|this| this.seek_forward(key, seqno))
    }

    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()> {
        self.seek_by(|this| this.seek_backward(key, inclusive))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(entries) = Self::entries(&self.data) {
            self.at.next(&entries);
            if self.at.valid() {
                self.stop_at_upper();
                return Ok(());
            }
        }
        self.run(TableCursor::settle_forward)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let Some(entries) = Self::entries(&self.data) {
            self.at.prev(&entries);
            if self.at.valid() {
                self.stop_at_lower();
                return Ok(());
            }
        }
        self.run(TableCursor::settle_backward)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.at.key()
    }

    #[inline]
    fn seqno(&self) -> Seqno {
        Self::entries(&self.data).map_or(0, |entries| self.at.seqno(&entries) | self.table.seqno)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.at.kind()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match &self.data {
            Some(block) => &block.bytes()[self.at.value()],
            None => &[],
        }
    }
}

impl Window {
    /// Returns a block that is not in the cache.
    fn block(&mut self, table: &Table, ordinal: u32, handle: Handle, bytes_max: u64) -> Result<BlockRef> {
        let end = table.properties.data_bytes;
        if handle.end() > end || (handle.len as usize) < HEADER_BYTES {
            return Err(table.damaged(handle.offset, "a data block is outside the section of data blocks"));
        }
        let last = self.last.replace(ordinal);
        if u64::from(handle.len) > bytes_max.max(READAHEAD_BYTES_MIN) && self.frame(handle).is_none() {
            // A block larger than any window is read into its own memory at once, so that no byte
            // is copied twice.
            return table.read_block(handle, Role::Data);
        }
        if self.frame(handle).is_none() {
            let forward = last.is_some_and(|last| ordinal == last.wrapping_add(1));
            let backward = last.is_some_and(|last| ordinal.wrapping_add(1) == last);
            let sequential = bytes_max > 0 && (forward || backward);
            self.next_bytes = match (sequential, self.next_bytes) {
                (false, _) => 0,
                (true, 0) => READAHEAD_BYTES_MIN.min(bytes_max),
                (true, bytes) => (bytes * 2).min(bytes_max),
            };
            let wanted = self.next_bytes.max(u64::from(handle.len));
            let (from, to) = match backward {
                true => (handle.end().saturating_sub(wanted), handle.end()),
                false => (handle.offset, (handle.offset + wanted).min(end)),
            };
            debug_assert!(
                from <= handle.offset && handle.end() <= to,
                "the window {from} to {to} misses its block"
            );
            self.bytes.resize((to - from) as usize, 0);
            self.start = from;
            let read = table.source.read(&mut self.bytes, from);
            if read.is_err() {
                self.bytes.clear();
            }
            read?;
        }
        match self.frame(handle) {
            Some(frame) => table.block_of_frame(frame, handle, Role::Data),
            None => Err(table.damaged(handle.offset, "a data block was not read")),
        }
    }

    fn frame(&self, handle: Handle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..start.checked_add(handle.len as usize)?)
    }
}
