//! Asks the processor to bring a cache line in while something else is done.
#![allow(unsafe_code)]

/// Starts loading the cache line at `bytes[offset]`. Does nothing that can be seen when `offset` is
/// out of range, and nothing at all on architectures without a stable prefetch intrinsic.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint: it faults at no address and reads nothing that the program
        // could see. Asking first whether the offset is inside would cost more than the hint.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(offset).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
