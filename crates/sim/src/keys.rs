//! Key distributions of writes, as streams of sampled key ids.
//!
//! Of `keys` real keys, one in `sample` is simulated. An id stands for `sample` neighbours in rank.
//! A draw takes a real rank and divides it, so that the heads of skewed distributions keep their
//! weight.

use std::sync::Arc;

use cairn_vfs::{Rng, SeededRng};
use cairn_workload::SplitMixPermutation;
use cairn_workload::Zipf;
use serde::{Deserialize, Serialize};

use crate::error::{Result, expect};
use crate::json::no_settings;

/// Maximum number of sampled keys of a run: 8 bytes each in the tree, and some more in its tables.
pub(crate) const IDS_MAX: u64 = 1 << 24;

/// The distribution of keys over writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Every key with the same probability.
    #[default]
    #[serde(deserialize_with = "no_settings")]
    Uniform,
    /// In key order, repeated from the start after the last.
    #[serde(deserialize_with = "no_settings")]
    Sequential,
    /// By rank with weight `rank^-theta`; the ranks are scattered over the key space.
    Zipfian {
        /// The exponent, above 0; YCSB uses 0.99.
        theta: f64,
    },
    /// New keys at the end, and updates of recent keys, with zipfian ages.
    Latest {
        /// The exponent of the age.
        theta: f64,
        /// The share of writes that add a key.
        inserts: f64,
    },
    /// A share of the writes goes to a share of the keys, uniformly within both parts. The hot keys
    /// are scattered over the key space.
    HotSet {
        /// The share of keys that are hot.
        keys: f64,
        /// The share of writes that go to them.
        writes: f64,
    },
    /// Each write appends to one of several series, whose key ranges are adjacent.
    TimeSeries {
        /// The number of series.
        series: u64,
    },
    /// The writes of a recorded trace, repeated from the start after the last.
    Trace {
        /// The keys, as indices below `workload.keys`. Copies of a configuration share the list.
        #[serde(with = "shared")]
        keys: Arc<Vec<u32>>,
        /// The writes that are deletes: indices into `keys`, ascending. If empty,
        /// `workload.deletes` is the share of deletes.
        #[serde(with = "shared", default, skip_serializing_if = "is_empty")]
        deletes: Arc<Vec<u32>>,
    },
}

fn is_empty(list: &[u32]) -> bool {
    list.is_empty()
}

/// Serializes shared lists as arrays.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(list: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        list.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Vec<u32>>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::new)
    }
}

impl Distribution {
    /// Returns its name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Sequential => "sequential",
            Distribution::Zipfian { .. } => "zipfian",
            Distribution::Latest { .. } => "latest",
            Distribution::HotSet { .. } => "hot set",
            Distribution::TimeSeries { .. } => "time series",
            Distribution::Trace { .. } => "trace",
        }
    }

    /// Checks the parameters. Errors: the first one out of bounds, by name.
    pub fn check(&self) -> Result<()> {
        let share =
            |name: &str, value: f64| expect((0.0..=1.0).contains(&value), name, value, "a share from 0 to 1");
        let theta = |value: f64| {
            expect(value > 0.0 && value <= 5.0, "workload.distribution.theta", value, "above 0, at most 5")
        };
        match self {
            Distribution::Uniform | Distribution::Sequential => Ok(()),
            Distribution::Zipfian { theta: value } => theta(*value),
            Distribution::Latest { theta: value, inserts } => {
                theta(*value)?;
                share("workload.distribution.inserts", *inserts)
            }
            Distribution::HotSet { keys, writes } => {
                share("workload.distribution.keys", *keys)?;
                expect(*keys > 0.0, "workload.distribution.keys", keys, "above 0")?;
                share("workload.distribution.writes", *writes)
            }
            Distribution::TimeSeries { series } => {
                expect(*series > 0, "workload.distribution.series", series, "at least 1")
            }
            Distribution::Trace { keys, deletes } => {
                expect(
                    !keys.is_empty(),
                    "workload.distribution.keys",
                    "empty",
                    "at least one key of a trace",
                )?;
                let ascend = deletes.is_sorted_by(|a, b| a < b);
                let are_places = ascend && deletes.last().is_none_or(|&at| (at as usize) < keys.len());
                let found = format!("{} places", deletes.len());
                expect(are_places, "workload.distribution.deletes", found, "places in keys, ascending")
            }
        }
    }
}

