//! Universal compaction: runs of similar size are merged.

use super::Strategy;
use super::job::{Draft, Job, JobKind, Reason, Shape};
use super::manual::{Manual, ManualStep, compact_range};
use super::options::UniversalOptions;
use super::scores::{LevelScore, Scores};
use super::state::{RunInfo, State};
use crate::Key;

/// Size-tiered compaction over the age of runs, like RocksDB's universal style.
///
/// All runs of all levels form one list in order of age. Only neighbours in the list are merged, so
/// every run stays newer than those after it. The output takes the place of its oldest input, or
/// sinks through the empty levels below it to the level just above the next older run, or to the
/// last level. Any level may have any number of runs, as other strategies leave them.
#[derive(Debug, Clone)]
pub struct Universal {
    options: UniversalOptions,
}

/// A run with its level.
type Place<'s, K> = (usize, &'s RunInfo<K>);

impl Universal {
    /// Creates the strategy. The options must have been checked.
    pub fn new(options: UniversalOptions) -> Universal {
        Universal { options }
    }

    fn shape(&self) -> Shape {
        let UniversalOptions { table_bytes, parts, .. } = self.options;
        Shape { kind: JobKind::Merge, table_bytes, overlap_bytes_max: u64::MAX, parts }
    }

    /// Merges `runs[from..to]`.
    fn merge<K: Key>(
        &self,
        state: &State<K>,
        runs: &[Place<'_, K>],
        from: usize,
        to: usize,
        reason: Reason,
    ) -> Option<Job<K::Owned>> {
        let inputs = runs.get(from..to)?;
        let (oldest_level, _) = *inputs.last()?;
        debug_assert!(from < to && to <= runs.len(), "found runs {from}..{to} of {}", runs.len());
        // No run lies between the oldest input and the next older run, so the levels in between are
        // empty.
        let deepest = match runs.get(to) {
            None => (self.options.levels - 1).max(state.levels.len().saturating_sub(1)),
            Some((older, _)) => older.saturating_sub(1),
        };
        let (output_level, output_run) = if deepest > oldest_level {
            (deepest, 0)
        } else {
            // Within this level, newer runs have higher ids than all inputs, and older ones have
            // lower ids.
            let here = inputs.iter().filter(|(level, _)| *level == oldest_level);
            (oldest_level, here.map(|(_, run)| run.id).max()?)
        };
        debug_assert!(
            runs.get(to).is_none_or(|(older, run)| {
                output_level < *older || (output_level == *older && output_run > run.id)
            }),
            "found output in run {output_run} of level {output_level}, which is not above the next older run"
        );
        let inputs =
            inputs.iter().map(|(level, run)| (*level, run.id, run.tables.iter().collect())).collect();
        Draft { reason, inputs, output_level, output_run }.finish(state, self.shape())
    }

    /// Returns the size of the newer runs in percent of the oldest.
    fn space_percent<K: Key>(runs: &[Place<'_, K>]) -> u64 {
        let Some(((_, oldest), newer)) = runs.split_last() else { return 0 };
        debug_assert!(
            newer.iter().all(|(level, _)| level <= &runs[runs.len() - 1].0),
            "the oldest run is last"
        );
        let newer: u64 = newer.iter().map(|(_, run)| run.bytes()).sum();
        newer.saturating_mul(100) / oldest.bytes().max(1)
    }

    /// Finds a sequence of runs in which none exceeds the newer ones together by more than the size
    /// ratio.
    fn similar<K: Key>(&self, runs: &[Place<'_, K>]) -> Option<(usize, usize)> {
        let UniversalOptions { merge_runs_min, merge_runs_max, size_ratio_percent, .. } = self.options;
        for (from, (_, first)) in runs.iter().enumerate() {
            if first.is_compacting() {
                continue;
            }
            let mut sum = first.bytes();
            let mut to = from + 1;
            while let Some((_, next)) =
                runs.get(to).filter(|(_, next)| to - from < merge_runs_max && !next.is_compacting())
            {
                if next.bytes() as f64 > sum as f64 * (100.0 + size_ratio_percent as f64) / 100.0 {
                    break;
                }
                sum += next.bytes();
                to += 1;
            }
            debug_assert!(to - from <= merge_runs_max.max(1), "found a row of {} runs", to - from);
            if to - from >= merge_runs_min {
                return Some((from, to));
            }
        }
        None
    }

    /// Returns the newest free neighbours, enough of them to reach the allowed number of runs.
    fn surplus<K: Key>(&self, runs: &[Place<'_, K>]) -> Option<(usize, usize)> {
        let surplus = (runs.len() + 1).saturating_sub(self.options.runs);
        let from = runs.iter().position(|(_, run)| !run.is_compacting())?;
        let free = runs.iter().skip(from).take_while(|(_, run)| !run.is_compacting()).count();
        let count = surplus.max(2).min(free).min(self.options.merge_runs_max);
        debug_assert!(from + count <= runs.len(), "found {count} runs from {from} of {}", runs.len());
        (count >= 2).then_some((from, from + count))
    }

    /// Returns a reason to merge everything, if at least half of the entries are tombstones, a
    /// table is marked, or entries have expired.
    fn upkeep<K: Key>(&self, state: &State<K>) -> Option<Reason> {
        let tables = || state.levels.iter().flat_map(|level| level.tables());
        let (entries, tombstones) =
            tables().fold((0, 0), |(all, dead), table| (all + table.entries, dead + table.tombstones));
        let protected = |oldest: u64| tables().any(|table| table.tombstones > 0 && table.seqnos.1 > oldest);
        if tombstones > 0 && tombstones * 2 >= entries && !state.oldest_snapshot.is_some_and(protected) {
            return Some(Reason::Tombstones);
        }
        if tables().any(|table| table.marked) {
            return Some(Reason::Marked);
        }
        let expired = |at: u64| at.saturating_add(self.options.expired_secs) <= state.now_secs;
        tables().any(|table| expired(table.expires_secs)).then_some(Reason::Expired)
    }
}

/// Returns all runs, newest first.
fn by_age<'s, K: Key>(state: &'s State<K>) -> Vec<Place<'s, K>> {
    let levels = state.levels.iter().enumerate();
    let runs: Vec<Place<'_, K>> =
        levels.flat_map(|(at, level)| level.runs.iter().map(move |run| (at, run))).collect();
    debug_assert!(
        runs.is_sorted_by(|(a_level, a), (b_level, b)| (a_level, b.id) < (b_level, a.id)),
        "found runs that are not newest first"
    );
    runs
}

impl<K: Key> Strategy<K> for Universal {
    fn name(&self) -> &'static str {
        "universal"
    }

    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        let runs = by_age(state);
        if runs.len() >= self.options.runs.max(2) {
            let percent = Universal::space_percent(&runs);
            if percent > self.options.space_amplification_percent {
                let job = self.merge(state, &runs, 0, runs.len(), Reason::SpaceAmplification { percent });
                if job.is_some() {
                    return job;
                }
            }
            if let Some((from, to)) = self.similar(&runs) {
                return self.merge(state, &runs, from, to, Reason::SizeRatio { runs: to - from });
            }
            if runs.len() > self.options.runs
                && let Some((from, to)) = self.surplus(&runs)
            {
                return self.merge(state, &runs, from, to, Reason::Runs { level: 0, runs: runs.len() });
            }
        }
        self.merge(state, &runs, 0, runs.len(), self.upkeep(state)?)
    }

