//! Batches of point lookups.

use std::ops::ControlFlow;

use super::block::Lookup;
use super::frame::{Handle, Role};
use super::open::Table;
use super::shared_block::BlockRef;
use crate::Result;
use crate::kind::{Seqno, Version};

/// Adjacent blocks are read together up to this size.
const READ_BYTES_MAX: u64 = 256 << 10;

/// One key of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'k> {
    /// The key.
    pub key: &'k [u8],
    /// Its [`hash_key`](super::hash_key).
    pub hash: u64,
}

/// A key that passed the filter, and the block in which it would begin.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    query: usize,
    partition: usize,
    ordinal: u32,
    handle: Handle,
}

impl Table {
    /// Looks up each of `queries`, as [`Table::get`] does; `visit` also gets the index of the
    /// query. The order of queries is unspecified, and breaking ends only the current one.
    ///
    /// Checks all filters first, then all index partitions, then each data block once. Adjacent
    /// blocks that are not cached are read together.
    pub(crate) fn get_many(
        &self,
        queries: &[Query<'_>],
        at: Seqno,
        mut visit: impl FnMut(usize, Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<()> {
        if at < self.seqno {
            return Ok(());
        }
        let candidates = self.candidates(queries)?;
        let mut rest = &candidates[..];
        while let Some(first) = rest.first() {
            if self.slots.has(first.ordinal as usize) {
                let (group, after) = split_group(rest);
                let block = self.block(first.ordinal as usize, first.handle, Role::Data, true)?;
                self.get_group(&block, group, queries, at, &mut visit)?;
                rest = after;
            } else {
                rest = self.get_uncached(rest, queries, at, &mut visit)?;
            }
        }
        Ok(())
    }

    /// Returns the queries that pass the filters, ordered by data block.
    fn candidates(&self, queries: &[Query<'_>]) -> Result<Vec<Candidate>> {
        let mut passed = Vec::with_capacity(queries.len());
        for (query, Query { key, hash }) in queries.iter().enumerate() {
            debug_assert_eq!(*hash, super::hash_key(key), "the hash of another key");
            if let Some(partition) = self.partition_of(key)
                && self.key_passes(partition, *hash)?
            {
                passed.push((query, partition));
            }
        }
        let mut candidates = Vec::with_capacity(passed.len());
        for (query, partition) in passed {
            let key = queries.get(query).map_or(&[][..], |query| query.key);
            let data = self.with_index(partition, |index| {
                let value = index.entries().and_then(|entries| entries.value_at_or_after(key));
                value.map(|range| self.data_value(&index.bytes()[range])).transpose()
            })??;
            if let Some(data) = data {
                candidates.push(Candidate { query, partition, ordinal: data.ordinal, handle: data.handle });
            }
        }
        debug_assert!(candidates.len() <= queries.len(), "a query has one block at most");
        candidates.sort_unstable_by_key(|candidate| (candidate.ordinal, candidate.query));
        Ok(candidates)
    }

    /// Looks up all queries of one block.
    fn get_group(
        &self,
        block: &BlockRef,
        group: &[Candidate],
        queries: &[Query<'_>],
        at: Seqno,
        visit: &mut impl FnMut(usize, Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<()> {
        debug_assert!(group.iter().all(|it| it.query < queries.len()), "a candidate of other queries");
        debug_assert!(
            group.first().is_none_or(|first| group.iter().all(|it| it.ordinal == first.ordinal)),
            "a group has one block"
        );
        for candidate in group {
            let Some(query) = queries.get(candidate.query) else { continue };
            let mut visit = |version: Version<'_>, block: &BlockRef| visit(candidate.query, version, block);
            if self.get_in_block(block, query.key, at, &mut visit) == Lookup::More {
                self.get_from(candidate.partition, candidate.ordinal + 1, query.key, at, &mut visit)?;
            }
        }
        Ok(())
    }

    /// Reads the first block together with the wanted, uncached, adjacent blocks after it, answers
    /// the queries of these blocks, and returns the other candidates.
    fn get_uncached<'c>(
        &self,
        candidates: &'c [Candidate],
        queries: &[Query<'_>],
        at: Seqno,
        visit: &mut impl FnMut(usize, Version<'_>, &BlockRef) -> ControlFlow<()>,
    ) -> Result<&'c [Candidate]> {
        debug_assert!(!candidates.is_empty(), "there is a block to read");
        let (first, mut rest) = split_group(candidates);
        let mut groups = vec![first];
        let start = first.first().map_or(0, |candidate| candidate.handle.offset);
        let mut end = first.first().map_or(0, |candidate| candidate.handle.end());
        while let Some(next) = rest.first() {
            let adjacent = next.handle.offset == end && next.handle.end() - start <= READ_BYTES_MAX;
            if !adjacent || self.slots.has(next.ordinal as usize) {
                break;
            }
            end = next.handle.end();
            let (group, after) = split_group(rest);
            groups.push(group);
            rest = after;
        }
        if end > self.properties.data_bytes {
            return Err(self.damaged(start, "a data block is outside the section of data blocks"));
        }
        let mut frames = vec![0; (end - start) as usize];
        self.source.read(&mut frames, start)?;
        for group in groups {
            let Some(Candidate { handle, ordinal, .. }) = group.first().copied() else { continue };
            let from = (handle.offset - start) as usize;
            self.cache.count_miss(true);
            let block = self.block_of_frame(&frames[from..from + handle.len as usize], handle, Role::Data)?;
            let block = self.cache.insert(&self.slots, ordinal as usize, block);
            self.get_group(&block, group, queries, at, visit)?;
        }
        debug_assert!(rest.len() < candidates.len(), "no candidate was answered");
        Ok(rest)
    }
}

/// Splits off the candidates that have the same block as the first.
fn split_group(candidates: &[Candidate]) -> (&[Candidate], &[Candidate]) {
    let ordinal = candidates.first().map(|candidate| candidate.ordinal);
    let group = candidates.iter().take_while(|candidate| Some(candidate.ordinal) == ordinal).count();
    debug_assert!(group > 0 || candidates.is_empty(), "the first candidate is of its own block");
    candidates.split_at(group)
}
