//! Verification of a whole table, which trusts none of its bytes.

use std::cmp::Ordering;

use cairn_codec::checksum::Xxh3;

use super::block::BlockCursor;
use super::footer::FOOTER_BYTES;
use super::frame::{Handle, Role};
use super::open::Table;
use super::shared_block::BlockRef;
use super::{hash_key, hash_prefix};
use crate::Result;
use crate::kind::{Kind, SEQNO_MAX, Seqno};

const READ_BYTES: usize = 256 << 10;

/// The verified content of a whole table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableSummary {
    /// Number of entries.
    pub entries: u64,
    /// Number of data blocks.
    pub data_blocks: u64,
    /// XXH3 of the file.
    pub checksum: u64,
}

/// The state of the verification.
struct Walk<'t> {
    table: &'t Table,
    summary: TableSummary,
    last: Option<(Vec<u8>, Seqno)>,
    deletes: u64,
    merges: u64,
    seqnos: (Seqno, Seqno),
    bytes: (u64, u64),
    /// The offset at which the next data block must begin.
    next_data: u64,
}

impl Table {
    /// Reads every block from the file, bypassing the cache, and verifies:
    ///
    /// - checksums and structure;
    /// - that entries ascend, within blocks and from one block to the next, and lie between the
    ///   separators around them;
    /// - that the filters pass every key and every prefix;
    /// - that blocks follow one another without gaps;
    /// - that the properties have the right counts;
    /// - and, if `checksum` is given, that the file has this checksum.
    ///
    /// Errors: [`Corruption`](crate::Error::Corruption) with the first defect found.
    pub(crate) fn verify(&self, checksum: Option<u64>) -> Result<TableSummary> {
        let found = self.file_checksum()?;
        if let Some(expected) = checksum.filter(|expected| *expected != found) {
            return Err(
                self.damaged(0, format!("the file's checksum is {found:#018x}, expected {expected:#018x}"))
            );
        }
        let mut walk = Walk {
            table: self,
            summary: TableSummary { checksum: found, ..TableSummary::default() },
            last: None,
            deletes: 0,
            merges: 0,
            seqnos: (SEQNO_MAX, 0),
            bytes: (0, 0),
            next_data: 0,
        };
        let mut next_filter = self.properties.data_bytes;
        let mut next_index = next_filter + self.properties.filter_bytes;
        for partition in &self.partitions {
            if let Some(filter) = partition.filter {
                next_filter = walk.adjoin(filter, next_filter)?;
            }
            next_index = walk.adjoin(partition.index, next_index)?;
            let filter = partition.filter.map(|filter| self.read_block(filter, Role::Filter)).transpose()?;
            let index = self.read_block(partition.index, Role::Index)?;
            walk.partition(&index, filter.as_ref(), partition.index)?;
        }
        let sections = &self.properties;
        let data_end = sections.data_bytes;
        let ends = [
            (walk.next_data, data_end),
            (next_filter, data_end + sections.filter_bytes),
            (next_index, data_end + sections.filter_bytes + sections.index_bytes),
        ];
        for (found, expected) in ends {
            if found != expected {
                return Err(self.damaged(found, format!("a section ends at {found}, expected {expected}")));
            }
        }
        self.check_separators()?;
        walk.finish()
    }

    /// Returns XXH3 of the whole file, and checks that the footer has the checksum of everything
    /// before it.
    fn file_checksum(&self) -> Result<u64> {
        let mut checksum = Xxh3::new();
        let mut buffer = vec![0; READ_BYTES];
        let body = self.source.len().saturating_sub(FOOTER_BYTES as u64);
        let mut at = 0;
        while at < self.source.len() {
            let end = if at < body { body } else { self.source.len() };
            let len = (end - at).min(READ_BYTES as u64) as usize;
            self.source.read(&mut buffer[..len], at)?;
            checksum.update(&buffer[..len]);
            at += len as u64;
            if at == body && self.body != 0 && checksum.digest() != self.body {
                return Err(self.damaged(body, "the footer does not belong to this file"));
            }
        }
        debug_assert_eq!(at, self.source.len(), "the checksum covers the whole file");
        Ok(checksum.digest())
    }

    /// Checks that the top index has the last separator of each partition.
    fn check_separators(&self) -> Result<()> {
        let Some(top) = &self.top else { return Ok(()) };
        let Some(entries) = top.entries() else { return Ok(()) };
        let mut cursor = BlockCursor::default();
        cursor.seek_first(&entries);
        for partition in &self.partitions {
            let index = self.read_block(partition.index, Role::Index)?;
            let mut last = BlockCursor::default();
            if let Some(entries) = index.entries() {
                last.seek_last(&entries);
            }
            if !cursor.valid() || last.key() != cursor.key() {
                return Err(self.damaged(
                    partition.index.offset,
                    "the top index has a different separator for a partition",
                ));
            }
            cursor.next(&entries);
        }
        Ok(())
    }
}

