//! Remainders by a divisor that is fixed long before the lookups: a multiplication instead of a
//! division.

use std::num::NonZeroU64;

/// Computes exact remainders of 64-bit numbers by one fixed divisor.
///
/// With m = floor((2^64 - 1) / d), the estimate floor(n * m / 2^64) is the true quotient or one
/// less, because 2^64 / d - m is at most 1. One conditional subtraction therefore corrects the
/// remainder (Barrett, 1986).
#[derive(Debug, Clone, Copy)]
pub(super) struct Modulus {
    divisor: u64,
    reciprocal: u64,
}

impl Modulus {
    pub fn new(divisor: NonZeroU64) -> Self {
        Modulus { divisor: divisor.get(), reciprocal: u64::MAX / divisor }
    }

    /// Returns `n mod divisor`.
    #[inline(always)]
    pub fn reduce(&self, n: u64) -> u64 {
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = n.wrapping_sub(quotient.wrapping_mul(self.divisor));
        debug_assert!(remainder / 2 < self.divisor, "the estimate is at most one too small");
        let reduced = if remainder >= self.divisor { remainder - self.divisor } else { remainder };
        debug_assert_eq!(reduced, n % self.divisor, "{n} mod {}", self.divisor);
        reduced
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(n: u64, divisor: u64) {
        let modulus = Modulus::new(NonZeroU64::new(divisor).unwrap());
        assert_eq!(modulus.reduce(n), n % divisor, "{n} mod {divisor}");
    }

    /// Goal: the result is exact where estimates are off. Method: numbers around multiples of
    /// divisors around powers of two.
    #[test]
    fn remainders_at_the_edges_of_u64() {
        for shift in 0..64 {
            for divisor in [(1u64 << shift).saturating_sub(1).max(1), 1 << shift, (1 << shift) + 1] {
                for multiple in [0, 1, 2, u64::MAX / divisor / 2, u64::MAX / divisor] {
                    let base = divisor.wrapping_mul(multiple);
                    for n in [base.wrapping_sub(1), base, base.wrapping_add(1)] {
                        check(n, divisor);
                    }
                }
                check(u64::MAX, divisor);
            }
        }
        check(u64::MAX, u64::MAX);
        check(u64::MAX - 1, u64::MAX);
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(4096))]

        /// Goal: the result is exact everywhere. Method: random numbers and divisors of random
        /// size.
        #[test]
        fn equals_the_remainder(n: u64, divisor in 1u64.., shift in 0u32..64) {
            check(n, (divisor >> shift).max(1));
        }
    }
}
