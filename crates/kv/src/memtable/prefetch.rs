//! Prefetches cache lines.
#![allow(unsafe_code)]

use super::arena::Held;

/// Starts loading the first `lines` cache lines of `target`.
#[inline(always)]
pub(super) fn prefetch<T>(target: Held<'_, T>, lines: usize) {
    let start = target.as_ptr().as_ptr().cast::<i8>();
    for line in 0..lines {
        hint(start.wrapping_add(64 * line));
    }
}

/// Starts loading the cache line in which `target` begins.
#[inline(always)]
pub(super) fn prefetch_line<T>(target: &T) {
    hint(std::ptr::from_ref(target).cast());
}

/// Issues a prefetch. It has no observable effect, and does nothing on architectures without a
/// stable prefetch intrinsic.
#[inline(always)]
fn hint(address: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is only a hint. It faults at no address and reads nothing visible to
        // the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
