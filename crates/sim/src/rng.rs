//! Random numbers that are the same everywhere: xoshiro256++ (Blackman and Vigna, 2019), seeded by
//! SplitMix64.

/// A random number generator. Equal seeds give equal sequences on every machine and in every
/// version.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Rng {
        let mut at = seed;
        let state = std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(at)
        });
        Rng { state }
    }

    /// Returns a random 64-bit number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a number uniformly distributed in `0..bound`, or 0 for a bound of 0. Multiplies
    /// instead of dividing: the bias is below 2^-32 for bounds below 2^32.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number uniformly distributed in `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Draws from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// SplitMix64's finalizer: a bijection that spreads neighbouring values.
#[inline]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A permutation of `0..count`: a Feistel network of four rounds, walked until it lands inside
/// (Black and Rogaway, 2002).
#[derive(Debug, Clone)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// Creates the permutation of `0..count` that belongs to a seed.
    pub fn new(count: u64, seed: u64) -> Permutation {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        Permutation { count, half_bits: bits.div_ceil(2).max(1), seed: mix(seed ^ 0x5eed) }
    }

    /// Maps `index`, which must be below the count. Walks the cycle at most four times on average,
    /// with four rounds each.
    #[inline]
    pub fn of(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut at = index;
        loop {
            let (mut left, mut right) = (at >> self.half_bits, at & mask);
            for round in 0..4u64 {
                let next = left ^ (mix(right ^ self.seed.wrapping_add(round << 56)) & mask);
                (left, right) = (right, next);
            }
            at = (left << self.half_bits) | right;
            // BOUND: a cycle of a bijection comes back to `index`, which is inside.
            if at < self.count || self.count == 0 {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the permutation is a bijection. Method: maps all indices for several counts, powers of
    /// two and others.
    #[test]
    fn permutations_are_bijections() {
        for count in [1, 2, 3, 64, 1000, 4097] {
            let permutation = Permutation::new(count, 7);
            let mut seen: Vec<u64> = (0..count).map(|index| permutation.of(index)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }

    /// Goal: the sequence never changes, since traces are compared across versions. Method:
    /// compares the first number with a fixed one.
    #[test]
    fn the_sequence_is_pinned() {
        let mut rng = Rng::new(1);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        let mut again = Rng::new(1);
        assert_eq!(first, (0..3).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_eq!(first[0], 14971601782005023387);
        let mean = (0..10_000).map(|_| rng.unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
