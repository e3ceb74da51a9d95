//! Owners of the objects of RocksDB's C interface: stores, table files, options. Apart from the
//! bindings, only `kv` and `measured` make unsafe calls of their own.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::fail;
use super::ffi::{Api, Opaque};
use crate::core::error::Result;

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(fail)
}

/// A kind of block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    /// Lock-free, for many entries.
    HyperClock,
    /// Split into 2^`shard_bits` shards with a mutex each.
    Lru {
        /// Binary logarithm of the number of shards.
        shard_bits: i32,
    },
}

/// Options of a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenOptions {
    /// Compression type: 0 none, 1 snappy, 7 zstd.
    pub(super) compression: i32,
    /// Read tables through a mapping rather than by `pread`.
    pub(super) mmap_reads: bool,
    /// Capacity of the block cache, in bytes of uncompressed blocks.
    pub(super) cache_bytes: usize,
    /// Kind of block cache.
    pub(super) cache: Cache,
    /// Bypass the kernel's page cache when reading tables.
    pub(super) direct_reads: bool,
    /// Size of a data block before compression.
    pub(super) block_bytes: usize,
    /// Bits of the Bloom filter per key.
    pub(super) filter_bits: f64,
    /// Entries per bucket of the hash index inside data blocks.
    pub(super) hash_ratio: f64,
}

/// `rocksdb_options_t` with its table options and cache.
struct Options {
    api: Arc<Api>,
    options: Opaque,
    table: Opaque,
    cache: Opaque,
}

impl Options {
    fn new(api: &Arc<Api>, choice: OpenOptions) -> Self {
        let api = api.clone();
        // SAFETY: constructors without preconditions, and setters on the live objects they made.
        // The table options take over the filter policy; options and cache are reference-counted
        // and freed in `drop`.
        unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_compression)(options, choice.compression);
            (api.options_set_max_open_files)(options, -1);
            (api.options_set_allow_mmap_reads)(options, u8::from(choice.mmap_reads));
            (api.options_set_use_direct_reads)(options, u8::from(choice.direct_reads));
            let table = (api.block_based_options_create)();
            let cache = match choice.cache {
                Cache::HyperClock => (api.cache_create_hyper_clock)(choice.cache_bytes, 0),
                Cache::Lru { shard_bits } => {
                    let lru = (api.lru_cache_options_create)();
                    (api.lru_cache_options_set_capacity)(lru, choice.cache_bytes);
                    (api.lru_cache_options_set_num_shard_bits)(lru, shard_bits);
                    let cache = (api.cache_create_lru_opts)(lru);
                    (api.lru_cache_options_destroy)(lru);
                    cache
                }
            };
            (api.block_based_options_set_block_size)(table, choice.block_bytes);
            (api.block_based_options_set_filter_policy)(
                table,
                (api.filterpolicy_create_bloom_full)(choice.filter_bits),
            );
            (api.block_based_options_set_block_cache)(table, cache);
            (api.block_based_options_set_data_block_index_type)(table, 1);
            (api.block_based_options_set_data_block_hash_ratio)(table, choice.hash_ratio);
            (api.options_set_block_based_table_factory)(options, table);
            Options { api, options, table, cache }
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once; a store that is open keeps its own references.
        unsafe {
            (self.api.options_destroy)(self.options);
            (self.api.block_based_options_destroy)(self.table);
            (self.api.cache_destroy)(self.cache);
        }
    }
}

/// An open store.
pub(super) struct Db {
    api: Arc<Api>,
    db: Opaque,
    column_family: Opaque,
    read: Opaque,
}

// SAFETY: RocksDB documents its database and read options as safe for concurrent use; nothing else
// is shared.
unsafe impl Send for Db {}
// SAFETY: as above.
unsafe impl Sync for Db {}

impl Drop for Db {
    fn drop(&mut self) {
        // SAFETY: made in `open`, freed once; sessions borrow the store, so none is left.
        unsafe {
            (self.api.readoptions_destroy)(self.read);
            (self.api.column_family_handle_destroy)(self.column_family);
            (self.api.close)(self.db);
        }
    }
}

