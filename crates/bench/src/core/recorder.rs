//! Collects samples and turns them into measurements.

use std::collections::{BTreeMap, HashSet};

use crate::core::histogram::Latencies;
use crate::core::results::{Case, Measurement};
use crate::core::settings::Settings;
use crate::core::sizes::BYTES_PER_ENTRY;
use crate::core::{results, stats};

/// A metric: its name, its unit, and its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) higher_is_better: bool,
}

pub(crate) const THROUGHPUT: Metric = Metric { name: "throughput", unit: "ops/s", higher_is_better: true };
pub(crate) const LATENCY: Metric = Metric { name: "latency", unit: "ns", higher_is_better: false };
pub(crate) const MEAN_LATENCY: Metric = Metric { name: "mean latency", unit: "ns", higher_is_better: false };
pub(crate) const TIME: Metric = Metric { name: "time", unit: "s", higher_is_better: false };
pub(crate) const PEAK_MEMORY: Metric =
    Metric { name: results::PEAK_MEMORY, unit: "B", higher_is_better: false };
pub(crate) const BYTES: Metric = Metric { name: BYTES_PER_ENTRY, unit: "B", higher_is_better: false };
pub(crate) const INDEX_BYTES: Metric =
    Metric { name: "index bytes per entry", unit: "B", higher_is_better: false };

/// Returns the name that filters match and dashboards show:
/// `hash::get/dataset=synthetic/entries=1000000/…/cairn mmap`.
pub fn case_name(suite: &str, case: &Case, contender: &str) -> String {
    let Case { operation, dataset, entries, value_bytes, compression, keys, distribution, threads } = case;
    let mut name = format!(
        "{suite}::{operation}/dataset={dataset}/entries={entries}/value={value_bytes}/compression={compression}"
    );
    if !keys.is_empty() {
        name += &format!("/keys={keys}/distribution={distribution}/threads={threads}");
    }
    name + "/" + contender
}

#[derive(Debug)]
struct Series {
    contender: String,
    case: Case,
    metric: Metric,
    samples: Vec<f64>,
    one_turn: bool,
    latencies: Option<Latencies>,
    verified: bool,
}

/// All samples of a run, grouped into series in the order in which the series began.
#[derive(Debug)]
pub(crate) struct Recorder {
    seed: u64,
    series: Vec<Series>,
    /// Contenders and the reasons that something could not be measured.
    problems: Vec<(String, String)>,
    /// Contenders and cases with a failure. Later repetitions of them do not count either.
    failed: HashSet<(String, Case)>,
    /// Contenders that gave a wrong answer, each with a case of the store in question.
    disqualified: Vec<(String, Case)>,
}

impl Recorder {
    pub(crate) fn new(seed: u64) -> Self {
        Recorder {
            seed,
            series: Vec::new(),
            problems: Vec::new(),
            failed: HashSet::new(),
            disqualified: Vec::new(),
        }
    }

    /// Adds the value of one repetition.
    pub(crate) fn add(&mut self, contender: &str, case: &Case, metric: Metric, value: f64) {
        if let Some(series) = self.series(contender, case, metric) {
            series.samples.push(value);
        }
    }

    /// Adds the values of all repetitions, which were taken in one turn.
    pub(crate) fn add_turn(&mut self, contender: &str, case: &Case, metric: Metric, values: &[f64]) {
        if let Some(series) = self.series(contender, case, metric) {
            series.samples.extend(values);
            series.one_turn = true;
        }
    }

    /// Adds the value of one repetition and its latencies.
    pub(crate) fn add_latencies(
        &mut self,
        contender: &str,
        case: &Case,
        metric: Metric,
        (value, latencies): (f64, &Latencies),
    ) {
        let Some(series) = self.series(contender, case, metric) else { return };
        series.samples.push(value);
        match &mut series.latencies {
            Some(all) => all.merge(latencies),
            none => *none = Some(latencies.clone()),
        }
    }

    /// Drops the samples of a contender in a case, because a repetition failed. A measurement that
    /// includes a failure is not valid.
    pub(crate) fn discard(&mut self, contender: &str, case: &Case, reason: String) {
        self.series.retain(|series| series.contender != contender || series.case != *case);
        self.failed.insert((contender.to_owned(), case.clone()));
        self.problem(contender, format!("{}: {reason}", case_name("", case, "").trim_matches([':', '/'])));
    }

