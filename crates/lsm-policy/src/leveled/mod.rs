//! Leveled compaction with level sizes that follow the amount of data.
//!
//! ```text
//!  L0   flushed runs, overlapping          trigger: runs and bytes
//!  L1   (empty)
//!  ...
//!  Lb   base level          target N/f^n   one sorted run each
//!  ...
//!  L6   last level          N bytes
//! ```
//!
//! As in RocksDB's dynamic level sizes, the number of the last level is fixed, the targets follow
//! from its size N, and level 0 is merged into the base level; the levels above the base level are
//! empty. Unlike there, the ratio f is not fixed: see [`targets`].

mod level_zero;
mod pick;
pub(crate) mod targets;
pub(crate) mod upkeep;

use super::Strategy;
use super::job::{Job, JobKind, Reason, Shape};
use super::manual::{Manual, ManualStep, compact_range};
use super::options::LeveledOptions;
use super::scores::{LevelScore, Scores};
use super::state::State;
use crate::Key;
pub use targets::LevelTargets;

/// Each output table of a job overlaps at most about this many tables of the next level.
const OVERLAP_TABLES: u64 = 10;

/// Leveled compaction.
#[derive(Debug, Clone)]
pub struct Leveled {
    options: LeveledOptions,
}

impl Leveled {
    /// Creates the strategy. The options must have been checked.
    pub fn new(options: LeveledOptions) -> Leveled {
        Leveled { options }
    }

    /// Returns the sizes that the levels should have.
    pub fn targets<K: Key>(&self, state: &State<K>) -> LevelTargets {
        LevelTargets::new(&self.options, state)
    }

    /// Returns how many bytes of the next level an output table may overlap.
    pub fn overlap_bytes_max(&self) -> u64 {
        self.options.table_bytes.saturating_mul(OVERLAP_TABLES)
    }

    fn shape(&self, kind: JobKind) -> Shape {
        let LeveledOptions { table_bytes, parts, .. } = self.options;
        Shape { kind, table_bytes, overlap_bytes_max: self.overlap_bytes_max(), parts }
    }

    /// Returns the score of level 0, which is at least 1 when there is enough to merge.
    fn level_zero_score<K: Key>(&self, state: &State<K>, targets: &LevelTargets) -> f64 {
        let idle = state.level(0).runs.iter().filter(|run| !run.is_compacting());
        let (runs, bytes) = idle.fold((0, 0), |(runs, bytes), run| (runs + 1, bytes + run.bytes()));
        let LeveledOptions { level_zero_runs_min, level_zero_runs_max, .. } = self.options;
        let enough = runs as f64 / level_zero_runs_min as f64;
        let worth_it = bytes as f64 / targets.level_zero_bytes.max(1) as f64;
        let too_many = runs as f64 / level_zero_runs_max as f64;
        let score = too_many.max(enough.min(worth_it));
        debug_assert!(score >= 0.0 && score.is_finite(), "found a score of {score} for {runs} runs");
        score
    }

    /// Returns the score of a level below level 0: the bytes that no running job takes, divided by
    /// the target.
    fn level_score<K: Key>(state: &State<K>, targets: &LevelTargets, level: usize) -> f64 {
        debug_assert!(level > 0, "level 0 is scored by its runs");
        let bytes: u64 =
            state.level(level).tables().filter(|table| !table.compacting).map(|table| table.bytes).sum();
        match targets.of(level) {
            u64::MAX => 0.0,
            // Levels above the base level should be empty, so their tables are merged down first.
            0 if bytes > 0 => 1000.0 + bytes as f64 / (1 << 30) as f64,
            target => bytes as f64 / target.max(1) as f64,
        }
    }

    /// Returns the levels with a score of at least 1, the most urgent first.
    fn due<K: Key>(&self, state: &State<K>, targets: &LevelTargets) -> Vec<(usize, f64)> {
        let mut due = vec![(0, self.level_zero_score(state, targets))];
        due.extend((1..targets.last).map(|level| (level, Leveled::level_score(state, targets, level))));
        due.retain(|&(_, score)| score >= 1.0);
        due.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        debug_assert!(due.iter().all(|&(level, _)| level < targets.last), "the last level is never due");
        due
    }

    /// Merges the runs of a level with several runs, as another strategy leaves it, into one.
    fn unite_runs<K: Key>(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        let (level, info) = state.levels.iter().enumerate().skip(1).find(|(_, info)| info.runs.len() > 1)?;
        let reason = Reason::Runs { level, runs: info.runs.len() };
        let inputs = info.runs.iter().map(|run| (level, run.id, run.tables.iter().collect())).collect();
        let draft = super::job::Draft { reason, inputs, output_level: level, output_run: 0 };
        draft.finish(state, self.shape(JobKind::Merge))
    }

