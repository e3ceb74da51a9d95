//! Compares two stored runs: which figures improved, which got worse, and which differ only by
//! noise.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::core::results::{Case, Measurement, PAGE_TRACE, Run};
use crate::core::stats::Estimate;
use crate::core::{stats, text};

/// One metric of one contender in one case, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the contender.
    pub contender: String,
    /// The measured case.
    pub case: Case,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    /// True if more is better.
    pub higher_is_better: bool,
    /// Figure of the first run.
    pub a: Figure,
    /// Figure of the second run.
    pub b: Figure,
    /// Factor by which the second run is better: over 1 is better, whichever direction the metric
    /// has. `None` if a sample is 0.
    pub gain: Option<Figure>,
    /// False if the interval of the gain contains 1, or if there are too few repetitions to tell.
    pub significant: bool,
    /// True if the figure is counted and reproducible: see [`is_count`].
    pub counted: bool,
    /// Number of repetitions on the side that has fewer.
    pub samples: usize,
}

impl Row {
    /// Returns true if there are too few repetitions to distinguish a change from noise. A counted
    /// figure needs only one, and any difference in it is a change.
    pub fn is_too_short(&self) -> bool {
        !self.counted && self.samples < stats::SAMPLES_MIN
    }
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The median, or the ratio of medians.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of repetitions that are outliers. They are included in the figure.
    pub outliers: usize,
}

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Figures that both runs have, in the order of the second run.
    pub rows: Vec<Row>,
    /// The geometric mean of all gains; `None` if there are none.
    pub geometric_mean: Option<f64>,
    /// Number of figures that only the first run has.
    pub only_in_a: usize,
    /// Number of figures that only the second run has.
    pub only_in_b: usize,
    /// Fields in which the runs, the machine or the build differ: name, value in the first run,
    /// value in the second.
    pub differences: Vec<(String, String, String)>,
}

/// Returns true for figures that are counted and reproducible, depending on the suite.
///
/// Memory, amplification and the file sizes of trees do not count, because they depend on the
/// timing of background work. Hit rates of pools and page counts of indexes are reproducible when
/// one thread asks for the same pages each time, but not when threads or workers take turns. They
/// count if all of at least two rounds agree, or if the case is known to run on one thread with the
/// same random draws.
pub fn is_count(suite: &str, measurement: &Measurement) -> bool {
    let samples = &measurement.samples;
    let agrees = samples.iter().all(|sample| samples.first() == Some(sample));
    let often = agrees && samples.len() > 1;
    match suite {
        "counts" => measurement.unit == INSTRUCTIONS,
        "hash" => matches!(measurement.metric.as_str(), "bytes per entry" | "index bytes per entry"),
        "index" => measurement.unit == "pages" && often,
        "pool" => {
            let is_by_one = [PAGE_TRACE, HIT_RATES].contains(&measurement.case.dataset.as_str());
            measurement.metric == "hit rate" && (often || (is_by_one && agrees))
        }
        _ => false,
    }
}

/// Data set of the cases for hit rates of the pool: one thread, and the same random draws each
/// time.
pub(crate) const HIT_RATES: &str = "phase 4";

/// Unit of counted instructions.
const INSTRUCTIONS: &str = "instructions";

/// Compares run `b` with run `a`, the earlier one.
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let mut rows = Vec::new();
    for measured in &b.measurements {
        if let Some(before) = a.measurements.iter().find(|before| same(before, measured)) {
            rows.push(row(before, measured, &b.suite, b.seed));
        }
    }
    let gains: Vec<f64> = rows.iter().filter_map(|row| Some(row.gain?.value)).collect();
    Comparison {
        geometric_mean: stats::geometric_mean(&gains),
        only_in_a: missing(&a.measurements, &b.measurements),
        only_in_b: missing(&b.measurements, &a.measurements),
        differences: differences(a, b),
        rows,
    }
}

fn same(x: &Measurement, y: &Measurement) -> bool {
    x.contender == y.contender && x.metric == y.metric && x.unit == y.unit && x.case == y.case
}

