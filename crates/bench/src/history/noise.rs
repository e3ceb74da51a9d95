//! What is a regression, and what is noise.
//!
//! Counts vary by little, so any change beyond a small limit is one. A time has got worse where
//! three things hold: the interval of the ratio excludes 1, the ratio is beyond the limit, and it
//! is farther off than three times what the series does by itself, which is the median absolute
//! deviation of its last medians, made comparable with a standard deviation, as a share. With fewer
//! than five earlier runs nobody knows what the series does by itself, and the first two decide. Of
//! fewer than three rounds nobody knows anything: such a time is neither better nor worse nor the
//! same, and is counted as not judged.

use std::cmp::Ordering;

use serde::Serialize;

use super::SeriesPoint;
use super::{comparable_machine, settings_of};
use crate::compare::{Comparison, Row};
use crate::results::Run;
use crate::stats;
use crate::text;

/// Runs that the noise of a series is estimated from, and how many it takes at least.
const RUNS: usize = 20;
const RUNS_MIN: usize = 5;
/// Deviations that a series is allowed.
const DEVIATIONS: f64 = 3.0;
/// Makes a median absolute deviation comparable with a standard deviation.
const NORMAL: f64 = 1.4826;

/// From when on a change for the worse is a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of counts, as a share. Default: 1 %.
    pub counts: f64,
    /// Of times and rates, as a share. Default: 5 %.
    pub times: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { counts: 0.01, times: 0.05 }
    }
}

/// What a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within limits or noise.
    Same,
    /// Better, by as much as would be a regression the other way.
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
    /// What the series does by itself, as a share; absent where too few runs are known, and of
    /// counts.
    pub noise: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// What a series does by itself, as a share; `None` where too little is known. Only points of the
/// same machine and settings count.
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

/// Judges every row. `points` gives the earlier points of a row's series, where there is a history;
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
    // A count that was taken once is as good as one that was taken often.
    if !count && !row.significant {
        return Verdict::Same;
    }
    // Noise is as far either way: twice as slow and twice as fast are as far from the same.
    match gain.value {
        value if worse_by(row, value) >= limit + 1e-12 && value <= 1.0 / (1.0 + noise) - 1e-12 => {
            Verdict::Worse
        }
        value if value >= 1.0 + limit.max(noise) + 1e-12 => Verdict::Better,
        _ => Verdict::Same,
    }
}

/// A count that was 0 or is 0 now has no ratio, and yet is another.
fn from_or_to_nothing(row: &Row) -> Verdict {
    match row.b.value.total_cmp(&row.a.value) {
        Ordering::Equal => Verdict::Same,
        change if row.higher_is_better == change.is_gt() => Verdict::Better,
        _ => Verdict::Worse,
    }
}

/// How much worse the later figure is, as a share of the earlier one: half a rate is worse by 50 %,
/// twice the time by 100 %.
fn worse_by(row: &Row, gain: f64) -> f64 {
    if row.higher_is_better { 1.0 - gain } else { 1.0 / gain - 1.0 }
}

/// How many rows nobody can judge: what varies, with too few rounds on a side to tell a change from
/// noise.
pub fn unjudged(judged: &[Judged]) -> usize {
    judged.iter().filter(|judged| judged.row.is_too_short()).count()
}

/// The regressions among the rows, in a sentence each.
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
