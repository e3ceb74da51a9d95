//! Descriptions of the tables of a keyspace: their place in the tree, their key ranges and their
//! format.

use std::path::PathBuf;

use crate::Result;
use crate::db::Keyspace;
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::table::{BlockInfo, Compression, FilterPolicy};
use crate::version::FileName;

/// Describes a table of a keyspace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableInfo {
    /// The number in its file name.
    pub number: FileNumber,
    /// The path of the file.
    pub file: PathBuf,
    /// Its level.
    pub level: usize,
    /// The sorted run of the level that it belongs to. Of two runs, the one with the higher number
    /// is newer.
    pub run: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of entries, including tombstones but not range tombstones.
    pub entries: u64,
    /// Number of tombstones among the entries.
    pub tombstones: u64,
    /// Number of merge operands among the entries.
    pub merges: u64,
    /// Number of range tombstones.
    pub range_tombstones: u64,
    /// Total bytes of keys, each version counted.
    pub key_bytes: u64,
    /// Total bytes of values.
    pub value_bytes: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
    /// The lowest and the highest sequence number of its entries.
    pub seqnos: (Seqno, Seqno),
    /// Number of data blocks.
    pub blocks: u64,
    /// Bytes of the data blocks in the file.
    pub data_bytes: u64,
    /// Bytes of the filters in the file.
    pub filter_bytes: u64,
    /// Bytes of the index in the file.
    pub index_bytes: u64,
    /// The compression of blocks. A block that would not become shorter is stored uncompressed.
    pub compression: Compression,
    /// True when the blocks share a compression dictionary.
    pub has_dictionary: bool,
    /// The kind of its filters, if it has any.
    pub filter: Option<FilterPolicy>,
}

impl Keyspace {
    /// Returns the tables level by level, runs from the newest to the oldest, each run in key
    /// order. Opens the tables that are not open yet.
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
        debug_assert!(
            all.is_sorted_by(|a, b| (a.level, b.run) <= (b.level, a.run)),
            "levels are listed from the first on, their runs from the newest on"
        );
        Ok(all)
    }

    /// Returns at most `most` data blocks of a table, from the block numbered `from` on, or `None`
    /// when the keyspace does not have the table, or no longer has it. Reads the table's index and
    /// these blocks, bypassing the cache.
    ///
    /// Errors: [`crate::Error::Corruption`]; those of the file system.
    pub fn blocks(&self, table: FileNumber, from: usize, most: usize) -> Result<Option<Vec<BlockInfo>>> {
        let view = self.state.view.load_full();
        let Some((_, file)) = view.version.tables().find(|(_, file)| file.number() == table) else {
            return Ok(None);
        };
        let blocks = self.core.inner.tables.open(file)?.blocks(from, most)?;
        debug_assert!(blocks.len() <= most, "{} blocks, at most {most}", blocks.len());
        Ok(Some(blocks))
    }
}
