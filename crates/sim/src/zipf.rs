//! Exact zipfian ranks without tables, by rejection-inversion (Hörmann and Derflinger, ACM TOMACS
//! 1996).

use crate::rng::Rng;

/// Ranks `0..count` with probability proportional to `(rank + 1)^-theta`.
#[derive(Debug, Clone)]
pub struct Zipf {
    count: f64,
    theta: f64,
    low: f64,
    high: f64,
    shortcut: f64,
    /// The sum of all weights.
    norm: f64,
}

impl Zipf {
    /// Creates the distribution for `count >= 1` ranks and `theta > 0`.
    pub fn new(count: u64, theta: f64) -> Zipf {
        let count = count.max(1) as f64;
        let mut zipf = Zipf { count, theta, low: 0.0, high: 0.0, shortcut: 0.0, norm: 1.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(count + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-theta));
        zipf.norm = zipf.sum(count as u64);
        zipf
    }

    /// Returns the antiderivative of x^-theta that is 0 at 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 { log } else { ((e * log).exp() - 1.0) / e }
    }

    fn inverse(&self, value: f64) -> f64 {
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 { value.exp() } else { (1.0 + e * value).max(f64::MIN_POSITIVE).powf(1.0 / e) }
    }

    /// Returns the sum of the weights of ranks `0..count`: exact for the head, by the midpoint rule
    /// with an error below 1e-7 for the tail.
    fn sum(&self, count: u64) -> f64 {
        const EXACT: u64 = 1000;
        let head: f64 = (1..=count.min(EXACT)).map(|rank| (rank as f64).powf(-self.theta)).sum();
        let tail = if count > EXACT {
            self.integral(count as f64 + 0.5) - self.integral(EXACT as f64 + 0.5)
        } else {
            0.0
        };
        head + tail
    }

    /// Draws a rank. Needs 1.1 tries on average.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let at = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(at);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.shortcut || at >= self.integral(rank + 0.5) - rank.powf(-self.theta) {
                return rank as u64 - 1;
            }
        }
    }

    /// Returns the probability of a rank.
    pub fn probability(&self, rank: u64) -> f64 {
        ((rank + 1) as f64).powf(-self.theta) / self.norm
    }

    /// Returns the probability of all ranks below `rank`.
    #[cfg(test)]
    pub fn cumulative(&self, rank: u64) -> f64 {
        self.sum(rank) / self.norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: draws follow the formula. Method: 200,000 draws for several exponents, including 1 and
    /// one with many rejections, against the probabilities of the first two ranks and of the first
    /// hundred.
    #[test]
    fn draws_follow_the_formula() {
        for theta in [0.5, 0.99, 1.0, 1.2, 3.0] {
            let zipf = Zipf::new(10_000, theta);
            let mut rng = Rng::new(3);
            let draws = 200_000;
            let (mut first, mut second, mut hundred) = (0, 0, 0);
            for _ in 0..draws {
                let rank = zipf.draw(&mut rng);
                assert!(rank < 10_000);
                first += u32::from(rank == 0);
                second += u32::from(rank == 1);
                hundred += u32::from(rank < 100);
            }
            let share = f64::from(first) / f64::from(draws);
            assert!((share - zipf.probability(0)).abs() < 0.004, "{theta}: {share}");
            let share = f64::from(second) / f64::from(draws);
            assert!((share - zipf.probability(1)).abs() < 0.0015, "{theta}: {share}");
            let share = f64::from(hundred) / f64::from(draws);
            assert!((share - zipf.cumulative(100)).abs() < 0.006, "{theta}: {share}");
        }
    }
}
