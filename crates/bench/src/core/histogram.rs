//! Latency of single operations, and the overhead of reading the clock.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_vfs::Clock;
use cairn_workload::Histogram;
use cairn_workload::histogram::Doublings;

/// The longest latency that the histogram resolves: one hour, since a replay at recorded speed may
/// fall behind that far.
const MAX_NS: u64 = 3_600_000_000_000;

/// Buckets 0.8 % wide, which is finer than the clock. More would make the table compete with the
/// stores for the CPU cache.
type Nanoseconds = Doublings<128>;

/// Latencies in nanoseconds, each reduced by the overhead of reading the clock.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<Nanoseconds>,
    clock_overhead_ns: u64,
}

impl Latencies {
    /// Creates an empty histogram; `clock_overhead_ns` comes from [`clock_overhead`].
    pub fn new(clock_overhead_ns: u64) -> Self {
        Latencies { histogram: Histogram::with_max(MAX_NS), clock_overhead_ns }
    }

    /// Returns the overhead that is subtracted from each latency.
    pub fn clock_overhead_ns(&self) -> u64 {
        self.clock_overhead_ns
    }

    /// Records the time between two clock readings around one operation. More than an hour is
    /// recorded as one hour.
    #[inline]
    pub fn record(&mut self, elapsed: Duration) {
        let ns = (elapsed.as_nanos() as u64).saturating_sub(self.clock_overhead_ns);
        self.histogram.add(ns.clamp(1, MAX_NS), 1.0);
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.histogram.merge(&other.histogram);
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.total() as u64
    }

    /// Returns the latency that a fraction `quantile` of the operations did not exceed, in ns.
    pub fn quantile(&self, quantile: f64) -> f64 {
        self.histogram.quantile(quantile) as f64
    }

    /// Returns the percentiles for reports; empty if nothing was recorded.
    pub fn percentiles(&self) -> BTreeMap<String, f64> {
        if self.count() == 0 {
            return BTreeMap::new();
        }
        let named = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
        let mut percentiles: BTreeMap<String, f64> =
            named.iter().map(|&(name, quantile)| (name.to_owned(), self.quantile(quantile))).collect();
        percentiles.insert("max".to_owned(), self.histogram.max() as f64);
        percentiles
    }

    /// Returns every used bucket as (ns, count), to be sent to another process.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        self.histogram.used().map(|(ns, count)| (ns, count as u64)).collect()
    }

    /// Adds the buckets that [`Latencies::buckets`] returned.
    pub fn add_buckets(&mut self, buckets: &[(u64, u64)]) {
        for &(ns, count) in buckets {
            self.histogram.add(ns.clamp(1, MAX_NS), count as f64);
        }
    }
}

/// Returns the median difference between two consecutive clock readings, in ns.
pub fn clock_overhead(clock: &dyn Clock) -> u64 {
    let mut readings: Vec<u64> = (0..2_001)
        .map(|_| {
            let start = clock.now();
            (clock.now() - start).as_nanos() as u64
        })
        .collect();
    readings.sort_unstable();
    readings[readings.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: percentiles have the promised accuracy of 1 %, without the clock's overhead. Method:
    /// 1..=10,000 ns plus 25 ns of overhead each.
    #[test]
    fn percentiles_are_right() {
        let mut latencies = Latencies::new(25);
        for ns in 1..=10_000 {
            latencies.record(Duration::from_nanos(ns + 25));
        }
        let percentiles = latencies.percentiles();
        for (name, expected) in [("p50", 5_000.0), ("p90", 9_000.0), ("p99", 9_900.0), ("p99.9", 9_990.0)] {
            let got = percentiles[name];
            assert!((got / expected - 1.0).abs() < 0.011, "{name}: {got}");
        }
        assert!((percentiles["max"] / 10_000.0 - 1.0).abs() < 0.011);
    }

    /// Goal: histograms merge, and a round trip through buckets preserves them. An operation
    /// shorter than the clock's overhead counts as 1 ns, one of hours as the maximum.
    #[test]
    fn merges_and_travels() {
        let (mut a, mut b) = (Latencies::new(25), Latencies::new(25));
        a.record(Duration::from_nanos(3));
        a.record(Duration::from_micros(3));
        b.record(Duration::from_secs(7_200));
        a.merge(&b);
        let mut copy = Latencies::new(0);
        copy.add_buckets(&a.buckets());
        assert_eq!(copy.count(), 3);
        assert_eq!(copy.percentiles(), a.percentiles());
        assert_eq!(a.quantile(0.0), 1.0);
        assert!(Latencies::new(0).percentiles().is_empty());
    }

    /// Goal: latencies of minutes are resolved. Method: latencies around a minute and near an hour.
    #[test]
    fn long_latencies_are_told() {
        for secs in [59, 61, 600, 3_500] {
            let mut latencies = Latencies::new(0);
            latencies.record(Duration::from_secs(secs));
            let ratio = latencies.percentiles()["max"] / (secs as f64 * 1e9);
            assert!((ratio - 1.0).abs() < 0.011, "{secs} s: {ratio}");
        }
    }

    /// Goal: the overhead is that of the clock. Method: a clock that advances by 7 ns at each
    /// reading.
    #[test]
    fn overhead_of_a_known_clock() {
        #[derive(Debug, Default)]
        struct Ticking(std::sync::atomic::AtomicU64);
        impl Clock for Ticking {
            fn now(&self) -> Duration {
                Duration::from_nanos(self.0.fetch_add(7, std::sync::atomic::Ordering::Relaxed))
            }
            fn wall(&self) -> Duration {
                Duration::ZERO
            }
            fn sleep(&self, _: Duration) {}
        }
        assert_eq!(clock_overhead(&Ticking::default()), 7);
    }
}
