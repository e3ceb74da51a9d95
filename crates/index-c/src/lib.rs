//! The page codec for C. `include/cairn_index.h` says the same in C's words.
//!
//! Every call takes whole pages or ranges of rows, says how it went by a number, and neither panics
//! across the border nor keeps a pointer it was given, with one exception that `cairn_leaf_open`
//! names. A handle belongs to one thread at a time.

mod leaf;
mod packer;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

/// Done.
pub const OK: i32 = 0;
/// The page is damaged: `cairn_leaf_error` says where.
pub const DAMAGED: i32 = -1;
/// A row does not fit a page.
pub const TOO_LARGE: i32 = -2;
/// Arguments that contradict each other.
pub const INVALID: i32 = -3;
/// A fault of this library. It has been contained; the handle must be freed.
pub const FAULT: i32 = -4;

/// Runs `body`; a panic becomes [`FAULT`].
fn guarded(body: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(FAULT)
}

/// Runs `body`, which makes a handle; a panic becomes null.
fn guarded_handle<T>(body: impl FnOnce() -> *mut T) -> *mut T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(ptr::null_mut())
}

/// `len` values from `start` on. Where there are none there need be no address: in C, an empty
/// array may be null.
///
/// # Safety
/// `len` is 0, or `start` has so many values, which live and do not change as long as the caller
/// says.
unsafe fn slice_of<'a, T>(start: *const T, len: usize) -> &'a [T] {
    match len {
        0 => &[],
        // SAFETY: the caller says so.
        _ => unsafe { slice::from_raw_parts(start, len) },
    }
}

/// As [`slice_of`], to be written.
///
/// # Safety
/// As for [`slice_of`]; and nobody else has them.
unsafe fn slice_of_mut<'a, T>(start: *mut T, len: usize) -> &'a mut [T] {
    match len {
        0 => &mut [],
        // SAFETY: the caller says so.
        _ => unsafe { slice::from_raw_parts_mut(start, len) },
    }
}
