//! Medians, intervals and ratios, for few and noisy samples.
//!
//! Intervals are percentile bootstraps (Efron and Tibshirani, "An Introduction to the Bootstrap",
//! 1993, chapter 13) of the median, which assume no shape of the noise. With fewer than ten samples
//! these are too narrow, so intervals also extend as far as Student's. Samples of two contenders
//! come from the same interleaved rounds, so a ratio resamples rounds, not samples, and a
//! disturbance that hit both cancels out.

use cairn_vfs::{Rng, SeededRng};

/// Number of resamples behind an interval. Its ends then vary by well under a percent of its width.
const RESAMPLES: usize = 4_000;

/// Fraction of the intervals that contain the true figure, for any number of samples.
pub const CONFIDENCE: f64 = 0.95;

/// The confidence level in words.
pub const LEVEL: &str = "95 %";

/// Minimum number of repetitions on each side to show a difference: an interval of one sample has
/// no width, and one of two samples is wider than any difference.
pub const SAMPLES_MIN: usize = 3;

/// Minimum number of rounds for a paired ratio to count as certain.
pub const PAIRS_MIN: usize = 5;

/// Student's quantiles for intervals of 95 %, from two degrees of freedom (three samples) on.
///
/// The bootstrap cannot go beyond the samples, and the range of three of them contains the median
/// only three times of four. So intervals of few samples also extend as far as those for normally
/// distributed logarithms, which is a good approximation for the noise of clocks and disks. From
/// ten samples on, the bootstrap has its nominal confidence.
const STUDENT: [f64; 7] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306];

/// Modified Z-score above which a sample is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER_SCORE: f64 = 3.5;

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median, or the ratio of medians.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Returns true if 1 is outside the interval: a ratio then differs from 1 by more than the
    /// noise.
    pub fn excludes_one(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Returns the median: for an even number of samples the mean of the middle two; 0 for none.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    median_of(&mut sorted)
}

fn median_of(samples: &mut [f64]) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    samples.sort_unstable_by(f64::total_cmp);
    let middle = samples.len() / 2;
    if samples.len() % 2 == 1 { samples[middle] } else { (samples[middle - 1] + samples[middle]) / 2.0 }
}

/// Returns the median with its interval. Equal samples and seed give equal ends. The interval of
/// one sample is the sample itself.
pub fn estimate(samples: &[f64], seed: u64) -> Estimate {
    let estimate = bootstrap(median(samples), seed, |rng, scratch| {
        resample(samples, rng, scratch);
        median_of(scratch)
    });
    widened(estimate, logs(samples))
}

/// Returns the ratio of the medians of `a` and `b`, where sample `i` of both is from round `i`.
///
/// `None` if the numbers of rounds differ, there are none, or a sample is not above 0.
pub fn paired_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    if a.len() != b.len() || !have_ratios(a, b) {
        return None;
    }
    let center = median(b);
    let mut of_b = Vec::with_capacity(b.len());
    let rounds: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let estimate = bootstrap(median(a) / center, seed, |rng, of_a| {
        of_a.clear();
        of_b.clear();
        for _ in 0..a.len() {
            let round = rng.below(a.len() as u64) as usize;
            of_a.push(a[round]);
            of_b.push(b[round]);
        }
        median_of(of_a) / median_of(&mut of_b)
    });
    Some(widened(estimate, student(&rounds)))
}

/// Returns the ratio of the medians of `a` and `b`, where the samples are from different rounds, as
/// in two stored runs.
///
/// `None` if one of them is empty or a sample is not above 0.
pub fn unpaired_ratio(a: &[f64], b: &[f64], seed: u64) -> Option<Estimate> {
    if !have_ratios(a, b) {
        return None;
    }
    let center = median(b);
    let mut of_b = Vec::with_capacity(b.len());
    let estimate = bootstrap(median(a) / center, seed, |rng, of_a| {
        resample(a, rng, of_a);
        resample(b, rng, &mut of_b);
        median_of(of_a) / median_of(&mut of_b)
    });
    // The half-widths add in quadrature, each with the quantile of its own number of samples. The
    // result is never narrower than Welch's.
    let apart = logs(a).zip(logs(b)).map(|((a, of_a), (b, of_b))| (a - b, of_a.hypot(of_b)));
    Some(widened(estimate, apart))
}

/// Returns Student's interval of the logarithms of positive samples.
fn logs(samples: &[f64]) -> Option<(f64, f64)> {
    if samples.iter().any(|sample| sample.is_nan() || *sample <= 0.0) {
        return None;
    }
    student(&samples.iter().map(|sample| sample.ln()).collect::<Vec<f64>>())
}

