//! What the tables of a keyspace are: where they lie in the tree, what they span, how they are
//! written.

use std::path::PathBuf;

use crate::Result;
use crate::db::Keyspace;
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::table::{BlockInfo, Compression, FilterPolicy};
use crate::version::FileName;

/// A table of a keyspace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The number in its name.
    pub number: FileNumber,
    /// The file.
    pub file: PathBuf,
    /// Its level.
    pub level: usize,
    /// The sorted run of the level that it is a part of; of two, the one with the higher number is
    /// newer.
    pub run: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Entries, tombstones counted, range tombstones not.
    pub entries: u64,
    /// Of these, tombstones.
    pub tombstones: u64,
    /// Of these, operands of merges.
    pub merges: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// Bytes of keys, each version counted.
    pub key_bytes: u64,
    /// Bytes of values.
    pub value_bytes: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
    /// The lowest and the highest sequence number.
    pub seqnos: (Seqno, Seqno),
    /// How many data blocks it has.
    pub blocks: u64,
    /// Bytes of the data blocks in the file.
    pub data_bytes: u64,
    /// Bytes of the filters in the file.
    pub filter_bytes: u64,
    /// Bytes of the index in the file.
    pub index_bytes: u64,
    /// How blocks are compressed; one that would not become shorter is stored as it is.
    pub compression: Compression,
    /// True when they share a dictionary.
    pub has_dictionary: bool,
    /// The filters, if there are any.
    pub filter: Option<FilterPolicy>,
}

impl Keyspace {
    /// The tables, level by level, runs from the newest to the oldest, each by key. Costs opening
    /// those that are not open yet.
    ///
    /// Errors: [`crate::Error::Corruption`] of a table that cannot be opened; those of the file
    /// system.
    ///
    /// ```
    /// # fn main() -> cairn_kv::Result<()> {
    /// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
    /// let db = cairn_kv::Db::builder("/store").fs(fs).open()?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let tables = db.tables()?;
    /// assert_eq!((tables[0].level, tables[0].entries), (0, 1));
    /// assert_eq!(db.blocks(tables[0].number, 0, 10)?.unwrap()[0].first_key, b"key");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tables(&self) -> Result<Vec<TableInfo>> {
        let inner = &self.core.inner;
        let view = self.state.view.load_full();
        let mut all = Vec::new();
        for (level, runs) in view.version.levels().iter().enumerate() {
            for run in runs.runs() {
                for file in run.tables() {
                    let properties = inner.tables.open(file)?.properties();
                    all.push(TableInfo {
                        number: file.number(),
                        file: FileName::Table(file.number()).path(&inner.path),
                        level,
                        run: run.id(),
                        bytes: file.meta.bytes,
                        entries: properties.entries,
                        tombstones: properties.deletes,
                        merges: properties.merges,
                        range_tombstones: properties.range_tombstones,
                        key_bytes: properties.key_bytes,
                        value_bytes: properties.value_bytes,
                        smallest: file.meta.smallest.clone(),
                        largest: file.meta.largest.clone(),
                        seqnos: file.meta.seqnos,
                        blocks: properties.data_blocks.into(),
                        data_bytes: properties.data_bytes,
                        filter_bytes: properties.filter_bytes,
                        index_bytes: properties.index_bytes,
                        compression: properties.compression,
                        has_dictionary: properties.dictionary_block.is_some(),
                        filter: properties.filter,
                    });
                }
            }
        }
        Ok(all)
    }

    /// The data blocks of one of its tables, from the block numbered `from` on, `most` at most;
    /// `None` when there is no such table, or no longer. Costs reading the table's index and these
    /// blocks, past the cache. Errors: [`crate::Error::Corruption`]; those of the file system.
    pub fn blocks(&self, table: FileNumber, from: usize, most: usize) -> Result<Option<Vec<BlockInfo>>> {
        let view = self.state.view.load_full();
        let Some((_, file)) = view.version.tables().find(|(_, file)| file.number() == table) else {
            return Ok(None);
        };
        self.core.inner.tables.open(file)?.blocks(from, most).map(Some)
    }
}