/// Returns the number of figures in `these` that are not in `others`.
fn missing(these: &[Measurement], others: &[Measurement]) -> usize {
    only_in(these, others).count()
}

fn only_in<'a>(these: &'a [Measurement], others: &'a [Measurement]) -> impl Iterator<Item = &'a Measurement> {
    these.iter().filter(|one| !others.iter().any(|other| same(one, other)))
}

/// Returns true if the two runs have a figure that can be compared.
pub fn share_figures(a: &Run, b: &Run) -> bool {
    b.measurements.iter().any(|one| a.measurements.iter().any(|other| same(one, other)))
}

/// Describes the figures that run `a` has and run `b` does not, one line each.
pub fn vanished(a: &Run, b: &Run) -> Vec<String> {
    let line = |one: &Measurement| format!("{}, {}, {}", text::case(&one.case), one.contender, one.metric);
    only_in(&a.measurements, &b.measurements).map(line).collect()
}

fn row(a: &Measurement, b: &Measurement, suite: &str, seed: u64) -> Row {
    let gain = if b.higher_is_better {
        stats::unpaired_ratio(&b.samples, &a.samples, seed)
    } else {
        stats::unpaired_ratio(&a.samples, &b.samples, seed)
    };
    let row = Row {
        contender: b.contender.clone(),
        case: b.case.clone(),
        metric: b.metric.clone(),
        unit: b.unit.clone(),
        higher_is_better: b.higher_is_better,
        a: figure(a),
        b: figure(b),
        gain: gain.map(|Estimate { value, low, high }| Figure { value, low, high, outliers: 0 }),
        significant: gain.is_some_and(|gain| gain.excludes_one()),
        counted: is_count(suite, a) && is_count(suite, b),
        samples: repetitions(a).min(repetitions(b)),
    };
    Row { significant: row.significant && !row.is_too_short(), ..row }
}

/// Returns the number of samples that predict another run. Samples of a single turn only show the
/// variance within that turn, so they count as one however many there are.
fn repetitions(measurement: &Measurement) -> usize {
    if measurement.one_turn { 1 } else { measurement.samples.len() }
}

fn figure(measurement: &Measurement) -> Figure {
    let Measurement { median: value, low, high, ref samples, .. } = *measurement;
    Figure { value, low, high, outliers: stats::outliers(samples).into_iter().filter(|&flag| flag).count() }
}

/// Returns the differences between the runs themselves (mode, seed, data, early end), then
/// differing machine fields that both have, and differing settings. The load is left out because it
/// is not a property of the machine, and the command line because the other fields say the same.
fn differences(a: &Run, b: &Run) -> Vec<(String, String, String)> {
    let of_run = |run: &Run| {
        let ended = if run.stopped { "early" } else { "complete" };
        [run.suite.clone(), run.mode.clone(), run.seed.to_string(), run.data.clone(), ended.to_owned()]
    };
    let mut found: Vec<(String, String, String)> = ["suite", "mode", "seed", "data", "end"]
        .into_iter()
        .zip(of_run(a).into_iter().zip(of_run(b)))
        .filter(|(_, (before, after))| before != after)
        .map(|(name, (before, after))| (name.to_owned(), before, after))
        .collect();
    let of = |run: &Run, name: &String| run.settings.get(name).cloned().unwrap_or_default();
    let names: BTreeSet<&String> = a.settings.keys().chain(b.settings.keys()).collect();
    found.extend(
        names
            .into_iter()
            .filter(|name| of(a, name) != of(b, name))
            .map(|name| (name.clone(), of(a, name), of(b, name))),
    );
    let told = |name: &str| !matches!(name, "load before the run" | "command");
    for (name, after) in b.machine.iter().filter(|(name, _)| told(name)) {
        if let Some((_, before)) = a.machine.iter().find(|(known, _)| known == name)
            && before != after
        {
            found.push((name.clone(), before.clone(), after.clone()));
        }
    }
    found
}