/// Returns the mean and the half-width of Student's interval of `values`. `None` for too few.
fn student(values: &[f64]) -> Option<(f64, f64)> {
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees >= SAMPLES_MIN - 1)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees as f64;
    let quantile = STUDENT.get(degrees - (SAMPLES_MIN - 1)).copied().unwrap_or(0.0);
    Some((mean, quantile * (variance / count).sqrt()))
}

/// Extends the interval of an estimate to that of `student`, which is in logarithms. The latter has
/// no width if there are many samples.
fn widened(estimate: Estimate, student: Option<(f64, f64)>) -> Estimate {
    match student {
        Some((mean, half)) if half > 0.0 => Estimate {
            low: estimate.low.min((mean - half).exp()),
            high: estimate.high.max((mean + half).exp()),
            ..estimate
        },
        _ => estimate,
    }
}

/// Returns true if all samples are above 0. A 0 among them would make ratios 0, infinite or
/// undefined, and an interval of the remaining ones would claim too much.
fn have_ratios(a: &[f64], b: &[f64]) -> bool {
    let usable = |samples: &[f64]| {
        !samples.is_empty() && samples.iter().all(|&sample| sample.is_finite() && sample > 0.0)
    };
    usable(a) && usable(b)
}

/// Returns the geometric mean, the only mean of ratios that does not depend on which side is the
/// base. `None` if there are no values, or one is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|&value| value.is_nan() || value <= 0.0) {
        return None;
    }
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    Some((logs / values.len() as f64).exp())
}

/// Returns for each sample whether it is an outlier, by its modified Z-score on the median absolute
/// deviation. Outliers are included in every figure; reports flag them.
pub fn outliers(samples: &[f64]) -> Vec<bool> {
    let center = median(samples);
    let deviations: Vec<f64> = samples.iter().map(|sample| (sample - center).abs()).collect();
    let spread = median(&deviations);
    // 0.6745 scales the deviation to a standard deviation. It is 0 if more than half of the samples
    // are equal; the mean deviation then takes its place.
    let scale = if spread > 0.0 {
        spread / 0.6745
    } else {
        1.2533 * deviations.iter().sum::<f64>() / samples.len().max(1) as f64
    };
    deviations.iter().map(|deviation| scale > 0.0 && deviation / scale > OUTLIER_SCORE).collect()
}

fn resample(samples: &[f64], rng: &mut SeededRng, out: &mut Vec<f64>) {
    out.clear();
    out.extend((0..samples.len()).map(|_| samples[rng.below(samples.len() as u64) as usize]));
}

