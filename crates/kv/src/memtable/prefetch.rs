//! Asks the processor to bring cache lines in while something else is done.
#![allow(unsafe_code)]

use super::arena::Held;

/// Starts loading the first `lines` cache lines of `target`. Nothing that can be seen, and nothing at all on
/// architectures without a stable prefetch intrinsic.
#[inline(always)]
pub(super) fn prefetch<T>(target: Held<'_, T>, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = target.as_ptr().as_ptr().cast::<i8>();
        for line in 0..lines {
            // SAFETY: a prefetch is a hint: it faults at no address and reads nothing that the program could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(64 * line)) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (target, lines);
}