impl Db {
    /// Opens the store in `dir`; creates it if it does not exist, unless `read_only`.
    pub(super) fn open(api: &Arc<Api>, dir: &Path, choice: OpenOptions, read_only: bool) -> Result<Db> {
        let options = Options::new(api, choice);
        let path = c_path(dir)?;
        let mut error = ptr::null_mut();
        // SAFETY: live options, a zero-terminated path, an out-pointer for the error.
        let db = unsafe {
            if read_only {
                (api.open_for_read_only)(options.options, path.as_ptr(), 0, &mut error)
            } else {
                (api.open)(options.options, path.as_ptr(), &mut error)
            }
        };
        api.check(error)?;
        // SAFETY: `db` is open, since there was no error. Mapped tables are read without checksum
        // verification, because verifying a whole block per lookup is unrealistic.
        unsafe {
            let column_family = (api.get_default_column_family_handle)(db);
            let read = (api.readoptions_create)();
            (api.readoptions_set_verify_checksums)(read, u8::from(!choice.mmap_reads));
            Ok(Db { api: api.clone(), db, column_family, read })
        }
    }

    /// Moves a finished table file into the store.
    pub(super) fn ingest(&self, file: &Path) -> Result<()> {
        let path = c_path(file)?;
        let list = [path.as_ptr()];
        let mut error = ptr::null_mut();
        // SAFETY: one zero-terminated path, options made and freed here, an out-pointer for the
        // error.
        unsafe {
            let options = (self.api.ingestexternalfileoptions_create)();
            (self.api.ingestexternalfileoptions_set_move_files)(options, 1);
            (self.api.ingest_external_file)(self.db, list.as_ptr(), list.len(), options, &mut error);
            (self.api.ingestexternalfileoptions_destroy)(options);
        }
        self.api.check(error)
    }

    /// Looks a key up. The value is pinned in the block cache during `visit`, not copied.
    #[inline]
    pub(super) fn get(&self, key: &[u8], visit: impl FnOnce(Option<&[u8]>)) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: an open store, its read options, a key of this length, an out-pointer for the
        // error.
        let slice =
            unsafe { (self.api.get_pinned)(self.db, self.read, key.as_ptr().cast(), key.len(), &mut error) };
        self.api.check(error)?;
        // SAFETY: null or a slice that is ours.
        unsafe { self.visit(slice, visit) };
        Ok(())
    }

    /// Looks up a batch of keys with one call.
    pub(super) fn get_many(
        &self,
        keys: &[&[u8]],
        batch: &mut Batch,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        batch.fill(keys);
        // SAFETY: five arrays of `keys.len()` elements each, of keys that outlive the call.
        unsafe {
            (self.api.batched_multi_get_cf)(
                self.db,
                self.read,
                self.column_family,
                keys.len(),
                batch.keys.as_ptr(),
                batch.lengths.as_ptr(),
                batch.values.as_mut_ptr(),
                batch.errors.as_mut_ptr(),
                false,
            );
        }
        let mut outcome = Ok(());
        for (position, (&slice, &error)) in batch.values.iter().zip(&batch.errors).enumerate() {
            if let Err(failure) = self.api.check(error) {
                outcome = Err(failure);
            }
            // SAFETY: null or a slice that is ours.
            unsafe { self.visit(slice, |value| visit(position, value)) };
        }
        outcome
    }

    /// Passes a value to `visit` and releases it.
    ///
    /// # Safety
    /// `slice` must be null or a pinned slice that nobody else frees.
    #[inline]
    unsafe fn visit(&self, slice: Opaque, visit: impl FnOnce(Option<&[u8]>)) {
        if slice.is_null() {
            return visit(None);
        }
        let mut len = 0;
        // SAFETY: a live slice; the bytes are valid until it is destroyed below.
        unsafe {
            let start = (self.api.pinnableslice_value)(slice, &mut len);
            let value = if len == 0 { &[][..] } else { std::slice::from_raw_parts(start.cast(), len) };
            visit(Some(value));
            (self.api.pinnableslice_destroy)(slice);
        }
    }
}

/// The arrays for a batched lookup, reused between batches.
#[derive(Default)]
pub(super) struct Batch {
    keys: Vec<*const c_char>,
    lengths: Vec<usize>,
    values: Vec<Opaque>,
    errors: Vec<*mut c_char>,
}

