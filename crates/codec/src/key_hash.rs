//! The hash of keys where nothing is written so fast as they are asked for theirs: rapidhash,
//! version 3, with a shorter end.
//!
//! ```text
//!   fold(a, b) = high and low half of a × b, xored         key ─► rapidhash without its last fold ─► ^ length ─► × odd constant
//! ```
//!
//! Rapidhash folds once for a key of 4 to 16 bytes and once more for each 16 bytes beyond, with the
//! same constants for all lengths, which a loop over keys keeps in registers;
//! [`xxh3_64`](crate::checksum::xxh3_64) has another way for each class of lengths. Its last fold,
//! which makes every bit of the result depend on every bit of the key, is a multiplication of 64
//! bits here: each bit then depends on all below it, and the upper ones are even. So it is for
//! samples, which take the keys whose hash is small, and to tell keys apart; not for tables, which
//! take lower bits. An operation of a batch of unlike ones is asked for in 28 instructions so, in
//! 35 with the whole of rapidhash, and in 53 with XXH3, for which a loop has not registers enough.
//!
//! Not against somebody who makes keys that collide: there are pairs that do under every seed.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, RapidSecrets, rapidhash_v3_inline, rapidhash_v3_nano_inline};

/// Up to this length, in bytes, a key is hashed in the caller.
pub const INLINE_MAX: usize = 48;

/// The hash under one seed. Small, to be kept where keys are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash {
    /// The seed, mixed as the published function does it before it looks at a key.
    mixed: u64,
}

impl KeyHash {
    /// The hash under `seed`.
    #[inline]
    pub const fn new(seed: u64) -> KeyHash {
        KeyHash { mixed: RapidSecrets::seed_cpp(seed).seed }
    }

    /// The hash of `key`, which is inlined for keys of up to [`INLINE_MAX`] bytes. Where the caller
    /// knows more of their lengths, so much less code it is.
    #[inline(always)]
    pub fn of(self, key: &[u8]) -> u64 {
        let secrets = RapidSecrets { seed: self.mixed, secrets: DEFAULT_RAPID_SECRETS.secrets };
        let folded = if key.len() <= INLINE_MAX {
            // One and the same function up to here, and the shortest code for it.
            rapidhash_v3_nano_inline::<false, false>(key, &secrets)
        } else {
            folded_long(key, &secrets)
        };
        // The length counts twice. In what is folded it meets the bytes of the key, and they may
        // cancel each other: "1000" and "10000" are alike there.
        (folded ^ key.len() as u64).wrapping_mul(SPREAD)
    }
}

