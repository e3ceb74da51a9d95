//! A histogram of sizes with buckets 3 % wide: exact below 64, then 32 buckets per doubling.

use serde::Serialize;

const EXACT: u64 = 64;
const STEPS: u64 = 32;

/// A summary of sizes. Percentiles may be up to 3 % too large.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sizes {
    /// The smallest size.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest size.
    pub max: u64,
    /// The mean.
    pub mean: f64,
}

/// A weighted histogram of sizes.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    counts: Vec<f64>,
    total: f64,
    sum: f64,
    min: Option<u64>,
    max: u64,
}

impl Histogram {
    pub fn add(&mut self, size: u64) {
        self.add_weighted(size, 1.0);
    }

    pub fn add_weighted(&mut self, size: u64, weight: f64) {
        let bucket = bucket_of(size);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0.0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += weight;
        }
        self.total += weight;
        self.sum += weight * size as f64;
        self.min = Some(self.min.map_or(size, |min| min.min(size)));
        self.max = self.max.max(size);
    }

    pub fn mean(&self) -> f64 {
        if self.total > 0.0 { self.sum / self.total } else { 0.0 }
    }

    pub fn total(&self) -> f64 {
        self.total
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the upper bound of the bucket that holds the quantile.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let mut left = self.total * quantile;
        for (bucket, count) in self.counts.iter().enumerate() {
            left -= count;
            if left <= 0.0 && *count > 0.0 {
                return end_of(bucket).min(self.max);
            }
        }
        self.max
    }

    /// Returns the total weight of sizes below `size`, interpolating within its bucket.
    pub fn below(&self, size: u64) -> f64 {
        let last = bucket_of(size);
        let whole: f64 = self.counts.iter().take(last).sum();
        let start = if last == 0 { 0 } else { end_of(last - 1) + 1 };
        let width = (end_of(last) - start + 1) as f64;
        whole + self.counts.get(last).unwrap_or(&0.0) * (size - start) as f64 / width
    }

    pub fn sizes(&self) -> Option<Sizes> {
        Some(Sizes {
            min: self.min?,
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            max: self.max,
            mean: self.mean(),
        })
    }
}

fn bucket_of(size: u64) -> usize {
    if size < EXACT {
        return size as usize;
    }
    let doubling = u64::from(size.ilog2() - EXACT.ilog2());
    let step = (size >> (doubling + 1)) - STEPS;
    (EXACT + doubling * STEPS + step) as usize
}

/// Returns the largest size of a bucket.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (doubling, step) = ((bucket - EXACT) / STEPS, (bucket - EXACT) % STEPS);
    let next = u128::from(STEPS + step + 1) << (doubling + 1);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the buckets cover all sizes without gaps or overlaps. Method: the end of each bucket
    /// and the start of the next one.
    #[test]
    fn buckets_tile() {
        let last = bucket_of(u64::MAX);
        for bucket in 0..last {
            assert_eq!((bucket_of(end_of(bucket)), bucket_of(end_of(bucket) + 1)), (bucket, bucket + 1));
        }
        assert_eq!(end_of(last), u64::MAX);
    }

    /// Goal: quantiles and sums are accurate to 3 %. Method: the sizes 1 to 10,000.
    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|size| histogram.add(size));
        let sizes = histogram.sizes().unwrap();
        assert_eq!((sizes.min, sizes.max), (1, 10_000));
        assert!((sizes.mean - 5000.5).abs() < 1e-6);
        for (quantile, expected) in [(sizes.p50, 5000.0), (sizes.p90, 9000.0), (sizes.p99, 9900.0)] {
            assert!((quantile as f64 / expected - 1.0).abs() < 0.032, "{quantile} {expected}");
        }
        for size in [0, 1, 64, 100, 5000, 20_000] {
            let expected = (size as f64 - 1.0).clamp(0.0, 10_000.0);
            assert!((histogram.below(size) - expected).abs() <= 0.01 * expected + 1.0, "{size}");
        }
        assert_eq!(Histogram::default().sizes(), None);
    }
}
