//! The functions of RocksDB's C interface for validating the simulator. All of them exist in 7.8
//! and in 11.8.
#![allow(unsafe_code)]
// Names are those of the header.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uchar, c_void};

use super::ffi::{Errors, Opaque};
use crate::peers::c_api::{c_api, c_errors};

c_api! {
    super::NAME, "rocksdb_";
    free(*mut c_void);
    options_create() -> Opaque;
    options_destroy(Opaque);
    options_set_create_if_missing(Opaque, c_uchar);
    options_set_max_open_files(Opaque, c_int);
    options_enable_statistics(Opaque);
    options_statistics_get_string(Opaque) -> *mut c_char;
    get_options_from_string(Opaque, *const c_char, Opaque, Errors);
    open(Opaque, *const c_char, Errors) -> Opaque;
    close(Opaque);
    readoptions_create() -> Opaque;
    readoptions_destroy(Opaque);
    writeoptions_create() -> Opaque;
    writeoptions_destroy(Opaque);
    writeoptions_disable_WAL(Opaque, c_int);
    put(Opaque, Opaque, *const c_char, usize, *const c_char, usize, Errors);
    delete(Opaque, Opaque, *const c_char, usize, Errors);
    get_pinned(Opaque, Opaque, *const c_char, usize, Errors) -> Opaque;
    pinnableslice_destroy(Opaque);
    flushoptions_create() -> Opaque;
    flushoptions_destroy(Opaque);
    flushoptions_set_wait(Opaque, c_uchar);
    flush(Opaque, Opaque, Errors);
    property_int(Opaque, *const c_char, *mut u64) -> c_int;
    livefiles(Opaque) -> Opaque;
    livefiles_count(Opaque) -> c_int;
    livefiles_level(Opaque, c_int) -> c_int;
    livefiles_size(Opaque, c_int) -> usize;
    livefiles_destroy(Opaque);
}

c_errors!(super::NAME);
