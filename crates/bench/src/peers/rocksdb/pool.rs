//! RocksDB's block cache as a buffer pool: one table whose records fill a block each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cairn_vfs::{Fs, OpenOptions as FileOptions, StdFs};

use super::ffi::Api;
use super::handles::{BlockReads, Cache, Db, OpenOptions, TableWriter};
use super::{NAME, RocksDb};
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};
use crate::stores::Compression;
use crate::stores::page_buffer::Buffer;
use crate::stores::page_file::{STAMP_AT, word};
use crate::stores::pages::{Access, PageStore, Pages, Session, Setup, each};

/// Bytes of a page that the record leaves free, so that its block is not longer than a page.
const SPARED: usize = 64;

/// Bytes that the cache charges for a block beyond its data: the entry, the block's metadata, and
/// the rounding of the allocator.
const CHARGED_MORE: usize = 512;

/// Below this number of pages, the cache has one shard: with sixty-four, each would be too small
/// for a block.
const SHARDED_FROM: usize = 4096;

/// RocksDB as a page store.
#[derive(Debug)]
pub struct RocksDbPages(RocksDb);

impl RocksDbPages {
    /// Loads the library. Errors: there is no such library, or it is not RocksDB.
    pub fn find() -> Result<Self> {
        RocksDb::find().map(RocksDbPages)
    }

    fn options(setup: &Setup<'_>) -> OpenOptions {
        let shard_bits = if setup.frames < SHARDED_FROM { 0 } else { 6 };
        OpenOptions {
            cache_bytes: setup.frames * (setup.file.page_size + CHARGED_MORE),
            cache: Cache::Lru { shard_bits },
            block_bytes: setup.file.page_size,
            direct_reads: setup.file.direct,
            ..super::options(Compression::None, false)
        }
    }
}

impl PageStore for RocksDbPages {
    fn name(&self) -> &str {
        NAME
    }

    fn family(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        self.0.version.clone()
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        settings([
            ("what it is", "a record a block in one table, keys of four bytes; GetPinned"),
            (
                "block cache",
                "LRU, for each page of the pool its bytes and 512 more; one shard below 4096 pages, 64 from there",
            ),
            ("block size", "a page"),
            ("page checks", "those of its blocks, verified when they are read"),
            ("index and filter", "outside of the cache, whole in memory"),
            ("page cache of the kernel", if setup.file.direct { "bypassed" } else { "used" }),
            ("cannot", "change a page, hold one alone"),
        ])
    }

    fn can(&self, access: Access, _: u32) -> bool {
        matches!(access, Access::Shared | Access::Scan)
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let dir = setup.file.path.with_extension("rocksdb");
        let (options, api) = (Self::options(setup), &self.0.api);
        if !StdFs::new().exists(&dir)? {
            StdFs::new().create_dir_all(&dir)?;
            self.build(&dir, setup)?;
        }
        let db = Db::open(api, &dir, options, true)?;
        Ok(Box::new(Open { api: api.clone(), db, misses: AtomicU64::new(0) }))
    }
}

impl RocksDbPages {
    fn build(&self, dir: &std::path::Path, setup: &Setup<'_>) -> Result<()> {
        let (options, page_size) = (Self::options(setup), setup.file.page_size);
        let table_file = dir.join("load.sst");
        let mut table = TableWriter::create(&self.0.api, &table_file, options)?;
        let file = setup.file.open(FileOptions::read())?;
        let mut buffer = Buffer::new(page_size);
        for page in 0..setup.file.pages {
            let bytes = buffer.bytes_mut(page_size);
            file.read_exact_at(bytes, u64::from(page) * page_size as u64)?;
            let record = bytes.get(STAMP_AT..STAMP_AT + page_size - SPARED).unwrap_or_default();
            table.put(&page.to_be_bytes(), record)?;
        }
        table.finish()?;
        Db::open(&self.0.api, dir, options, false)?.ingest(&table_file)?;
        if setup.file.direct {
            return Ok(());
        }
        // RocksDB drops a table that it writes from the kernel's page cache. Reading the table
        // restores it, because the files of all other contenders are cached.
        for path in crate::core::data_files::data_files(dir)? {
            let file = StdFs::new().open(&path, FileOptions::read())?;
            let (len, mut at) = (file.len()?, 0);
            while at < len {
                match file.read_at(buffer.bytes_mut(page_size), at)? {
                    0 => break,
                    count => at += count as u64,
                }
            }
        }
        Ok(())
    }
}

struct Open {
    api: Arc<Api>,
    db: Db,
    misses: AtomicU64,
}

impl Pages for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader { open: self, reads: BlockReads::new(&self.api) }))
    }

    fn misses(&self) -> Option<u64> {
        Some(self.misses.load(Ordering::Relaxed))
    }
}

/// Stays in the thread that created it, because RocksDB counts per thread.
struct Reader<'a> {
    open: &'a Open,
    reads: BlockReads,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.open.misses.fetch_add(self.reads.since(), Ordering::Relaxed);
    }
}

impl Session for Reader<'_> {
    fn run(&mut self, _: Access, order: &[u32]) -> Result<u64> {
        each(order, |page| {
            let mut stamp = 0;
            self.open.db.get(&page.to_be_bytes(), |value| stamp = value.map_or(0, |value| word(value, 0)))?;
            Ok(stamp)
        })
    }
}