    fn scores(&self, state: &State<K>) -> Scores {
        let runs = by_age(state);
        let percent = Universal::space_percent(&runs);
        let is_wide = percent > self.options.space_amplification_percent && runs.len() >= self.options.runs;
        let is_long = runs.len() >= self.options.runs.max(2);
        let surplus = || self.surplus(&runs).filter(|_| runs.len() > self.options.runs);
        let debt_bytes = match self.similar(&runs).or_else(surplus).filter(|_| is_long) {
            _ if is_wide => state.bytes(),
            Some((from, to)) => runs.iter().take(to).skip(from).map(|(_, run)| run.bytes()).sum(),
            None => 0,
        };
        let score = runs.len() as f64 / (self.options.runs + 1) as f64;
        let level = |(at, level): (usize, &super::state::LevelInfo<K>)| LevelScore {
            level: at,
            runs: level.runs.len(),
            bytes: level.bytes(),
            target_bytes: u64::MAX,
            score: if at == 0 { score } else { 0.0 },
        };
        Scores { levels: state.levels.iter().enumerate().map(level).collect(), debt_bytes, runs: runs.len() }
    }

    fn compact_range(&self, state: &State<K>, manual: &Manual<K>) -> ManualStep<K::Owned> {
        compact_range(state, manual, self.options.levels - 1, self.shape())
    }
}
