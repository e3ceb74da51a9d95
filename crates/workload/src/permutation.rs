//! A permutation of `0..n` without a table: a small Feistel network, repeated until the result is
//! in range (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002).
//!
//! It scatters the popular ranks of a distribution over the key space. Because it is a bijection,
//! the distribution keeps its shape; hashing ranks, as YCSB does, maps some of them to the same
//! key.

use std::fmt::Debug;

use cairn_vfs::{Rng, SeededRng};

use crate::draw::split_mix;

const ROUNDS: usize = 4;

/// How a round of the network mixes one half of a number.
pub trait Round: Debug + Clone {
    /// Derives the keys of the rounds from a seed.
    fn new(seed: u64) -> Self;

    /// Mixes `half` under the key of `round`. The low bits of the result are used.
    fn mix(&self, round: usize, half: u64) -> u64;
}

/// One multiplication per round: the permutation of the lab's workloads.
#[derive(Debug, Clone)]
pub struct Multiply([u64; ROUNDS]);

impl Round for Multiply {
    fn new(seed: u64) -> Self {
        let mut rng = SeededRng::new(seed);
        Multiply(std::array::from_fn(|_| rng.next_u64()))
    }

    #[inline]
    fn mix(&self, round: usize, half: u64) -> u64 {
        (half ^ self.0[round]).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 32
    }
}

/// One SplitMix64 per round: the permutation of the simulator. It differs from the lab's because
/// published simulations were computed with it.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl Round for SplitMix {
    fn new(seed: u64) -> Self {
        SplitMix(split_mix(seed ^ 0x5eed))
    }

    #[inline]
    fn mix(&self, round: usize, half: u64) -> u64 {
        split_mix(half ^ self.0.wrapping_add((round as u64) << 56))
    }
}

/// A pseudo-random bijection of `0..len`.
#[derive(Debug, Clone)]
pub struct Feistel<R> {
    len: u64,
    half_bits: u32,
    round: R,
}

/// The permutation of the lab's workloads.
pub type Permutation = Feistel<Multiply>;

/// The permutation of the simulator.
pub type SplitMixPermutation = Feistel<SplitMix>;

impl<R: Round> Feistel<R> {
    /// Creates the permutation of `0..len` for `seed`.
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Feistel { len, half_bits: bits.div_ceil(2).max(1), round: R::new(seed) }
    }

    /// Returns the image of `index`, which must be below `len`.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        debug_assert!(index < self.len, "found index {index}, expected one below {}", self.len);
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
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (self.round.mix(round, right) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images<R: Round>(len: u64, seed: u64) -> Vec<u64> {
        let permutation = Feistel::<R>::new(len, seed);
        (0..len).map(|index| permutation.apply(index)).collect()
    }

    /// Goal: the permutations are bijections. Method: maps all indices for several lengths, powers
    /// of two and others.
    #[test]
    fn permutations_are_bijections() {
        for len in [1, 2, 3, 64, 1000, 4097] {
            for mut seen in [images::<Multiply>(len, 7), images::<SplitMix>(len, 7)] {
                seen.sort_unstable();
                assert_eq!(seen, (0..len).collect::<Vec<_>>());
            }
        }
    }

    /// Goal: neither permutation ever changes: stored runs and simulations name only a seed.
    #[test]
    fn permutations_are_pinned() {
        assert_eq!(images::<Multiply>(1000, 7)[..5], [56, 312, 827, 826, 60]);
        assert_eq!(images::<SplitMix>(1000, 7)[..5], [716, 501, 225, 64, 996]);
    }
}
