//! Scales of histograms: which bucket counts a value, and which value stands for a bucket.

use std::fmt::Debug;

/// A scale. Larger values are in later buckets.
pub trait Buckets: Debug + Clone {
    /// The type of the counted values. Its default must be the smallest of them.
    type Value: Copy + PartialOrd + Default + Debug;

    /// Returns the bucket of a value.
    fn bucket_of(value: Self::Value) -> usize;

    /// Returns the value that stands for a bucket.
    fn reading(bucket: usize) -> Self::Value;

    /// Returns the value as a number, for means.
    fn number(value: Self::Value) -> f64;
}

/// Seconds, in 48 buckets per factor of ten. The middle of a bucket stands for it.
#[derive(Debug, Clone)]
pub struct Decades;

const PER_DECADE: f64 = 48.0;
/// Sixteen decades, because a stalled write may wait for as long as the whole run.
const DECADE_BUCKETS: usize = 768;
/// The upper end of the first bucket, seconds.
const SECONDS_MIN: f64 = 1e-8;

impl Buckets for Decades {
    type Value = f64;

    fn bucket_of(secs: f64) -> usize {
        let at = ((secs / SECONDS_MIN).max(1.0).log10() * PER_DECADE) as usize;
        at.min(DECADE_BUCKETS - 1)
    }

    fn reading(bucket: usize) -> f64 {
        SECONDS_MIN * 10f64.powf((bucket as f64 + 0.5) / PER_DECADE)
    }

    fn number(secs: f64) -> f64 {
        secs
    }
}

/// Whole numbers: exact below `2 * STEPS`, then `STEPS` buckets per doubling. The largest value of
/// a bucket stands for it, so percentiles are too large by at most one part in `STEPS`.
#[derive(Debug, Clone)]
pub struct Doublings<const STEPS: u64>;

impl<const STEPS: u64> Doublings<STEPS> {
    const EXACT: u64 = 2 * STEPS;
    const IS_VALID: () = assert!(STEPS.is_power_of_two(), "a bucket is found by shifting");
}

impl<const STEPS: u64> Buckets for Doublings<STEPS> {
    type Value = u64;

    #[inline]
    fn bucket_of(value: u64) -> usize {
        const { Self::IS_VALID };
        if value < Self::EXACT {
            return value as usize;
        }
        let doubling = u64::from(value.ilog2() - Self::EXACT.ilog2());
        let step = (value >> (doubling + 1)) - STEPS;
        (Self::EXACT + doubling * STEPS + step) as usize
    }

    fn reading(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < Self::EXACT {
            return bucket;
        }
        let (doubling, step) = ((bucket - Self::EXACT) / STEPS, (bucket - Self::EXACT) % STEPS);
        let next = u128::from(STEPS + step + 1) << (doubling + 1);
        u64::try_from(next - 1).unwrap_or(u64::MAX)
    }

    fn number(value: u64) -> f64 {
        value as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile<const STEPS: u64>() {
        let (bucket_of, end_of) = (Doublings::<STEPS>::bucket_of, Doublings::<STEPS>::reading);
        let last = bucket_of(u64::MAX);
        for bucket in 0..last {
            assert_eq!((bucket_of(end_of(bucket)), bucket_of(end_of(bucket) + 1)), (bucket, bucket + 1));
        }
        assert_eq!(end_of(last), u64::MAX);
    }

    /// Goal: the buckets cover all values without gaps or overlaps. Method: the end of each bucket
    /// and the start of the next one.
    #[test]
    fn buckets_tile() {
        tile::<1>();
        tile::<32>();
        tile::<128>();
    }
}
