//! A hash of keys for trace sampling, which hashes a key per operation and must cost next to
//! nothing: rapidhash, version 3, with a shorter final step.
//!
//! ```text
//!   fold(a, b) = high and low half of a × b, xored
//!   key ─► rapidhash without its last fold ─► ^ length ─► × odd constant
//! ```
//!
//! Rapidhash folds once for a key of 4 to 16 bytes, and once more for each 16 further bytes. It
//! uses the same constants for all lengths, which a loop over keys keeps in registers;
//! [`xxh3_64`](crate::checksum::xxh3_64) has a separate code path for each class of lengths. The
//! last fold of rapidhash makes every bit of the result depend on every bit of the key. It is
//! replaced here by a 64-bit multiplication, after which each bit depends only on the bits below
//! it, and the upper bits are uniform. So the hash suits samples, which select keys with a small
//! hash, and distinguishing keys. It does not suit hash tables, which use lower bits. Per operation
//! of a mixed batch, the sampling decision takes 28 instructions with this hash, 35 with the
//! complete rapidhash, and 53 with XXH3, for which a loop has too few registers.
//!
//! Not secure against deliberately colliding keys: some pairs collide under every seed.

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, RapidSecrets, rapidhash_v3_inline, rapidhash_v3_nano_inline};

/// Keys up to this length, in bytes, are hashed by inlined code.
pub const INLINE_MAX: usize = 48;

// For longer keys, the variants of rapidhash are different functions.
const _: () = assert!(INLINE_MAX <= 48);

/// The hash function under one seed. Small, so that a copy can be kept wherever keys are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash {
    /// The seed, mixed as in the published function before it reads a key.
    mixed: u64,
}

impl KeyHash {
    /// Creates the hash function for `seed`.
    #[inline]
    pub const fn new(seed: u64) -> KeyHash {
        KeyHash { mixed: RapidSecrets::seed_cpp(seed).seed }
    }

    /// Returns the hash of `key`. Inlined for keys of up to [`INLINE_MAX`] bytes. The more the
    /// caller's code reveals about the key length, the less code is generated.
    #[inline(always)]
    pub fn of(self, key: &[u8]) -> u64 {
        let secrets = RapidSecrets { seed: self.mixed, secrets: DEFAULT_RAPID_SECRETS.secrets };
        let folded = if key.len() <= INLINE_MAX {
            // For these lengths all variants are the same function, and this one has the shortest
            // code.
            rapidhash_v3_nano_inline::<false, false>(key, &secrets)
        } else {
            folded_long(key, &secrets)
        };
        // The length is mixed in a second time. Within the folded value it meets the bytes of the
        // key, and the two may cancel out: "1000" and "10000" have the same folded value.
        (folded ^ key.len() as u64).wrapping_mul(SPREAD)
    }
}

/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

// Multiplication by an odd number loses nothing.
const _: () = assert!(SPREAD % 2 == 1);

#[inline(never)]
fn folded_long(key: &[u8], secrets: &RapidSecrets) -> u64 {
    debug_assert!(key.len() > INLINE_MAX);
    rapidhash_v3_inline::<false, true, false>(key, secrets)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: the function never changes, so that stored hashes stay valid. Method: compare with the
    /// output of a transcription into another language, for prefixes of a text under two seeds.
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

    /// Goal: both code paths compute the same function. Method: at every length around their
    /// switch, and far beyond, compare with the library's general code.
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

    /// Goal: any share of the hash range holds that share of the keys, whatever the keys look like,
    /// and independently for neighbouring keys; samples need this. Method: keys as programs make
    /// them: counters in digits and in bytes of either order, at the front and at the end of keys
    /// of many lengths. For each kind, count the hashes in the lowest 64th, and among neighbours
    /// the pairs in the lowest 8th. Compare the counts with chance, within five standard
    /// deviations; no two hashes may collide.
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
        // 312.5 of 20,000 is a 64th; five times its square root is 88.
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

        /// Goal: every bit of the key and of the seed matters. Method: flip one bit of random keys
        /// or of the seed.
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
