//! Blocks in memory: validated once, then shared.

use std::ops::Range;

use cairn_codec::filter::Filter;
use cairn_vfs::sync::Arc;

use super::block::{Entries, Layout};
use super::bytes::BlockBytes;
use super::frame::Role;

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