fn bootstrap(value: f64, seed: u64, mut draw: impl FnMut(&mut SeededRng, &mut Vec<f64>) -> f64) -> Estimate {
    let mut rng = SeededRng::new(seed);
    let mut scratch = Vec::new();
    let mut drawn: Vec<f64> = (0..RESAMPLES).map(|_| draw(&mut rng, &mut scratch)).collect();
    drawn.retain(|value| value.is_finite());
    if drawn.is_empty() {
        return Estimate { value, low: value, high: value };
    }
    drawn.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let last = (drawn.len() - 1) as f64;
    let at = |quantile: f64| drawn[(quantile * last).round() as usize];
    Estimate { value, low: at(tail), high: at(1.0 - tail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(rng: &mut SeededRng, center: f64, noise: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| center * (1.0 + noise * (rng.unit() - 0.5))).collect()
    }

    /// Goal: the median is correct for odd and even numbers of samples, for one and for none, in
    /// any order.
    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[]), 0.0);
    }

    /// Goal: the interval covers the true median about as often as its confidence level. Method:
    /// 400 sets of 15 samples around 100 with a seed each; between 90 % and 99 % of the intervals
    /// contain it. Equal seeds give equal intervals.
    #[test]
    fn intervals_cover() {
        let mut rng = SeededRng::new(5);
        let covered = (0..400)
            .filter(|&seed| {
                let interval = estimate(&noisy(&mut rng, 100.0, 0.2, 15), seed);
                interval.low <= 100.0 && 100.0 <= interval.high
            })
            .count();
        assert!((360..=396).contains(&covered), "{covered}");
        let samples = [5.0, 6.0, 4.0, 5.5, 5.2];
        assert_eq!(estimate(&samples, 1), estimate(&samples, 1));
        let one = estimate(&[3.0], 1);
        assert_eq!((one.value, one.low, one.high), (3.0, 3.0, 3.0));
    }

    /// Goal: intervals of few samples contain the true value as often as those of many, for paired
    /// ratios, unpaired ratios and one side. Method: 400 sets each of 3 to 15 samples around 100,
    /// and of two sides whose ratio is 1.
    #[test]
    fn few_samples_are_as_sure() {
        let mut rng = SeededRng::new(6);
        for count in [3, 4, 5, 6, 8, 9, 10, 15] {
            let mut held = [0; 3];
            for seed in 0..400 {
                let (a, b) = (noisy(&mut rng, 100.0, 0.2, count), noisy(&mut rng, 100.0, 0.2, count));
                let holds = |estimate: Estimate, truth| estimate.low <= truth && truth <= estimate.high;
                held[0] += usize::from(holds(estimate(&a, seed), 100.0));
                held[1] += usize::from(holds(paired_ratio(&a, &b, seed).unwrap(), 1.0));
                held[2] += usize::from(holds(unpaired_ratio(&a, &b, seed).unwrap(), 1.0));
            }
            // As many as with fifteen samples; without Student's there would be 300 with three.
            assert!(held.iter().all(|held| *held >= 360), "{count}: {held:?} of 400");
        }
    }

    /// Goal: large differences are clear from three samples on, small ones are not. Method: twice
    /// as fast with little noise; a twentieth faster with as much noise; samples that do not vary.
    #[test]
    fn three_samples_suffice_for_large_differences() {
        let base = [10.0, 10.3, 9.8];
        assert!(paired_ratio(&[20.1, 20.0, 19.7], &base, 1).unwrap().excludes_one());
        assert!(unpaired_ratio(&[20.1, 20.0, 19.7], &base, 1).unwrap().excludes_one());
        let near = paired_ratio(&[10.5, 10.4, 10.6], &base, 1).unwrap();
        assert!(!near.excludes_one() && near.low < 1.0 && near.value > 1.0, "{near:?}");
        let exact = paired_ratio(&[11.0; 3], &[10.0; 3], 1).unwrap();
        assert!((exact.low, exact.high) == (1.1, 1.1), "{exact:?}");
    }

    /// Goal: pairing removes common disturbances. Method: rounds of very different speed in which
    /// `a` is always 1.5 times `b`; the paired ratio is exact, while the unpaired one does not even
    /// show a difference.
    #[test]
    fn pairing_cancels_disturbances() {
        let b = [10.0, 30.0, 14.0, 22.0, 90.0, 12.0, 55.0];
        let a = b.map(|sample| 1.5 * sample);
        let paired = paired_ratio(&a, &b, 1).unwrap();
        assert!(paired.excludes_one() && (paired.high - paired.low).abs() < 1e-9, "{paired:?}");
        assert!(!unpaired_ratio(&a, &b, 1).unwrap().excludes_one());
        assert!(!paired_ratio(&b, &b, 1).unwrap().excludes_one());
    }

    /// Goal: there is no ratio if it is undefined.
    #[test]
    fn ratios_refuse_nonsense() {
        assert_eq!(paired_ratio(&[1.0], &[1.0, 2.0], 1), None);
        assert_eq!(paired_ratio(&[], &[], 1), None);
        assert_eq!(unpaired_ratio(&[1.0], &[0.0], 1), None);
        assert_eq!(unpaired_ratio(&[0.0; 5], &[0.0, 0.0, 1.0, 1.0, 1.0], 1), None);
        assert_eq!(paired_ratio(&[1.0, 0.0, 2.0], &[1.0; 3], 1), None);
        assert_eq!(unpaired_ratio(&[1.0, f64::NAN], &[1.0; 3], 1), None);
        assert!(unpaired_ratio(&[2.0; 3], &[1.0; 9], 1).unwrap().excludes_one());
    }

    /// Goal: the geometric mean of a ratio and its inverse is 1.
    #[test]
    fn geometric_mean_is_symmetric() {
        assert!((geometric_mean(&[4.0, 0.25]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }

    /// Goal: one outlier among similar samples is flagged, even if the median deviation is 0, and
    /// none among equal or evenly spread ones.
    #[test]
    fn outliers_are_flagged() {
        let flags = outliers(&[10.0, 10.1, 9.9, 10.2, 30.0]);
        assert_eq!(flags, [false, false, false, false, true]);
        assert!(!outliers(&[1.0; 5]).contains(&true));
        assert!(!outliers(&[1.0, 2.0, 3.0, 4.0, 5.0]).contains(&true));
        let mostly_equal: Vec<f64> = [5.0; 19].into_iter().chain([50.0]).collect();
        assert_eq!(outliers(&mostly_equal).iter().filter(|&&flag| flag).count(), 1);
        assert!(outliers(&[]).is_empty());
    }
}
