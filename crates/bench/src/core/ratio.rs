//! How much better one side is than the other, with an interval of 95 % confidence.
//!
//! The intervals of single ratios come from [`crate::core::stats`]. Several cases are combined by
//! the geometric mean of their ratios. The cases were measured independently, so its interval adds
//! their logarithmic half-widths in quadrature, each side by itself. The seed is fixed: a run
//! always gives the same report.

use crate::core::results::Measurement;
use crate::core::stats;

const SEED: u64 = 1;

/// The conclusion that a ratio's interval allows about its two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The whole interval is above one.
    Better,
    /// The whole interval is below one.
    Worse,
    /// The interval includes one.
    Unclear,
    /// There were too few samples for an interval. Nothing is known, not even whether the sides are
    /// even.
    TooFew,
}

impl Outcome {
    /// Returns true if one side is ahead.
    pub(crate) fn is_clear(self) -> bool {
        matches!(self, Outcome::Better | Outcome::Worse)
    }
}

/// The advantage of one side over another. Above one means better, for metrics of either direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The ratio of the medians, or the geometric mean of several such ratios.
    pub(crate) point: f64,
    /// The interval; none if either side has fewer than [`stats::SAMPLES_MIN`] samples and the
    /// value varies.
    pub(crate) interval: Option<(f64, f64)>,
}

impl Ratio {
    /// Returns the conclusion that the interval allows.
    pub(crate) fn outcome(self) -> Outcome {
        match self.interval {
            Some((low, _)) if low > 1.0 => Outcome::Better,
            Some((_, high)) if high < 1.0 => Outcome::Worse,
            Some(_) => Outcome::Unclear,
            None => Outcome::TooFew,
        }
    }
}

/// One case, measured on both sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'m> {
    /// The side whose advantage the ratio states.
    pub(crate) subject: &'m Measurement,
    /// The side it is compared with.
    pub(crate) against: &'m Measurement,
}

/// Returns the ratio of two measurements of one run. If both come from the same interleaved rounds,
/// rounds are resampled as pairs, so that a disturbance that hit both sides cancels out. Returns
/// none if a ratio has no meaning, because a value is missing or not positive.
pub(crate) fn within(pair: Pair<'_>) -> Option<Ratio> {
    let Pair { subject, against } = pair;
    let same_rounds = subject.case == against.case
        && subject.samples.len() == against.samples.len()
        && !subject.one_turn
        && !against.one_turn;
    between(pair, if same_rounds { stats::paired_ratio } else { stats::unpaired_ratio })
}

/// Returns the ratio of two measurements of different runs. None as in [`within`].
pub(crate) fn across(pair: Pair<'_>) -> Option<Ratio> {
    between(pair, stats::unpaired_ratio)
}

/// Returns the geometric mean of the ratios that have intervals, so that one case with too few
/// samples does not invalidate the others. If none has an interval, returns the mean of all,
/// without an interval. Returns none without ratios.
pub(crate) fn mean(ratios: &[Ratio]) -> Option<Ratio> {
    let sure: Vec<(f64, (f64, f64))> =
        ratios.iter().filter_map(|ratio| Some((ratio.point, ratio.interval?))).collect();
    if sure.is_empty() {
        let points: Vec<f64> = ratios.iter().map(|ratio| ratio.point).collect();
        return stats::geometric_mean(&points).map(|point| Ratio { point, interval: None });
    }
    let cases = sure.len() as f64;
    let (mut log_point, mut below, mut above) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (point, (low, high)) in sure {
        // Medians of resamples can all lie on one side of the samples' median. An end must not
        // cross the point.
        let (down, up) = ((point / low).ln().max(0.0), (high / point).ln().max(0.0));
        log_point += point.ln() / cases;
        below += down * down;
        above += up * up;
    }
    let (down, up) = (below.sqrt() / cases, above.sqrt() / cases);
    let interval = Some(((log_point - down).exp(), (log_point + up).exp()));
    Some(Ratio { point: log_point.exp(), interval })
}

type Bootstrap = fn(&[f64], &[f64], u64) -> Option<stats::Estimate>;

