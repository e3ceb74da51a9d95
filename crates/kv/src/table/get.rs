//! Point lookups.

use std::ops::ControlFlow;

use super::block::Lookup;
use super::frame::{Handle, Role};
use super::index::{DataValue, partition_ordinal};
use super::open::Table;
use super::shared_block::BlockRef;
use crate::Result;
use crate::kind::{Seqno, Version};

impl Table {
    /// Passes the versions of `key` written at or before `at` to `visit`, newest first, until
    /// `visit` breaks or there are no more. `hash` is [`hash_key`](super::hash_key) of `key`.
    /// `visit` also gets the block that contains the version's value: a clone of the reference
    /// keeps the value alive.
    ///
    /// Allocates nothing when the blocks are cached. The cost is then about one cache miss for the
    /// filter and, for an existing key, two or three each for the index partition and the data
    /// block.
    ///
    /// Errors: those of reading blocks. Versions passed to `visit` before the error are correct.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        hash: u64,
        at: Seqno,
        mut visit: impl FnMut(Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<()> {
        debug_assert_eq!(hash, super::hash_key(key), "the hash of another key");
        if at < self.seqno {
            return Ok(());
        }
        let Some(partition) = self.partition_of(key) else { return Ok(()) };
        if !self.key_passes(partition, hash)? {
            return Ok(());
        }
        self.get_from(partition, 0, key, at, &mut visit)
    }

    /// Returns false when the table has no version of a key with this hash. `key` determines the
    /// partition.
    #[cfg(test)]
    pub(crate) fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        match self.partition_of(key) {
            Some(partition) => self.filter_passes(partition, hash),
            None => Ok(false),
        }
    }

    /// Returns the partition in which `key` begins, if it exists, or `None` when all keys are less.
    #[inline(always)]
    pub(super) fn partition_of(&self, key: &[u8]) -> Option<usize> {
        let top = self.top.as_ref()?;
        let value = top.entries()?.value_at_or_after(key)?;
        partition_ordinal(&top.bytes()[value]).map(|ordinal| ordinal as usize)
    }

    /// Checks the filter as `filter_passes` does and counts the result, for lookups of whole keys.
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
        debug_assert!(
            partition < self.partitions.len(),
            "partition {partition} of {}",
            self.partitions.len()
        );
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

    /// Passes an index partition to `work`.
    #[inline(always)]
    pub(super) fn with_index<T>(&self, partition: usize, work: impl FnOnce(&BlockRef) -> T) -> Result<T> {
        debug_assert!(
            partition < self.partitions.len(),
            "partition {partition} of {}",
            self.partitions.len()
        );
        if let Some(pinned) = self.pinned.get(partition) {
            return Ok(work(&pinned.index));
        }
        let handle =
            self.partitions.get(partition).map_or(Handle { offset: 0, len: 0 }, |partition| partition.index);
        self.with_block(self.index_slot(partition), handle, Role::Index, work)
    }

    /// Looks up `key` in data blocks from partition `first` on, skipping blocks before ordinal
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
        debug_assert!(first < self.partitions.len(), "partition {first} of {}", self.partitions.len());
        for partition in first..self.partitions.len() {
            let found = self.with_index(partition, |index| self.get_in(index, skip, key, at, visit))??;
            if found == Lookup::Done {
                break;
            }
        }
        Ok(())
    }

    /// Looks up `key` in the data blocks of one index partition.
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

    /// Decodes an index entry. The partition has passed its checksum, so an error can only come
    /// from a faulty writer.
    #[inline(always)]
    pub(super) fn data_value(&self, bytes: &[u8]) -> Result<DataValue> {
        match DataValue::decode(bytes) {
            Some(data) if data.ordinal < self.properties.data_blocks => Ok(data),
            _ => {
                Err(self.damaged(self.properties.data_bytes, "an index entry does not refer to a data block"))
            }
        }
    }

    /// Looks up `key` in one data block.
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
            // If the table has one sequence number for all entries, the numbers in the file are 0.
            let seqno = seqno | self.seqno;
            visit(Version { seqno, kind, value: &block.bytes()[value] }, block)
        })
    }
}
