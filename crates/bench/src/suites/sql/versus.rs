//! Compares each of our contenders with all others: a table of ratios, above 1 if ours is better,
//! and the numbers of wins and losses.

use super::plan::name_of;
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::recorder::{LATENCY, MEAN_LATENCY, THROUGHPUT};
use crate::core::results::{Case, Contender, Measurement, Run};
use crate::core::text::{Align, Table};
use crate::core::{ratio, text};

/// Formats a comparison for each of ours that has measurements; empty if there is none, or no peer.
pub fn to_text(run: &Run) -> String {
    let (ours, others): (Vec<&Contender>, Vec<&Contender>) =
        run.measured().into_iter().partition(|contender| contender.ours);
    if others.is_empty() {
        return String::new();
    }
    ours.iter().map(|ours| one(run, ours, &others)).collect()
}

fn one(run: &Run, ours: &Contender, others: &[&Contender]) -> String {
    let mut headings = vec![("operation", Align::Left), ("metric", Align::Left)];
    headings.extend(others.iter().map(|other| (other.name.as_str(), Align::Right)));
    let mut table = Table::new(&headings);
    let mut scores: Vec<Score> = others.iter().map(|_| Score::default()).collect();
    for m in run.measurements.iter().filter(|m| m.contender == ours.name && m.verified && counts(run, m)) {
        let mut row = vec![name_of(&m.case), m.metric.clone()];
        for (other, score) in others.iter().zip(&mut scores) {
            let ratio = run
                .verified(&other.name, &m.case, &m.metric)
                .and_then(|against| ratio::within(Pair { subject: m, against }));
            row.push(ratio.map_or_else(|| "–".to_owned(), |ratio| text::ratio(ratio.point)));
            if let Some(ratio) = ratio {
                score.add(&m.case, ratio);
            }
        }
        table.row(row);
    }
    let mut out = format!("\n{} against each, over 1 where it is better\n{}", ours.name, table.to_text());
    for (other, score) in others.iter().zip(&scores) {
        out += &score.sentence(&ours.name, &other.name);
    }
    out
}

/// Returns whether a measurement counts. A latency beside a throughput would count the same result
/// twice.
fn counts(run: &Run, m: &Measurement) -> bool {
    let beside_rate = || run.verified(&m.contender, &m.case, THROUGHPUT.name).is_some();
    m.metric != MEAN_LATENCY.name && (m.metric != LATENCY.name || !beside_rate())
}

#[derive(Default)]
struct Score {
    ahead: usize,
    even: usize,
    behind: Vec<String>,
    ratios: Vec<Ratio>,
    /// Number of ratios without an interval.
    unsure: usize,
}

impl Score {
    fn add(&mut self, case: &Case, ratio: Ratio) {
        self.ratios.push(ratio);
        // With few rounds there is no interval, and the medians alone decide.
        self.unsure += usize::from(ratio.interval.is_none());
        let is_even = ratio.interval.is_some() && ratio.outcome() == Outcome::Unclear;
        if is_even {
            self.even += 1;
        } else if ratio.point >= 1.0 {
            self.ahead += 1;
        } else {
            self.behind.push(format!("{} ({})", name_of(case), text::ratio(ratio.point)));
        }
    }

    fn sentence(&self, ours: &str, other: &str) -> String {
        let Some(mean) = ratio::mean(&self.ratios) else { return String::new() };
        let Score { ahead, even, behind, unsure, .. } = self;
        let unsure = if *unsure > 0 {
            format!("; {unsure} by their medians alone, with too few rounds")
        } else {
            String::new()
        };
        let losses = if behind.is_empty() { String::new() } else { format!(": {}", behind.join(", ")) };
        format!(
            "{ours} and {other}: ahead {ahead} times, even {even}, behind {}{losses}; geometric mean {}{unsure}\n",
            behind.len(),
            text::ratio(mean.point)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::Settings;
    use crate::core::testing::sample_run;

    /// Goal: a ratio above 1 favours ours for metrics of both directions, and losses are named.
    /// Method: a run of two contenders, one ahead in a rate and behind in a time.
    #[test]
    fn wins_and_losses_are_told() {
        let mut run = sample_run();
        let model = run.measurements[0].clone();
        let contender = |name: &str, ours: bool| Contender {
            name: name.to_owned(),
            family: name.to_owned(),
            version: String::new(),
            ours,
            settings: Settings::new(),
            skipped: None,
        };
        let figure = |whose: &str, operation: &str, metric: &str, value: f64| Measurement {
            contender: whose.to_owned(),
            case: Case { operation: operation.to_owned(), threads: 1, ..model.case.clone() },
            metric: metric.to_owned(),
            higher_is_better: metric == "throughput",
            samples: vec![value],
            median: value,
            verified: true,
            ..model.clone()
        };
        run.contenders = vec![contender("cairn", true), contender("sqlite", false)];
        run.measurements = vec![
            figure("cairn", "point read", "throughput", 30.0),
            figure("sqlite", "point read", "throughput", 10.0),
            figure("cairn", "point read", "latency", 30.0),
            figure("sqlite", "point read", "latency", 10.0),
            figure("cairn", "Q1", "time", 4.0),
            figure("sqlite", "Q1", "time", 1.0),
        ];
        let shown = to_text(&run);
        assert!(shown.contains("3.00x") && shown.contains("0.25x") && !shown.contains("latency"), "{shown}");
        let sentence = "cairn and sqlite: ahead 1 times, even 0, behind 1: Q1 (0.25x); geometric mean 0.87x; 2 by their \
                        medians alone";
        assert!(shown.contains(sentence), "{shown}");
        run.contenders.pop();
        assert_eq!(to_text(&run), "");
    }
}
