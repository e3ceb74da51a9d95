//! Describes the data blocks of a table, for tools that display it.

use super::block::BlockCursor;
use super::frame::Role;
use super::open::Table;
use super::shared_block::BlockRef;
use crate::Result;
use crate::kind::Kind;

/// A data block of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockInfo {
    /// Its offset in the file.
    pub offset: u64,
    /// Its length in the file, including the header.
    pub bytes: u64,
    /// Its length after decompression.
    pub raw_bytes: u64,
    /// Number of entries, each version of a key counted.
    pub entries: u64,
    /// Number of tombstones among the entries.
    pub tombstones: u64,
    /// Its first key.
    pub first_key: Vec<u8>,
    /// Its last key.
    pub last_key: Vec<u8>,
}

impl Table {
    /// Returns at most `most` blocks, from the one numbered `from` on. Reads the index and these
    /// blocks, bypassing the cache.
    ///
    /// Errors: [`Corruption`](crate::Error::Corruption).
    pub(crate) fn blocks(&self, from: usize, most: usize) -> Result<Vec<BlockInfo>> {
        let mut found = Vec::new();
        for partition in &self.partitions {
            let index = self.read_block(partition.index, Role::Index)?;
            let Some(entries) = index.entries() else { continue };
            let mut cursor = BlockCursor::default();
            cursor.seek_first(&entries);
            while cursor.valid() {
                let value = self.data_value(index.bytes().get(cursor.value()).unwrap_or_default())?;
                if found.len() == most {
                    return Ok(found);
                }
                if value.ordinal as usize >= from {
                    let block = self.read_block(value.handle, Role::Data)?;
                    found.push(describe(&block, value.handle.offset, u64::from(value.handle.len)));
                }
                cursor.next(&entries);
            }
        }
        Ok(found)
    }
}

fn describe(block: &BlockRef, offset: u64, bytes: u64) -> BlockInfo {
    let mut info = BlockInfo {
        offset,
        bytes,
        raw_bytes: block.bytes().len() as u64,
        entries: 0,
        tombstones: 0,
        first_key: Vec::new(),
        last_key: Vec::new(),
    };
    let Some(entries) = block.entries() else { return info };
    let mut cursor = BlockCursor::default();
    cursor.seek_first(&entries);
    while cursor.valid() {
        if info.entries == 0 {
            info.first_key = cursor.key().to_vec();
        }
        info.entries += 1;
        info.tombstones += u64::from(cursor.kind() == Kind::Delete);
        info.last_key.clear();
        info.last_key.extend_from_slice(cursor.key());
        cursor.next(&entries);
    }
    info
}
