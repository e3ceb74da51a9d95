//! The functions of LevelDB's C interface that the lab needs, loaded from a shared library at run
//! time. Their signatures are those of `leveldb/c.h`, which has `unsigned char` for booleans.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uchar, c_void};

use crate::peers::c_api::{c_api, c_errors};

/// An opaque pointer to an object of LevelDB.
pub(super) type Opaque = *mut c_void;
/// Out-pointer for the message of a failed call.
pub(super) type Errors = *mut *mut c_char;

c_api! {
    super::NAME, "leveldb_";
    free(*mut c_void);
    major_version() -> c_int;
    minor_version() -> c_int;
    options_create() -> Opaque;
    options_destroy(Opaque);
    options_set_create_if_missing(Opaque, c_uchar);
    options_set_compression(Opaque, c_int);
    options_set_write_buffer_size(Opaque, usize);
    options_set_block_size(Opaque, usize);
    options_set_max_open_files(Opaque, c_int);
    options_set_cache(Opaque, Opaque);
    options_set_filter_policy(Opaque, Opaque);
    cache_create_lru(usize) -> Opaque;
    cache_destroy(Opaque);
    filterpolicy_create_bloom(c_int) -> Opaque;
    filterpolicy_destroy(Opaque);
    open(Opaque, *const c_char, Errors) -> Opaque;
    close(Opaque);
    readoptions_create() -> Opaque;
    readoptions_destroy(Opaque);
    writeoptions_create() -> Opaque;
    writeoptions_destroy(Opaque);
    writeoptions_set_sync(Opaque, c_uchar);
    put(Opaque, Opaque, *const c_char, usize, *const c_char, usize, Errors);
    delete(Opaque, Opaque, *const c_char, usize, Errors);
    write(Opaque, Opaque, Opaque, Errors);
    get(Opaque, Opaque, *const c_char, usize, *mut usize, Errors) -> *mut c_char;
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
    compact_range(Opaque, *const c_char, usize, *const c_char, usize);
}

c_errors!(super::NAME);
