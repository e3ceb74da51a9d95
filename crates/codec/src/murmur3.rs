//! MurmurHash3 in the two variants that Sparkey indexes use (Austin Appleby, public domain, 2011).
//!
//! On every machine, the results are those of the reference implementation on a little-endian one.
//! Not suitable for untrusted keys if an attacker may know the seed: collisions can be constructed
//! at will.

use crate::short_word::short_word;

/// Returns the MurmurHash3_x86_32 hash of `key`.
#[inline]
pub fn hash32(key: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = key.as_chunks::<4>();
    let mut h = seed;
    for block in blocks {
        h ^= mix32(u32::from_le_bytes(*block));
        h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    debug_assert!(blocks.len() * 4 + tail.len() == key.len() && tail.len() < 4);
    // An empty tail mixes to zero, which leaves h unchanged.
    h ^= mix32(short_word(tail) as u32);
    h ^= key.len() as u32;
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

#[inline(always)]
fn mix32(k: u32) -> u32 {
    k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

/// Returns the first 64 bits of MurmurHash3_x64_128 of `key`, with both halves of the state seeded
/// with `seed`.
#[inline]
pub fn hash64(key: &[u8], seed: u32) -> u64 {
    let (blocks, tail) = key.as_chunks::<16>();
    let mut h1 = u64::from(seed);
    let mut h2 = u64::from(seed);
    for block in blocks {
        let block = u128::from_le_bytes(*block);
        h1 ^= mix_low(block as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_high((block >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    debug_assert!(blocks.len() * 16 + tail.len() == key.len() && tail.len() < 16);
    let (low, high) = tail.split_at(tail.len().min(8));
    h1 ^= mix_low(short_word(low));
    h2 ^= mix_high(short_word(high));
    let len = key.len() as u64;
    h1 ^= len;
    h2 ^= len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    finish64(h1).wrapping_add(finish64(h2))
}

#[inline(always)]
fn mix_low(k: u64) -> u64 {
    k.wrapping_mul(0x87c3_7b91_1142_53d5).rotate_left(31).wrapping_mul(0x4cf5_ad43_2745_937f)
}

#[inline(always)]
fn mix_high(k: u64) -> u64 {
    k.wrapping_mul(0x4cf5_ad43_2745_937f).rotate_left(33).wrapping_mul(0x87c3_7b91_1142_53d5)
}

#[inline(always)]
fn finish64(mut k: u64) -> u64 {
    k = (k ^ k >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ k >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ k >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: these are the hashes stored in Sparkey files. Method: vectors that agree with other
    /// implementations (docs/src/formats/sparkey.md).
    #[test]
    fn known_vectors() {
        let vectors: [(&[u8], u32, u32, u64, u64); 4] = [
            (b"", 0, 0x514e_28b7, 0, 0x4610_abe5_6eff_5cb5),
            (b"a", 0x3c25_69b2, 0x588a_dce8, 0x8555_5565_f659_7889, 0x47ea_e107_3748_cf70),
            (b"hello", 0x248b_fa47, 0xbb4a_bcad, 0xcbd8_a7b3_41bd_9b02, 0xa78d_dff5_adae_8d10),
            (b"0123456789abcdefXYZ", 0xf4ba_e38d, 0x94b0_0377, 0x99d3_7502_6c4a_901d, 0x5bca_eeef_21c3_2fdd),
        ];
        for (key, h32_0, h32_1, h64_0, h64_1) in vectors {
            assert_eq!(hash32(key, 0), h32_0, "{key:?}");
            assert_eq!(hash32(key, 1), h32_1, "{key:?}");
            assert_eq!(hash64(key, 0), h64_0, "{key:?}");
            assert_eq!(hash64(key, 1), h64_1, "{key:?}");
        }
    }
}