/// An endless stream of ids.
#[derive(Debug, Clone)]
pub struct KeyStream {
    kind: Distribution,
    /// The number of ids.
    ids: u64,
    /// Real keys for each id.
    sample: u64,
    /// The number of real keys.
    keys: u64,
    scatter: SplitMixPermutation,
    zipf: Option<Zipf>,
    rng: SeededRng,
    /// The next index of sequential kinds; the newest key of `Latest`.
    at: u64,
    /// The index of the last write drawn from a trace.
    traced: u64,
    /// Entries written to each series.
    series: Vec<u64>,
}

impl KeyStream {
    /// Creates a stream over `keys` real keys, of which one in `sample` is simulated.
    pub fn new(kind: &Distribution, keys: u64, sample: u64, seed: u64) -> KeyStream {
        debug_assert!(sample >= 1, "one key in {sample} cannot be sampled");
        let ids = (keys / sample).max(1);
        let zipf = match kind {
            Distribution::Zipfian { theta } | Distribution::Latest { theta, .. } => {
                Some(Zipf::new(keys, *theta))
            }
            _ => None,
        };
        let series = match kind {
            Distribution::TimeSeries { series } => vec![0; (*series).min(ids) as usize],
            _ => Vec::new(),
        };
        KeyStream {
            kind: kind.clone(),
            ids,
            sample,
            keys,
            scatter: SplitMixPermutation::new(ids, 0xca1),
            zipf,
            rng: SeededRng::new(seed),
            at: 0,
            traced: 0,
            series,
        }
    }

    /// Creates a stream for a reader of this stream's writes. It has the same popularity, adds no
    /// keys, and draws independently.
    pub fn reader(&self, seed: u64) -> KeyStream {
        let mut reader = KeyStream { rng: SeededRng::new(seed), ..self.clone() };
        if let Distribution::Latest { inserts, .. } = &mut reader.kind {
            *inserts = 0.0;
        }
        reader
    }

    /// Moves to the newest key of a writer, so that a reader of `Latest` keys follows it.
    pub fn follow(&mut self, writer: &KeyStream) {
        if matches!((&self.kind, &writer.kind), (Distribution::Latest { .. }, Distribution::Latest { .. })) {
            self.at = writer.at % self.ids;
        }
    }

    /// Returns the number of ids.
    pub fn ids(&self) -> u64 {
        self.ids
    }

    /// Returns the id of the next write.
    pub fn next_id(&mut self) -> u32 {
        (match &self.kind {
            Distribution::Uniform => self.rng.below(self.ids),
            Distribution::Sequential => self.advance(),
            Distribution::Zipfian { .. } => {
                let rank = self.rank();
                self.place_of_rank(rank)
            }
            Distribution::Latest { inserts, .. } => {
                if self.rng.unit() < *inserts {
                    // An insert writes the key that it adds.
                    self.at = (self.at + 1) % self.ids;
                    self.scatter.apply(self.at)
                } else {
                    let age = self.rank() / self.sample;
                    self.scatter.apply((self.at + self.ids - age.min(self.ids - 1)) % self.ids)
                }
            }
            Distribution::HotSet { keys, writes } => {
                let hot = ((self.ids as f64 * keys) as u64).clamp(1, self.ids);
                let is_hot = hot == self.ids || self.rng.unit() < *writes;
                let place = if is_hot { self.rng.below(hot) } else { hot + self.rng.below(self.ids - hot) };
                self.scatter.apply(place)
            }
            Distribution::TimeSeries { .. } => {
                let count = self.series.len() as u64;
                let length = self.ids / count;
                let index = self.rng.below(count);
                let Some(at) = self.series.get_mut(index as usize) else { return 0 };
                *at += 1;
                index * length + (*at - 1) % length
            }
            Distribution::Trace { keys, .. } => {
                // Picks a random write of each stride, because a trace may repeat itself with the
                // period of the stride.
                let within = if self.sample > 1 { self.rng.below(self.sample) } else { 0 };
                self.traced = (self.at + within) % keys.len().max(1) as u64;
                self.at += self.sample;
                let key = keys.get(self.traced as usize).copied().unwrap_or(0);
                u64::from(key) / self.sample % self.ids
            }
        }) as u32
    }

