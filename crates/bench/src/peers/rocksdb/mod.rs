//! RocksDB, read-only, from a shared library that is loaded at run time. Building it would take a
//! quarter of an hour, and the library inside its Java package exports the whole C interface.
//!
//! Data is loaded as an expert would load data that never changes: sorted, into one table file,
//! moved into the last level.

mod ffi;
mod handles;
pub mod kv;
pub mod measured;
mod measured_ffi;
pub mod pool;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{Fs, OpenOptions as FileOptions, StdFs};

use self::ffi::Api;
use self::handles::{Batch, Cache, Db, OpenOptions, TableWriter};
use crate::core::data_files::data_files;
use crate::core::error::{Error, Result};
use crate::core::scratch::Scratch;
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, KeyBatch};
use crate::stores::lookups::{Lookups, in_batches};
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

/// Name of the store.
pub const NAME: &str = "rocksdb";

/// Larger than every data set of the suite, so that a warm lookup neither decompresses nor reads.
const CACHE_BYTES: usize = 4 << 30;

/// Keys per batched lookup; RocksDB itself works in groups of 32.
const BATCH_KEYS: usize = 32;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// Returns the path of the shared library: `CAIRN_ROCKSDB_LIB`, else `lib/librocksdb.so` in the
/// cache directory.
pub fn library_path() -> PathBuf {
    match env::var_os("CAIRN_ROCKSDB_LIB") {
        Some(path) => path.into(),
        None => crate::core::cache::cache_dir().join("lib/librocksdb.so"),
    }
}

/// RocksDB, with its library loaded.
#[derive(Debug)]
pub struct RocksDb {
    api: Arc<Api>,
    version: String,
}

impl RocksDb {
    /// Loads the library and reads its version from a small store.
    ///
    /// Errors: there is no such library, or it is not RocksDB; the message names the expected path.
    pub fn find() -> Result<RocksDb> {
        let api = load()?;
        let scratch = Scratch::temporary("rocksdb")?;
        drop(Db::open(&api, scratch.path(), options(Compression::None, false), false)?);
        let version =
            version_of(scratch.path())?.ok_or_else(|| fail("the library does not say its version"))?;
        Ok(RocksDb { api, version })
    }
}

/// Loads the library. Errors: there is no such library, or it is not RocksDB; the message names the
/// expected path.
fn load() -> Result<Arc<Api>> {
    let path = library_path();
    if !StdFs::new().exists(&path)? {
        return Err(fail(format!(
            "no library at {}; `scripts/setup peers` in a clone of Cairn fetches it, or set CAIRN_ROCKSDB_LIB",
            path.display()
        )));
    }
    Api::load(path.as_os_str())
}

/// Reads the version from the options file, which RocksDB writes when it opens a store.
fn version_of(dir: &Path) -> Result<Option<String>> {
    for file in data_files(dir)? {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("OPTIONS") {
            let map = StdFs::new().open(&file, FileOptions::read())?.map()?;
            let text = String::from_utf8_lossy(&map[..]).into_owned();
            let line = text.lines().find_map(|line| line.trim().strip_prefix("rocksdb_version="));
            return Ok(line.map(str::to_owned));
        }
    }
    Ok(None)
}

fn options(compression: Compression, mmap_reads: bool) -> OpenOptions {
    OpenOptions {
        compression: match compression {
            Compression::None => 0,
            Compression::Snappy => 1,
            Compression::Zstd => 7,
        },
        mmap_reads,
        cache_bytes: CACHE_BYTES,
        cache: Cache::HyperClock,
        direct_reads: false,
        block_bytes: 4096,
        filter_bits: 10.0,
        hash_ratio: 0.75,
    }
}

impl ConstantStore for RocksDb {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("input", "sorted first, the sort included in the time"),
            ("load", "SstFileWriter, one file, moved into the last level"),
            ("block size", "4096"),
            ("filter", "bloom, 10 bits a key"),
            ("data block index", "binary and hash, ratio 0.75"),
            ("durability", "sync (file and manifest)"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        let common = [("open", "for read only"), ("max_open_files", "-1"), ("lookup", "pinned")];
        let variant = |name: &str, pairs: [(&str, &str); 3]| {
            let mut settings = settings(common);
            settings.extend(crate::core::settings::settings(pairs));
            Variant { batched: true, ..Variant::new(name, settings) }
        };
        vec![
            variant(
                "rocksdb cache",
                [("block cache", "HyperClock, 4 GiB"), ("mmap reads", "no"), ("verify checksums", "yes")],
            ),
            variant(
                "rocksdb mmap",
                [("block cache", "HyperClock, 4 GiB"), ("mmap reads", "yes"), ("verify checksums", "no")],
            ),
        ]
    }

    fn supports(&self, _: Compression) -> bool {
        true
    }

    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built> {
        let options = options(compression, false);
        let file = dir.join("load.sst");
        let mut table = TableWriter::create(&self.api, &file, options)?;
        for index in data.sorted() {
            let index = index as usize;
            table.put(data.key(index), data.value(index))?;
        }
        table.finish()?;
        let db = Db::open(&self.api, dir, options, false)?;
        db.ingest(&file)?;
        drop(db);
        StdFs::new().sync_dir(dir)?;
        // The records are sorted, as in a B-tree. The size of the index blocks alone would not be
        // comparable with other stores.
        Ok(Built { index_bytes: None })
    }

    fn open(&self, dir: &Path, variant: usize) -> Result<Box<dyn ConstantReader>> {
        Ok(Box::new(Reader(Db::open(&self.api, dir, options(Compression::None, variant == 1), true)?)))
    }
}

struct Reader(Db);

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Cursor { db: &self.0, batch: Batch::default() }))
    }
}

struct Cursor<'a> {
    db: &'a Db,
    batch: Batch,
}

impl Lookups for Cursor<'_> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            self.db.get(key, &mut visit)?;
        }
        Ok(())
    }

    fn each_batched(
        &mut self,
        keys: KeyBatch<'_>,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        in_batches(keys, BATCH_KEYS, |first, keys| {
            self.db.get_many(keys, &mut self.batch, |position, value| visit(first + position, value))
        })
    }
}
