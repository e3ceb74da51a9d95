//! Reading blocks, from the file or from the cache.

use cairn_vfs::sync::Arc;

use super::bytes::BlockBytes;
use super::frame::{HEADER_BYTES, Handle, Header, Role};
use super::open::Table;
use super::shared_block::{Block, BlockRef};
use crate::{Error, Result};

impl Table {
    /// Reads a frame and returns its payload, decompressed.
    pub(super) fn read_payload(&self, handle: Handle, role: Role) -> Result<BlockBytes> {
        let payload_bytes = (handle.len as usize)
            .checked_sub(HEADER_BYTES)
            .filter(|_| handle.end() <= self.source.len())
            .ok_or_else(|| self.damaged(handle.offset, "a block extends past the end of the file"))?;
        let mut bytes = BlockBytes::zeroed(HEADER_BYTES, payload_bytes);
        let frame = bytes.with_header_mut(HEADER_BYTES);
        debug_assert_eq!(frame.len(), handle.len as usize, "room for another block");
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
        debug_assert_eq!(
            slot < self.properties.data_blocks as usize,
            role == Role::Data,
            "slot {slot} of a {role:?} block"
        );
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
        debug_assert_eq!(
            slot < self.properties.data_blocks as usize,
            role == Role::Data,
            "slot {slot} of a {role:?} block"
        );
        match self.slots.get(slot).and_then(|guard| guard.as_ref().map(Arc::clone)) {
            Some(block) => {
                self.cache.count_hit(role == Role::Data);
                Ok(block)
            }
            None => self.load_missing(slot, handle, role, fill),
        }
    }
}