    /// When the store is idle, merges levels down until the levels above the last are a small part
    /// of it.
    fn reclaim_space<K: Key>(&self, state: &State<K>, targets: &LevelTargets) -> Option<Job<K::Owned>> {
        let last = state.level(targets.last).bytes();
        debug_assert!(last <= state.bytes(), "found {last} bytes in a level of a smaller state");
        let above = state.bytes() - last;
        if !state.idle || above == 0 || above as f64 <= last as f64 * self.options.idle_space_ratio {
            return None;
        }
        let reason = Reason::SpaceAmplification { percent: above.saturating_mul(100) / last.max(1) };
        let by_bytes = |&level: &usize| state.level(level).bytes();
        // Level 0 first: it overlaps most, and one job empties it.
        let zero = level_zero::down(self, state, targets, reason);
        zero.or_else(|| {
            let mut levels: Vec<usize> = (1..targets.last).filter(|level| by_bytes(level) > 0).collect();
            levels.sort_by_key(|level| std::cmp::Reverse(by_bytes(level)));
            levels.into_iter().find_map(|level| pick::down(self, state, level, u64::MAX, reason))
        })
    }
}

impl<K: Key> Strategy<K> for Leveled {
    fn name(&self) -> &'static str {
        "leveled"
    }

    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        if let Some(job) = self.unite_runs(state) {
            return Some(job);
        }
        if state.levels.iter().skip(1).any(|level| level.runs.len() > 1) {
            return None; // runs are being merged
        }
        let targets = self.targets(state);
        for (level, score) in self.due(state, &targets) {
            let job = if level == 0 {
                let (runs, bytes) = (state.level(0).runs.len(), state.level(0).bytes());
                level_zero::down(self, state, &targets, Reason::LevelZero { runs, bytes })
                    .or_else(|| level_zero::within(self, state))
            } else {
                let excess = state.level(level).bytes().saturating_sub(targets.of(level));
                pick::down(self, state, level, excess, Reason::Score { level, score })
            };
            if job.is_some() {
                return job;
            }
        }
        let wanted = upkeep::Wanted {
            tombstone_ratio: self.options.tombstone_ratio,
            expired_secs: self.options.expired_secs,
            age_secs: self.options.age_secs,
        };
        wanted
            .tables(state)
            .find_map(|(level, table, reason)| match level {
                0 => level_zero::down_with(self, state, &targets, table.number, reason),
                level => pick::one(self, state, &targets, level, table, reason),
            })
            .or_else(|| self.reclaim_space(state, &targets))
    }

    fn scores(&self, state: &State<K>) -> Scores {
        let targets = self.targets(state);
        let mut scores = Scores::default();
        let zero = self.level_zero_score(state, &targets);
        // The excess over a target is merged into the next level, together with the tables it
        // overlaps there.
        let mut incoming = 0;
        for level in 0..=targets.last {
            let info = state.level(level);
            let (runs, bytes) = (info.runs.len(), info.bytes());
            let target_bytes = if level == 0 { targets.level_zero_bytes } else { targets.of(level) };
            let score = if level == 0 { zero } else { Leveled::level_score(state, &targets, level) };
            scores.runs += runs;
            let total = bytes + incoming;
            let excess = match level {
                0 if score >= 1.0 => bytes,
                0 => 0,
                _ => total.saturating_sub(target_bytes),
            };
            if excess > 0 {
                let next = if level == 0 { targets.base } else { level + 1 };
                let below = state.level(next).bytes();
                let overlap = if level == 0 {
                    below
                } else {
                    (below as f64 * excess as f64 / total.max(1) as f64) as u64
                };
                debug_assert!(next > level, "found level {next} as the next one below {level}");
                debug_assert!(overlap <= below, "found {overlap} of {below} bytes overlapped");
                scores.debt_bytes = scores.debt_bytes.saturating_add(excess).saturating_add(overlap);
            }
            incoming = excess;
            if runs > 0 || level == 0 || level >= targets.base {
                scores.levels.push(LevelScore { level, runs, bytes, target_bytes, score });
            }
        }
        scores
    }

    fn compact_range(&self, state: &State<K>, manual: &Manual<K>) -> ManualStep<K::Owned> {
        let last = self.options.levels - 1;
        compact_range(state, manual, last, self.shape(JobKind::Merge))
    }
}
