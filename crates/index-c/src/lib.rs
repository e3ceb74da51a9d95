//! The C interface of the page codec. `include/cairn_index.h` documents it for C.
//!
//! Every call takes whole pages or ranges of rows and returns a status code. No call lets a panic
//! cross the language boundary, and none keeps a pointer that it was given, with one exception that
//! `cairn_leaf_open` documents. A handle must be used by one thread at a time.

mod leaf;
mod packer;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

/// Success.
pub const OK: i32 = 0;
/// The page is damaged: `cairn_leaf_error` tells where.
pub const DAMAGED: i32 = -1;
/// A row does not fit a page.
pub const TOO_LARGE: i32 = -2;
/// The arguments contradict each other.
pub const INVALID: i32 = -3;
/// A bug in this library caused a panic, which was caught. The handle must be freed.
pub const FAULT: i32 = -4;

/// Runs `body` and converts a panic to [`FAULT`].
fn guarded(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(FAULT)
}

/// Runs `body`, which creates a handle, and converts a panic to null.
fn guarded_handle<T>(body: impl FnOnce() -> *mut T) -> *mut T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(ptr::null_mut())
}

/// Returns `len` values from `start` on. If `len` is 0, `start` may be null, as is usual for an
/// empty array in C.
///
/// # Safety
/// `len` is 0, or `start` points to `len` values, which stay valid and unchanged for the lifetime
/// that the caller chooses.
unsafe fn slice_of<'a, T>(start: *const T, len: usize) -> &'a [T] {
    match len {
        0 => &[],
        // SAFETY: guaranteed by the caller.
        _ => unsafe { slice::from_raw_parts(start, len) },
    }
}

/// Does the same as [`slice_of`], for writing.
///
/// # Safety
/// As for [`slice_of`]; in addition, the values are not accessed in any other way meanwhile.
unsafe fn slice_of_mut<'a, T>(start: *mut T, len: usize) -> &'a mut [T] {
    match len {
        0 => &mut [],
        // SAFETY: guaranteed by the caller.
        _ => unsafe { slice::from_raw_parts_mut(start, len) },
    }
}