impl Walk<'_> {
    fn wrong(&self, handle: Handle, what: impl Into<String>) -> crate::Error {
        self.table.damaged(handle.offset, what)
    }

    /// Checks that `handle` begins at `expected`, and returns the offset at which the next block
    /// must begin.
    fn adjoin(&self, handle: Handle, expected: u64) -> Result<u64> {
        if handle.offset != expected {
            return Err(
                self.wrong(handle, format!("a block begins at {}, expected {expected}", handle.offset))
            );
        }
        Ok(handle.end())
    }

    fn partition(&mut self, index: &BlockRef, filter: Option<&BlockRef>, place: Handle) -> Result<()> {
        let Some(entries) = index.entries() else { return Ok(()) };
        let mut cursor = BlockCursor::default();
        cursor.seek_first(&entries);
        let mut before: Option<Vec<u8>> = None;
        while cursor.valid() {
            let data = self.table.data_value(&index.bytes()[cursor.value()])?;
            if u64::from(data.ordinal) != self.summary.data_blocks {
                return Err(self.wrong(
                    place,
                    format!("block {} has the ordinal {}", self.summary.data_blocks, data.ordinal),
                ));
            }
            if before.as_deref().is_some_and(|before| before > cursor.key()) {
                return Err(self.wrong(place, "separators do not ascend"));
            }
            self.next_data = self.adjoin(data.handle, self.next_data)?;
            let block = self.table.read_block(data.handle, Role::Data)?;
            self.data(&block, filter, cursor.key(), data.handle)?;
            self.summary.data_blocks += 1;
            before = Some(cursor.key().to_vec());
            cursor.next(&entries);
        }
        Ok(())
    }

    /// Verifies the entries of one block, none of which may exceed `separator`.
    fn data(
        &mut self,
        block: &BlockRef,
        filter: Option<&BlockRef>,
        separator: &[u8],
        place: Handle,
    ) -> Result<()> {
        let Some(entries) = block.entries() else { return Ok(()) };
        let extractor = self.table.properties.prefix;
        let mut cursor = BlockCursor::default();
        cursor.seek_first(&entries);
        while cursor.valid() {
            let (key, seqno) = (cursor.key(), cursor.seqno(&entries));
            if let Some((last, last_seqno)) = &self.last {
                let ordered = match last.as_slice().cmp(key) {
                    Ordering::Less => true,
                    Ordering::Equal => seqno < *last_seqno,
                    Ordering::Greater => false,
                };
                if !ordered {
                    return Err(self.wrong(place, format!("{} is out of order", key.escape_ascii())));
                }
            }
            if key > separator {
                return Err(self.wrong(place, format!("{} is above its separator", key.escape_ascii())));
            }
            if let Some(filter) = filter {
                let prefix = extractor.and_then(|extractor| extractor.prefix_of(key));
                let passes = filter.may_contain(hash_key(key))
                    && prefix.is_none_or(|prefix| filter.may_contain(hash_prefix(prefix)));
                if !passes {
                    return Err(
                        self.wrong(place, format!("the filter does not contain {}", key.escape_ascii()))
                    );
                }
            }
            self.count(key.len(), seqno, cursor.kind(), cursor.value().len());
            match &mut self.last {
                Some((last, last_seqno)) => {
                    last.clear();
                    last.extend_from_slice(key);
                    *last_seqno = seqno;
                }
                None => self.first(key, seqno, place)?,
            }
            cursor.next(&entries);
        }
        Ok(())
    }

    fn first(&mut self, key: &[u8], seqno: Seqno, place: Handle) -> Result<()> {
        let properties = &self.table.properties;
        let smallest = properties.smallest.as_slice();
        if key < smallest || (properties.range_tombstones == 0 && key != smallest) {
            return Err(self.wrong(place, "the first key differs from the properties"));
        }
        self.last = Some((key.to_vec(), seqno));
        Ok(())
    }

    fn count(&mut self, key_bytes: usize, seqno: Seqno, kind: Kind, value_bytes: usize) {
        self.summary.entries += 1;
        self.deletes += u64::from(kind == Kind::Delete);
        self.merges += u64::from(kind == Kind::Merge);
        self.seqnos = (self.seqnos.0.min(seqno), self.seqnos.1.max(seqno));
        self.bytes = (self.bytes.0 + key_bytes as u64, self.bytes.1 + value_bytes as u64);
    }

    fn finish(self) -> Result<TableSummary> {
        let properties = &self.table.properties;
        debug_assert!(self.deletes + self.merges <= self.summary.entries, "an entry was counted twice");
        let counts = [
            ("entries", self.summary.entries, properties.entries),
            ("deletes", self.deletes, properties.deletes),
            ("merges", self.merges, properties.merges),
            ("data blocks", self.summary.data_blocks, properties.data_blocks.into()),
            ("bytes of keys", self.bytes.0, properties.key_bytes),
            ("bytes of values", self.bytes.1, properties.value_bytes),
        ];
        let end = Handle { offset: self.table.bytes().saturating_sub(FOOTER_BYTES as u64), len: 0 };
        for (what, found, expected) in counts {
            if found != expected {
                return Err(
                    self.wrong(end, format!("there are {found} {what}, the properties say {expected}"))
                );
            }
        }
        let largest = properties.largest.as_slice();
        let last = self.last.as_ref().map(|(last, _)| last.as_slice());
        let (low, high) = properties.seqnos;
        let ranged = properties.range_tombstones > 0;
        let sound = last.is_none_or(|last| last == largest || (ranged && last < largest))
            && (self.seqnos == (low, high) || (ranged && self.seqnos.0 >= low && self.seqnos.1 <= high));
        if !sound {
            return Err(self.wrong(end, "the last key or the sequence numbers differ from the properties"));
        }
        Ok(self.summary)
    }
}
