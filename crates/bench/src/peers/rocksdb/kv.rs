//! RocksDB as a writable, ordered key-value store, from the same library as the constant one.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use super::ffi::{Api, Opaque};
use super::{NAME, RocksDb, fail};
use crate::core::error::Result;
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::peers::c_kv::{Calls, Handle, bytes, calls};
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Interval between checks of background work.
const POLL: Duration = Duration::from_millis(2);

/// Number of consecutive checks without running or pending work after which the store counts as
/// idle.
const QUIET_POLLS: u32 = 3;

/// Number of checks without running work after which a pending compaction counts as stuck: a tree
/// may stay due forever if its picker finds nothing to merge.
const DUE_POLLS: u32 = 100;

/// RocksDB's defaults for the size of the first level and of its files, set explicitly.
const LEVEL_BASE_BYTES: u64 = 256 << 20;
const FILE_BYTES: u64 = 64 << 20;
/// Load factor of the hash index in a data block.
const HASH_RATIO: f64 = 0.75;

/// RocksDB, with its library loaded.
#[derive(Debug)]
pub struct RocksDbKv {
    api: Arc<Api>,
    version: String,
}

impl RocksDbKv {
    /// Like [`RocksDb::find`], with the same errors.
    pub fn find() -> Result<RocksDbKv> {
        let RocksDb { api, version } = RocksDb::find()?;
        Ok(RocksDbKv { api, version })
    }
}

impl KvStore for RocksDbKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "RocksDB"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::equal("disableWAL"),
            Durability::Buffered => Guarantee::equal("WAL written by each put, sync = false"),
            Durability::Sync => Guarantee::equal("WriteOptions::sync = true"),
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let KvSettings { cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } = settings_of_run;
        let mut all = settings([
            ("compression", "none"),
            ("data block index", "binary and hash, ratio 0.75"),
            ("max_open_files", "-1"),
            ("max_write_buffer_number", "2 (default)"),
            ("max_background_jobs", "2 (default)"),
            ("levels", "leveled; base 256 MiB, times 10, files 64 MiB (defaults)"),
            ("reads", "pinned, checksums verified (default)"),
        ]);
        all.insert("block cache".to_owned(), format!("HyperClock, {cache_bytes} bytes"));
        all.insert("write_buffer_size".to_owned(), write_buffer_bytes.to_string());
        all.insert("block size".to_owned(), block_bytes.to_string());
        all.insert("filter".to_owned(), format!("bloom, {filter_bits} bits a key"));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let KvSettings { durability, cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } =
            settings;
        let write = match durability {
            Durability::Sync => "WriteOptions::sync = true",
            Durability::Buffered => "WriteOptions::sync = false",
            Durability::Memory => "WriteOptions::disableWAL = true",
        };
        format!(
            "# OPTIONS of the store\n[DBOptions]\n  create_if_missing=true\n  max_background_jobs=2\n  max_open_files=-1\n[CFOptions \"default\"]\n  write_buffer_size={write_buffer_bytes}\n  \
             max_write_buffer_number=2\n  max_bytes_for_level_base={LEVEL_BASE_BYTES}\n  target_file_size_base={FILE_BYTES}\n  \
             compression=kNoCompression\n[TableOptions/BlockBasedTable \"default\"]\n  block_size={block_bytes}\n  \
             filter_policy=bloomfilter:{filter_bits}:false\n  data_block_index_type=kDataBlockBinaryAndHash\n  \
             data_block_hash_table_util_ratio={HASH_RATIO}\n# block cache, in code: HyperClockCacheOptions({cache_bytes}, 0).MakeSharedCache()\n\
             # each write: {write}\n"
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let api = self.api.clone();
        let path = CString::new(dir.as_os_str().as_encoded_bytes()).map_err(fail)?;
        let mut error = ptr::null_mut();
        // SAFETY: constructors without preconditions, setters on the live objects they made, a
        // zero-terminated path and an out-pointer for the error. The table options take over the
        // filter policy; options and cache are reference-counted, and an open store keeps its own
        // references.
        let db = unsafe {
            let options = (api.options_create)();
            let table = (api.block_based_options_create)();
            let cache = (api.cache_create_hyper_clock)(settings.cache_bytes as usize, 0);
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_compression)(options, 0);
            (api.options_set_max_open_files)(options, -1);
            (api.options_set_write_buffer_size)(options, settings.write_buffer_bytes as usize);
            (api.options_set_max_write_buffer_number)(options, 2);
            (api.options_set_max_background_jobs)(options, 2);
            (api.options_set_max_bytes_for_level_base)(options, LEVEL_BASE_BYTES);
            (api.options_set_target_file_size_base)(options, FILE_BYTES);
            (api.block_based_options_set_block_size)(table, settings.block_bytes as usize);
            let filter = (api.filterpolicy_create_bloom_full)(settings.filter_bits);
            (api.block_based_options_set_filter_policy)(table, filter);
            (api.block_based_options_set_block_cache)(table, cache);
            (api.block_based_options_set_data_block_index_type)(table, 1);
            (api.block_based_options_set_data_block_hash_ratio)(table, HASH_RATIO);
            (api.options_set_block_based_table_factory)(options, table);
            let db = (api.open)(options, path.as_ptr(), &mut error);
            (api.options_destroy)(options);
            (api.block_based_options_destroy)(table);
            (api.cache_destroy)(cache);
            db
        };
        api.check(error)?;
        // SAFETY: constructors, and setters on the objects they made; freed when `Open` is dropped.
        let open = unsafe {
            let (read, write) = ((api.readoptions_create)(), (api.writeoptions_create)());
            (api.writeoptions_set_sync)(write, u8::from(settings.durability == Durability::Sync));
            (api.writeoptions_disable_WAL)(write, i32::from(settings.durability == Durability::Memory));
            let column_family = (api.get_default_column_family_handle)(db);
            Open { calls: calls!(api, NAME), api, db, column_family, read, write }
        };
        Ok(Box::new(open))
    }
}

