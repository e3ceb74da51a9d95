//! Weighted histograms: one implementation, with buckets for seconds or for whole numbers.

mod buckets;

use serde::Serialize;

pub use buckets::{Buckets, Decades, Doublings};

/// Latencies in seconds, from 10 ns to 10^8 s. Percentiles are within 2.5 %.
pub type Seconds = Histogram<Decades>;

/// A weighted histogram. Memory is bounded by the number of buckets, which `B` decides.
#[derive(Debug, Clone)]
pub struct Histogram<B: Buckets> {
    weights: Vec<f64>,
    total: f64,
    /// The sum of all values, each times its weight.
    sum: f64,
    min: Option<B::Value>,
    max: B::Value,
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

impl<B: Buckets> Default for Histogram<B> {
    fn default() -> Self {
        Histogram { weights: Vec::new(), total: 0.0, sum: 0.0, min: None, max: B::Value::default() }
    }
}

impl<B: Buckets> Histogram<B> {
    /// Creates an empty histogram that allocates its buckets for values up to `max` at once, so
    /// that [`Histogram::add`] never has to.
    pub fn with_max(max: B::Value) -> Self {
        Histogram { weights: vec![0.0; B::bucket_of(max) + 1], ..Histogram::default() }
    }

    /// Adds `weight` observations of `value`, both finite. A negative weight takes some away again,
    /// which corrects samples (SHARDS).
    #[inline]
    pub fn add(&mut self, value: B::Value, weight: f64) {
        debug_assert!(
            B::number(value).is_finite() && weight.is_finite(),
            "found {weight} observations of {value:?}, expected finite numbers"
        );
        let bucket = B::bucket_of(value);
        if bucket >= self.weights.len() {
            self.weights.resize(bucket + 1, 0.0);
        }
        if let Some(slot) = self.weights.get_mut(bucket) {
            *slot += weight;
        }
        self.total += weight;
        self.sum += weight * B::number(value);
        self.min = Some(self.min.map_or(value, |min| if value < min { value } else { min }));
        if value > self.max {
            self.max = value;
        }
    }

    /// Adds all observations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.weights.len() > self.weights.len() {
            self.weights.resize(other.weights.len(), 0.0);
        }
        for (slot, weight) in self.weights.iter_mut().zip(&other.weights) {
            *slot += weight;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.min = match (self.min, other.min) {
            (Some(a), Some(b)) => Some(if b < a { b } else { a }),
            (a, b) => a.or(b),
        };
        if other.max > self.max {
            self.max = other.max;
        }
    }

    /// Returns the number of observations.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Returns the smallest value; `None` if nothing was added.
    pub fn min(&self) -> Option<B::Value> {
        self.min
    }

    /// Returns the largest value; 0 if nothing was added.
    pub fn max(&self) -> B::Value {
        self.max
    }

    /// Returns the mean; 0 if nothing was added.
    pub fn mean(&self) -> f64 {
        if self.total > 0.0 { self.sum / self.total } else { 0.0 }
    }

    /// Returns the value that a share of the observations does not exceed, as exactly as the
    /// buckets tell.
    pub fn quantile(&self, share: f64) -> B::Value {
        debug_assert!((0.0..=1.0).contains(&share), "found a share of {share}, expected 0 to 1");
        let wanted = self.total * share;
        let mut seen = 0.0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            seen += weight;
            if seen >= wanted && *weight > 0.0 {
                return self.reading(bucket);
            }
        }
        self.max
    }

    /// Returns every used bucket as (value, weight), smallest values first.
    pub fn used(&self) -> impl Iterator<Item = (B::Value, f64)> + '_ {
        let used = self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
        used.map(|(bucket, weight)| (self.reading(bucket), *weight))
    }

    /// Returns the value that stands for a bucket.
    fn reading(&self, bucket: usize) -> B::Value {
        let value = B::reading(bucket);
        if value < self.max { value } else { self.max }
    }
}