impl Comparison {
    /// Summarizes all figures in a line; `None` without gains.
    pub fn mean_text(&self) -> Option<String> {
        let mean = text::ratio(self.geometric_mean?);
        let ratios = self.rows.iter().filter(|row| row.gain.is_some()).count();
        Some(format!("geometric mean of {ratios} ratios: {mean}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::sample_run;

    fn scaled(run: &Run, contender: &str, metric: &str, factor: f64) -> Run {
        let mut run = run.clone();
        for measurement in
            run.measurements.iter_mut().filter(|m| m.contender == contender && m.metric == metric)
        {
            measurement.samples.iter_mut().for_each(|sample| *sample *= factor);
            measurement.median *= factor;
        }
        run
    }

    /// Goal: a gain is over 1 whichever direction the metric has. Method: twice the throughput,
    /// half the time, and half the bytes all show as 2; the rest is not significant.
    #[test]
    fn gains_are_over_one_in_both_directions() {
        let before = sample_run();
        let mut after = scaled(&before, "lmdb", "throughput", 2.0);
        after = scaled(&after, "lmdb", "time", 0.5);
        after = scaled(&after, "lmdb", "bytes per entry", 0.5);
        let comparison = compare(&before, &after);
        for row in &comparison.rows {
            let gain = row.gain.unwrap();
            if row.contender == "lmdb" {
                assert!((gain.value - 2.0).abs() < 1e-9 && row.significant, "{row:?}");
            } else {
                assert!((gain.value - 1.0).abs() < 1e-9 && !row.significant, "{row:?}");
            }
        }
        let expected = 2_f64.powf(3.0 / comparison.rows.len() as f64);
        assert!((comparison.geometric_mean.unwrap() - expected).abs() < 1e-9);
        assert!(comparison.mean_text().unwrap().starts_with("geometric mean of 9 ratios: "));
    }

    /// Goal: noise and single timings are not reported as changes. Method: a difference of 1 % in
    /// samples that spread by 4 %, and one of 100 % in a single timing.
    #[test]
    fn noise_is_no_change() {
        let before = sample_run();
        let after = scaled(&before, "cairn mmap", "throughput", 1.01);
        assert!(compare(&before, &after).rows.iter().all(|row| !row.significant));
        let mut one = scaled(&before, "lmdb", "time", 2.0);
        for measurement in &mut one.measurements {
            measurement.samples.truncate(1);
        }
        let row = compare(&before, &one)
            .rows
            .into_iter()
            .find(|row| row.contender == "lmdb" && row.metric == "time");
        assert!(!row.unwrap().significant);
    }

    /// Goal: figures that cannot be compared are counted, differences between machines are named,
    /// and outliers are counted.
    #[test]
    fn incomparable_figures_are_counted() {
        let before = sample_run();
        let mut after = before.clone();
        after.measurements.remove(0);
        after.measurements[0].contender = "new".to_owned();
        after.measurements[3].samples[0] *= 10.0;
        after.machine[1].1 = "4".to_owned();
        let comparison = compare(&before, &after);
        assert_eq!((comparison.only_in_a, comparison.only_in_b), (2, 1));
        assert_eq!(comparison.differences, [("cores".to_owned(), "2".to_owned(), "4".to_owned())]);
        assert_eq!(comparison.rows.iter().map(|row| row.b.outliers).sum::<usize>(), 1);
        let other = Run { mode: "full".to_owned(), seed: 2, stopped: true, ..before.clone() };
        let names: Vec<String> =
            compare(&before, &other).differences.into_iter().map(|found| found.0).collect();
        assert_eq!(names, ["mode", "seed", "end"]);
        let mut twice = before.clone();
        twice.measurements.extend(before.measurements.clone());
        let doubled = compare(&before, &twice);
        assert_eq!((doubled.only_in_a, doubled.only_in_b), (0, 0));
        assert_eq!(
            compare(&before, &Run { measurements: Vec::new(), ..before.clone() }).geometric_mean,
            None
        );
    }
}
