//! Lazy leveling: tiered upper levels, and one sorted run in the last level.

use super::Strategy;
use super::job::{Draft, Job, JobKind, Reason, Shape};
use super::leveled::upkeep::Wanted;
use super::manual::{Manual, ManualStep, compact_range};
use super::options::LazyOptions;
use super::scores::{LevelScore, Scores};
use super::state::State;
use crate::Key;

/// Several runs in each level except the last, which has one (Dayan and Idreos, *Dostoevsky*,
/// SIGMOD 2018).
///
/// Nearly all data is in the last level, so merging there keeps space and scan costs low. The
/// levels above hold little data, and merging them eagerly is the main write cost of a leveled
/// tree. When a level has T runs, they become one run of the next level, T times as large; the runs
/// of the level above the last are merged into the last.
#[derive(Debug, Clone)]
pub struct LazyLeveled {
    options: LazyOptions,
}

impl LazyLeveled {
    /// Creates the strategy. The options must have been checked.
    pub fn new(options: LazyOptions) -> LazyLeveled {
        LazyLeveled { options }
    }

    fn shape(&self, kind: JobKind) -> Shape {
        let LazyOptions { table_bytes, parts, .. } = self.options;
        Shape { kind, table_bytes, overlap_bytes_max: u64::MAX, parts }
    }

    fn last<K: Key>(&self, state: &State<K>) -> usize {
        self.options.levels.max(state.levels.len()) - 1
    }

    /// Returns the first level below level 0 that is used. Each tier holds T times the one above
    /// it, and all tiers together hold about as much as the last level.
    fn first_tier<K: Key>(&self, state: &State<K>) -> usize {
        let last = self.last(state);
        let mut bytes = self.options.flush_bytes.saturating_mul(self.options.size_ratio as u64);
        let mut first = last;
        while first > 1 && bytes.saturating_mul(self.options.size_ratio as u64) <= state.level(last).bytes() {
            bytes = bytes.saturating_mul(self.options.size_ratio as u64);
            first -= 1;
        }
        debug_assert!(
            (1..=last).contains(&first),
            "found the first tier {first} of {last} levels below level 0"
        );
        first
    }

    /// Returns the level to which the runs of `level` go: the next level in use, so that they never
    /// pass older data.
    fn next<K: Key>(&self, state: &State<K>, level: usize) -> usize {
        let last = self.last(state);
        let planned = self.first_tier(state).max(level + 1);
        (level + 1..planned).find(|&at| state.is_used(at)).unwrap_or(planned).min(last)
    }

    /// Moves all runs of a level to the next one.
    fn down<K: Key>(&self, state: &State<K>, level: usize, reason: Reason) -> Option<Job<K::Owned>> {
        let info = state.level(level);
        let newest = info.runs.iter().map(|run| run.id).max()?;
        debug_assert!(level < self.last(state), "the last level has no next one");
        let next = self.next(state, level);
        debug_assert!(next > level, "found level {next} as the next one below {level}");
        let of = |at: usize| {
            state.level(at).runs.iter().map(move |run| (at, run.id, run.tables.iter().collect::<Vec<_>>()))
        };
        let is_last = next == self.last(state);
        // Runs left by another strategy have id 0, which does not tell their age relative to runs
        // of the next level. They are merged with the next level into one run.
        let newest_below = state.level(next).runs.iter().map(|run| run.id).max();
        let joins = is_last || newest_below.is_some_and(|below| below >= newest);
        let inputs: Vec<_> = if joins { of(level).chain(of(next)).collect() } else { of(level).collect() };
        let moves = inputs.len() == 1 && info.tables().all(|table| table.tombstones == 0);
        let kind = if moves { JobKind::Move } else { JobKind::Merge };
        let output_run = if is_last { 0 } else { newest_below.filter(|_| joins).unwrap_or(newest) };
        Draft { reason, inputs, output_level: next, output_run }.finish(state, self.shape(kind))
    }

    /// Merges everything into the last level when the store is idle and the levels above it take
    /// too much space.
    fn reclaim_space<K: Key>(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        let last = self.last(state);
        let bytes = state.level(last).bytes();
        debug_assert!(bytes <= state.bytes(), "a level has more bytes than the state");
        let above = state.bytes() - bytes;
        if !state.idle || above == 0 || above as f64 <= bytes as f64 * self.options.idle_space_ratio {
            return None;
        }
        let reason = Reason::SpaceAmplification { percent: above.saturating_mul(100) / bytes.max(1) };
        let runs = state
            .levels
            .iter()
            .enumerate()
            .flat_map(|(at, level)| level.runs.iter().map(move |run| (at, run)));
        let inputs = runs.map(|(at, run)| (at, run.id, run.tables.iter().collect())).collect();
        Draft { reason, inputs, output_level: last, output_run: 0 }.finish(state, self.shape(JobKind::Merge))
    }

    fn upkeep<K: Key>(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        let LazyOptions { tombstone_ratio, expired_secs, .. } = self.options;
        let wanted = Wanted { tombstone_ratio, expired_secs, age_secs: None };
        let last = self.last(state);
        wanted.tables(state).find_map(|(level, table, reason)| {
            if level < last {
                return self.down(state, level, reason);
            }
            let run = state
                .level(level)
                .runs
                .iter()
                .find(|run| run.tables.iter().any(|it| it.number == table.number))?;
            let inputs = vec![(level, run.id, vec![table])];
            Draft { reason, inputs, output_level: level, output_run: run.id }
                .finish(state, self.shape(JobKind::Merge))
        })
    }
}

impl<K: Key> Strategy<K> for LazyLeveled {
    fn name(&self) -> &'static str {
        "lazy-leveled"
    }

    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        let last = self.last(state);
        let limit = |level: usize| if level == last { 2 } else { self.options.size_ratio };
        // Of the full levels, the lowest comes first, because it makes room for those above.
        let full = (0..=last).rev().filter(|&level| state.level(level).runs.len() >= limit(level));
        for level in full {
            let reason = Reason::Runs { level, runs: state.level(level).runs.len() };
            let job = if level == last {
                let inputs =
                    state.level(level).runs.iter().map(|run| (level, run.id, run.tables.iter().collect()));
                let draft = Draft { reason, inputs: inputs.collect(), output_level: last, output_run: 0 };
                draft.finish(state, self.shape(JobKind::Merge))
            } else {
                self.down(state, level, reason)
            };
            if job.is_some() {
                return job;
            }
        }
        self.upkeep(state).or_else(|| self.reclaim_space(state))
    }

    fn scores(&self, state: &State<K>) -> Scores {
        let last = self.last(state);
        let mut scores = Scores::default();
        for level in 0..=last {
            let info = state.level(level);
            let (runs, bytes) = (info.runs.len(), info.bytes());
            scores.runs += runs;
            let score = if level == last { 0.0 } else { runs as f64 / self.options.size_ratio as f64 };
            if score >= 1.0 {
                let below = if self.next(state, level) == last { state.level(last).bytes() } else { 0 };
                scores.debt_bytes = scores.debt_bytes.saturating_add(bytes).saturating_add(below);
            }
            if runs > 0 || level == 0 || level == last {
                scores.levels.push(LevelScore { level, runs, bytes, target_bytes: u64::MAX, score });
            }
        }
        scores
    }

    fn compact_range(&self, state: &State<K>, manual: &Manual<K>) -> ManualStep<K::Owned> {
        compact_range(state, manual, self.options.levels - 1, self.shape(JobKind::Merge))
    }
}
