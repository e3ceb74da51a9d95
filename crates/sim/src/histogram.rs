//! Latency histograms with buckets that grow by a twentieth, so that percentiles are within 2.5 %.

use serde::Serialize;

const PER_DECADE: f64 = 48.0;
/// Sixteen decades, because a write that is stopped may wait as long as the whole run.
const BUCKETS: usize = 768;
/// The upper end of the first bucket, seconds.
const LEAST: f64 = 1e-8;

/// Weighted latencies, from 10 ns to 10^8 s.
#[derive(Debug, Clone)]
pub struct Histogram {
    weights: Vec<f64>,
    sum: f64,
    total: f64,
    most: f64,
}

/// Percentiles, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Percentiles {
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { weights: vec![0.0; BUCKETS], sum: 0.0, total: 0.0, most: 0.0 }
    }
}

impl Histogram {
    /// Adds `weight` operations that took `secs`.
    pub fn add(&mut self, secs: f64, weight: f64) {
        if weight <= 0.0 || !secs.is_finite() {
            return;
        }
        let at = ((secs / LEAST).max(1.0).log10() * PER_DECADE) as usize;
        if let Some(slot) = self.weights.get_mut(at.min(BUCKETS - 1)) {
            *slot += weight;
        }
        self.sum += secs * weight;
        self.total += weight;
        self.most = self.most.max(secs);
    }

    /// Adds all operations of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (slot, weight) in self.weights.iter_mut().zip(&other.weights) {
            *slot += weight;
        }
        self.sum += other.sum;
        self.total += other.total;
        self.most = self.most.max(other.most);
    }

    /// Returns the number of operations.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the latency, in seconds, that a share of the operations does not exceed.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = self.total * share;
        let mut seen = 0.0;
        for (at, weight) in self.weights.iter().enumerate() {
            seen += weight;
            if seen >= wanted && *weight > 0.0 {
                let middle = LEAST * 10f64.powf((at as f64 + 0.5) / PER_DECADE);
                return middle.min(self.most);
            }
        }
        self.most
    }

    /// Returns the mean, the usual percentiles and the maximum.
    pub fn percentiles(&self) -> Percentiles {
        if self.total <= 0.0 {
            return Percentiles::default();
        }
        let us = |share: f64| self.quantile(share) * 1e6;
        Percentiles {
            mean_us: self.sum / self.total * 1e6,
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.most * 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: percentiles are within a bucket of the true ones. Method: latencies from 1 µs to 10
    /// ms, evenly spaced.
    #[test]
    fn percentiles_are_close() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|at| histogram.add(f64::from(at) * 1e-6, 1.0));
        let found = histogram.percentiles();
        for (value, expected) in [(found.p50_us, 5000.0), (found.p99_us, 9900.0), (found.p999_us, 9990.0)] {
            assert!((value / expected - 1.0).abs() < 0.03, "{value} {expected}");
        }
        assert_eq!(found.max_us, 10_000.0);
    }

    /// Goal: a share that ends exactly at a latency returns that latency. Method: four latencies of
    /// equal weight, and the shares that one, two, three and all of them make up.
    #[test]
    fn shares_that_end_with_a_latency() {
        let mut histogram = Histogram::default();
        let latencies = [1e-6, 1e-4, 1e-2, 1.0];
        latencies.iter().for_each(|secs| histogram.add(*secs, 2.0));
        for (count, expected) in latencies.into_iter().enumerate() {
            let found = histogram.quantile((count + 1) as f64 / 4.0);
            assert!((found / expected - 1.0).abs() < 0.03, "{count}: {found} {expected}");
        }
    }

    /// Goal: merged histograms give the same percentiles as one histogram of all operations.
    /// Method: latencies dealt out to three histograms, the longest to only one of them.
    #[test]
    fn parts_make_the_whole() {
        let (mut all, mut parts) = (Histogram::default(), vec![Histogram::default(); 3]);
        for at in 1..=3000u32 {
            let secs = f64::from(at * 7919 % 3001) * 1e-6;
            all.add(secs, 2.0);
            parts[at as usize % 3].add(secs, 2.0);
        }
        for first in 0..3 {
            let mut merged = Histogram::default();
            (0..3).for_each(|at| merged.merge(&parts[(first + at) % 3]));
            let (found, expected) = (merged.percentiles(), all.percentiles());
            assert_eq!(merged.total(), all.total());
            assert!((found.mean_us / expected.mean_us - 1.0).abs() < 1e-9, "{found:?} {expected:?}");
            assert_eq!(Percentiles { mean_us: 0.0, ..found }, Percentiles { mean_us: 0.0, ..expected });
        }
    }

    /// Goal: long waits have correct percentiles too. Method: stops of a quarter of an hour and one
    /// of a day, then one as long as a run may be.
    #[test]
    fn long_waits_have_percentiles() {
        let mut histogram = Histogram::default();
        histogram.add(900.0, 99.0);
        histogram.add(86_400.0, 1.0);
        let found = histogram.percentiles();
        for (value, expected) in [(found.p50_us, 900e6), (found.p999_us, 86_400e6)] {
            assert!((value / expected - 1.0).abs() < 0.03, "{value} {expected}");
        }
        let mut histogram = Histogram::default();
        histogram.add(0.99e8, 1.0);
        assert!((histogram.quantile(0.5) / 0.99e8 - 1.0).abs() < 0.03);
    }
}
