//! The functions of DuckDB's C interface that the lab needs, loaded from a shared library at run
//! time. The signatures are those of `duckdb.h` 1.x.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

use crate::peers::c_api::c_api;

/// An opaque pointer to an object of DuckDB.
pub(super) type Opaque = *mut c_void;
/// Pointer to the variable in which a call stores a new object, or from which it destroys one.
pub(super) type Place = *mut Opaque;
/// Status of a call.
pub(super) type State = c_int;

/// The status of success.
pub(super) const SUCCESS: State = 0;

/// The result of a statement. All fields but the last are deprecated.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct RawResult {
    deprecated: [u64; 5],
    internal: Opaque,
}

impl RawResult {
    /// An empty result, for a call to fill.
    pub(super) const EMPTY: RawResult = RawResult { deprecated: [0; 5], internal: std::ptr::null_mut() };
}

/// A text in a vector: its length, followed by its bytes or their address.
///
/// ```text
///   0        4                    16
///   ┌────────┬────────────────────┐
///   │ length │ up to 12 bytes     │
///   ├────────┼────────┬───────────┤
///   │ length │ prefix │ address   │   longer texts
///   └────────┴────────┴───────────┘
/// ```
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawText {
    pub(super) length: u32,
    pub(super) prefix: [u8; 4],
    pub(super) address: *const u8,
}

/// Maximum length of a text that is stored inline.
pub(super) const INLINE: usize = 12;

/// Type numbers of `duckdb.h`.
pub(super) mod kind {
    use std::ffi::c_int;

    pub(crate) const BOOLEAN: c_int = 1;
    pub(crate) const TINYINT: c_int = 2;
    pub(crate) const SMALLINT: c_int = 3;
    pub(crate) const INTEGER: c_int = 4;
    pub(crate) const BIGINT: c_int = 5;
    pub(crate) const FLOAT: c_int = 10;
    pub(crate) const DOUBLE: c_int = 11;
    pub(crate) const DATE: c_int = 13;
    pub(crate) const HUGEINT: c_int = 16;
    pub(crate) const VARCHAR: c_int = 17;
    pub(crate) const DECIMAL: c_int = 19;
}

c_api! {
    super::NAME, "duckdb_";
    library_version() -> *const c_char;
    create_config(Place) -> State;
    set_config(Opaque, *const c_char, *const c_char) -> State;
    destroy_config(Place);
    open_ext(*const c_char, Place, Opaque, *mut *mut c_char) -> State;
    close(Place);
    free(*mut c_void);
    connect(Opaque, Place) -> State;
    disconnect(Place);
    query(Opaque, *const c_char, *mut RawResult) -> State;
    destroy_result(*mut RawResult);
    result_error(*mut RawResult) -> *const c_char;
    rows_changed(*mut RawResult) -> u64;
    column_count(*mut RawResult) -> u64;
    column_type(*mut RawResult, u64) -> c_int;
    column_logical_type(*mut RawResult, u64) -> Opaque;
    decimal_scale(Opaque) -> u8;
    decimal_internal_type(Opaque) -> c_int;
    destroy_logical_type(Place);
    fetch_chunk(RawResult) -> Opaque;
    data_chunk_get_size(Opaque) -> u64;
    data_chunk_get_vector(Opaque, u64) -> Opaque;
    destroy_data_chunk(Place);
    vector_get_data(Opaque) -> *mut c_void;
    vector_get_validity(Opaque) -> *const u64;
    prepare(Opaque, *const c_char, Place) -> State;
    prepare_error(Opaque) -> *const c_char;
    destroy_prepare(Place);
    nparams(Opaque) -> u64;
    param_type(Opaque, u64) -> c_int;
    bind_null(Opaque, u64) -> State;
    bind_int32(Opaque, u64, i32) -> State;
    bind_int64(Opaque, u64, i64) -> State;
    bind_date(Opaque, u64, i32) -> State;
    bind_double(Opaque, u64, f64) -> State;
    bind_varchar_length(Opaque, u64, *const c_char, u64) -> State;
    execute_prepared(Opaque, *mut RawResult) -> State;
    appender_create(Opaque, *const c_char, *const c_char, Place) -> State;
    appender_error(Opaque) -> *const c_char;
    appender_end_row(Opaque) -> State;
    appender_close(Opaque) -> State;
    appender_destroy(Place) -> State;
    append_null(Opaque) -> State;
    append_int64(Opaque, i64) -> State;
    append_date(Opaque, i32) -> State;
    append_double(Opaque, f64) -> State;
    append_varchar_length(Opaque, *const c_char, u64) -> State;
}
