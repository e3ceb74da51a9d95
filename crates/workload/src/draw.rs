//! Draws from distributions other than the uniform one.

use cairn_vfs::Rng;

/// Distributions from which every [`Rng`] can draw.
pub trait Draw: Rng {
    /// Draws from the exponential distribution with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Draws from the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

impl<R: Rng + ?Sized> Draw for R {}

/// SplitMix64's finalizer: a bijection that spreads neighbouring values.
#[inline]
pub fn split_mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use cairn_vfs::SeededRng;

    use super::*;

    /// Goal: the sequence never changes, since stored simulations name only a seed. Method:
    /// compares the first numbers with fixed ones.
    #[test]
    fn the_sequence_is_pinned() {
        let mut rng = SeededRng::new(1);
        let first: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        let mut again = SeededRng::new(1);
        assert_eq!(first, (0..3).map(|_| again.next_u64()).collect::<Vec<_>>());
        assert_eq!(first[0], 14971601782005023387);
        let mean = (0..10_000).map(|_| rng.unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    /// Goal: the distributions have their means and deviations. Method: 100,000 draws of each.
    #[test]
    fn moments_are_right() {
        let mut rng = SeededRng::new(2);
        let draws = 100_000;
        let mean = (0..draws).map(|_| rng.exponential(3.0)).sum::<f64>() / f64::from(draws);
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        let normal: Vec<f64> = (0..draws).map(|_| rng.normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(draws);
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / f64::from(draws);
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
