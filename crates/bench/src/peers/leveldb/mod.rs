//! LevelDB, from Debian's shared library, loaded at run time like RocksDB's.
#![allow(unsafe_code)]

mod ffi;

use std::env;
use std::ffi::{CString, OsString};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use self::ffi::{Api, Opaque};
use crate::core::error::{Error, Result};
use crate::core::quiet::{QUIET, wait_until_quiet};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::peers::c_kv::{Calls, Handle, bytes, calls};
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "leveldb";

/// Names of the library: on Debian, which appends a letter, and on other systems.
const LIBRARIES: [&str; 2] = ["libleveldb.so.1d", "libleveldb.so.1"];

/// A key above every key of the lab. The range from it is empty.
const BEHIND_ALL: &[u8] = &[0xff; 8];

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// LevelDB, with its library loaded.
#[derive(Debug)]
pub struct LevelDb {
    api: Arc<Api>,
}

impl LevelDb {
    /// Loads the library: the one named by `CAIRN_LEVELDB_LIB`, else the system's.
    ///
    /// Errors: there is no such library; the message names the libraries that were tried.
    pub fn find() -> Result<LevelDb> {
        if let Some(path) = env::var_os("CAIRN_LEVELDB_LIB") {
            return Ok(LevelDb { api: Api::load(&path)? });
        }
        let found = LIBRARIES.into_iter().find_map(|name| Api::load(&OsString::from(name)).ok());
        let api = found.ok_or_else(|| {
            fail(format!(
                "no library {} in the system; `scripts/setup peers` in a clone of Cairn installs it, or set CAIRN_LEVELDB_LIB",
                LIBRARIES.join(" or ")
            ))
        })?;
        Ok(LevelDb { api })
    }
}

impl KvStore for LevelDb {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "LevelDB"
    }

    fn version(&self) -> String {
        // SAFETY: functions without arguments or preconditions.
        unsafe { format!("{}.{}", (self.api.major_version)(), (self.api.minor_version)()) }
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::stronger("its log cannot be left out: as for buffered"),
            Durability::Buffered => Guarantee::equal("log written by each put, sync = false"),
            Durability::Sync => Guarantee::equal("WriteOptions::sync = true"),
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let KvSettings { cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } = settings_of_run;
        let mut all = settings([
            ("compression", "none"),
            ("max_open_files", "1000 (default)"),
            ("levels", "base 10 MiB, times 10, files 2 MiB (fixed)"),
            ("reads", "copied by the C interface, checksums not verified (default)"),
            ("flush", "CompactRange of an empty range, which writes the memtable out first"),
        ]);
        all.insert("block cache".to_owned(), format!("LRU, {cache_bytes} bytes"));
        all.insert("write_buffer_size".to_owned(), write_buffer_bytes.to_string());
        all.insert("block size".to_owned(), block_bytes.to_string());
        all.insert("filter".to_owned(), format!("bloom, {filter_bits} bits a key"));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let KvSettings { cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } = settings;
        let sync = settings.durability == Durability::Sync;
        format!(
            "options.create_if_missing = true;\noptions.write_buffer_size = {write_buffer_bytes};\n\
             options.block_cache = leveldb::NewLRUCache({cache_bytes});\noptions.block_size = {block_bytes};\noptions.max_open_files = 1000;\n\
             options.filter_policy = leveldb::NewBloomFilterPolicy({:.0});\noptions.compression = leveldb::kNoCompression;\n\
             leveldb::DB::Open(options, \"store\", &db);\nwrite_options.sync = {sync};\n",
            filter_bits.round()
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let api = self.api.clone();
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(fail)?;
        let mut error = ptr::null_mut();
        // SAFETY: constructors without preconditions, and setters on the live objects they made.
        // Cache and filter must outlive the store; `Open` frees them after it.
        let (options, cache, filter, db) = unsafe {
            let options = (api.options_create)();
            let cache = (api.cache_create_lru)(settings.cache_bytes as usize);
            let filter = (api.filterpolicy_create_bloom)(settings.filter_bits.round() as i32);
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_compression)(options, 0);
            (api.options_set_write_buffer_size)(options, settings.write_buffer_bytes as usize);
            (api.options_set_block_size)(options, settings.block_bytes as usize);
            (api.options_set_max_open_files)(options, 1000);
            (api.options_set_cache)(options, cache);
            (api.options_set_filter_policy)(options, filter);
            (options, cache, filter, (api.open)(options, path.as_ptr(), &mut error))
        };
        // SAFETY: constructors, and a setter on an object that one of them made.
        let (read, write) = unsafe {
            let (read, write) = ((api.readoptions_create)(), (api.writeoptions_create)());
            (api.writeoptions_set_sync)(write, u8::from(settings.durability == Durability::Sync));
            (read, write)
        };
        let opened = api.check(error);
        let calls = calls!(api, NAME);
        let open = Open { api, calls, db, options, cache, filter, read, write };
        opened.map(|()| Box::new(open) as Box<dyn KvDb>)
    }
}

struct Open {
    api: Arc<Api>,
    calls: Calls,
    /// Null if opening failed.
    db: Opaque,
    options: Opaque,
    cache: Opaque,
    filter: Opaque,
    read: Opaque,
    write: Opaque,
}

// SAFETY: LevelDB documents its database as safe for concurrent use; the options do not change
// after this.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: made in `open`, each freed once, the store before the objects that it uses;
        // sessions borrow it, so none is left.
        unsafe {
            if !self.db.is_null() {
                (self.api.close)(self.db);
            }
            (self.api.readoptions_destroy)(self.read);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.options_destroy)(self.options);
            (self.api.cache_destroy)(self.cache);
            (self.api.filterpolicy_destroy)(self.filter);
        }
    }
}

impl Open {
    fn compact_range(&self, from: Option<&[u8]>) {
        let (start, len) = from.map_or((ptr::null(), 0), |from| (from.as_ptr().cast(), from.len()));
        // SAFETY: an open store, bytes of this length; null means an open end.
        unsafe { (self.api.compact_range)(self.db, start, len, ptr::null(), 0) };
    }
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        // SAFETY: live objects, which outlive the session, because it borrows the store.
        let handle = unsafe { Handle::new(&self.calls, self.db, (self.read, self.write)) };
        Ok(Box::new(Session { open: self, handle }))
    }

    fn flush(&self) -> Result<()> {
        self.compact_range(Some(BEHIND_ALL));
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.compact_range(None);
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        wait_until_quiet();
        Ok(())
    }

    fn watched(&self) -> Duration {
        QUIET
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}

struct Session<'a> {
    open: &'a Open,
    handle: Handle<'a>,
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.handle.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.handle.delete(key)
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        self.handle.write_batch(fill)
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.handle.scan(from, visit)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Open { api, db, read, .. } = self.open;
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: an open store, its options, bytes of this length, out-pointers for length and
        // error. The returned value is ours to free, once.
        unsafe {
            let value = (api.get)(*db, *read, key.as_ptr().cast(), key.len(), &mut len, &mut error);
            api.check(error)?;
            if value.is_null() {
                return Ok(false);
            }
            visit(bytes(value, len));
            (api.free)(value.cast());
        }
        Ok(true)
    }
}
