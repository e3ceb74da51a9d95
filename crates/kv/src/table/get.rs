//! Point lookups.

use std::ops::ControlFlow;

use super::block::Lookup;
use super::frame::{Handle, Role};
use super::index::{DataValue, partition_ordinal};
use super::load::BlockRef;
use super::open::Table;
use crate::Result;
use crate::kind::{Seqno, Version};

impl Table {
    /// Shows the versions of `key` written at or before `at`, newest first, until `visit` breaks or
    /// there are no more. `hash` is [`hash_key`](super::hash_key) of `key`. `visit` also gets the
    /// block that the version's value is in: a clone of it keeps the value.
    ///
    /// Allocates nothing when the blocks are cached. Cost then: about a cache miss for the filter,
    /// and for a key that is there two or three each for the index partition and the data block.
    ///
    /// Errors: those of reading blocks. Versions that were shown before stay true.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        at: Seqno,
        mut visit: impl FnMut(Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<()> {
        if at < self.seqno {
            return Ok(());
        }
        let Some(partition) = self.partition_of(key) else { return Ok(()) };
        if !self.key_passes(partition, hash)? {
            return Ok(());
        }
        self.get_from(partition, 0, key, at, &mut visit)
    }

    /// False when no version of a key of this hash is in the table; `key` says in which partition
    /// it would be.
    #[cfg(test)]
    pub(crate) fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        match self.partition_of(key) {
            Some(partition) => self.filter_passes(partition, hash),
            None => Ok(false),
        }
    }

    /// The partition in which `key` begins, if it is there; `None` when all keys are less.
    #[inline(always)]
    pub(super) fn partition_of(&self, key: &[u8]) -> Option<usize> {
        let top = self.top.as_ref()?;
        let value = top.entries()?.value_at_or_after(key)?;
        partition_ordinal(&top.bytes()[value]).map(|ordinal| ordinal as usize)
    }

    /// As `filter_passes`, counted: for lookups of whole keys.
    #[inline(always)]
    pub(super) fn key_passes(&self, partition: usize, hash: u64) -> Result<bool> {
        let passes = self.filter_passes(partition, hash)?;
        if !passes {
            self.cache.count_filter_skipping();
        }
        Ok(passes)
    }

    #[inline(always)]
    pub(super) fn filter_passes(&self, partition: usize, hash: u64) -> Result<bool> {
        if let Some(pinned) = self.pinned.get(partition) {
            return Ok(pinned.filter.as_ref().is_none_or(|filter| filter.may_contain(hash)));
        }
        match self.partitions.get(partition).and_then(|partition| partition.filter) {
            None => Ok(true),
            Some(handle) => self.with_block(self.filter_slot(partition), handle, Role::Filter, |filter| {
                filter.may_contain(hash)
            }),
        }
    }

    /// Lends an index partition to `work`.
    #[inline(always)]
    pub(super) fn with_index<T>(&self, partition: usize, work: impl FnOnce(&BlockRef) -> T) -> Result<T> {
        if let Some(pinned) = self.pinned.get(partition) {
            return Ok(work(&pinned.index));
        }
        let handle =
            self.partitions.get(partition).map_or(Handle { offset: 0, len: 0 }, |partition| partition.index);
        self.with_block(self.index_slot(partition), handle, Role::Index, work)
    }

    /// Looks `key` up in data blocks from partition `first` on, leaving out those before ordinal
    /// `skip`.
    #[inline]
    pub(super) fn get_from(
        &self,
        first: usize,
        skip: u32,
        key: &[u8],
        at: Seqno,
        visit: &mut impl FnMut(Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<()> {
        for partition in first..self.partitions.len() {
            let found = self.with_index(partition, |index| self.get_in(index, skip, key, at, visit))??;
            if found == Lookup::Done {
                break;
            }
        }
        Ok(())
    }

    /// Looks `key` up in the data blocks of one index partition.
    #[inline(always)]
    fn get_in(
        &self,
        index: &BlockRef,
        skip: u32,
        key: &[u8],
        at: Seqno,
        visit: &mut impl FnMut(Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<Lookup> {
        let Some(entries) = index.entries() else { return Ok(Lookup::Done) };
        let mut value = entries.value_at_or_after(key);
        while let Some(range) = value {
            let data = self.data_value(&index.bytes()[range.clone()])?;
            if data.ordinal >= skip {
                let found = self.with_block(data.ordinal as usize, data.handle, Role::Data, |block| {
                    self.get_in_block(block, key, at, visit)
                })?;
                if found == Lookup::Done {
                    return Ok(found);
                }
            }
            value = entries.value_after(&range);
        }
        Ok(Lookup::More)
    }

    /// What an index entry says. A partition has passed its checksum, so that only a writer's
    /// mistake can be wrong here.
    #[inline(always)]
    pub(super) fn data_value(&self, bytes: &[u8]) -> Result<DataValue> {
        match DataValue::decode(bytes) {
            Some(data) if data.ordinal < self.properties.data_blocks => Ok(data),
            _ => Err(self.damaged(self.properties.data_bytes, "an index entry does not name a data block")),
        }
    }

    /// Looks `key` up in one data block.
    #[inline(always)]
    pub(super) fn get_in_block(
        &self,
        block: &BlockRef,
        key: &[u8],
        at: Seqno,
        visit: &mut impl FnMut(Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Lookup {
        let Some(entries) = block.entries() else { return Lookup::Done };
        entries.lookup(key, at, &mut |seqno, kind, value| {
            // Where the table has a number for all, those of the file are 0.
            let seqno = seqno | self.seqno;
            visit(Version { seqno, kind, value: &block.bytes()[value] }, block)
        })
    }
}
