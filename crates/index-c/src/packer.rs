//! Writing pages.

use std::ptr;

use cairn_index::{Kind, PackError, Packer, Value};

use crate::{FAULT, INVALID, TOO_LARGE, guarded, guarded_handle, slice_of};

/// Rows that wait for a page.
pub struct CairnPacker {
    packer: Packer,
    columns: usize,
    kinds: Vec<Kind>,
    page: Vec<u8>,
    needed: usize,
}

/// A value of a row: `integer`, or `integer` bytes at `bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CairnValue {
    pub(crate) bytes: *const u8,
    pub(crate) integer: u64,
    pub(crate) is_null: i32,
}

fn code(error: PackError) -> i32 {
    match error {
        PackError::RowTooLarge { .. } => TOO_LARGE,
        _ => INVALID,
    }
}

/// Creates a packer for pages of up to `capacity` bytes and `max_rows` rows. `kinds` has one byte
/// per column, 0 for integers, 1 for byte strings. Returns null if the shape is impossible.
///
/// # Safety
/// `kinds` points to `columns` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_new(
    kinds: *const u8,
    columns: usize,
    capacity: usize,
    max_rows: usize,
) -> *mut CairnPacker {
    // SAFETY: guaranteed by the caller.
    let kinds = unsafe { slice_of(kinds, columns) };
    guarded_handle(|| {
        let kinds: Vec<Kind> =
            kinds.iter().map(|kind| if *kind == 0 { Kind::Integers } else { Kind::Bytes }).collect();
        match Packer::new(&kinds, capacity, max_rows, true) {
            Ok(packer) => {
                Box::into_raw(Box::new(CairnPacker { packer, columns, kinds, page: Vec::new(), needed: 0 }))
            }
            Err(_) => ptr::null_mut(),
        }
    })
}

/// Frees a packer. Does nothing if `packer` is null.
///
/// # Safety
/// `packer` comes from `cairn_packer_new` and is not used again, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_free(packer: *mut CairnPacker) {
    if !packer.is_null() {
        // SAFETY: the caller passes a pointer from `cairn_packer_new`, and only once.
        drop(unsafe { Box::from_raw(packer) });
    }
}

/// Adds a row with the id `block << 16 | offset`. Returns 1 if a page may be cut now, 0 if not, or
/// an error.
///
/// # Safety
/// `packer` is live. `values` points to a value for each column, and each byte string among them
/// points to as many bytes as it states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_push(
    packer: *mut CairnPacker,
    id: u64,
    values: *const CairnValue,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let packer = unsafe { &mut *packer };
    // SAFETY: guaranteed by the caller.
    let values = unsafe { slice_of(values, packer.columns) };
    guarded(|| {
        let kinds = &packer.kinds;
        let row = values.iter().zip(kinds).map(|(value, kind)| match kind {
            _ if value.is_null != 0 => Value::Null,
            Kind::Integers => Value::Integer(value.integer),
            Kind::Bytes => {
                // SAFETY: the caller guarantees that the value points to as many bytes as it
                // states.
                Value::Bytes(unsafe { slice_of(value.bytes, value.integer as usize) })
            }
        });
        packer.packer.push(id, row).map_or_else(code, i32::from)
    })
}

/// Cuts the next page and returns its number of rows, 0 if more rows are needed to fill a page, or
/// an error. The page is valid at `*page` until the next call.
///
/// # Safety
/// `packer` is live; the other pointers can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_cut(
    packer: *mut CairnPacker,
    last: i32,
    page: *mut *const u8,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (packer, page, bytes) = unsafe { (&mut *packer, &mut *page, &mut *bytes) };
    guarded(|| {
        let cut = packer.packer.cut(last != 0, &mut packer.page);
        *page = packer.page.as_ptr();
        *bytes = packer.page.len();
        match cut {
            Ok(rows) => i32::try_from(rows).unwrap_or(FAULT),
            Err(error) => {
                if let PackError::RowTooLarge { bytes, .. } = error {
                    packer.needed = bytes;
                }
                code(error)
            }
        }
    })
}

/// Makes a page without rows, which is valid at `*page` until the next call.
///
/// # Safety
/// As for `cairn_packer_cut`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_empty(
    packer: *mut CairnPacker,
    page: *mut *const u8,
    bytes: *mut usize,
) -> i32 {
    // SAFETY: guaranteed by the caller.
    let (packer, page, bytes) = unsafe { (&mut *packer, &mut *page, &mut *bytes) };
    guarded(|| {
        packer.packer.empty_page(&mut packer.page);
        *page = packer.page.as_ptr();
        *bytes = packer.page.len();
        crate::OK
    })
}

/// Returns the size in bytes of the row that did not fit.
///
/// # Safety
/// `packer` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cairn_packer_needed(packer: *const CairnPacker) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { (*packer).needed }
}