    /// Drops the samples of a contender in several cases, because it failed in one of them.
    pub(crate) fn withdraw(&mut self, contender: &str, cases: &dyn Fn(&Case) -> bool, reason: String) {
        self.series.retain(|series| series.contender != contender || !cases(&series.case));
        self.problem(contender, reason);
    }

    /// Drops everything that a contender has on a store, because it returned a wrong answer.
    /// `store` is any case of that store.
    pub(crate) fn disqualify(&mut self, contender: &str, store: &Case, reason: String) {
        self.disqualified.push((contender.to_owned(), store.clone()));
        self.series.retain(|series| series.contender != contender || !same_store(&series.case, store));
        self.problem(contender, reason);
    }

    /// Marks measurements that involve no lookup (builds and sizes) as checked.
    pub(crate) fn verify(&mut self, builder: &str, store: &Case) {
        for series in &mut self.series {
            series.verified |= series.contender == builder && same_store(&series.case, store);
        }
    }

    /// Records the reason that a contender lacks a measurement.
    pub(crate) fn problem(&mut self, contender: &str, reason: String) {
        let known = (contender.to_owned(), reason);
        if !self.problems.contains(&known) {
            self.problems.push(known);
        }
    }

    /// Returns the reasons recorded for a contender.
    pub(crate) fn problems_of<'a>(&'a self, contender: &'a str) -> impl Iterator<Item = &'a str> {
        self.problems.iter().filter(move |(name, _)| name == contender).map(|(_, reason)| reason.as_str())
    }

    /// Adds a contender's failures to its settings. If the contender has no measurement at all,
    /// returns the first reason.
    pub(crate) fn explain(&self, contender: &str, settings: &mut Settings) -> Option<String> {
        results::Contender::set_failures(settings, self.problems_of(contender).map(str::to_owned));
        if self.has_figures(contender) {
            return None;
        }
        self.problems_of(contender).next().map(str::to_owned)
    }

    /// Returns true if a contender has a measurement.
    pub(crate) fn has_figures(&self, contender: &str) -> bool {
        self.series.iter().any(|series| series.contender == contender)
    }

    /// Returns true if a contender has a measurement of this metric in this case.
    pub(crate) fn has_series(&self, contender: &str, case: &Case, metric: Metric) -> bool {
        let same = |series: &Series| {
            series.contender == contender && series.metric == metric && series.case == *case
        };
        self.series.iter().any(same)
    }

    /// Returns true if a contender gave a wrong answer on the store of a case.
    pub(crate) fn is_disqualified(&self, contender: &str, case: &Case) -> bool {
        self.disqualified.iter().any(|(name, store)| name == contender && same_store(store, case))
    }

    /// Returns the series to add to, or `None` for a case that has failed.
    fn series(&mut self, contender: &str, case: &Case, metric: Metric) -> Option<&mut Series> {
        if self.failed.contains(&(contender.to_owned(), case.clone()))
            || self.is_disqualified(contender, case)
        {
            return None;
        }
        let same = |series: &Series| {
            series.contender == contender && series.metric == metric && series.case == *case
        };
        // Series are filled round by round, so the wanted one is nearly always among the last.
        let index = self.series.iter().rposition(same).unwrap_or_else(|| {
            let (contender, case) = (contender.to_owned(), case.clone());
            // Lookups are checked as they are made. They are the cases with a key distribution.
            let verified = !case.distribution.is_empty();
            self.series.push(Series {
                contender,
                case,
                metric,
                samples: Vec::new(),
                one_turn: false,
                latencies: None,
                verified,
            });
            self.series.len() - 1
        });
        self.series.get_mut(index)
    }

    /// Returns true if nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Returns the measurements. Their lookups have passed the check, since those that did not were
    /// discarded.
    pub(crate) fn finish(self) -> Vec<Measurement> {
        let seed = self.seed;
        self.series.into_iter().map(|series| measurement(series, seed)).collect()
    }
}

fn measurement(series: Series, seed: u64) -> Measurement {
    let Series { contender, case, metric, samples, one_turn, latencies, verified } = series;
    let estimate = stats::estimate(&samples, seed);
    Measurement {
        contender,
        case,
        metric: metric.name.to_owned(),
        unit: metric.unit.to_owned(),
        higher_is_better: metric.higher_is_better,
        samples,
        one_turn,
        median: estimate.value,
        low: estimate.low,
        high: estimate.high,
        percentiles: latencies.map_or_else(BTreeMap::new, |latencies| latencies.percentiles()),
        verified,
    }
}

