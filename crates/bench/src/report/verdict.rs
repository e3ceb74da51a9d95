//! The verdict: who is ahead of whom in which topic, computed by one rule for wins and losses.
//!
//! For each case and metric, the best of Cairn's contenders is compared with the best of each peer
//! family, by median. A topic (an operation and a metric) combines its cases by the geometric mean
//! of their ratios. A side is ahead if the interval of the ratio excludes one. Measurements whose
//! results were not verified do not take part. Lookups of compressed values are compared like for
//! like: a peer that keeps no decompressed blocks meets the best of ours that keeps none.

use std::collections::BTreeMap;

use super::matrix::Cell;
use super::model::{self, Dim, Family, Model, Value, is_batched};
use crate::core::ratio::{self, Pair, Ratio};
use crate::core::results::{Case, Measurement, OVER_TIME, PEAK_MEMORY, SPARKEY_JAVA};
use crate::stores::{bare_device, raw_reads};

/// One operation and metric, as a column of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topic {
    /// The label in plain words. Not escaped.
    pub(super) label: String,
    pub(super) operation: String,
    pub(super) metric: String,
}

/// The whole verdict.
#[derive(Debug)]
pub(super) struct Verdict<'a> {
    /// The topics, in reading order.
    pub(super) topics: Vec<Topic>,
    /// The peers that were measured, in the run's order.
    pub(super) peers: Vec<Family<'a>>,
    /// The cells, by the indexes of topic and peer.
    cells: BTreeMap<(usize, usize), Cell<'a>>,
    /// All verified measurements, by metric and comparable case.
    groups: BTreeMap<(String, Case), Vec<&'a Measurement>>,
}

/// Returns the properties that measurements must share to be compared.
///
/// Building, opening and sizes are compared regardless of how many threads each engine can use.
/// Batched lookups are compared with the best way that each engine has to look up many keys, which
/// may be one at a time.
fn comparable(case: &Case, area: model::Area) -> Case {
    let mut key = case.clone();
    match area {
        model::Area::Build | model::Area::Size => key.threads = 0,
        model::Area::Cold if case.operation == "open" => key.threads = 0,
        _ => {}
    }
    key
}

impl<'a> Verdict<'a> {
    /// Computes every cell, with one bootstrap for each case and peer.
    pub(super) fn new(model: &Model<'a>) -> Self {
        let mut topics: Vec<Topic> = Vec::new();
        let mut groups: BTreeMap<(String, Case), Vec<&'a Measurement>> = BTreeMap::new();
        for m in model.run.measurements.iter().filter(|m| m.verified && takes_part(m)) {
            let topic = Topic::of(m);
            if !topics.contains(&topic) {
                topics.push(topic);
            }
            groups.entry((m.metric.clone(), comparable(&m.case, model::area(m)))).or_default().push(m);
        }
        topics.sort_by_key(Topic::rank);
        let peers: Vec<Family<'a>> =
            model.families.iter().filter(|family| !family.style.ours).cloned().collect();
        let mut out = Verdict { topics, peers, cells: BTreeMap::new(), groups };
        out.fill(model);
        out.peers.clone().iter().enumerate().rev().for_each(|(index, _)| out.drop_unmeasured(index));
        out
    }