    /// Returns whether the last write was a delete, or `None` if the trace does not list deletes.
    fn is_traced_delete(&self) -> Option<bool> {
        match &self.kind {
            Distribution::Trace { deletes, .. } if !deletes.is_empty() => {
                Some(deletes.binary_search_by_key(&self.traced, |&at| u64::from(at)).is_ok())
            }
            _ => None,
        }
    }

    fn advance(&mut self) -> u64 {
        let at = self.at;
        debug_assert!(at < self.ids, "found index {at} of {} ids", self.ids);
        self.at = (at + 1) % self.ids;
        at
    }

    fn rank(&mut self) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.draw(&mut self.rng),
            None => 0,
        }
    }

    /// Returns the id of a popularity rank.
    pub fn place_of_rank(&self, rank: u64) -> u64 {
        self.scatter.apply((rank / self.sample).min(self.ids - 1))
    }

    /// Returns the share of accesses of each id, over all its keys; the sum is 1.
    pub fn popularity(&self) -> Vec<f64> {
        let even = 1.0 / self.ids as f64;
        let mut shares = vec![even; self.ids as usize];
        let mut set = |place: u64, share: f64| {
            if let Some(slot) = shares.get_mut(place as usize) {
                *slot = share;
            }
        };
        match (&self.kind, &self.zipf) {
            (Distribution::Zipfian { .. }, Some(zipf)) => {
                for (rank, share) in group_shares(zipf, self.ids, self.sample, self.keys) {
                    set(self.scatter.apply(rank), share);
                }
            }
            (Distribution::Latest { .. }, Some(zipf)) => {
                for (age, share) in group_shares(zipf, self.ids, self.sample, self.keys) {
                    set(self.scatter.apply((self.at + self.ids - age) % self.ids), share);
                }
            }
            (Distribution::HotSet { keys, writes }, _) => {
                let hot = ((self.ids as f64 * keys) as u64).clamp(1, self.ids);
                let cold = (self.ids - hot).max(1);
                for index in 0..self.ids {
                    let share = if index < hot { writes / hot as f64 } else { (1.0 - writes) / cold as f64 };
                    set(self.scatter.apply(index), if hot == self.ids { even } else { share });
                }
            }
            _ => {}
        }
        shares
    }
}

/// The writes of a workload: keys, and whether they are deletes. The lab applies the same writes to
/// real stores.
#[derive(Debug, Clone)]
pub struct WriteStream {
    keys: KeyStream,
    rng: SeededRng,
    deletes: f64,
}

impl WriteStream {
    /// Creates the stream of a seed.
    pub fn new(kind: &Distribution, keys: u64, sample: u64, deletes: f64, seed: u64) -> WriteStream {
        let keys = KeyStream::new(kind, keys, sample, seed);
        WriteStream { keys, rng: SeededRng::new(seed ^ 0xde1e7e), deletes }
    }

    /// Returns the id of the next write, and whether it is a delete.
    #[inline]
    pub fn next_write(&mut self) -> (u32, bool) {
        let id = self.keys.next_id();
        let is_delete = match self.keys.is_traced_delete() {
            Some(is_delete) => is_delete,
            None => self.deletes > 0.0 && self.rng.unit() < self.deletes,
        };
        (id, is_delete)
    }

    /// Returns the stream of keys.
    pub fn keys(&self) -> &KeyStream {
        &self.keys
    }
}

