//! The vector operations of a lookup: find the bytes of an index line that equal a given one, and
//! sum the first bytes of a line.
//!
//! SSE2 is part of every x86-64 processor, so no feature is detected at run time. Other
//! architectures use the portable form, which compilers vectorise tolerably.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::{equal_firsts, equal_seconds, sum_first};

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::{equal_firsts, equal_seconds, sum_first};

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;

    /// 32 bytes of ones followed by 32 zeros. The 32 bytes that start at byte `32 - n` are a mask
    /// of `n` bytes.
    static PREFIX: [u8; 64] = {
        let mut bytes = [0; 64];
        let mut at = 0;
        while at < 32 {
            bytes[at] = 0xff;
            at += 1;
        }
        bytes
    };
    const _: () = assert!(PREFIX[31] == 0xff && PREFIX[32] == 0, "ones, then zeros");

    /// Returns a bit for each of the 28 bytes from byte 8 on, the seconds of the line, that equals
    /// `wanted`.
    #[inline(always)]
    pub(crate) fn equal_seconds(line: &[u8; 64], wanted: u8) -> u32 {
        equal_32::<8>(line, wanted) & 0xfff_ffff
    }

    /// Returns a bit for each of the 28 bytes from byte 36 on, the firsts of the line, that equals
    /// `wanted`.
    #[inline(always)]
    pub(crate) fn equal_firsts(line: &[u8; 64], wanted: u8) -> u32 {
        equal_32::<32>(line, wanted) >> 4
    }

    /// Returns a bit for each of the 32 bytes from byte `AT` on that equals `wanted`.
    #[inline(always)]
    fn equal_32<const AT: usize>(line: &[u8; 64], wanted: u8) -> u32 {
        const { assert!(AT + 32 <= 64) }
        // SAFETY: SSE2 is part of x86-64; the loads need no alignment and end at byte AT + 32
        // of 64.
        unsafe {
            let wanted = _mm_set1_epi8(wanted as i8);
            let low = _mm_cmpeq_epi8(_mm_loadu_si128(line.as_ptr().add(AT).cast()), wanted);
            let high = _mm_cmpeq_epi8(_mm_loadu_si128(line.as_ptr().add(AT + 16).cast()), wanted);
            _mm_movemask_epi8(low) as u32 | (_mm_movemask_epi8(high) as u32) << 16
        }
    }

    /// Returns the sum of `count` bytes, at most 31, from byte 8 on.
    #[inline(always)]
    pub(crate) fn sum_first(line: &[u8; 64], count: usize) -> u64 {
        debug_assert!(count <= 31, "the sum of {count} bytes of a line");
        let skip = 32 - (count & 31);
        // SAFETY: SSE2 is part of x86-64 and the loads need no alignment. The loads from the line
        // end at byte 40 of 64. The loads from the mask end at byte skip + 32 of 64, and skip is at
        // most 32.
        unsafe {
            let masked = |at: usize| {
                let bytes = _mm_loadu_si128(line.as_ptr().add(8 + at).cast());
                let mask = _mm_loadu_si128(PREFIX.as_ptr().add(skip + at).cast());
                _mm_sad_epu8(_mm_and_si128(bytes, mask), _mm_setzero_si128())
            };
            let sums = _mm_add_epi64(masked(0), masked(16));
            _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums))) as u64
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    /// Returns a bit for each of the 28 bytes from byte 8 on that equals `wanted`.
    #[inline]
    pub(crate) fn equal_seconds(line: &[u8; 64], wanted: u8) -> u32 {
        equal(&line[8..36], wanted)
    }

    /// Returns a bit for each of the 28 bytes from byte 36 on that equals `wanted`.
    #[inline]
    pub(crate) fn equal_firsts(line: &[u8; 64], wanted: u8) -> u32 {
        equal(&line[36..], wanted)
    }

    #[inline]
    fn equal(bytes: &[u8], wanted: u8) -> u32 {
        bytes.iter().enumerate().map(|(slot, &byte)| u32::from(byte == wanted) << slot).sum()
    }

    /// Returns the sum of `count` bytes, at most 31, from byte 8 on.
    #[inline]
    pub(crate) fn sum_first(line: &[u8; 64], count: usize) -> u64 {
        debug_assert!(count <= 31, "the sum of {count} bytes of a line");
        line[8..8 + (count & 31)].iter().map(|&byte| u64::from(byte)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the vector forms agree with the portable ones. Method: each byte in turn holds the
    /// wanted value, over a background of near misses.
    #[test]
    fn vector_forms_agree_with_plain_forms() {
        for at in 0..64 {
            for background in [0u8, 0xff, 0x12] {
                let mut line = [background; 64];
                line[at] = 0x34;
                for wanted in [0x34, 0x12, 0xff, 0] {
                    assert_eq!(equal_seconds(&line, wanted), portable::equal_seconds(&line, wanted));
                    assert_eq!(equal_firsts(&line, wanted), portable::equal_firsts(&line, wanted));
                }
                for count in 0..32 {
                    assert_eq!(sum_first(&line, count), portable::sum_first(&line, count), "{at} {count}");
                }
            }
        }
    }
}