    /// Returns the cell of a topic and a peer, by their indexes.
    pub(super) fn cell(&self, topic: usize, peer: usize) -> Option<&Cell<'a>> {
        self.cells.get(&(topic, peer))
    }

    /// Returns the total number of compared cases, over all peers.
    pub(super) fn comparisons(&self) -> usize {
        self.cells.values().map(|cell| cell.cases().len()).sum()
    }

    /// Returns Cairn's best and each family's best in the case of `topic` that `choice` selects.
    pub(super) fn pairs_at(
        &self,
        model: &Model<'a>,
        topic: &Topic,
        choice: &[(Dim, Value)],
    ) -> Vec<(Family<'a>, Pair<'a>)> {
        let matches = |case: &Case| {
            topic_of(case) == topic.operation
                && choice
                    .iter()
                    .all(|(dim, value)| *dim == Dim::Operation || dim.of(case) == *value || free(*dim, case))
        };
        let key = self.groups.keys().find(|(metric, case)| *metric == topic.metric && matches(case));
        let Some(key) = key else { return Vec::new() };
        let against = |peer: &Family<'a>| Some((peer.clone(), self.pair(model, key, peer)?));
        self.peers.iter().filter_map(against).collect()
    }

    fn fill(&mut self, model: &Model<'a>) {
        let mut found: BTreeMap<(usize, usize), Vec<(Pair<'a>, Ratio)>> = BTreeMap::new();
        for key in self.groups.keys() {
            let topic = self.topics.iter().position(|t| t.metric == key.0 && t.operation == topic_of(&key.1));
            let Some(topic) = topic else { continue };
            for (place, peer) in self.peers.iter().enumerate() {
                let pair = self.pair(model, key, peer);
                if let Some(case) = pair.and_then(|pair| ratio::within(pair).map(|ratio| (pair, ratio))) {
                    found.entry((topic, place)).or_default().push(case);
                }
            }
        }
        self.cells =
            found.into_iter().filter_map(|(place, cases)| Some((place, Cell::new(cases)?))).collect();
    }

    /// Returns the best of ours and the best of a peer in a comparable case, if the two can be
    /// compared.
    fn pair(&self, model: &Model<'a>, key: &(String, Case), peer: &Family<'a>) -> Option<Pair<'a>> {
        // Java's peak memory is that of the whole virtual machine. Ours is a rise above the memory
        // of the records.
        if key.0 == PEAK_MEMORY && peer.name == SPARKEY_JAVA {
            return None;
        }
        let family = peer.style.family;
        let against =
            self.best_of(key, &|name| model.style(name).family == family && !model.style(name).ours)?;
        let fair = !key.1.decompresses() || model.keeps_blocks(&against.contender);
        let subject =
            self.best_of(key, &|name| model.style(name).ours && (fair || !model.keeps_blocks(name)))?;
        Some(Pair { subject, against })
    }

    /// Returns the best of some contenders in a comparable case.
    fn best_of(&self, key: &(String, Case), side: &dyn Fn(&str) -> bool) -> Option<&'a Measurement> {
        let wanted = |m: &&&'a Measurement| side(&m.contender);
        let group = |key: &(String, Case)| self.groups.get(key).map(Vec::as_slice).unwrap_or_default();
        let own = group(key);
        let single = if is_batched(&key.1.operation) {
            let case = Case { operation: "get".to_owned(), ..key.1.clone() };
            group(&(key.0.clone(), case))
        } else {
            &[]
        };
        model::best(own.iter().chain(single).filter(wanted).copied())
    }

    /// Removes a peer without any cell from the verdict. The report lists it among the skipped.
    fn drop_unmeasured(&mut self, peer: usize) {
        if self.cells.keys().any(|(_, other)| *other == peer) {
            return;
        }
        self.peers.remove(peer);
        let cells = std::mem::take(&mut self.cells);
        let moved = |(topic, other): (usize, usize)| (topic, if other > peer { other - 1 } else { other });
        self.cells = cells.into_iter().map(|(place, cell)| (moved(place), cell)).collect();
    }
}

/// Returns whether a measurement takes part in the verdict. Excluded are measurements of the spread
/// or the course of another one, and contenders that do not compete: reads without a pool, the
/// optimum, which knows the future, and the bare device, which is not a store.
fn takes_part(m: &Measurement) -> bool {
    let competes = m.contender != bare_device::NAME && !m.contender.starts_with(raw_reads::FAMILY);
    let is_of_its_own = m.metric != OVER_TIME
        && (model::area(m) != model::Area::Pool || matches!(m.metric.as_str(), "latency" | "throughput"));
    competes && is_of_its_own
}

/// Returns the operation that a case counts under. Cases of a buffer pool are combined by phase.
fn topic_of(case: &Case) -> &str {
    if case.dataset.starts_with("phase ") { &case.dataset } else { &case.operation }
}

/// Returns whether [`comparable`] or the operation itself removes a dimension from a case.
fn free(dim: Dim, case: &Case) -> bool {
    match dim {
        Dim::Threads => case.threads == 0 || !matches!(case.operation.as_str(), "get" | "get_many"),
        Dim::Keys => case.keys.is_empty(),
        Dim::Distribution => case.distribution.is_empty() || case.keys.is_empty(),
        _ => false,
    }
}

impl Topic {
    /// Returns the topic of a measurement.
    pub(super) fn of(m: &Measurement) -> Topic {
        let (operation, metric) = (topic_of(&m.case), m.metric.as_str());
        let label = match (operation, metric) {
            ("get", "throughput") => "Point lookups".to_owned(),
            ("get", "latency") => "Lookup latency".to_owned(),
            (batch, "throughput") if is_batched(batch) => "Batched lookups".to_owned(),
            (_, "peak memory") => format!("Memory to {operation}"),
            ("build", "time") => "Build time".to_owned(),
            ("build", "throughput") => "Build speed".to_owned(),
            ("open", "time") => "Open time".to_owned(),
            (_, "bytes per entry") => "Bytes per entry".to_owned(),
            (_, "index bytes per entry") => "Index bytes per entry".to_owned(),
            ("cold open", "time") => "Cold open".to_owned(),
            ("cold get", "latency" | "mean latency") => "Cold lookups".to_owned(),
            _ if metric.contains(operation) => metric.to_owned(),
            _ => format!("{operation}, {metric}"),
        };
        Topic { label, operation: operation.to_owned(), metric: metric.to_owned() }
    }

    /// Returns the sort key of the reading order: the topics that decide the choice of a store come
    /// first.
    pub(super) fn rank(&self) -> (usize, String) {
        let known = [
            "Point lookups",
            "Batched lookups",
            "Lookup latency",
            "Build time",
            "Build speed",
            "Memory to build",
            "Bytes per entry",
            "Index bytes per entry",
            "Open time",
            "Cold open",
            "Cold lookups",
        ];
        let place = known.iter().position(|label| *label == self.label).unwrap_or(known.len());
        (place, self.label.clone())
    }
}