/// Returns true if both cases concern the same files.
fn same_store(a: &Case, b: &Case) -> bool {
    a.dataset == b.dataset
        && a.entries == b.entries
        && a.value_bytes == b.value_bytes
        && a.compression == b.compression
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(operation: &str) -> Case {
        Case {
            operation: operation.to_owned(),
            dataset: "synthetic".to_owned(),
            entries: 10,
            value_bytes: 6,
            compression: "none".to_owned(),
            keys: String::new(),
            distribution: String::new(),
            threads: 0,
        }
    }

    /// Goal: the samples of a series are collected in any order of arrival, and a failed case
    /// leaves only its reason.
    #[test]
    fn series_gather_and_failures_vanish() {
        let mut recorder = Recorder::new(1);
        for round in 1..=3 {
            for name in ["a", "b"] {
                recorder.add(name, &case("build"), TIME, f64::from(round));
                recorder.add(name, &case("size"), BYTES, 20.0);
            }
        }
        recorder.discard("b", &case("build"), "no space".to_owned());
        assert!(recorder.has_figures("b") && !recorder.has_figures("c"));
        recorder.add("b", &case("build"), TIME, 4.0);
        recorder.verify("a", &case("get"));
        let problems: Vec<&str> = recorder.problems_of("b").collect();
        let mut settings = Settings::new();
        assert_eq!(recorder.explain("b", &mut settings), None);
        assert_eq!(settings.values().map(String::as_str).collect::<Vec<_>>(), problems);
        assert_eq!(recorder.explain("c", &mut Settings::new()).as_deref(), recorder.problems_of("c").next());
        assert_eq!(problems, ["build/dataset=synthetic/entries=10/value=6/compression=none: no space"]);
        let measurements = recorder.finish();
        let shown: Vec<_> = measurements
            .iter()
            .map(|m| (m.contender.as_str(), m.metric.as_str(), m.median, m.verified))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", "time", 2.0, true),
                ("a", "bytes per entry", 20.0, true),
                ("b", "bytes per entry", 20.0, false)
            ]
        );
    }

    /// Goal: a contender without measurements keeps every reason, not only the first, and one
    /// without failures has none.
    #[test]
    fn all_failures_are_kept() {
        let mut recorder = Recorder::new(1);
        recorder.problem("a", "seq: no space".to_owned());
        recorder.problem("a", "rand: no space".to_owned());
        let mut contender = results::Contender::left_out("a", "a", &"");
        contender.skipped = recorder.explain("a", &mut contender.settings);
        assert_eq!(contender.skipped.as_deref(), Some("seq: no space"));
        assert_eq!(contender.failure().as_deref(), Some("a: failed in 2 cases: seq: no space"));
        assert_eq!(results::Contender::left_out("b", "b", &"no library").failure(), None);
    }

    /// Goal: a contender with a wrong answer loses everything on that store and keeps its
    /// measurements on another.
    #[test]
    fn wrong_answers_cost_the_store() {
        let mut recorder = Recorder::new(1);
        let other = Case { entries: 11, ..case("size") };
        for case in [case("build"), case("size"), other.clone()] {
            recorder.add("a", &case, BYTES, 1.0);
        }
        recorder.disqualify("a", &case("get"), "wrong".to_owned());
        recorder.add("a", &case("get_many"), BYTES, 1.0);
        assert_eq!(recorder.problems_of("a").collect::<Vec<_>>(), ["wrong"]);
        let left: Vec<Case> = recorder.finish().into_iter().map(|m| m.case).collect();
        assert_eq!(left, [other]);
    }

    /// Goal: names are stable and contain everything that distinguishes cases.
    #[test]
    fn names_say_everything() {
        let lookup =
            Case { keys: "absent".to_owned(), distribution: "uniform".to_owned(), threads: 8, ..case("get") };
        assert_eq!(
            case_name("hash", &lookup, "cairn mmap"),
            "hash::get/dataset=synthetic/entries=10/value=6/compression=none/keys=absent/distribution=uniform/threads=8/cairn mmap"
        );
        assert_eq!(
            case_name("hash", &case("build"), "lmdb"),
            "hash::build/dataset=synthetic/entries=10/value=6/compression=none/lmdb"
        );
    }
}
