//! The hash of keys where nothing is written so fast as they are asked for theirs: rapidhash, version 3, 64 bits.
//!
//! Two multiplications for a key of 4 to 16 bytes and one more for each 16 bytes beyond, with the same three constants for all lengths: a loop over keys keeps them in
//! registers. [`xxh3_64`](crate::checksum::xxh3_64) has another way for each class of lengths and is half as long again. Both pass SMHasher3's tests.
//!
//! Not against somebody who makes keys that collide: there are pairs that do under every seed.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, RapidSecrets, rapidhash_v3_nano_inline, rapidhash_v3_seeded};

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

    /// The hash of `key`, which is inlined for keys of up to [`INLINE_MAX`] bytes. Where the caller knows more of their lengths, so much less code it is.
    #[inline(always)]
    pub fn of(self, key: &[u8]) -> u64 {
        let secrets = RapidSecrets { seed: self.mixed, secrets: DEFAULT_RAPID_SECRETS.secrets };
        if key.len() <= INLINE_MAX {
            // One and the same function up to here, and the shortest code for it.
            rapidhash_v3_nano_inline::<true, false>(key, &secrets)
        } else {
            of_long(key, &secrets)
        }
    }
}

#[inline(never)]
fn of_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    rapidhash_v3_seeded(key, secrets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: it is the published function, so that what was hashed with it once stays so. Method: against what a transcription of the specification into another language
    /// gives for the beginnings of a text, under two seeds.
    #[test]
    fn published_function() {
        let text = b"the quick brown fox jumps over the lazy dog, again and again, and again until it is tired of it; \
                     then it rests a while and does it all over again";
        for (len, zero, seven) in [
            (0, 0x0338_dc4b_e2ce_cdae, 0x4e02_fb0b_4ea6_0a26),
            (1, 0x6dd8_705c_bc33_d3d3, 0xb8b4_ebbd_bbbf_27b3),
            (3, 0x0b5a_b16d_e1ef_557a, 0xa21b_7229_3cff_2cbd),
            (4, 0x8ec5_c5d0_419c_48e3, 0xbdc6_756b_34f8_613b),
            (7, 0x06cc_4285_eac5_0729, 0xdee1_9646_5585_036b),
            (8, 0x37d4_101e_6202_5755, 0x2f64_dc29_3d5c_b589),
            (16, 0x0429_33ef_a637_db52, 0x803a_7f9a_f3b7_a4f3),
            (17, 0xe6ef_c6af_62d3_351f, 0x4123_951f_892c_5af4),
            (32, 0xa977_4827_ac8b_d3d2, 0xfef9_bbe5_b035_30a6),
            (33, 0x682d_5369_9e57_f295, 0xb3e1_3bff_0d61_bba4),
            (48, 0xb070_2dbf_3a76_5924, 0xe073_c339_abb6_8b62),
            (49, 0x655f_bd2a_9b07_6ed5, 0x120b_4153_9584_8f6f),
            (100, 0x9942_e6c9_3edc_02e5, 0xa349_1e82_c3a8_a70e),
            (113, 0x388e_4616_d1ba_98e4, 0xa715_0e09_791f_b7b5),
            (145, 0xaf53_8433_4628_bccd, 0x0ac3_3b73_6524_82f7),
        ] {
            assert_eq!(KeyHash::new(0).of(&text[..len]), zero, "{len}");
            assert_eq!(KeyHash::new(7).of(&text[..len]), seven, "{len}");
        }
    }

    /// Goal: it is one function, whichever code computes it. Method: both, at every length around where they change over, and far beyond.
    #[test]
    fn both_ways() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * 31) >> 3) as u8).collect();
        for len in (0..600).chain([4096, 20_000]) {
            let key = &bytes[..len];
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let whole = rapidhash_v3_seeded(key, &RapidSecrets::seed_cpp(seed));
                assert_eq!(KeyHash::new(seed).of(key), whole, "{len}");
            }
        }
    }

    /// Goal: any share of the hashes is that share of the keys, whatever they look like, which is what samples need. Method: keys as programs make them, counters in
    /// digits and in bytes of either order at the front and at the end of keys of many lengths; of each the number whose hash is in the lowest 64th against what chance gives, five
    /// standard deviations wide, and that no two collide.
    #[test]
    fn shares_are_even() {
        const KEYS: u64 = 20_000;
        let tail = |prefix: usize, end: &[u8]| [&vec![b'k'; prefix], end].concat();
        let makers: [&dyn Fn(u64, usize) -> Vec<u8>; 4] = [
            &|n, prefix| tail(prefix, format!("{n:08}").as_bytes()),
            &|n, prefix| tail(prefix, &n.to_be_bytes()),
            &|n, prefix| tail(prefix, &(n as u32).to_le_bytes()),
            &|n, suffix| [&n.to_le_bytes()[..], &vec![0; suffix]].concat(),
        ];
        for (maker, make) in makers.iter().enumerate() {
            for around in [0, 1, 5, 8, 9, 16, 24, 30, 40, 60, 100] {
                let hash = KeyHash::new(0x5eed ^ around as u64);
                let mut hashes: Vec<u64> = (0..KEYS).map(|n| hash.of(&make(n, around))).collect();
                let low = hashes.iter().filter(|hash| **hash <= u64::MAX / 64).count();
                assert!((313 - 88..=313 + 88).contains(&low), "maker {maker}, {around} bytes around: {low}");
                hashes.sort_unstable();
                hashes.dedup();
                assert_eq!(hashes.len() as u64, KEYS, "maker {maker}, {around} bytes around");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: all of a key and all of the seed count. Method: one bit of random keys or of the seed is another.
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
