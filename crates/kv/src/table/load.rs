//! Blocks in memory: read and validated once, then shared.

use std::ops::Range;

use cairn_codec::filter::Filter;
use cairn_vfs::sync::Arc;

use super::block::{Entries, Layout};
use super::bytes::BlockBytes;
use super::frame::{HEADER_BYTES, Handle, Header, Role};
use super::open::Table;
use crate::{Error, Result};

/// A block with a valid checksum and structure. Immutable; the cache, cursors and values share it.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: BlockBytes,
    body: Body,
}

/// A reference that keeps a block, and the values in it, in memory.
pub(crate) type BlockRef = Arc<Block>;

#[derive(Debug)]
enum Body {
    Entries(Layout),
    Filter(Filter),
}

impl Block {
    /// Validates a block of this role.
    ///
    /// Errors: the offset in the block, and a description.
    pub(super) fn new(bytes: BlockBytes, role: Role) -> std::result::Result<Self, (usize, String)> {
        let body = match role {
            Role::Filter => Body::Filter(Filter::parse(&bytes).map_err(|error| (0, error.to_string()))?),
            _ => Body::Entries(Layout::check(&bytes).map_err(|(at, what)| (at, what.to_owned()))?),
        };
        Ok(Block { bytes, body })
    }

    /// Returns the whole block.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the range of `value` within the block, if it is a part of it.
    #[inline]
    pub(crate) fn range_of(&self, value: &[u8]) -> Option<Range<u32>> {
        let start = value.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr())?;
        let end = start.checked_add(value.len()).filter(|end| *end <= self.bytes.len())?;
        Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
    }

    /// Returns its entries, or `None` for a filter.
    #[inline(always)]
    pub(super) fn entries(&self) -> Option<Entries<'_>> {
        match &self.body {
            Body::Entries(layout) => Some(Entries::new(&self.bytes, layout)),
            Body::Filter(_) => None,
        }
    }

    /// Returns false if the filter excludes keys with this hash. A block that is not a filter
    /// excludes nothing.
    #[inline(always)]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        match &self.body {
            Body::Filter(filter) => filter.may_contain(&self.bytes, hash),
            Body::Entries(_) => true,
        }
    }

    /// Returns the bytes of memory in use, including bookkeeping.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.memory_bytes() + size_of::<Block>() + 2 * size_of::<usize>()
    }

    /// Calls [`Block::may_contain`], for tests of the cache.
    #[cfg(test)]
    pub(crate) fn may_contain_for_tests(&self, hash: u64) -> bool {
        self.may_contain(hash)
    }

    /// Creates a block of any content with the role of a filter, for tests of the cache.
    #[cfg(test)]
    pub(crate) fn for_tests(len: usize) -> Self {
        let mut filter = Vec::new();
        let mut builder =
            cairn_codec::filter::FilterBuilder::new(cairn_codec::filter::FilterPolicy::bloom(10.0));
        (0..len as u64 / 2).for_each(|hash| builder.add(hash));
        builder.finish(&mut filter).unwrap();
        Block::new(BlockBytes::copy_of(&filter), Role::Filter).unwrap()
    }
}

impl Table {
    /// Reads a frame and returns its payload, decompressed.
    pub(super) fn read_payload(&self, handle: Handle, role: Role) -> Result<BlockBytes> {
        let payload_bytes = (handle.len as usize)
            .checked_sub(HEADER_BYTES)
            .filter(|_| handle.end() <= self.source.len())
            .ok_or_else(|| self.damaged(handle.offset, "a block extends past the end of the file"))?;
        let mut bytes = BlockBytes::zeroed(HEADER_BYTES, payload_bytes);
        let frame = bytes.with_header_mut(HEADER_BYTES);
        self.source.read(frame, handle.offset)?;
        let header = self.check_frame(frame, handle, role)?;
        if header.is_stored() {
            return Ok(bytes);
        }
        self.unpack(header, &bytes, handle)
    }

    /// Reads and validates a block.
    pub(super) fn read_block(&self, handle: Handle, role: Role) -> Result<BlockRef> {
        self.checked(self.read_payload(handle, role)?, handle, role)
    }

    /// Decodes and validates a block, as `read_block` does, from a frame that was read already.
    pub(super) fn block_of_frame(&self, frame: &[u8], handle: Handle, role: Role) -> Result<BlockRef> {
        debug_assert_eq!(frame.len(), handle.len as usize, "the frame of another block");
        let header = self.check_frame(frame, handle, role)?;
        let payload = &frame[HEADER_BYTES..];
        let bytes = match header.is_stored() {
            true => BlockBytes::copy_of(payload),
            false => self.unpack(header, payload, handle)?,
        };
        self.checked(bytes, handle, role)
    }

    fn check_frame(&self, frame: &[u8], handle: Handle, role: Role) -> Result<Header> {
        Header::check(frame, self.frame_number, handle.offset, role)
            .map_err(|what| self.damaged(handle.offset, what))
    }

    fn unpack(&self, header: Header, payload: &[u8], handle: Handle) -> Result<BlockBytes> {
        header.unpack(payload, self.dictionary.as_ref()).map_err(|what| self.damaged(handle.offset, what))
    }

    fn checked(&self, bytes: BlockBytes, handle: Handle, role: Role) -> Result<BlockRef> {
        Block::new(bytes, role).map(Arc::new).map_err(|(at, what)| {
            self.damaged(handle.offset, format!("{what}, at byte {at} of the {role:?} block"))
        })
    }

    pub(super) fn damaged(&self, offset: u64, what: impl Into<String>) -> Error {
        Error::corruption(self.source.path(), offset, what)
    }

    /// Reads a block that is not in the cache, and caches it if `fill` is set.
    #[cold]
    pub(super) fn load_missing(
        &self,
        slot: usize,
        handle: Handle,
        role: Role,
        fill: bool,
    ) -> Result<BlockRef> {
        self.cache.count_miss(role == Role::Data);
        let block = self.read_block(handle, role)?;
        Ok(if fill { self.cache.insert(&self.slots, slot, block) } else { block })
    }

    /// Passes a block to `work`, from the cache or after reading and caching it.
    #[inline(always)]
    pub(super) fn with_block<T>(
        &self,
        slot: usize,
        handle: Handle,
        role: Role,
        work: impl FnOnce(&BlockRef) -> T,
    ) -> Result<T> {
        let cached = self.slots.get(slot);
        let loaded;
        let block = match cached.as_ref().and_then(|guard| guard.as_ref()) {
            Some(block) => {
                self.cache.count_hit(role == Role::Data);
                block
            }
            None => {
                loaded = self.load_missing(slot, handle, role, true)?;
                &loaded
            }
        };
        Ok(work(block))
    }

    /// Returns a reference to a block.
    pub(super) fn block(&self, slot: usize, handle: Handle, role: Role, fill: bool) -> Result<BlockRef> {
        match self.slots.get(slot).and_then(|guard| guard.as_ref().map(Arc::clone)) {
            Some(block) => {
                self.cache.count_hit(role == Role::Data);
                Ok(block)
            }
            None => self.load_missing(slot, handle, role, fill),
        }
    }
}
