//! The functions of RocksDB's C interface that the lab needs, loaded from a shared library at run
//! time.
//!
//! The signatures are those of `rocksdb/c.h`, which RocksDB keeps stable across versions. Booleans
//! are `unsigned char`, except for the last argument of the batched lookup, which is a C++ `bool`.
#![allow(unsafe_code)]
// Names are those of the header.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_double, c_int, c_uchar, c_void};

use crate::peers::c_api::{c_api, c_errors};

/// An opaque pointer to an object of RocksDB.
pub(super) type Opaque = *mut c_void;
/// Out-pointer for the message of a failed call.
pub(super) type Errors = *mut *mut c_char;

c_api! {
    super::NAME, "rocksdb_";
    free(*mut c_void);
    options_create() -> Opaque;
    options_destroy(Opaque);
    options_set_create_if_missing(Opaque, c_uchar);
    options_set_compression(Opaque, c_int);
    options_set_max_open_files(Opaque, c_int);
    options_set_allow_mmap_reads(Opaque, c_uchar);
    options_set_block_based_table_factory(Opaque, Opaque);
    block_based_options_create() -> Opaque;
    block_based_options_destroy(Opaque);
    block_based_options_set_block_size(Opaque, usize);
    block_based_options_set_filter_policy(Opaque, Opaque);
    block_based_options_set_block_cache(Opaque, Opaque);
    block_based_options_set_data_block_index_type(Opaque, c_int);
    block_based_options_set_data_block_hash_ratio(Opaque, c_double);
    filterpolicy_create_bloom_full(c_double) -> Opaque;
    cache_create_hyper_clock(usize, usize) -> Opaque;
    cache_create_lru_opts(Opaque) -> Opaque;
    lru_cache_options_create() -> Opaque;
    lru_cache_options_destroy(Opaque);
    lru_cache_options_set_capacity(Opaque, usize);
    lru_cache_options_set_num_shard_bits(Opaque, c_int);
    options_set_use_direct_reads(Opaque, c_uchar);
    set_perf_level(c_int);
    perfcontext_create() -> Opaque;
    perfcontext_destroy(Opaque);
    perfcontext_metric(Opaque, c_int) -> u64;
    cache_destroy(Opaque);
    open(Opaque, *const c_char, Errors) -> Opaque;
    open_for_read_only(Opaque, *const c_char, c_uchar, Errors) -> Opaque;
    close(Opaque);
    envoptions_create() -> Opaque;
    envoptions_destroy(Opaque);
    sstfilewriter_create(Opaque, Opaque) -> Opaque;
    sstfilewriter_destroy(Opaque);
    sstfilewriter_open(Opaque, *const c_char, Errors);
    sstfilewriter_put(Opaque, *const c_char, usize, *const c_char, usize, Errors);
    sstfilewriter_finish(Opaque, Errors);
    ingestexternalfileoptions_create() -> Opaque;
    ingestexternalfileoptions_destroy(Opaque);
    ingestexternalfileoptions_set_move_files(Opaque, c_uchar);
    ingest_external_file(Opaque, *const *const c_char, usize, Opaque, Errors);
    readoptions_create() -> Opaque;
    readoptions_destroy(Opaque);
    readoptions_set_verify_checksums(Opaque, c_uchar);
    get_default_column_family_handle(Opaque) -> Opaque;
    column_family_handle_destroy(Opaque);
    get_pinned(Opaque, Opaque, *const c_char, usize, Errors) -> Opaque;
    pinnableslice_value(Opaque, *mut usize) -> *const c_char;
    pinnableslice_destroy(Opaque);
    batched_multi_get_cf(
        Opaque, Opaque, Opaque, usize, *const *const c_char, *const usize, *mut Opaque, Errors, bool
    );
    options_set_write_buffer_size(Opaque, usize);
    options_set_max_write_buffer_number(Opaque, c_int);
    options_set_max_bytes_for_level_base(Opaque, u64);
    options_set_target_file_size_base(Opaque, u64);
    options_set_max_background_jobs(Opaque, c_int);
    writeoptions_create() -> Opaque;
    writeoptions_destroy(Opaque);
    writeoptions_set_sync(Opaque, c_uchar);
    writeoptions_disable_WAL(Opaque, c_int);
    put(Opaque, Opaque, *const c_char, usize, *const c_char, usize, Errors);
    delete(Opaque, Opaque, *const c_char, usize, Errors);
    write(Opaque, Opaque, Opaque, Errors);
    writebatch_create() -> Opaque;
    writebatch_destroy(Opaque);
    writebatch_clear(Opaque);
    writebatch_put(Opaque, *const c_char, usize, *const c_char, usize);
    writebatch_delete(Opaque, *const c_char, usize);
    create_iterator(Opaque, Opaque) -> Opaque;
    iter_destroy(Opaque);
    iter_seek(Opaque, *const c_char, usize);
    iter_valid(Opaque) -> c_uchar;
    iter_next(Opaque);
    iter_key(Opaque, *mut usize) -> *const c_char;
    iter_value(Opaque, *mut usize) -> *const c_char;
    iter_get_error(Opaque, Errors);
    flushoptions_create() -> Opaque;
    flushoptions_destroy(Opaque);
    flushoptions_set_wait(Opaque, c_uchar);
    flush(Opaque, Opaque, Errors);
    compact_range(Opaque, *const c_char, usize, *const c_char, usize);
    property_int(Opaque, *const c_char, *mut u64) -> c_int;
}

c_errors!(super::NAME);
