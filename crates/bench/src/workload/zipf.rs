//! Zipf's law: rank `k` is drawn with probability proportional to `k^-theta`.
//!
//! Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions" (ACM TOMACS 6(3), 1996): exact for every `theta > 0`, constant
//! time, no table. The integral of the hat function is inverted and the overshoot rejected, which
//! happens in a few percent of the draws.

use cairn_vfs::Rng;

/// Draws ranks `0..len`; rank 0 is the most popular.
#[derive(Debug, Clone)]
pub struct Zipf {
    len: u64,
    theta: f64,
    /// Integral of the hat function at the lower end: at 1.5, minus the weight of the first rank.
    integral_first: f64,
    /// Integral of the hat function at the upper end.
    integral_last: f64,
    /// Draws that are below their rank by at most this need no test.
    accept_below: f64,
}

impl Zipf {
    /// Creates a generator. `len` must be at least 1 and `theta` positive; 0.99 is YCSB's choice.
    pub fn new(len: u64, theta: f64) -> Self {
        debug_assert!(len >= 1 && theta > 0.0);
        let mut zipf = Zipf { len, theta, integral_first: 0.0, integral_last: 0.0, accept_below: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(len as f64 + 0.5);
        zipf.accept_below = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws the next rank.
    pub fn draw(&self, rng: &mut impl Rng) -> u64 {
        // BOUND: each try is accepted with a probability over 1/2, for all theta and len.
        loop {
            let u = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.len as f64);
            if rank - x <= self.accept_below || u >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns the integral of `x^-theta`: `(x^(1-theta) - 1) / (1 - theta)`, or `ln x` if theta
    /// is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over_x((1.0 - self.theta) * log) * log
    }

    fn inverse(&self, y: f64) -> f64 {
        // Rounding can move the argument slightly past the pole.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        (ln_1p_over_x(t) * y).exp()
    }
}

/// Returns `(e^x - 1) / x`, accurate near 0.
fn expm1_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 * (1.0 + x / 3.0) }
}

/// Returns `ln(1 + x) / x`, accurate near 0.
fn ln_1p_over_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x * (0.5 - x / 3.0) }
}
