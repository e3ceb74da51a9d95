//! The summary of a histogram of sizes.

use cairn_workload::histogram::Doublings;
use serde::Serialize;

/// A weighted histogram of sizes with buckets 3 % wide: exact below 64, then 32 per doubling.
pub(super) type Histogram = cairn_workload::Histogram<Doublings<32>>;

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

impl Sizes {
    /// Returns the summary; `None` if no size was added.
    pub(super) fn of(histogram: &Histogram) -> Option<Sizes> {
        Some(Sizes {
            min: histogram.min()?,
            p50: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
            mean: histogram.mean(),
        })
    }
}