/// Returns the probability of each group of `sample` ranks.
fn group_shares(zipf: &Zipf, ids: u64, sample: u64, keys: u64) -> impl Iterator<Item = (u64, f64)> + '_ {
    (0..ids).map(move |group| {
        let end = if group + 1 == ids { keys } else { (group + 1) * sample };
        let share = if sample == 1 && end - group == 1 {
            zipf.probability(group)
        } else if group < 64 {
            (group * sample..end).map(|rank| zipf.probability(rank)).sum()
        } else {
            // Past the head, the weights within a group hardly differ.
            zipf.probability((group * sample + end) / 2) * (end - group * sample) as f64
        };
        (group, share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Vec<Distribution> {
        vec![
            Distribution::Uniform,
            Distribution::Sequential,
            Distribution::Zipfian { theta: 0.99 },
            Distribution::Latest { theta: 0.99, inserts: 0.05 },
            Distribution::HotSet { keys: 0.1, writes: 0.9 },
            Distribution::TimeSeries { series: 7 },
            trace(&[5, 900, 3], &[]),
        ]
    }

    fn trace(keys: &[u32], deletes: &[u32]) -> Distribution {
        Distribution::Trace { keys: Arc::new(keys.to_vec()), deletes: Arc::new(deletes.to_vec()) }
    }

    /// Goal: ids stay in bounds, and equal seeds give equal streams. Method: every kind, exact and
    /// sampled.
    #[test]
    fn streams_are_bounded_and_repeat() {
        for kind in kinds() {
            for sample in [1, 16] {
                let mut one = KeyStream::new(&kind, 1000, sample, 9);
                let mut two = one.clone();
                for _ in 0..2000 {
                    let id = one.next_id();
                    assert!(u64::from(id) < one.ids(), "{kind:?}");
                    assert_eq!(id, two.next_id());
                }
            }
        }
    }

    /// Goal: deletes of a trace stay with their keys in every repetition. Method: a short trace,
    /// with a share of deletes that must have no effect.
    #[test]
    fn deletes_of_a_trace_keep_their_keys() {
        let mut writes = WriteStream::new(&trace(&[5, 9, 5, 3], &[1, 3]), 1000, 1, 0.5, 7);
        let found: Vec<_> = (0..8).map(|_| writes.next_write()).collect();
        let round: [(u32, bool); 4] = [(5, false), (9, true), (5, false), (3, true)];
        assert_eq!(found, [round, round].concat());
        for wrong in [trace(&[], &[]), trace(&[1, 2], &[1, 0]), trace(&[1, 2], &[2])] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    /// Goal: sampling a trace whose period is the stride keeps all its keys. Method: two
    /// alternating keys with every second write drawn; counts of both.
    #[test]
    fn sampling_a_trace_keeps_what_alternates() {
        let mut stream = KeyStream::new(&trace(&[100, 900].repeat(500), &[]), 1000, 2, 4);
        let first = (0..1000).filter(|_| stream.next_id() == 50).count();
        assert!((400..600).contains(&first), "{first}");
    }

    /// Goal: a sampled trace takes its share of the writes, then repeats from the start. Method: a
    /// trace of ascending keys with one write in ten drawn: the ids come in order, twice.
    #[test]
    fn sampling_a_trace_keeps_its_pace() {
        let keys: Vec<u32> = (0..1000).collect();
        let mut stream = KeyStream::new(&trace(&keys, &[]), 1000, 10, 4);
        let found: Vec<u32> = (0..200).map(|_| stream.next_id()).collect();
        assert_eq!(found, (0..100).chain(0..100).collect::<Vec<_>>());
    }

    /// Goal: traces are arrays in JSON, and the older form without deletes can be read. Method:
    /// both forms, read and written.
    #[test]
    fn traces_are_arrays() {
        for (text, kind) in [
            (r#"{"kind":"trace","keys":[7,1]}"#, trace(&[7, 1], &[])),
            (r#"{"kind":"trace","keys":[7,1],"deletes":[1]}"#, trace(&[7, 1], &[1])),
        ] {
            assert_eq!(serde_json::from_str::<Distribution>(text).unwrap(), kind);
            assert_eq!(serde_json::to_string(&kind).unwrap(), text);
        }
    }

    /// Goal: a reader of the latest keys reads those that were written last, and adds none. Method:
    /// a writer that has moved on, and the share of reads of its newest key before and after the
    /// reader follows.
    #[test]
    fn readers_of_the_latest_follow_the_writer() {
        let kind = Distribution::Latest { theta: 0.99, inserts: 0.5 };
        let mut writer = KeyStream::new(&kind, 10_000, 1, 3);
        let mut reader = writer.reader(4);
        for _ in 0..10_000 {
            let _ = writer.next_id();
        }
        let newest = writer.scatter.apply(writer.at) as u32;
        let count = |reader: &mut KeyStream| (0..2000).filter(|_| reader.next_id() == newest).count();
        assert!(count(&mut reader) < 10);
        reader.follow(&writer);
        let before = reader.at;
        assert!(count(&mut reader) > 100);
        assert_eq!(reader.at, before);
        let shares = reader.popularity();
        assert_eq!(shares.iter().copied().fold(0.0, f64::max), shares[newest as usize]);
    }

    /// Goal: a setting of another kind is refused instead of ignored. Method: one added to each
    /// kind without settings and to one with others; the kinds alone.
    #[test]
    fn settings_of_other_kinds_are_refused() {
        for kind in [Distribution::Uniform, Distribution::Sequential] {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<Distribution>(&text).unwrap(), kind);
            let error =
                serde_json::from_str::<Distribution>(&text.replace('}', ",\"theta\":1.2}")).unwrap_err();
            assert!(error.to_string().contains("unknown field `theta`"), "{error}");
        }
        let other = r#"{"kind":"zipfian","theta":1.2,"inserts":0.5}"#;
        assert!(serde_json::from_str::<Distribution>(other).is_err());
    }

    /// Goal: a key that is added is written, once. Method: a stream that only adds, and one with
    /// half updates, whose new keys must all appear.
    #[test]
    fn keys_that_are_added_are_written() {
        for inserts in [1.0, 0.5] {
            let mut stream = KeyStream::new(&Distribution::Latest { theta: 0.99, inserts }, 1000, 1, 5);
            let written: Vec<u32> = (0..900).map(|_| stream.next_id()).collect();
            let added: Vec<u32> = (1..=stream.at).map(|at| stream.scatter.apply(at) as u32).collect();
            assert!(added.iter().all(|id| written.contains(id)), "{inserts}");
            assert!(inserts < 1.0 || written == added);
        }
    }

    /// Goal: popularity matches the stream. Method: counts of 300,000 draws against the shares of
    /// the hottest id and of all ids above an even share; for the latest keys, from a reader whose
    /// writer has moved on.
    #[test]
    fn popularity_matches_the_stream() {
        let latest = Distribution::Latest { theta: 0.99, inserts: 0.5 };
        for kind in
            [Distribution::Zipfian { theta: 0.99 }, Distribution::HotSet { keys: 0.1, writes: 0.9 }, latest]
        {
            for sample in [1, 10] {
                let mut writer = KeyStream::new(&kind, 10_000, sample, 1);
                (0..500).for_each(|_| _ = writer.next_id());
                let mut stream = writer.reader(1);
                stream.follow(&writer);
                let shares = stream.popularity();
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-3, "{kind:?}");
                let mut counts = vec![0u32; shares.len()];
                for _ in 0..300_000 {
                    counts[stream.next_id() as usize] += 1;
                }
                let hottest = (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap();
                let drawn = f64::from(counts[hottest]) / 300_000.0;
                let share = shares[hottest];
                assert!((drawn - share).abs() < 0.1 * share + 1e-4, "{kind:?} {sample}: {drawn} {share}");
                let even = 1.0 / shares.len() as f64;
                let hot = || (0..shares.len()).filter(|&id| shares[id] > even);
                let drawn = hot().map(|id| f64::from(counts[id])).sum::<f64>() / 300_000.0;
                let share: f64 = hot().map(|id| shares[id]).sum();
                assert!((drawn - share).abs() < 0.004, "{kind:?} {sample}: {drawn} of the hot ids, {share}");
            }
        }
    }
}
