//! The few functions of RocksDB's C interface that the lab needs, found in a shared library at run time.
//!
//! The signatures are those of `rocksdb/c.h`, which RocksDB keeps stable across versions. Booleans are `unsigned
//! char` there, except for the last argument of the batched lookup, which is a C++ `bool`.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_double, c_int, c_uchar, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::Arc;

use libloading::Library;

use super::fail;
use crate::error::Result;

/// An object of RocksDB, known by address only.
pub(super) type Opaque = *mut c_void;
/// Where a call puts its message when it fails.
pub(super) type Errors = *mut *mut c_char;

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without `rocksdb_`.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Never unloaded: RocksDB leaves threads and destructors behind that live in it.
            _library: ManuallyDrop<Library>,
        }

        impl Api {
            /// Loads a shared library and finds all functions in it.
            pub(super) fn load(path: &Path) -> Result<Arc<Api>> {
                // SAFETY: loading runs the library's initialisers; it is the RocksDB that the user installed.
                let library = unsafe { Library::new(path) }.map_err(fail)?;
                $(
                    // SAFETY: the type is that of the function of this name in `rocksdb/c.h`.
                    let $name = *unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            concat!("rocksdb_", stringify!($name), "\0").as_bytes(),
                        )
                    }
                    .map_err(fail)?;
                )*
                Ok(Arc::new(Api { $($name,)* _library: ManuallyDrop::new(library) }))
            }
        }
    };
}

functions! {
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
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Takes the message that a call left in `error`, if it failed.
    #[inline]
    pub(super) fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        Err(self.failure(error))
    }

    #[cold]
    fn failure(&self, error: *mut c_char) -> crate::error::Error {
        // SAFETY: RocksDB reports errors as zero-terminated strings that the caller owns.
        let message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
        // SAFETY: allocated by RocksDB, freed once, not used after.
        unsafe { (self.free)(error.cast()) };
        fail(message)
    }
}