fn between(pair: Pair<'_>, bootstrap: Bootstrap) -> Option<Ratio> {
    let (subject, against) = (pair.subject, pair.against);
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if !usable(subject.median) || !usable(against.median) {
        return None;
    }
    let (top, bottom) = if subject.higher_is_better { (subject, against) } else { (against, subject) };
    let point = top.median / bottom.median;
    if subject.is_exact() && against.is_exact() {
        return Some(Ratio { point, interval: Some((point, point)) });
    }
    let enough =
        |m: &Measurement| m.samples.len() >= stats::SAMPLES_MIN && m.samples.iter().copied().all(usable);
    let estimate =
        if enough(top) && enough(bottom) { bootstrap(&top.samples, &bottom.samples, SEED) } else { None };
    // The ends enclose the point except in contrived samples. They are widened then, because a
    // chart with a point outside its interval misleads.
    let interval = estimate.map(|estimate| (estimate.low.min(point), estimate.high.max(point)));
    Some(Ratio { point, interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::measurement;

    fn pair<'m>(subject: &'m Measurement, against: &'m Measurement) -> Pair<'m> {
        Pair { subject, against }
    }

    /// Goal: the interval includes the point, excludes one when the sides are apart, and includes
    /// one when they overlap.
    /// Method: clear win, clear loss, overlap.
    #[test]
    fn outcomes_follow_the_samples() {
        let fast = measurement("a", "get", "throughput", &[10.0, 10.2, 9.9, 10.1, 10.0]);
        let slow = measurement("b", "get", "throughput", &[5.0, 5.1, 4.9, 5.0, 5.2]);
        let noisy = measurement("c", "get", "throughput", &[4.0, 18.0, 9.0, 12.0, 7.0]);
        let win = within(pair(&fast, &slow)).unwrap();
        let (low, high) = win.interval.unwrap();
        assert!(low <= win.point && win.point <= high && low > 1.8 && high < 2.2, "{win:?}");
        assert_eq!(win.outcome(), Outcome::Better);
        assert_eq!(within(pair(&slow, &fast)).unwrap().outcome(), Outcome::Worse);
        assert_eq!(within(pair(&fast, &noisy)).unwrap().outcome(), Outcome::Unclear);
    }

    /// Goal: the ratio is inverted if less is better. Method: half the time is an advantage of two.
    #[test]
    fn less_is_better_turns_the_ratio() {
        let mut short = measurement("a", "build", "time", &[1.0; 3]);
        let mut long = measurement("b", "build", "time", &[2.0; 3]);
        short.higher_is_better = false;
        long.higher_is_better = false;
        let ratio = within(pair(&short, &long)).unwrap();
        assert!((ratio.point - 2.0).abs() < 1e-9);
        assert_eq!(ratio.outcome(), Outcome::Better);
    }

    /// Goal: one or two samples give no interval, and so no verdict, unless the metric is exact.
    /// Method: both.
    #[test]
    fn few_samples_decide_nothing_that_varies() {
        for count in [1, 2] {
            let one = measurement("a", "get", "throughput", &[10.0, 10.1][..count]);
            let other = measurement("b", "get", "throughput", &[1.0, 1.1][..count]);
            let ratio = within(pair(&one, &other)).unwrap();
            assert_eq!((ratio.interval, ratio.outcome()), (None, Outcome::TooFew));
        }
        let small = measurement("a", "size", "bytes per entry", &[10.0]);
        let large = measurement("b", "size", "bytes per entry", &[20.0]);
        assert_eq!(within(pair(&small, &large)).unwrap().outcome(), Outcome::Better);
    }

    /// Goal: values that cannot form a ratio give none. Method: NaN, zero, negative and infinite
    /// samples.
    #[test]
    fn unusable_values_have_no_ratio() {
        let good = measurement("a", "get", "throughput", &[1.0, 2.0]);
        for bad in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let other = measurement("b", "get", "throughput", &[bad, bad]);
            assert!(within(pair(&good, &other)).is_none());
            assert!(within(pair(&other, &good)).is_none());
        }
    }

    /// Goal: the geometric mean of 2 and 8 is 4; many cases narrow its interval; a case without an
    /// interval does not count, unless none has one.
    /// Method: ratios made by hand.
    #[test]
    fn means_are_geometric() {
        let ratio = |point: f64, width: f64| Ratio { point, interval: Some((point / width, point * width)) };
        let two = mean(&[ratio(2.0, 1.0), ratio(8.0, 1.0)]).unwrap();
        assert!((two.point - 4.0).abs() < 1e-9);
        let (low, high) = mean(&[ratio(2.0, 1.5); 4]).unwrap().interval.unwrap();
        let width = 1.5_f64.sqrt();
        assert!((low - 2.0 / width).abs() < 1e-9 && (high - 2.0 * width).abs() < 1e-9);
        assert_eq!(mean(&[ratio(2.0, 1.5)]), Some(mean(&[ratio(2.0, 1.5); 1]).unwrap()));
        let unsure = |point: f64| Ratio { point, interval: None };
        assert_eq!(mean(&[ratio(2.0, 1.5), unsure(8.0)]), mean(&[ratio(2.0, 1.5)]));
        let guess = mean(&[unsure(2.0), unsure(8.0)]).unwrap();
        assert!((guess.point - 4.0).abs() < 1e-9 && guess.interval.is_none());
        assert!(mean(&[]).is_none());
    }

    /// Goal: the size of a tree on disk is as uncertain as it varies. Method: sizes that differ
    /// from turn to turn, and sizes that do not.
    #[test]
    fn sizes_that_vary_are_not_exact() {
        let tree = measurement("a", "size", "bytes per entry", &[9.0, 14.0, 10.0, 11.0, 30.0]);
        let other = measurement("b", "size", "bytes per entry", &[12.0; 5]);
        let ratio = within(pair(&tree, &other)).unwrap();
        assert_eq!(ratio.outcome(), Outcome::Unclear);
        assert_eq!(within(pair(&other, &other)).unwrap().interval, Some((1.0, 1.0)));
    }

    /// Goal: rounds are paired within a run, but not across runs, and not if one side took all its
    /// samples in one turn. Method: rounds of very different speed in which one side is always 1.5
    /// times the other.
    #[test]
    fn rounds_pair_only_within_a_run() {
        let slow = [10.0, 30.0, 14.0, 22.0, 90.0, 12.0, 55.0];
        let base = measurement("b", "get", "throughput", &slow);
        let faster = measurement("a", "get", "throughput", &slow.map(|sample| 1.5 * sample));
        assert_eq!(within(pair(&faster, &base)).unwrap().outcome(), Outcome::Better);
        assert_eq!(across(pair(&faster, &base)).unwrap().outcome(), Outcome::Unclear);
        let one_turn = Measurement { one_turn: true, ..base.clone() };
        assert_eq!(within(pair(&faster, &one_turn)).unwrap().outcome(), Outcome::Unclear);
    }
}
