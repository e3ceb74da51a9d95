//! Asks the processor to bring a cache line in while something else is done.
#![allow(unsafe_code)]

/// Starts loading the cache line at `bytes[offset]`. Does nothing when `offset` is out of range, and on
/// architectures without a stable prefetch intrinsic.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8], offset: usize) {
    #[cfg(target_arch = "x86_64")]
    if offset < bytes.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is inside `bytes`; a prefetch reads nothing that the program could see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().add(offset).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, offset);
}
