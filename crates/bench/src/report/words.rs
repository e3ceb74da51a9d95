//! The verdicts of a run in plain words: who is ahead of whom in which topic and by how much, with
//! the interval. Wins and losses are worded alike.

use super::format;
use super::matrix::{Cell, Standing};
use super::model::{Dim, Model, describe};
use super::verdict::{Topic, Verdict};
use crate::core::ratio::{Outcome, Pair, Ratio};
use crate::core::results::Run;
use crate::stores::cairn_kv;

/// The side that a claim favours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Cairn is ahead.
    Ours,
    /// A peer is ahead.
    Theirs,
    /// One is ahead in some cases, the other in others.
    Mixed,
}

/// A statement about one peer in one topic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// The side that it favours.
    pub(crate) side: Side,
    /// The metric, and the operation where there are several, in plain words.
    pub(crate) topic: String,
    /// The family of engines that Cairn is compared with.
    pub(crate) peer: String,
    /// How many times better the leading side is; for a mixed claim, the factor of Cairn's worst
    /// case.
    pub(crate) factor: f64,
    /// The sentence, without the topic.
    pub(crate) sentence: String,
}

/// All claims about a run, largest differences first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Claims {
    /// The claims, for all sides.
    pub(crate) all: Vec<Claim>,
    /// Number of comparisons in which neither side is clearly ahead.
    pub(crate) open: usize,
}

impl Claims {
    /// Returns the claims that favour one side.
    pub(crate) fn of(&self, side: Side) -> Vec<&Claim> {
        self.all.iter().filter(|claim| claim.side == side).collect()
    }
}

/// Returns the claims about a run.
pub(crate) fn claims(run: &Run) -> Claims {
    let model = Model::new(run);
    let verdict = Verdict::new(&model);
    let mut claims = Claims::default();
    for (at, topic) in verdict.topics.iter().enumerate() {
        for (place, peer) in verdict.peers.iter().enumerate() {
            let Some(cell) = verdict.cell(at, place) else { continue };
            match claim(topic, peer.name, cell) {
                Some(claim) => claims.all.push(claim),
                None => claims.open += 1,
            }
        }
    }
    claims.all.sort_by(|a, b| b.factor.total_cmp(&a.factor));
    claims
}

/// Returns the claim about a cell, or `None` if neither side is clearly ahead.
fn claim(topic: &Topic, peer: &str, cell: &Cell<'_>) -> Option<Claim> {
    let (side, factor, sentence) = match cell.standing() {
        Standing::Clear(Outcome::Unclear | Outcome::TooFew) => return None,
        Standing::Clear(outcome) => {
            let (pair, _) = cell.cases().first()?;
            let cases = match cell.counted() {
                1 => String::new(),
                count => format!(", over {count} cases"),
            };
            let ours = outcome == Outcome::Better;
            let side = if ours { Side::Ours } else { Side::Theirs };
            let own = own_name(cell.cases().iter().map(|(pair, _)| pair));
            let sentence = format!("{}{cases}", ahead((&own, peer), *pair, cell.ratio(), ours));
            (side, by(cell.ratio(), ours), sentence)
        }
        Standing::Mixed => {
            let order = |a: &&(Pair<'_>, Ratio), b: &&(Pair<'_>, Ratio)| a.1.point.total_cmp(&b.1.point);
            let (worst, best) = cell.cases().iter().min_by(order).zip(cell.cases().iter().max_by(order))?;
            let told = |(pair, ratio): &(Pair<'_>, Ratio), ours: bool| {
                let own = own_name([pair]);
                let said = ahead((&own, peer), *pair, *ratio, ours);
                format!("{said} ({})", describe(&pair.subject.case, &CASE_DIMS))
            };
            let sentence = format!("{}; but {}", told(worst, false), told(best, true));
            (Side::Mixed, by(worst.1, false), sentence)
        }
    };
    Some(Claim { side, topic: topic.label.clone(), peer: peer.to_owned(), factor, sentence })
}

/// The dimensions that distinguish the cases of a topic.
const CASE_DIMS: [Dim; 7] = [
    Dim::Dataset,
    Dim::Entries,
    Dim::ValueBytes,
    Dim::Compression,
    Dim::Keys,
    Dim::Distribution,
    Dim::Threads,
];

/// Returns how many times better the leading side is.
fn by(ratio: Ratio, ours: bool) -> f64 {
    if ours { ratio.point } else { 1.0 / ratio.point }
}

/// Returns the name of our side: the contender's name if all pairs have the same, because for
/// instance `cairn server` is not the embedded engine.
fn own_name<'a>(pairs: impl IntoIterator<Item = &'a Pair<'a>>) -> String {
    let mut names = pairs.into_iter().map(|pair| pair.subject.contender.as_str());
    let first = names.next().unwrap_or(cairn_kv::NAME);
    if first == cairn_kv::NAME || names.any(|name| name != first) { "Cairn" } else { first }.to_owned()
}

