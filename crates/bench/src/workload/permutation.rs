//! A shuffle of `0..n` that needs no table: a small Feistel network, walked until it lands inside.
//!
//! It spreads the popular ranks of a distribution over the key space, and because it is a bijection
//! the distribution keeps its shape (hashing ranks, as YCSB does, folds some of them onto each
//! other).

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
    /// The permutation of `0..len` that belongs to `seed`.
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let mut rng = SeededRng::new(seed);
        Permutation { len, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    /// Where `index` goes. `index` must be under `len`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        // BOUND: the network permutes at most 4 * len numbers, so the cycle of `index` comes back
        // inside.
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
