//! A permutation of `0..n` without a table: a small Feistel network, repeated until the result is
//! in range.
//!
//! It scatters the popular ranks of a distribution over the key space. Because it is a bijection,
//! the distribution keeps its shape; hashing ranks, as YCSB does, maps some of them to the same
//! key.

use cairn_vfs::{Rng, SeededRng};

const ROUNDS: usize = 4;

/// A pseudo-random bijection of `0..len`.
#[derive(Debug, Clone)]
pub struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Creates the permutation of `0..len` for `seed`.
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut rng = SeededRng::new(seed);
        Permutation { len, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// Returns the image of `index`, which must be below `len`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        // BOUND: the network permutes at most 4 * len numbers, so the cycle of `index` returns to
        // the range.
        let mut at = index;
        loop {
            at = self.network(at);
            if at < self.len {
                return at;
            }
        }
    }

    fn network(&self, at: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (at >> self.half_bits, at & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
            (left, right) = (right, left ^ ((mixed >> 32) & mask));
        }
        left << self.half_bits | right
    }
}