/// Returns a sentence such as `lmdb does 2.1 times as much (1.9 to 2.3)`, worded by the metric's
/// unit and direction.
fn ahead((own, peer): (&str, &str), pair: Pair<'_>, ratio: Ratio, ours: bool) -> String {
    let times = times(ratio, ours);
    let m = pair.subject;
    let (fast, slow) = if ours { (own, peer) } else { (peer, own) };
    match (m.higher_is_better, m.unit.as_str()) {
        (true, "ops/s") => format!("{fast} does {times} as much as {slow}"),
        (true, _) => format!("{fast} has {times} that of {slow}"),
        (false, "ns" | "s") => format!("{slow} takes {times} as long as {fast}"),
        (false, "B") => format!("{slow} takes {times} the bytes of {fast}"),
        (false, _) => format!("{slow} has {times} that of {fast}"),
    }
}

/// Returns a factor such as `2.1 times (1.9 to 2.3)`.
fn times(ratio: Ratio, ours: bool) -> String {
    let digits = |value: f64| format::ratio(value).trim_end_matches('×').to_owned();
    let turned = |value: f64| if ours { value } else { 1.0 / value };
    let point = digits(turned(ratio.point));
    match ratio.interval {
        Some((low, high)) if high / low < 1.0005 => format!("{point} times (exact)"),
        Some((low, high)) => {
            let (low, high) = (turned(low), turned(high));
            format!("{point} times ({} to {})", digits(low.min(high)), digits(low.max(high)))
        }
        None => format!("{point} times (no interval)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::results::Measurement;
    use crate::report::testing::{contender, measurement, run};

    fn with_entries(mut m: Measurement, entries: u64) -> Measurement {
        m.case.entries = entries;
        m
    }

    /// Goal: neither the bare device, which is not a store, nor the values over the seconds of one
    /// turn make claims. Method: ours is ten times ahead in both, and in nothing else.
    #[test]
    fn bare_device_makes_no_claims() {
        let around = |center: f64| [0.99, 1.0, 1.01, 1.0, 0.995].map(|noise| center * noise);
        let measured =
            |name: &str, metric: &str, center: f64| measurement(name, "put", metric, &around(center));
        let device = crate::stores::bare_device::NAME;
        let run = run(
            vec![
                contender("cairn", "cairn", true),
                contender("lmdb", "lmdb", false),
                contender(device, device, false),
            ],
            vec![
                measured("cairn", "throughput", 1e6),
                measured("lmdb", "throughput", 1e6),
                measured(device, "throughput", 1e5),
                measured("cairn", crate::core::results::OVER_TIME, 1e6),
                measured("lmdb", crate::core::results::OVER_TIME, 1e5),
            ],
        );
        let claims = claims(&run);
        assert!(claims.all.is_empty() && claims.open == 1, "{claims:?}");
    }

    /// Goal: wins and losses are worded alike, largest first, in the words of their metric, with
    /// intervals; a mixed topic shows both ends instead of an average; an even one is counted.
    /// Method: ours is twice as fast as one peer, needs three times its bytes, and is ahead of
    /// another peer in small stores and behind it in large ones.
    #[test]
    fn both_directions_in_words() {
        let around = |center: f64| [0.99, 1.0, 1.01, 1.0, 0.995].map(|noise| center * noise);
        let rate = |name: &str, entries: u64, center: f64| {
            with_entries(measurement(name, "put", "throughput", &around(center)), entries)
        };
        let run = run(
            vec![
                contender("cairn", "cairn", true),
                contender("lmdb", "lmdb", false),
                contender("sled", "sled", false),
            ],
            vec![
                rate("cairn", 10, 2e6),
                rate("lmdb", 10, 1e6),
                rate("sled", 10, 1e6),
                rate("cairn", 1000, 2e6),
                rate("lmdb", 1000, 1e6),
                rate("sled", 1000, 5e6),
                measurement("cairn", "size", "bytes per entry", &[30.0]),
                measurement("lmdb", "size", "bytes per entry", &[10.0]),
                measurement("cairn", "scan", "latency", &around(100.0)),
                measurement("lmdb", "scan", "latency", &around(100.0)),
            ],
        );
        let claims = claims(&run);
        let told: Vec<(Side, &str, &str)> =
            claims.all.iter().map(|claim| (claim.side, claim.topic.as_str(), claim.peer.as_str())).collect();
        assert_eq!(
            told,
            [
                (Side::Theirs, "Bytes per entry", "lmdb"),
                (Side::Mixed, "throughput", "sled"),
                (Side::Ours, "throughput", "lmdb")
            ]
        );
        assert_eq!(claims.of(Side::Theirs)[0].sentence, "Cairn takes 3.00 times (exact) the bytes of lmdb");
        let win = &claims.of(Side::Ours)[0].sentence;
        assert_eq!(win, "Cairn does 2.00 times (exact) as much as lmdb, over 2 cases");
        let mixed = &claims.of(Side::Mixed)[0].sentence;
        assert!(
            mixed.contains("sled does 2.50 times (")
                && mixed.contains("1 k entries")
                && mixed.contains("but Cairn does 2.00"),
            "{mixed}"
        );
        assert_eq!(claims.open, 1);
    }

    /// Goal: an empty run gives no claims.
    #[test]
    fn empty_run_makes_no_claims() {
        assert_eq!(claims(&run(Vec::new(), Vec::new())), Claims::default());
    }
}