/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(never)]
fn folded_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_inline::<false, true, false>(key, secrets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: it stays the function that the page above says, so that what was hashed with it once
    /// stays so. Method: against what a transcription into another language gives for the
    /// beginnings of a text, under two seeds.
    #[test]
    fn function_is_fixed() {
        let text = b"the quick brown fox jumps over the lazy dog, again and again, and again until it is tired of it; \
                     then it rests a while and does it all over again";
        for (len, zero, seven) in [
            (0, 0xd5ab_2524_b432_3b3b, 0xac4b_72c8_6056_0c77),
            (1, 0x0b3c_0b90_a22c_62bd, 0x02dc_360e_561e_c911),
            (3, 0xe7df_03db_ad77_ff6e, 0x74b0_1679_37ea_cd46),
            (4, 0x5ecb_6be8_0c7e_8b60, 0x4905_6497_b886_341d),
            (7, 0x6424_e6aa_9143_b7e8, 0xf650_2618_3198_e4f4),
            (8, 0xbcd9_ccf8_71c7_efa4, 0xa70c_32e9_cc58_0b09),
            (16, 0x23a1_87d4_6f92_7b2c, 0xf4d4_d406_bfb6_bad0),
            (17, 0x409d_b2a0_a9a6_7541, 0x0186_4234_aa51_8c7b),
            (32, 0xf161_967d_ba34_c154, 0xa218_647f_3b84_634d),
            (33, 0x76c0_fd1f_62b5_fee5, 0x674e_3864_c748_91e2),
            (48, 0x5807_8a53_04e4_0c70, 0xee37_daed_39c2_8279),
            (49, 0x8cfd_5c62_6736_6db7, 0x711b_dc29_122c_6539),
            (100, 0xa115_4d1f_b06f_da1c, 0xa8ad_c3da_6c76_53da),
            (113, 0x0574_4792_59df_6f02, 0x9eb6_4537_91ec_ffa6),
            (145, 0xac0b_706d_673a_b4b3, 0x4556_375b_e08c_b5f9),
        ] {
            assert_eq!(KeyHash::new(0).of(&text[..len]), zero, "{len}");
            assert_eq!(KeyHash::new(7).of(&text[..len]), seven, "{len}");
        }
    }

    /// Goal: it is one function, whichever code computes it. Method: at every length around where
    /// they change over, and far beyond, against the library's longest code.
    #[test]
    fn both_ways() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * 31) >> 3) as u8).collect();
        for len in (0..600).chain([4096, 20_000]) {
            let key = &bytes[..len];
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let folded = rapidhash_v3_inline::<false, false, false>(key, &RapidSecrets::seed_cpp(seed));
                assert_eq!(KeyHash::new(seed).of(key), (folded ^ len as u64).wrapping_mul(SPREAD), "{len}");
            }
        }
    }

    /// Goal: any share of the hashes is that share of the keys, whatever they look like, and of
    /// neighbours as of any two, which is what samples need. Method: keys as programs make them,
    /// counters in digits and in bytes of either order at the front and at the end of keys of many
    /// lengths; of each the number whose hash is in the lowest 64th, and of those in the lowest 8th
    /// the number whose neighbour is as well, against what chance gives, five standard deviations
    /// wide; and no two collide.
    #[test]
    fn shares_are_even() {
        const KEYS: usize = 20_000;
        let tail = |prefix: usize, end: &[u8]| [&vec![b'k'; prefix], end].concat();
        let makers: [&dyn Fn(u64, usize) -> Vec<u8>; 6] = [
            &|n, prefix| tail(prefix, format!("{n:08}").as_bytes()),
            &|n, prefix| tail(prefix, n.to_string().as_bytes()),
            &|n, prefix| tail(prefix, &n.to_be_bytes()),
            &|n, prefix| tail(prefix, &(n as u32).to_le_bytes()),
            &|n, suffix| [&n.to_le_bytes()[..], &vec![0; suffix]].concat(),
            &|n, suffix| [&(n << 12).to_be_bytes()[..], &vec![0; suffix]].concat(),
        ];
        // Five times the root of 312.5 of 20,000, which are a 64th.
        let is_even = |count: usize| (313 - 88..=313 + 88).contains(&count);
        for (maker, make) in makers.iter().enumerate() {
            for around in [0, 1, 5, 8, 9, 16, 24, 30, 40, 60, 100] {
                let hash = KeyHash::new(0x5eed ^ around as u64);
                let mut hashes: Vec<u64> = (0..KEYS as u64).map(|n| hash.of(&make(n, around))).collect();
                let low = hashes.iter().filter(|hash| **hash <= u64::MAX / 64).count();
                assert!(is_even(low), "maker {maker}, {around} bytes around: {low}");
                for lag in [1, 2, 3, 10, 16, 100] {
                    let both = hashes.iter().zip(hashes.iter().skip(lag));
                    let both = both.filter(|(one, other)| **one.max(other) <= u64::MAX / 8).count();
                    assert!(is_even(both), "maker {maker}, {around} bytes around, {lag} apart: {both}");
                }
                hashes.sort_unstable();
                hashes.dedup();
                assert_eq!(hashes.len(), KEYS, "maker {maker}, {around} bytes around");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: all of a key and all of the seed count. Method: one bit of random keys or of the
        /// seed is another.
        #[test]
        fn one_bit_matters(key in prop::collection::vec(any::<u8>(), 1..200), at: usize, bit in 0u32..8, seed: u64) {
            let mut other = key.clone();
            let at = at % other.len();
            other[at] ^= 1u8 << bit;
            let hash = KeyHash::new(seed).of(&key);
            prop_assert_ne!(KeyHash::new(seed).of(&other), hash);
            prop_assert_ne!(KeyHash::new(seed ^ 1 << (at % 64)).of(&key), hash);
        }
    }
}
