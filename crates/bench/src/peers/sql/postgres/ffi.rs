//! The functions of libpq, PostgreSQL's own client library, that the lab needs, loaded at run time.
//! The signatures are those of `libpq-fe.h`.
#![allow(unsafe_code)]
// Names are those of the header.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::peers::c_api::c_api;

/// An opaque pointer to a connection or a result.
pub(super) type Opaque = *mut c_void;
/// The number of a type in PostgreSQL's catalog.
pub(super) type Oid = c_uint;

/// Callback for the notices of a server.
pub(super) type NoticeProcessor = extern "C" fn(*mut c_void, *const c_char);

/// `CONNECTION_OK`
pub(super) const CONNECTED: c_int = 0;
/// `PGRES_EMPTY_QUERY`
pub(super) const EMPTY: c_int = 0;
/// `PGRES_COMMAND_OK`
pub(super) const DONE: c_int = 1;
/// `PGRES_TUPLES_OK`
pub(super) const ROWS: c_int = 2;
/// `PGRES_COPY_IN`
pub(super) const COPY_IN: c_int = 4;
/// `PG_DIAG_SQLSTATE`
pub(super) const SQLSTATE: c_int = b'C' as c_int;
/// The binary format of values.
pub(super) const BINARY: c_int = 1;

c_api! {
    super::failure::NAME, "PQ";
    connectdb(*const c_char) -> Opaque;
    status(Opaque) -> c_int;
    errorMessage(Opaque) -> *const c_char;
    finish(Opaque);
    setNoticeProcessor(Opaque, NoticeProcessor, *mut c_void) -> *mut c_void;
    exec(Opaque, *const c_char) -> Opaque;
    execParams(
        Opaque, *const c_char, c_int, *const Oid, *const *const c_char, *const c_int, *const c_int, c_int
    ) -> Opaque;
    prepare(Opaque, *const c_char, *const c_char, c_int, *const Oid) -> Opaque;
    describePrepared(Opaque, *const c_char) -> Opaque;
    nparams(Opaque) -> c_int;
    paramtype(Opaque, c_int) -> Oid;
    execPrepared(
        Opaque, *const c_char, c_int, *const *const c_char, *const c_int, *const c_int, c_int
    ) -> Opaque;
    resultStatus(Opaque) -> c_int;
    resultErrorMessage(Opaque) -> *const c_char;
    resultErrorField(Opaque, c_int) -> *const c_char;
    clear(Opaque);
    ntuples(Opaque) -> c_int;
    nfields(Opaque) -> c_int;
    ftype(Opaque, c_int) -> Oid;
    getisnull(Opaque, c_int, c_int) -> c_int;
    getvalue(Opaque, c_int, c_int) -> *const c_char;
    getlength(Opaque, c_int, c_int) -> c_int;
    cmdTuples(Opaque) -> *const c_char;
    putCopyData(Opaque, *const c_char, c_int) -> c_int;
    putCopyEnd(Opaque, *const c_char) -> c_int;
    getResult(Opaque) -> Opaque;
}
