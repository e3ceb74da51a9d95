//! The calls for keys and values in LevelDB's C interface, which RocksDB has kept: the same names
//! and signatures behind another prefix. So one session serves both.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_uchar, c_void};
use std::ptr;

use crate::core::error::{Error, Result};
use crate::stores::kv::KvBatch;

/// An opaque pointer to an object of the library.
pub(super) type Opaque = *mut c_void;
/// Out-pointer for the message of a failed call.
type Errors = *mut *mut c_char;

/// The calls of one library.
#[derive(Debug, Clone, Copy)]
pub(super) struct Calls {
    /// The store's name, for errors.
    pub store: &'static str,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub put: unsafe extern "C" fn(Opaque, Opaque, *const c_char, usize, *const c_char, usize, Errors),
    pub delete: unsafe extern "C" fn(Opaque, Opaque, *const c_char, usize, Errors),
    pub write: unsafe extern "C" fn(Opaque, Opaque, Opaque, Errors),
    pub writebatch_create: unsafe extern "C" fn() -> Opaque,
    pub writebatch_destroy: unsafe extern "C" fn(Opaque),
    pub writebatch_clear: unsafe extern "C" fn(Opaque),
    pub writebatch_put: unsafe extern "C" fn(Opaque, *const c_char, usize, *const c_char, usize),
    pub writebatch_delete: unsafe extern "C" fn(Opaque, *const c_char, usize),
    pub create_iterator: unsafe extern "C" fn(Opaque, Opaque) -> Opaque,
    pub iter_destroy: unsafe extern "C" fn(Opaque),
    pub iter_seek: unsafe extern "C" fn(Opaque, *const c_char, usize),
    pub iter_valid: unsafe extern "C" fn(Opaque) -> c_uchar,
    pub iter_next: unsafe extern "C" fn(Opaque),
    pub iter_key: unsafe extern "C" fn(Opaque, *mut usize) -> *const c_char,
    pub iter_value: unsafe extern "C" fn(Opaque, *mut usize) -> *const c_char,
    pub iter_get_error: unsafe extern "C" fn(Opaque, Errors),
}

/// Takes the [`Calls`] out of a library's table of functions.
macro_rules! calls {
    ($api:expr, $store:expr) => {
        crate::peers::c_kv::calls!(@ $api, $store; free put delete write writebatch_create
            writebatch_destroy writebatch_clear writebatch_put writebatch_delete create_iterator
            iter_destroy iter_seek iter_valid iter_next iter_key iter_value iter_get_error)
    };
    (@ $api:expr, $store:expr; $($name:ident)*) => {
        crate::peers::c_kv::Calls { store: $store, $($name: $api.$name,)* }
    };
}

pub(super) use calls;

impl Calls {
    /// Returns the message that a failed call stored in `error` as an error.
    #[inline]
    fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        Err(self.failure(error))
    }

    #[cold]
    fn failure(&self, error: *mut c_char) -> Error {
        // SAFETY: errors are zero-terminated strings that the caller owns.
        let message = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
        // SAFETY: allocated by the library, freed once, not used after.
        unsafe { (self.free)(error.cast()) };
        Error::engine(self.store, message)
    }
}

/// Borrows bytes of a C library as a slice.
///
/// # Safety
/// `start` must point to `len` bytes that live as long as the result is used, or `len` must be 0.
#[inline]
pub(super) unsafe fn bytes<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), len) }
}

/// The writes and scans of one thread on an open store.
#[derive(Debug)]
pub(super) struct Handle<'a> {
    calls: &'a Calls,
    db: Opaque,
    read: Opaque,
    write: Opaque,
    batch: Opaque,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: made with the handle, freed once.
        unsafe { (self.calls.writebatch_destroy)(self.batch) };
    }
}

impl<'a> Handle<'a> {
    /// Creates a handle on the open store `db` with its options for reads and writes.
    ///
    /// # Safety
    /// The three must be live objects of the library of `calls`, and outlive the handle.
    pub(super) unsafe fn new(calls: &'a Calls, db: Opaque, (read, write): (Opaque, Opaque)) -> Handle<'a> {
        // SAFETY: a constructor; freed when the handle is dropped.
        let batch = unsafe { (calls.writebatch_create)() };
        Handle { calls, db, read, write, batch }
    }

    /// See [`KvSession::put`](crate::stores::kv::KvSession::put).
    #[inline]
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: an open store, its options, bytes of these lengths, an out-pointer for the error.
        unsafe {
            let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
            let (key_len, value_len) = (key.len(), value.len());
            (self.calls.put)(self.db, self.write, key_start, key_len, value_start, value_len, &mut error);
        }
        self.calls.check(error)
    }

    /// See [`KvSession::delete`](crate::stores::kv::KvSession::delete).
    #[inline]
    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: as in `put`.
        unsafe { (self.calls.delete)(self.db, self.write, key.as_ptr().cast(), key.len(), &mut error) };
        self.calls.check(error)
    }

    /// See [`KvSession::write_batch`](crate::stores::kv::KvSession::write_batch).
    pub(super) fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        // SAFETY: the handle's own batch.
        unsafe { (self.calls.writebatch_clear)(self.batch) };
        fill(&mut Filling { calls: self.calls, batch: self.batch })?;
        let mut error = ptr::null_mut();
        // SAFETY: an open store, its options, a live batch, an out-pointer for the error.
        unsafe { (self.calls.write)(self.db, self.write, self.batch, &mut error) };
        self.calls.check(error)
    }

    /// See [`KvSession::scan`](crate::stores::kv::KvSession::scan).
    pub(super) fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let Calls {
            create_iterator,
            iter_seek,
            iter_valid,
            iter_key,
            iter_value,
            iter_next,
            iter_get_error,
            ..
        } = *self.calls;
        // SAFETY: an open store and its options; the iterator is destroyed below, and its key and
        // value are used before its next step.
        let error = unsafe {
            let iterator = create_iterator(self.db, self.read);
            iter_seek(iterator, from.as_ptr().cast(), from.len());
            while iter_valid(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = iter_key(iterator, &mut key_len);
                let value = iter_value(iterator, &mut value_len);
                if !visit(bytes(key, key_len), bytes(value, value_len)) {
                    break;
                }
                iter_next(iterator);
            }
            let mut error = ptr::null_mut();
            iter_get_error(iterator, &mut error);
            (self.calls.iter_destroy)(iterator);
            error
        };
        self.calls.check(error)
    }
}

struct Filling<'a> {
    calls: &'a Calls,
    batch: Opaque,
}

impl KvBatch for Filling<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: a live batch, bytes of these lengths, which it copies.
        unsafe {
            let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
            (self.calls.writebatch_put)(self.batch, key_start, key.len(), value_start, value.len());
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: as above.
        unsafe { (self.calls.writebatch_delete)(self.batch, key.as_ptr().cast(), key.len()) };
        Ok(())
    }
}