impl Batch {
    pub(super) fn fill(&mut self, keys: &[&[u8]]) {
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| key.as_ptr().cast::<c_char>()));
        self.lengths.clear();
        self.lengths.extend(keys.iter().map(|key| key.len()));
        self.values.clear();
        self.values.resize(keys.len(), ptr::null_mut());
        self.errors.clear();
        self.errors.resize(keys.len(), ptr::null_mut());
    }

    /// Returns the arrays of keys, lengths, values and errors, each with as many elements as there
    /// are keys.
    pub(super) fn arrays(&mut self) -> (*const *const c_char, *const usize, *mut Opaque, *mut *mut c_char) {
        let Batch { keys, lengths, values, errors } = self;
        (keys.as_ptr(), lengths.as_ptr(), values.as_mut_ptr(), errors.as_mut_ptr())
    }

    /// Returns the results of the call: for each key a value or an error, or neither.
    pub(super) fn answers(&self) -> impl Iterator<Item = (Opaque, *mut c_char)> {
        self.values.iter().copied().zip(self.errors.iter().copied())
    }
}

/// Writes one sorted table file outside of any store.
pub(super) struct TableWriter {
    api: Arc<Api>,
    _options: Options,
    environment: Opaque,
    writer: Opaque,
}

impl TableWriter {
    pub(super) fn create(api: &Arc<Api>, file: &Path, choice: OpenOptions) -> Result<TableWriter> {
        let options = Options::new(api, choice);
        // SAFETY: live options; both objects are freed in `drop`.
        let (environment, writer) = unsafe {
            let environment = (api.envoptions_create)();
            (environment, (api.sstfilewriter_create)(environment, options.options))
        };
        let table = TableWriter { api: api.clone(), _options: options, environment, writer };
        let path = c_path(file)?;
        let mut error = ptr::null_mut();
        // SAFETY: a live writer, a zero-terminated path, an out-pointer for the error.
        unsafe { (api.sstfilewriter_open)(table.writer, path.as_ptr(), &mut error) };
        api.check(error)?;
        Ok(table)
    }

    /// Adds a record; keys must be in ascending order.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: a live writer, bytes of these lengths, an out-pointer for the error.
        unsafe {
            (self.api.sstfilewriter_put)(
                self.writer,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &mut error,
            );
        }
        self.api.check(error)
    }

    /// Writes the remaining data and syncs the file.
    pub(super) fn finish(self) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: a live writer, an out-pointer for the error.
        unsafe { (self.api.sstfilewriter_finish)(self.writer, &mut error) };
        self.api.check(error)
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        // SAFETY: made in `create`, freed once, the writer before the options that it reads.
        unsafe {
            (self.api.sstfilewriter_destroy)(self.writer);
            (self.api.envoptions_destroy)(self.environment);
        }
    }
}

/// Counts the blocks that this thread reads past the cache, from the creation of the counter on.
/// RocksDB counts per thread.
pub(super) struct BlockReads {
    api: Arc<Api>,
    context: Opaque,
    before: u64,
}

/// `kEnableCount`: counts without times.
const PERF_COUNTS: i32 = 2;
/// `rocksdb_block_read_count`.
const BLOCK_READ_COUNT: i32 = 2;

impl BlockReads {
    /// Enables RocksDB's counters in this thread.
    pub(super) fn new(api: &Arc<Api>) -> Self {
        // SAFETY: both have no preconditions; the context is freed in `drop`.
        let context = unsafe {
            (api.set_perf_level)(PERF_COUNTS);
            (api.perfcontext_create)()
        };
        let mut reads = BlockReads { api: api.clone(), context, before: 0 };
        reads.before = reads.since();
        reads
    }

    /// Returns the count so far. Only the thread that created the counter can call it, because the
    /// type is neither `Send` nor `Sync`.
    pub(super) fn since(&self) -> u64 {
        // SAFETY: a live context; RocksDB reads the counts of the calling thread.
        let now = unsafe { (self.api.perfcontext_metric)(self.context, BLOCK_READ_COUNT) };
        now.saturating_sub(self.before)
    }
}

impl Drop for BlockReads {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once.
        unsafe { (self.api.perfcontext_destroy)(self.context) };
    }
}
