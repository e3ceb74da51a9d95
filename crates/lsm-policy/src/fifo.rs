//! FIFO: removes the oldest tables.

use super::Strategy;
use super::job::{Draft, Job, JobKind, Reason, Shape};
use super::manual::{Manual, ManualStep};
use super::options::FifoOptions;
use super::scores::{LevelScore, Scores};
use super::state::{State, TableInfo};
use crate::Key;

/// Removes the oldest tables when the store is too large or when they are too old, as suits a cache
/// or a log of recent events. Never merges, so lookups search every run.
///
/// The oldest table is the one whose entries were written first, whatever the clock said. If the
/// newer of two tables were removed first, keys that it had overwritten or deleted would come back
/// from the older one. The clock only decides when a table is too old, and even then the table
/// waits for all older ones.
#[derive(Debug, Clone)]
pub struct Fifo {
    options: FifoOptions,
}

impl Fifo {
    /// Creates the strategy. The options must have been checked.
    pub fn new(options: FifoOptions) -> Fifo {
        Fifo { options }
    }
}

/// Returns all tables with their levels and runs, the oldest first: from the last level up, in each
/// level the oldest run first. Tables of one run share no keys, so among them the clock decides
/// which is the oldest.
fn by_age<K: Key>(state: &State<K>) -> impl Iterator<Item = (usize, u64, &TableInfo<K>)> {
    let levels = state.levels.iter().enumerate().rev();
    let runs = levels.flat_map(|(at, level)| level.runs.iter().rev().map(move |run| (at, run)));
    runs.flat_map(|(at, run)| {
        let mut tables: Vec<&TableInfo<K>> = run.tables.iter().collect();
        tables.sort_by_key(|table| table.newest_secs);
        tables.into_iter().map(move |table| (at, run.id, table))
    })
}

impl<K: Key> Strategy<K> for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn pick(&self, state: &State<K>) -> Option<Job<K::Owned>> {
        // One job at a time: a second job might remove its tables before the older ones of the
        // first are gone.
        if !state.running.is_empty() {
            return None;
        }
        let total = state.bytes();
        let mut excess = total.saturating_sub(self.options.bytes_max);
        let mut reason = None;
        let mut gone = Vec::new();
        for (level, run, table) in by_age(state) {
            let is_old = self
                .options
                .ttl_secs
                .is_some_and(|ttl| table.newest_secs.saturating_add(ttl) <= state.now_secs);
            if excess == 0 && !is_old {
                break;
            }
            reason.get_or_insert(if excess > 0 { Reason::Size { bytes: total } } else { Reason::Expired });
            excess = excess.saturating_sub(table.bytes);
            gone.push((level, run, vec![table]));
        }
        debug_assert!(gone.len() <= by_age(state).count(), "found more tables to remove than there are");
        debug_assert!(
            gone.iter()
                .zip(by_age(state))
                .all(|((_, _, gone), (_, _, oldest))| gone[0].number == oldest.number),
            "found a newer table removed before an older one"
        );
        let output_level = gone.first().map_or(0, |(level, _, _)| *level);
        let shape = Shape { kind: JobKind::Drop, table_bytes: 0, overlap_bytes_max: u64::MAX, parts: 1 };
        Draft { reason: reason?, inputs: gone, output_level, output_run: 0 }.finish(state, shape)
    }

    fn merges(&self) -> bool {
        false
    }

    fn scores(&self, state: &State<K>) -> Scores {
        let (bytes, limit) = (state.bytes(), self.options.bytes_max);
        let runs = state.levels.iter().map(|level| level.runs.len()).sum();
        let score = bytes as f64 / limit.max(1) as f64;
        let levels = vec![LevelScore { level: 0, runs, bytes, target_bytes: limit, score }];
        // Removing tables costs nothing.
        Scores { levels, debt_bytes: 0, runs }
    }

    fn compact_range(&self, _state: &State<K>, _manual: &Manual<K>) -> ManualStep<K::Owned> {
        ManualStep::Done
    }
}
