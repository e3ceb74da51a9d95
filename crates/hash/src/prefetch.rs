//! Prefetching of cache lines.
#![allow(unsafe_code)]

/// Starts loading the cache line at `bytes[offset]`. Has no observable effect when `offset` is out
/// of range, and does nothing on architectures without a stable prefetch intrinsic.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint. It never faults, whatever the address, and it reads nothing
        // that the program can observe. A bounds check would cost more than the hint.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(offset).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
