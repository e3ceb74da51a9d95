//! Distinguishes regressions from noise.
//!
//! Counts vary little, so any change beyond a small limit is a regression. A time is a regression
//! if three conditions hold: the interval of the ratio excludes 1; the ratio exceeds the limit; and
//! the change exceeds three times the noise of the series. That noise is the median absolute
//! deviation of its last medians, scaled to a standard deviation, as a fraction of their median.
//! With fewer than five earlier runs the noise is unknown, and the first two conditions decide.
//! With fewer than three rounds nothing can be decided: such a time is neither better nor worse nor
//! the same, and is counted as not judged.

use std::cmp::Ordering;

use serde::Serialize;

use super::SeriesPoint;
use super::{comparable_machine, settings_of};
use crate::core::compare::{Comparison, Row};
use crate::core::results::Run;
use crate::core::{stats, text};

/// Number of runs from which the noise of a series is estimated, at most and at least.
const RUNS: usize = 20;
const RUNS_MIN: usize = 5;
/// Number of deviations that are still noise.
const DEVIATIONS: f64 = 3.0;
/// Scales a median absolute deviation to a standard deviation.
const NORMAL: f64 = 1.4826;

/// The limits beyond which a change for the worse is a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// For counts, as a fraction. Default: 1 %.
    pub counts: f64,
    /// For times and rates, as a fraction. Default: 5 %.
    pub times: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { counts: 0.01, times: 0.05 }
    }
}

/// The judgement of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within the limits, or noise.
    Same,
    /// Better, by at least the amount that would be a regression in the other direction.
    Better,
    /// A regression.
    Worse,
}

/// A row of a comparison with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// The row.
    #[serde(flatten)]
    pub row: Row,
    /// Noise of the series, as a fraction; `None` for counts, or if there are too few runs.
    pub noise: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Returns the noise of a series, as a fraction; `None` if there are too few points. Only points of
/// the same machine and settings count.
fn noise(points: &[SeriesPoint], machine: &str, settings: &str) -> Option<f64> {
    let is_like =
        |point: &&SeriesPoint| point.machine == machine && point.settings == settings && point.value > 0.0;
    let own = points.iter().rev().filter(is_like);
    let values: Vec<f64> = own.take(RUNS).map(|point| point.value).collect();
    if values.len() < RUNS_MIN {
        return None;
    }
    let middle = stats::median(&values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(NORMAL * stats::median(&deviations) / middle)
}

/// Judges every row. `points` returns the earlier points of a row's series, if there is a history;
/// `after` is the later run.
pub fn judge(
    comparison: &Comparison,
    limits: Limits,
    after: &Run,
    points: &mut dyn FnMut(&Row) -> Vec<SeriesPoint>,
) -> Vec<Judged> {
    let (machine, settings) = (comparable_machine(after), settings_of(after));
    let judged = comparison.rows.iter().map(|row| {
        let noise = if row.counted { None } else { noise(&points(row), &machine, &settings) };
        Judged { row: row.clone(), noise, verdict: verdict(row, limits, noise) }
    });
    judged.collect()
}

fn verdict(row: &Row, limits: Limits, noise: Option<f64>) -> Verdict {
    let count = row.counted;
    let Some(gain) = row.gain else { return if count { from_or_to_nothing(row) } else { Verdict::Same } };
    let limit = if count { limits.counts } else { limits.times };
    let noise = DEVIATIONS * noise.unwrap_or(0.0);
    // A single count is as reliable as several.
    if !count && !row.significant {
        return Verdict::Same;
    }
    // Noise is symmetric in the ratio: twice as slow and twice as fast are equally far from
    // unchanged.
    match gain.value {
        value if worse_by(row, value) >= limit + 1e-12 && value <= 1.0 / (1.0 + noise) - 1e-12 => {
            Verdict::Worse
        }
        value if value >= 1.0 + limit.max(noise) + 1e-12 => Verdict::Better,
        _ => Verdict::Same,
    }
}

/// Judges a count that was 0 or is 0 now. It has no ratio, but it is a change.
fn from_or_to_nothing(row: &Row) -> Verdict {
    match row.b.value.total_cmp(&row.a.value) {
        Ordering::Equal => Verdict::Same,
        change if row.higher_is_better == change.is_gt() => Verdict::Better,
        _ => Verdict::Worse,
    }
}

/// Returns the deterioration as a fraction of the earlier figure: half the rate is 50 % worse,
/// twice the time is 100 % worse.
fn worse_by(row: &Row, gain: f64) -> f64 {
    if row.higher_is_better { 1.0 - gain } else { 1.0 / gain - 1.0 }
}

/// Returns the number of rows without a judgement: varying figures with too few rounds on one side
/// to distinguish a change from noise.
pub fn unjudged(judged: &[Judged]) -> usize {
    judged.iter().filter(|judged| judged.row.is_too_short()).count()
}

/// Describes each regression among the rows in a sentence.
pub fn regressions(judged: &[Judged]) -> Vec<String> {
    let worse = judged.iter().filter(|judged| judged.verdict == Verdict::Worse);
    worse
        .map(|Judged { row, .. }| {
            let share = row.gain.map(|gain| format!(" by {:.1} %", worse_by(row, gain.value) * 100.0));
            format!(
                "{}, {}, {}: worse{}, from {} to {}",
                text::case(&row.case),
                row.contender,
                row.metric,
                share.unwrap_or_default(),
                text::value(row.a.value, &row.unit),
                text::value(row.b.value, &row.unit)
            )
        })
        .collect()
}
