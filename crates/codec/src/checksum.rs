//! Checksums against accidental damage: XXH3, 64 bits.
//!
//! XXH3 runs at memory speed on short and long inputs alike and mixes every input bit into every
//! output bit. A flipped bit, a torn sector or a stale block passes with a probability of about
//! 2^-64. It does not protect against deliberate forgery.

/// From this length on, it pays to detect the processor's wider instructions. With AVX2, 4 KiB take
/// 106 ns instead of 166, and 64 B take 1 ns more.
const LONG: usize = 512;

// Below 240 bytes XXH3 is another function, which both libraries must agree on.
const _: () = assert!(LONG > 240);

/// Returns the XXH3 64-bit checksum of `bytes`, with seed 0.
#[inline]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    if bytes.len() < LONG { xxhash_rust::xxh3::xxh3_64(bytes) } else { twox_hash::XxHash3_64::oneshot(bytes) }
}

/// Returns the XXH3 64-bit hash of `bytes` under `seed`.
///
/// As a checksum, a seed made from the file's identity and the block's position also detects a
/// sound block in the wrong place (a misdirected or stale write).
#[inline]
pub fn xxh3_64_seeded(bytes: &[u8], seed: u64) -> u64 {
    if bytes.len() < LONG {
        return xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed);
    }
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// A checksum of bytes that arrive in pieces. However the input is divided, the result equals
/// [`xxh3_64`] of all bytes.
#[derive(Clone, Default)]
pub struct Xxh3 {
    // Boxed, because half a KiB of state is expensive to move.
    state: Box<xxhash_rust::xxh3::Xxh3Default>,
}

impl Xxh3 {
    /// Creates the checksum of an empty input.
    pub fn new() -> Self {
        Xxh3::default()
    }

    /// Adds the next bytes. Pieces of a KiB and more go at full speed.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// Returns the checksum of the bytes so far.
    pub fn digest(&self) -> u64 {
        self.state.digest()
    }
}

impl std::fmt::Debug for Xxh3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Xxh3").field("digest", &self.digest()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: these are the published functions, so that files stay readable. Method: the digest of
    /// an empty input with seed 0, from XXH3's own test suite.
    #[test]
    fn published_vector() {
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(xxh3_64_seeded(b"", 0), xxh3_64(b""));
    }

    /// Goal: both code paths compute the same function. Method: compare them at every length around
    /// their switch, and far beyond.
    #[test]
    fn both_ways() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| ((at * 31) >> 3) as u8).collect();
        for len in (0..3 * LONG).chain([4088, 4096, 16_384, 20_000]) {
            let bytes = &bytes[..len];
            assert_eq!(xxh3_64(bytes), xxhash_rust::xxh3::xxh3_64(bytes), "{len}");
            for seed in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let hash = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed);
                assert_eq!(xxh3_64_seeded(bytes, seed), hash, "{len}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: the division into pieces does not matter. Method: random pieces, some empty,
        /// compared with the whole.
        #[test]
        fn pieces(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..6)) {
            let mut pieced = Xxh3::new();
            pieces.iter().for_each(|piece| pieced.update(piece));
            prop_assert_eq!(pieced.digest(), xxh3_64(&pieces.concat()));
        }

        /// Goal: damage and misplacement are detected. Method: flip one bit, or change the seed, of
        /// random blocks that cover XXH3's length classes.
        #[test]
        fn one_bit_matters(bytes in prop::collection::vec(any::<u8>(), 1..600), at: usize, bit in 0u32..8, seed: u64) {
            let mut other = bytes.clone();
            let at = at % other.len();
            other[at] ^= 1u8 << bit;
            prop_assert_ne!(xxh3_64_seeded(&bytes, seed), xxh3_64_seeded(&other, seed));
            prop_assert_ne!(xxh3_64_seeded(&bytes, seed), xxh3_64_seeded(&bytes, seed.wrapping_add(1)));
        }
    }
}
