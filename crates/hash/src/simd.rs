//! The one vector operation of a lookup: which of a line's fingerprints equal the wanted one.
//!
//! SSE2 belongs to every x86-64 processor, so nothing is detected at run time; other architectures take the
//! portable form, which compilers vectorise tolerably.
#![allow(unsafe_code)]

/// A bit for each of the u16 from byte 8 on that equals `wanted`: 14 of them, or 28 when `WIDE`. Higher bits are
/// undefined.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn equal_u16<const WIDE: bool>(line: &[u8; 64], wanted: u16) -> u32 {
    use std::arch::x86_64::*;
    // SAFETY: SSE2 is part of x86-64; the loads need no alignment and end at byte 40 (or 64) of 64.
    unsafe {
        let wanted = _mm_set1_epi16(wanted as i16);
        let lanes = |at: usize| _mm_cmpeq_epi16(_mm_loadu_si128(line.as_ptr().add(at).cast()), wanted);
        let low = _mm_movemask_epi8(_mm_packs_epi16(lanes(8), lanes(24))) as u32;
        if !WIDE {
            return low;
        }
        // Slots 16..24 at byte 40; 20..28 at byte 48, of which the first four are there already.
        let high = _mm_movemask_epi8(_mm_packs_epi16(lanes(40), lanes(48))) as u32;
        low | (high & 0xff) << 16 | (high >> 12 & 0xf) << 24
    }
}

/// A bit for each of the u16 from byte 8 on that equals `wanted`: 14 of them, or 28 when `WIDE`. Higher bits are
/// undefined.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn equal_u16<const WIDE: bool>(line: &[u8; 64], wanted: u16) -> u32 {
    portable::<WIDE>(line, wanted)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable<const WIDE: bool>(line: &[u8; 64], wanted: u16) -> u32 {
    let wanted = wanted.to_le_bytes();
    let slots = if WIDE { 28 } else { 14 };
    let lanes = line[8..].chunks_exact(2).take(slots);
    lanes.enumerate().map(|(slot, lane)| u32::from(lane == wanted) << slot).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the vector form equals the plain one. Method: every slot in turn holds the wanted value, over a
    /// background of near misses.
    #[test]
    fn vector_form_agrees_with_plain_form() {
        for slot in 0..28 {
            for background in [0u8, 0xff, 0x12] {
                let mut line = [background; 64];
                line[8 + 2 * slot..][..2].copy_from_slice(&0x1234u16.to_le_bytes());
                for wanted in [0x1234, 0x1212, 0x3412, 0xffff, 0] {
                    assert_eq!(
                        equal_u16::<true>(&line, wanted) & 0xfff_ffff,
                        portable::<true>(&line, wanted)
                    );
                    assert_eq!(equal_u16::<false>(&line, wanted) & 0x3fff, portable::<false>(&line, wanted));
                }
            }
        }
    }
}
