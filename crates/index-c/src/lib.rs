//! The page codec for C. `include/cairn_index.h` says the same in C's words.
//!
//! Every call takes whole pages or ranges of rows, says how it went by a number, and neither panics across the border nor
//! keeps a pointer it was given, with one exception that `cairn_leaf_open` names. A handle belongs to one thread at a time.

mod leaf;
mod packer;

use std::panic::{AssertUnwindSafe, catch_unwind};

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