struct Open {
    api: Arc<Api>,
    calls: Calls,
    db: Opaque,
    column_family: Opaque,
    read: Opaque,
    write: Opaque,
}

// SAFETY: RocksDB documents its database, and options that nobody changes, as safe for concurrent
// use.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: made in `open`, freed once; sessions borrow the store, so none is left.
        unsafe {
            (self.api.readoptions_destroy)(self.read);
            (self.api.writeoptions_destroy)(self.write);
            (self.api.column_family_handle_destroy)(self.column_family);
            (self.api.close)(self.db);
        }
    }
}

impl Open {
    fn property(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: an open store, a zero-terminated name, an out-pointer for the value.
        let unknown = unsafe { (self.api.property_int)(self.db, name.as_ptr(), &mut value) };
        (unknown == 0).then_some(value)
    }

    fn is_busy(&self) -> bool {
        [
            c"rocksdb.mem-table-flush-pending",
            c"rocksdb.num-running-flushes",
            c"rocksdb.num-running-compactions",
        ]
        .into_iter()
        .any(|name| self.property(name).unwrap_or(0) > 0)
    }
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        // SAFETY: live objects, which outlive the session, because it borrows the store.
        let handle = unsafe { Handle::new(&self.calls, self.db, (self.read, self.write)) };
        Ok(Box::new(Session { open: self, handle, many: super::Batch::default() }))
    }

    fn flush(&self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: an open store, options made and freed here, an out-pointer for the error.
        unsafe {
            let options = (self.api.flushoptions_create)();
            (self.api.flushoptions_set_wait)(options, 1);
            (self.api.flush)(self.db, options, &mut error);
            (self.api.flushoptions_destroy)(options);
        }
        self.api.check(error)
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        // SAFETY: an open store; null keys mean open ends.
        unsafe { (self.api.compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn watched(&self) -> Duration {
        POLL * QUIET_POLLS
    }

    fn wait_idle(&self) -> Result<()> {
        let clock = SystemClock::new();
        // For a moment between a flush and the compaction that it triggers, neither is running, so
        // a single check is not enough.
        let (mut quiet, mut due) = (0, 0);
        while quiet < QUIET_POLLS && due < DUE_POLLS {
            let is_due = self.property(c"rocksdb.compaction-pending").unwrap_or(0) > 0;
            (quiet, due) = match (self.is_busy(), is_due) {
                (true, _) => (0, 0),
                (false, true) => (0, due + 1),
                (false, false) => (quiet + 1, 0),
            };
            clock.sleep(POLL);
        }
        Ok(())
    }

    fn stats(&self) -> Result<BTreeMap<String, f64>> {
        let known = [
            c"rocksdb.total-sst-files-size",
            c"rocksdb.live-sst-files-size",
            c"rocksdb.num-files-at-level0",
            c"rocksdb.estimate-pending-compaction-bytes",
            c"rocksdb.block-cache-usage",
        ];
        let read = |name: &CStr| Some((name.to_string_lossy().into_owned(), self.property(name)? as f64));
        Ok(known.into_iter().filter_map(read).collect())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}

struct Session<'a> {
    open: &'a Open,
    handle: Handle<'a>,
    many: super::Batch,
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
        let mut error = ptr::null_mut();
        // SAFETY: an open store, its options, bytes of this length, an out-pointer for the error.
        let slice = unsafe { (api.get_pinned)(*db, *read, key.as_ptr().cast(), key.len(), &mut error) };
        api.check(error)?;
        if slice.is_null() {
            return Ok(false);
        }
        // SAFETY: a slice that is ours.
        unsafe { visit_slice(api, slice, |value| visit(value)) };
        Ok(true)
    }

    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        let Open { api, db, read, column_family, .. } = self.open;
        self.many.fill(keys);
        // SAFETY: five arrays of `keys.len()` elements each, of keys that outlive the call.
        unsafe {
            let (names, lengths, values, errors) = self.many.arrays();
            (api.batched_multi_get_cf)(
                *db,
                *read,
                *column_family,
                keys.len(),
                names,
                lengths,
                values,
                errors,
                false,
            );
        }
        let mut outcome = Ok(());
        for (place, (slice, error)) in self.many.answers().enumerate() {
            if let Err(failure) = api.check(error) {
                outcome = Err(failure);
            } else if slice.is_null() {
                visit(place, None);
            } else {
                // SAFETY: a slice that is ours.
                unsafe { visit_slice(api, slice, |value| visit(place, Some(value))) };
            }
        }
        outcome
    }
}

/// Passes a value to `visit` and releases it.
///
/// # Safety
/// `slice` must be a pinned slice that nobody else frees.
#[inline]
unsafe fn visit_slice(api: &Api, slice: Opaque, visit: impl FnOnce(&[u8])) {
    let mut len = 0;
    // SAFETY: a live slice; the bytes are valid until it is destroyed.
    unsafe {
        let start = (api.pinnableslice_value)(slice, &mut len);
        visit(bytes(start, len));
        (api.pinnableslice_destroy)(slice);
    }
}