impl<const STEPS: u64> Histogram<Doublings<STEPS>> {
    /// Returns the total weight of values below `value`, interpolating within its bucket.
    pub fn below(&self, value: u64) -> f64 {
        let last = Doublings::<STEPS>::bucket_of(value);
        let whole: f64 = self.weights.iter().take(last).sum();
        let start = if last == 0 { 0 } else { Doublings::<STEPS>::reading(last - 1) + 1 };
        let width = (Doublings::<STEPS>::reading(last) - start + 1) as f64;
        whole + self.weights.get(last).unwrap_or(&0.0) * (value - start) as f64 / width
    }
}

impl Histogram<Decades> {
    /// Returns the mean, the usual percentiles and the maximum.
    pub fn percentiles(&self) -> Percentiles {
        if self.total <= 0.0 {
            return Percentiles::default();
        }
        let us = |share: f64| self.quantile(share) * 1e6;
        Percentiles {
            mean_us: self.mean() * 1e6,
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
            max_us: self.max * 1e6,
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
        let mut histogram = Seconds::default();
        (1..=10_000).for_each(|at| histogram.add(f64::from(at) * 1e-6, 1.0));
        let found = histogram.percentiles();
        for (value, expected) in [(found.p50_us, 5000.0), (found.p99_us, 9900.0), (found.p999_us, 9990.0)] {
            assert!((value / expected - 1.0).abs() < 0.03, "{value} {expected}");
        }
        assert_eq!(found.max_us, 10_000.0);
    }

    /// Goal: if a share of the observations ends exactly at a latency, its quantile is that latency
    /// and not the next one. Method: four latencies of equal weight; the quantiles of one to four
    /// quarters.
    #[test]
    fn shares_that_end_with_a_latency() {
        let mut histogram = Seconds::default();
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
        let (mut all, mut parts) = (Seconds::default(), vec![Seconds::default(); 3]);
        for at in 1..=3000u32 {
            let secs = f64::from(at * 7919 % 3001) * 1e-6;
            all.add(secs, 2.0);
            parts[at as usize % 3].add(secs, 2.0);
        }
        for first in 0..3 {
            let mut merged = Seconds::default();
            (0..3).for_each(|at| merged.merge(&parts[(first + at) % 3]));
            let (found, expected) = (merged.percentiles(), all.percentiles());
            assert_eq!(merged.total(), all.total());
            assert!((found.mean_us / expected.mean_us - 1.0).abs() < 1e-9, "{found:?} {expected:?}");
            assert_eq!(Percentiles { mean_us: 0.0, ..found }, Percentiles { mean_us: 0.0, ..expected });
        }
    }

    /// Goal: long waits have correct percentiles too. Method: stalls of a quarter of an hour and
    /// one of a day, then one as long as a run may be.
    #[test]
    fn long_waits_have_percentiles() {
        let mut histogram = Seconds::default();
        histogram.add(900.0, 99.0);
        histogram.add(86_400.0, 1.0);
        let found = histogram.percentiles();
        for (value, expected) in [(found.p50_us, 900e6), (found.p999_us, 86_400e6)] {
            assert!((value / expected - 1.0).abs() < 0.03, "{value} {expected}");
        }
        let mut histogram = Seconds::default();
        histogram.add(0.99e8, 1.0);
        assert!((histogram.quantile(0.5) / 0.99e8 - 1.0).abs() < 0.03);
    }

    /// Goal: quantiles and sums of whole numbers are accurate to 3 %. Method: the sizes 1 to
    /// 10,000.
    #[test]
    fn quantiles_of_whole_numbers() {
        let mut histogram = Histogram::<Doublings<32>>::default();
        assert_eq!(histogram.min(), None);
        (1..=10_000).for_each(|size| histogram.add(size, 1.0));
        assert_eq!((histogram.min(), histogram.max()), (Some(1), 10_000));
        assert!((histogram.mean() - 5000.5).abs() < 1e-6);
        for (share, expected) in [(0.5, 5000.0), (0.9, 9000.0), (0.99, 9900.0)] {
            let quantile = histogram.quantile(share) as f64;
            assert!((quantile / expected - 1.0).abs() < 0.032, "{quantile} {expected}");
        }
        for size in [0, 1, 64, 100, 5000, 20_000] {
            let expected = (size as f64 - 1.0).clamp(0.0, 10_000.0);
            assert!((histogram.below(size) - expected).abs() <= 0.01 * expected + 1.0, "{size}");
        }
    }
}
